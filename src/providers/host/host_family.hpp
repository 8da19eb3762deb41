// SPDX-License-Identifier: Apache-2.0
// The common part of the CPU's families: one kernel per combination of types, named after it;
// nothing to compile or load.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gemmery/family.hpp>

#include "providers/host/grouped.hpp"

namespace gemmery::host {

// The types of a product, which decide whether a family serves it, whatever the shapes.
struct ProductTypes {
  DType a, b, accumulator;
  Math math;
};

// The combinations that GemmArguments accepts, in a fixed order.
const std::vector<ProductTypes>& legal_products();
bool is_legal(const ProductTypes& types);

class HostFamily : public Family {
 public:
  explicit HostFamily(std::string_view name) : name_(name) {}

  std::string_view provider() const noexcept override { return "host"; }
  std::string_view name() const noexcept override { return name_; }
  int version() const noexcept override { return 1; }

  // Any program.
  Status carries(const GemmProblem&) const override { return Status::success(); }
  bool takes_pointers() const noexcept override { return true; }
  bool takes_groups(const Groups&) const noexcept override { return true; }
  bool takes_indices(const Groups&) const noexcept override { return true; }
  bool takes_convolution(const Convolution&) const noexcept override { return true; }
  bool takes_companions(const GemmProblem&) const noexcept override { return true; }
  bool takes_operand_programs(const GemmProblem&) const noexcept override { return true; }
  bool takes_prepared(const GemmProblem&) const noexcept override { return true; }
  void match(const Query& query, std::vector<RankedKernel>& kernels) const override;
  void explain(const Query& query, std::vector<Reason>& reasons) const override;
  void enumerate(const std::function<void(const Kernel&)>& visit) const override;

  // "host_plain_v1_f16_f16_out_f32_acc_f32_c_none_math_native", with "_e-" and a digest for an
  // epilogue other than the default one.
  std::string kernel_name(const Kernel& kernel) const override;
  std::optional<Kernel> parse_name(std::string_view kernel_name) const override;
  std::vector<DesignField> design_fields(const Kernel& kernel) const override;
  std::vector<Target> targets(const Kernel& kernel) const override;
  const DeviceInfo* device_info(Device device) const override;
  Target target_for(const Kernel& kernel, const DeviceInfo& device) const override;
  Status supports(const Kernel& kernel, const Query& query) const override;
  std::size_t workspace_bytes(const Kernel&, const GemmArguments&) const override { return 0; }
  Artifact compile(const Kernel& kernel, Target target) const override;
  void run(const Kernel& kernel, const GemmArguments& arguments,
           const RunOptions& options) const override;

 protected:
  virtual Status serves_types(const ProductTypes& types) const = 0;
  // The shape's part of the answer; the types are the other part.
  virtual Status serves_shape(const GemmProblem& problem) const = 0;
  virtual double predicted_us(const GemmProblem& problem, const DeviceInfo& device) const = 0;
  virtual void multiply(const GemmArguments& arguments, int threads) const = 0;
  // Whether `multiply` may be called by several threads at once.
  virtual Concurrency concurrency() const noexcept { return Concurrency::side_by_side; }
  virtual std::vector<DesignField> own_design_fields() const = 0;

 private:
  Kernel kernel_for(const GemmProblem& problem) const;
  Status serves(const GemmProblem& problem) const;
  Status serves_groups_or_shape(const GemmProblem& problem) const;

  std::string name_;
};

}  // namespace gemmery::host
