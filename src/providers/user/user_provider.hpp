// SPDX-License-Identifier: Apache-2.0
// Kernels of users: each is a separate family of the provider "user".
#pragma once

#include <gemmery/user_kernel.hpp>

namespace gemmery::user {

// Implements register_kernel and withdraw_kernel after the library's own families are registered.
Kernel add_kernel(UserKernel kernel);
void remove_kernel(const Kernel& kernel);

}  // namespace gemmery::user
