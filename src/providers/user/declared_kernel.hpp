// SPDX-License-Identifier: Apache-2.0
// A user's kernel as declared and checked: its name, the problems that it supports, its stated
// time. The same for code that the library launches and for callables.
#pragma once

#include <gemmery/family.hpp>
#include <gemmery/user_kernel.hpp>

#include <optional>
#include <string>
#include <vector>

#include "providers/user/factors.hpp"
#include "providers/user/launch_rule.hpp"

namespace gemmery::user {

class DeclaredKernel {
 public:
  // Throws Error as register_kernel documents.
  explicit DeclaredKernel(UserKernel kernel);
  DeclaredKernel(const DeclaredKernel&) = delete;
  DeclaredKernel& operator=(const DeclaredKernel&) = delete;

  const UserKernel& given() const noexcept { return kernel_; }
  const std::string& kernel_name() const noexcept { return kernel_name_; }
  EpilogueId epilogue() const noexcept { return epilogue_; }
  const std::vector<DesignField>& fields() const noexcept { return fields_; }
  const std::vector<Target>& targets() const noexcept { return targets_; }
  // Only for code, not for a callable.
  const LaunchRule& launch() const noexcept { return *launch_; }

  Kernel kernel_of(const Family& family) const;

  // --- what a Family answers ---
  Status carries(const GemmProblem& problem) const;
  void match(const Family& family, const Query& query, std::vector<RankedKernel>& kernels) const;
  void explain(const Family& family, const Query& query, std::vector<Reason>& reasons) const;
  Status supports(const Query& query) const;
  // Throws Error: launch if the user's function throws, unsupported for more than any memory holds.
  std::size_t workspace_bytes(const GemmProblem& problem, const DeviceInfo& device) const;

 private:
  struct Prediction {
    double microseconds;
    std::string fault;  // the reason if a time was expected and there is none
  };

  void check_name() const;
  void check_epilogue() const;
  void check_code() const;
  void choose_targets();
  bool is_callable() const noexcept;
  Status check_multiples(const GemmProblem& problem) const;
  Status check_device(const Query& query) const;
  Prediction predict(const Query& query) const;

  UserKernel kernel_;
  std::string kernel_name_;
  EpilogueId epilogue_ = default_epilogue;
  std::vector<DesignField> fields_;
  std::vector<Target> targets_;
  std::optional<LaunchRule> launch_;
  Factors workspace_;
};

}  // namespace gemmery::user
