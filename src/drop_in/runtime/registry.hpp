// SPDX-License-Identifier: Apache-2.0
// What a program registers before main: fat binaries, kernels and variables by the addresses of
// their stand-ins on the host. A fat binary is loaded at the first use of something in it.
#pragma once

#include "drop_in/runtime/call.hpp"

namespace gemmery::drop_in::runtime {

// The kernel behind a function of the host, or the kernel's handle itself.
cuda::Result find_kernel(const void* function, cuda::Kernel& kernel) noexcept;
// The function on the current device.
cuda::Result find_function(const void* function, cuda::Function& found) noexcept;
// The function of the host that stands for a kernel of the current device; the handle itself if
// there is none.
void* stand_in_of(cuda::Function function) noexcept;
// The kernel's handle was given to the program, which may pass it in a function's place.
void note_given(cuda::Kernel kernel) noexcept;

// The address of a variable on the current device.
cuda::Result find_symbol(const void* symbol, cuda::DevicePointer& address,
                         std::size_t& bytes) noexcept;

}  // namespace gemmery::drop_in::runtime
