// SPDX-License-Identifier: Apache-2.0
// A family of one: a user's source or images, built, stored, loaded and launched as ours are.
#pragma once

#include <memory>

#include "providers/user/declared_kernel.hpp"
#include "runtime/device_family.hpp"

namespace gemmery::user {

class CodeFamily final : public runtime::DeviceFamily {
 public:
  explicit CodeFamily(std::unique_ptr<const DeclaredKernel> declared);

  std::string_view provider() const noexcept override { return "user"; }
  std::string_view name() const noexcept override { return declared_->given().name; }
  int version() const noexcept override { return declared_->given().version; }

  Status carries(const GemmProblem& problem) const override { return declared_->carries(problem); }
  void match(const Query& query, std::vector<RankedKernel>& kernels) const override {
    declared_->match(*this, query, kernels);
  }
  void explain(const Query& query, std::vector<Reason>& reasons) const override {
    declared_->explain(*this, query, reasons);
  }
  void enumerate(const std::function<void(const Kernel&)>& visit) const override {
    visit(declared_->kernel_of(*this));
  }
  std::string kernel_name(const Kernel&) const override { return declared_->kernel_name(); }
  std::optional<Kernel> parse_name(std::string_view kernel_name) const override;
  std::vector<DesignField> design_fields(const Kernel&) const override {
    return declared_->fields();
  }
  std::span<const Target> target_table(const Kernel&) const noexcept override {
    return declared_->targets();
  }
  bool is_deterministic(const Kernel&) const override { return declared_->given().deterministic; }
  Status supports(const Kernel&, const Query& query) const override {
    return declared_->supports(query);
  }

  runtime::EmittedSource emit(const Kernel& kernel, Target target) const override;
  void pack(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const override;

 private:
  void check_code(std::span<const std::byte> code, CodeForm form) const override;
  std::shared_ptr<const runtime::DeviceArtifact> make_artifact(const Kernel& kernel, Target target,
                                                               CodeForm form) const override;

  std::unique_ptr<const DeclaredKernel> declared_;
};

}  // namespace gemmery::user
