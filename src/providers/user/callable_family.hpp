// SPDX-License-Identifier: Apache-2.0
// A family of one: a function of the user's that is called with the arguments.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "providers/user/declared_kernel.hpp"

namespace gemmery::user {

class CallableFamily final : public Family {
 public:
  explicit CallableFamily(std::unique_ptr<const DeclaredKernel> declared);

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
  std::vector<Target> targets(const Kernel&) const override { return declared_->targets(); }
  bool is_deterministic(const Kernel&) const override { return declared_->given().deterministic; }
  const DeviceInfo* device_info(Device device) const override;
  Target target_for(const Kernel& kernel, const DeviceInfo& device) const override;
  Status supports(const Kernel&, const Query& query) const override {
    return declared_->supports(query);
  }
  std::size_t workspace_bytes(const Kernel& kernel, const GemmArguments& arguments) const override;
  Artifact compile(const Kernel& kernel, Target target) const override;
  void run(const Kernel& kernel, const GemmArguments& arguments,
           const RunOptions& options) const override;

  // --- for its artifacts ---
  // Calls what was given to prepare for a device, once.
  void prepare(Device device) const;
  // Calls with a workspace of the right size.
  void call(const UserCall& call) const;

 private:
  const UserCallable& callable() const { return std::get<UserCallable>(declared_->given().code); }
  bool is_prepared(Device device) const;
  void prepare_for(Stream stream) const;

  std::unique_ptr<const DeclaredKernel> declared_;
  mutable std::mutex preparing_;
  mutable std::vector<Device> prepared_;
};

}  // namespace gemmery::user
