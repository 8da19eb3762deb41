// SPDX-License-Identifier: Apache-2.0
// Code that programs load, and the handles of its kernels.
#pragma once

#include "drop_in/driver/call.hpp"

namespace gemmery::drop_in {

// PTX as text, or a fat binary that has some. Throws Refusal: no_binary_for_gpu for machine code,
// invalid_ptx, invalid_image.
cuda::Library load_code(const void* code);

// A kernel on the current device; programs may pass a kernel's handle where a function's is
// expected (cuLaunchKernel). Throws Refusal.
cuda::FunctionHandle& function_of(cuda::Function handle);

// Attributes of kernels by their numbers in the manual. Throw Refusal.
int kernel_attribute(const cuda::FunctionHandle& function, int attribute);
void set_kernel_attribute(cuda::FunctionHandle& function, int attribute, int value);

}  // namespace gemmery::drop_in
