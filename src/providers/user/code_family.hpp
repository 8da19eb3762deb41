// SPDX-License-Identifier: Apache-2.0
// A family with one kernel: a user's source or images, compiled, stored, loaded and launched like
// the library's own kernels.
#pragma once

#include <memory>

#include "providers/user/declared_family.hpp"
#include "runtime/device_family.hpp"

namespace gemmery::user {

class CodeFamily final : public DeclaredFamily<runtime::DeviceFamily> {
 public:
  explicit CodeFamily(std::unique_ptr<const DeclaredKernel> kernel);

  std::span<const Target> target_table(const Kernel&) const noexcept override {
    return declared().targets();
  }
  runtime::EmittedSource emit(const Kernel& kernel, Target target) const override;
  void pack(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const override;

 private:
  void check_code(std::span<const std::byte> code, CodeForm form) const override;
  std::shared_ptr<const runtime::DeviceArtifact> make_artifact(const Kernel& kernel, Target target,
                                                               CodeForm form) const override;
};

}  // namespace gemmery::user
