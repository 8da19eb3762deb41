// SPDX-License-Identifier: Apache-2.0
// A family with three designs that runs nothing, for tests of code that uses families.
#pragma once

#include <gemmery/error.hpp>
#include <gemmery/family.hpp>

#include <atomic>
#include <string>

namespace gemmery::tests {

struct ToyDesign {
  int number = 0;
};

class ToyFamily : public Family {
 public:
  explicit ToyFamily(std::string name, Target target = parse_target("sm_90"))
      : name_(std::move(name)), target_(target) {}

  std::string_view provider() const noexcept override { return "toys"; }
  std::string_view name() const noexcept override { return name_; }
  int version() const noexcept override { return 1; }

  Kernel kernel(int number) const {
    const OperandRule rule{.dtype = DType::float32, .layout = LayoutRule::row, .alignment = 4};
    return Kernel(*this, {.a = rule, .b = rule, .c = {}, .out = rule},
                  DesignBytes::of(ToyDesign{number}));
  }
  void match(const Query& query, std::vector<RankedKernel>& kernels) const override {
    enumerate([&](const Kernel& one) {
      if (one.supports(query.problem, query.device))
        kernels.emplace_back(one, 10.0 * one.design().as<ToyDesign>().number);
    });
  }
  void explain(const Query& query, std::vector<Reason>& reasons) const override {
    const Status status = kernel(1).supports(query.problem, query.device);
    reasons.push_back({.provider = "toys",
                       .family = name_,
                       .design_class = {},
                       .failed = status.error(),
                       .fitting = status ? 3 : 0,
                       .nearest = {}});
  }
  void enumerate(const std::function<void(const Kernel&)>& visit) const override {
    for (const int number : {3, 1, 2}) visit(kernel(number));
  }
  std::string kernel_name(const Kernel& one) const override {
    return name_ + "_" + std::to_string(one.design().as<ToyDesign>().number);
  }
  std::optional<Kernel> parse_name(std::string_view text) const override {
    for (const int number : {1, 2, 3}) {
      if (kernel_name(kernel(number)) == text) return kernel(number);
    }
    return std::nullopt;
  }
  std::vector<DesignField> design_fields(const Kernel& one) const override {
    return {{"number", std::to_string(one.design().as<ToyDesign>().number)}};
  }
  std::vector<Target> targets(const Kernel&) const override { return {target_}; }
  const DeviceInfo* device_info(Device) const override { return nullptr; }
  Target target_for(const Kernel&, const DeviceInfo&) const override { return target_; }
  Status supports(const Kernel&, const Query&) const override { return Status::success(); }
  std::size_t workspace_bytes(const Kernel&, const GemmArguments&) const override { return 0; }
  Artifact compile(const Kernel&, Target) const override {
    throw Error({.kind = ErrorKind::unsupported, .operand = name_, .got = "a toy"});
  }
  void run(const Kernel&, const GemmArguments&, const RunOptions&) const override {}

 private:
  std::string name_;
  Target target_;
};

}  // namespace gemmery::tests
