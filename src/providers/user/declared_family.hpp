// SPDX-License-Identifier: Apache-2.0
// A family with one declared kernel: answers queries by the declaration. It does not depend on how
// the kernel runs.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "providers/user/declared_kernel.hpp"

namespace gemmery::user {

// `Base` is Family, or a subclass with its own way to run kernels.
template <class Base>
class DeclaredFamily : public Base {
 public:
  std::string_view provider() const noexcept final { return "user"; }
  std::string_view name() const noexcept final { return declared_->given().name; }
  int version() const noexcept final { return declared_->given().version; }

  Status carries(const GemmProblem& problem) const final { return declared_->carries(problem); }
  void match(const Query& query, std::vector<RankedKernel>& kernels) const final {
    declared_->match(*this, query, kernels);
  }
  void explain(const Query& query, std::vector<Reason>& reasons) const final {
    declared_->explain(*this, query, reasons);
  }
  void enumerate(const std::function<void(const Kernel&)>& visit) const final {
    visit(declared_->kernel_of(*this));
  }
  std::string kernel_name(const Kernel&) const final { return declared_->kernel_name(); }
  std::optional<Kernel> parse_name(std::string_view kernel_name) const final {
    if (kernel_name != declared_->kernel_name()) return std::nullopt;
    return declared_->kernel_of(*this);
  }
  std::vector<DesignField> design_fields(const Kernel&) const final { return declared_->fields(); }
  bool is_deterministic(const Kernel&) const final { return declared_->given().deterministic; }
  Status supports(const Kernel&, const Query& query) const final {
    return declared_->supports(query);
  }

 protected:
  explicit DeclaredFamily(std::unique_ptr<const DeclaredKernel> kernel)
      : declared_(std::move(kernel)) {}

  const DeclaredKernel& declared() const noexcept { return *declared_; }

 private:
  std::unique_ptr<const DeclaredKernel> declared_;
};

}  // namespace gemmery::user
