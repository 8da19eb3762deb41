// SPDX-License-Identifier: Apache-2.0
// Calls cublasLtMatmul for arguments.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/kernel.hpp>

#include <memory>

#include "providers/cublaslt/answers.hpp"
#include "runtime/launch_workspace.hpp"

namespace gemmery::cublaslt {

// An algorithm for one problem on one device.
struct Plan {
  const Library* library = nullptr;
  DeviceAnswers* device = nullptr;
  std::shared_ptr<const Answer> answer;
  const Choice* choice = nullptr;  // belongs to the answer
};

// Success if the numbers of the arguments can be expressed.
Status check_numbers(const Product& product, const GemmArguments& arguments);

// Enqueues the work. `operation` must belong to this call alone if the product has attachments.
// Throws Error: unsupported for numbers that cannot be expressed, launch for a failure.
void put(const Kernel& kernel, const Plan& plan, MatmulDescriptor operation,
         const GemmArguments& arguments, void* workspace, Stream stream);

// The same with a descriptor of its own, where one is needed.
void put_once(const Kernel& kernel, const Plan& plan, const GemmArguments& arguments,
              void* workspace, Stream stream);

// Keeps descriptor and scratch memory with the arguments.
std::unique_ptr<PreparedLaunchState> prepare(const Kernel& kernel, Plan plan,
                                             const GemmArguments& arguments,
                                             std::size_t workspace_bytes);

}  // namespace gemmery::cublaslt
