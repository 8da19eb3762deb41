// SPDX-License-Identifier: Apache-2.0
// The source of a simt kernel with all headers in it, and one place of it replaced.
#include "tests/conformance/device_mutants.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include <fmt/format.h>

#include "core/invariant.hpp"
#include "jit/embedded.hpp"
#include "kernel/rules.hpp"
#include "providers/templates/gemm_simt.hpp"
#include "providers/templates/gemm_simt_design.hpp"

namespace gemmery::conformance {
namespace {

using templates::SimtTile;

// Sums of two slices of k meet in shared memory; tiles are small, with few accumulators.
constexpr SimtTile tile_of_two_slices{
    .m = 32, .n = 32, .k = 16, .thread_m = 4, .thread_n = 4, .k_slices = 2, .stages = 3};

struct FaultRow {
  std::string_view name;
  std::string_view sound;  // stands once in the source
  std::string_view faulty;
};

constexpr FaultRow fault_table[] = {
    {"nothing", "", ""},
    {"no barrier after a block of k",
     "ptx::cp_async_wait_group<design.stages - 2>();\n    __syncthreads();",
     "ptx::cp_async_wait_group<design.stages - 2>();"},
    {"one group too many under way", "cp_async_wait_group<design.stages - 2>",
     "cp_async_wait_group<design.stages - 1>"},
    {"copies that belong to no group", "ptx::cp_async_commit_group();", ""},
    {"the ring is one slot short", "slot == (design.stages - 1) * bytes",
     "slot == (design.stages - 2) * bytes"},
    {"slots given up before all have read them",
     "ptx::cp_async_wait_group<0>();\n    __syncthreads();", "ptx::cp_async_wait_group<0>();"},
    {"no barrier before sums are read", "__syncthreads();  // waits for the slice's sums", ""},
    {"sums overlap by one", "sums[index * per_slice] = value;",
     "sums[index * per_slice + 1] = value;"},
    {"accumulators never cleared", "for_each_sum([](int, Number& sum) { sum = Number{0}; });", ""},
    {"stores a column too many", "tile_column >= columns_left", "tile_column > columns_left"},
    {"stores a row too many", "tile_row >= rows_left", "tile_row > rows_left"},
    {"reads beyond the end of k", "return clamp(k_left - k_ - Units::pass_k(pass), 0, Units::k);",
     "return Units::k;"},
    {"reads beyond the last row",
     "return clamp(extent_left_ - extent_ - Units::pass_extent(pass), 0, Units::extent);",
     "return Units::extent;"},
};

// --- source -------------------------------------------------------------------------------------

std::string_view header_text(std::string_view name) {
  for (const jit::EmbeddedHeader& header : jit::embedded_headers()) {
    if (header.name == name) return {header.text, header.size};
  }
  abort_on_bug("a device header that is not embedded");
}

// Puts headers in the place of their includes, each once.
void append_with_headers(std::string_view source, std::set<std::string_view>& seen,
                         std::string& text) {
  constexpr std::string_view include = "#include <device/";
  while (!source.empty()) {
    const std::size_t end = std::min(source.find('\n'), source.size() - 1) + 1;
    const std::string_view line = source.substr(0, end);
    source.remove_prefix(end);
    if (line.starts_with("#pragma once")) continue;
    if (!line.starts_with(include)) {
      text += line;
      continue;
    }
    const std::size_t begin = line.find('<') + 1;
    const std::string_view name = line.substr(begin, line.find('>') - begin);
    if (seen.insert(name).second) append_with_headers(header_text(name), seen, text);
  }
}

std::string plant(std::string_view source, const FaultRow& fault) {
  std::set<std::string_view> seen;
  std::string text;
  append_with_headers(source, seen, text);
  if (fault.sound.empty()) return text;
  const std::size_t at = text.find(fault.sound);
  if (at == std::string::npos || text.find(fault.sound, at + 1) != std::string::npos)
    abort_on_bug("what a device mutant replaces must stand once in the source");
  return text.replace(at, fault.sound.size(), fault.faulty);
}

// --- the family ---------------------------------------------------------------------------------

// A tile keeps the fault's row in its reserved byte.
const FaultRow& row_of(const Kernel& kernel) {
  return fault_table[kernel.design().as<SimtTile>().reserved];
}

class DeviceMutants final : public runtime::DeviceFamily {
 public:
  std::string_view provider() const noexcept override { return "test"; }
  std::string_view name() const noexcept override { return "device_mutants"; }
  int version() const noexcept override { return 1; }

  void match(const Query& query, std::vector<RankedKernel>& kernels) const override {
    enumerate([&](const Kernel& kernel) {
      if (kernel::keeps_rules(kernel.operands(), query.problem) && supports(kernel, query))
        kernels.emplace_back(kernel, 1e12);
    });
  }
  void explain(const Query&, std::vector<Reason>& reasons) const override {
    reasons.push_back({.provider = "test",
                       .family = "device_mutants",
                       .design_class = {},
                       .failed = "not meant to fit",
                       .fitting = 0,
                       .nearest = {}});
  }
  void enumerate(const std::function<void(const Kernel&)>& visit) const override {
    for (std::size_t row = 0; row < std::size(fault_table); ++row) visit(make(row));
  }
  std::string kernel_name(const Kernel& kernel) const override {
    return fmt::format("device-mutant{}", kernel.design().as<SimtTile>().reserved);
  }
  std::optional<Kernel> parse_name(std::string_view kernel_name) const override {
    for (std::size_t row = 0; row < std::size(fault_table); ++row) {
      if (this->kernel_name(make(row)) == kernel_name) return make(row);
    }
    return std::nullopt;
  }
  std::vector<DesignField> design_fields(const Kernel& kernel) const override {
    return {{"fault", std::string(row_of(kernel).name)},
            {"tile", templates::tile_text(kernel.design().as<SimtTile>())}};
  }
  std::vector<Target> targets(const Kernel& kernel) const override { return simt_.targets(kernel); }
  Status supports(const Kernel& kernel, const Query& query) const override {
    return simt_.supports(kernel, query);
  }
  runtime::EmittedSource emit(const Kernel& kernel, Target target) const override {
    runtime::EmittedSource source = simt_.emit(kernel, target);
    source.text = plant(source.text, row_of(kernel));
    return source;
  }
  void pack(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const override {
    simt_.pack(request, plan);
  }

 private:
  Kernel make(std::size_t row) const {
    const OperandRule any{.dtype = DType::float32, .layout = LayoutRule::any, .alignment = 4};
    SimtTile tile = tile_of_two_slices;
    tile.reserved = static_cast<std::uint8_t>(row);
    return Kernel(*this, {.a = any, .b = any, .c = {}, .out = any, .accumulator = DType::float32},
                  DesignBytes::of(tile));
  }

  templates::SimtFamily simt_;
};

}  // namespace

std::unique_ptr<Family> make_device_mutants() { return std::make_unique<DeviceMutants>(); }
std::string_view fault_of(const Kernel& kernel) { return row_of(kernel).name; }

}  // namespace gemmery::conformance
