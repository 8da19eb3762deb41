// SPDX-License-Identifier: Apache-2.0
// A family with one kernel: a user's function that is called with the arguments.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "providers/user/declared_family.hpp"

namespace gemmery::user {

class CallableFamily final : public DeclaredFamily<Family> {
 public:
  explicit CallableFamily(std::unique_ptr<const DeclaredKernel> kernel);

  std::vector<Target> targets(const Kernel&) const override { return declared().targets(); }
  const DeviceInfo* device_info(Device device) const override;
  Target target_for(const Kernel& kernel, const DeviceInfo& device) const override;
  std::size_t workspace_bytes(const Kernel& kernel, const GemmArguments& arguments) const override;
  Artifact compile(const Kernel& kernel, Target target) const override;
  void run(const Kernel& kernel, const GemmArguments& arguments,
           const RunOptions& options) const override;

  // --- for its artifacts ---
  // Calls the user's `prepare` for a device, once.
  void prepare(Device device) const;
  // Calls the function with a workspace of the right size.
  void call(const UserCall& call) const;

 private:
  const UserCallable& callable() const { return std::get<UserCallable>(declared().given().code); }
  bool is_prepared(Device device) const;
  void prepare_for(Stream stream) const;

  mutable std::mutex preparing_;
  mutable std::vector<Device> prepared_;
};

}  // namespace gemmery::user
