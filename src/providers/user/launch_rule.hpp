// SPDX-License-Identifier: Apache-2.0
// A checked launch rule: the problems that it can launch, and how a launch is packed.
#pragma once

#include <gemmery/family.hpp>
#include <gemmery/user_kernel.hpp>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "providers/user/factors.hpp"
#include "providers/user/slot.hpp"
#include "runtime/device_family.hpp"
#include "runtime/entry_parameters.hpp"
#include "runtime/launch_plan.hpp"

namespace gemmery::user {

class LaunchRule {
 public:
  // `kernel` must outlive the rule; its operands' alignments are final. Throws Error
  // (invalid_argument, unsupported), which names the wrong field.
  LaunchRule(const UserKernel& kernel, const std::string& kernel_name);

  // Succeeds if the parameters describe the problem completely and it can be launched.
  Status check(const Query& query) const;

  // As DeviceFamily::pack, but without the workspace.
  void pack(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const;

  // The parameters that the launch passes to the entry.
  runtime::EntryParameters parameters() const;

  // The rule without its functions, as text for a digest.
  std::string text() const;

 private:
  using Blocks = std::array<std::int64_t, 3>;
  // CUDA C++ programming guide, "Compute Capabilities": the same on every device since sm_50.
  static constexpr Blocks most_blocks{0x7fffffff, 65535, 65535};

  // The facts of one tensor of a problem.
  struct Placed {
    MatrixType matrix;
    std::int64_t rows, columns;
  };

  void read_parameters();
  void check_shape() const;
  void require_all_operands() const;
  void require_all_extents() const;
  void require_strides() const;
  void check_map(const Slot& slot, const std::string& word) const;

  bool passes_address(int operand) const;
  bool passes_stride(int operand, Axis axis) const;
  bool passes_extent(char extent) const;
  bool passes(SlotKind kind) const;
  bool is_free_of(Quantity quantity) const;
  bool has_map_with_batches(int operand) const;
  std::vector<int> tensors() const;

  Status check_numbers(const GemmArguments& arguments) const;
  Status check_packed(int operand, const GemmProblem& problem) const;
  Status check_widths(const GemmProblem& problem) const;
  Status check_launch(const Query& query) const;
  Placed placed(int operand, const GemmProblem& problem) const;
  LayoutRule layout_of(int operand) const;
  std::optional<Blocks> blocks(const GemmProblem& problem, const DeviceInfo& device,
                               std::int64_t multiprocessors) const;
  Blocks grid_of(const runtime::PackRequest& request) const;
  void write(const Slot& slot, const runtime::PackRequest& request, std::byte* at) const;
  void write_map(const Slot& slot, const runtime::PackRequest& request, std::byte* at) const;

  const UserKernel& kernel_;
  std::string kernel_name_;
  SlotScope scope_;
  std::vector<Slot> slots_;
  std::vector<std::uint16_t> offsets_;
  std::size_t parameter_bytes_ = 0;
  std::vector<Factors> grid_;
};

}  // namespace gemmery::user
