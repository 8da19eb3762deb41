// SPDX-License-Identifier: Apache-2.0
// Artifacts and prepared launches of kernels that are host functions: nothing is compiled, and
// arguments are kept as given.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/family.hpp>
#include <gemmery/kernel.hpp>

#include <optional>
#include <string_view>
#include <vector>

namespace gemmery::kernel {

class CodelessArtifact : public ArtifactState {
 public:
  CodelessArtifact(const Kernel& kernel, Target target) : kernel_(kernel), target_(target) {}

  const Kernel& kernel() const noexcept final { return kernel_; }
  std::vector<Target> targets() const final { return {target_}; }
  std::string_view source() const noexcept final { return {}; }
  std::string_view log() const noexcept final { return {}; }
  double compile_ms() const noexcept final { return 0; }
  std::optional<CodeResources> resources() const final { return std::nullopt; }
  void run(const GemmArguments& arguments, const RunOptions& options) const final {
    kernel_.family().run(kernel_, arguments, options);
  }

 private:
  Kernel kernel_;
  Target target_;
};

class CodelessLaunch : public PreparedLaunchState {
 public:
  explicit CodelessLaunch(const GemmArguments& arguments) : arguments_(arguments) {}

  void set_data(std::string_view operand, const void* data) final {
    arguments_.set_data(operand, data);
  }
  void set_scalars(double alpha, double beta) final { arguments_.set_scalars(alpha, beta); }
  void set_scalar(std::string_view name, double value) final { arguments_.set_scalar(name, value); }

 protected:
  const GemmArguments& arguments() const noexcept { return arguments_; }

 private:
  GemmArguments arguments_;
};

}  // namespace gemmery::kernel
