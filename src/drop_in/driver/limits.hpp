// SPDX-License-Identifier: Apache-2.0
// The limits of an architecture (CUDA C++ Programming Guide, "Technical Specifications per Compute
// Capability") and what follows from them.
#pragma once

#include <cstddef>

#include <gemmery/device.hpp>

#include "drop_in/driver/driver_calls.hpp"
#include "emulator/machine/kernel_image.hpp"

namespace gemmery::drop_in {

struct ArchitectureLimits {
  int threads = 2048;  // of a multiprocessor
  int blocks = 32;     // of a multiprocessor
};
ArchitectureLimits limits_of(Target target) noexcept;

inline constexpr int most_threads_per_block = 1024;
inline constexpr int registers_per_multiprocessor = 65536;
inline constexpr int shared_bytes_without_opting_in = 48 * 1024;
inline constexpr int reserved_shared_bytes = 1024;  // of each block

// The most threads that a block of the kernel may have.
int most_threads_of(const emulator::KernelImage& image) noexcept;

// The blocks of a kernel that a multiprocessor holds. Registers do not count: PTX does not say how
// many the machine code has.
int active_blocks(const DeviceInfo& device, const emulator::KernelImage& image, int block_size,
                  std::size_t dynamic_shared_bytes) noexcept;

// The value of a device attribute (CUdevice_attribute, and the runtime's numbers, which are the
// same); 0 for what the emulator does not have.
int attribute_of(const DeviceInfo& device, int ordinal, int attribute) noexcept;

}  // namespace gemmery::drop_in
