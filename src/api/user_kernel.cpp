// SPDX-License-Identifier: Apache-2.0
// Kernels of users among those of the library.
#include <gemmery/discovery.hpp>
#include <gemmery/user_kernel.hpp>

#include <utility>

#include "providers/user/user_provider.hpp"

namespace gemmery {

Kernel register_kernel(UserKernel kernel) {
  (void)provider_names();  // registers the library's own families, which come first
  return user::add_kernel(std::move(kernel));
}

void withdraw_kernel(const Kernel& kernel) { user::remove_kernel(kernel); }

}  // namespace gemmery
