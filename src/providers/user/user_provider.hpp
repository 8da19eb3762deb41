// SPDX-License-Identifier: Apache-2.0
// Kernels that users bring: each a family of its own under the provider "user".
#pragma once

#include <gemmery/user_kernel.hpp>

namespace gemmery::user {

// What register_kernel and withdraw_kernel do, once the library's own families are registered.
Kernel add_kernel(UserKernel kernel);
void remove_kernel(const Kernel& kernel);

}  // namespace gemmery::user
