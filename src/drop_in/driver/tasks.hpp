// SPDX-License-Identifier: Apache-2.0
// What streams and graphs do for programs: copies and fills between any two places (devices, memory
// shared with the host, the host's own), kernels, calls of the host, allocations of graphs.
#pragma once

#include <cstdint>
#include <memory>

#include "drop_in/driver/call.hpp"

namespace gemmery::drop_in {

// An address of memory as a number.
inline std::uint64_t address_of(const void* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

// Throw Refusal (invalid_value) for bytes outside of an allocation of a device.
void copy_bytes(std::uint64_t to, std::uint64_t from, std::size_t bytes);
void fill_bytes(std::uint64_t to, unsigned value, unsigned element_bytes, std::size_t count);

// Throw Refusal: not_supported for arrays, invalid_value for parameters that are not valid. The
// parameters of a task are those that it was made of.
emulator::Task copy_task(std::uint64_t to, std::uint64_t from, std::size_t bytes);
emulator::Task copy_task(const cuda::Copy3D& copy);
emulator::Task fill_task(const cuda::Fill2D& fill);
emulator::Task host_task(const cuda::HostNodeParams& parameters);
// Of an emulator::KernelTask.
emulator::Task kernel_task(const cuda::KernelNodeParams& node);
// The memory has its address from now on, until the last node that has this task has gone.
emulator::Task allocation_task(std::size_t bytes, cuda::DevicePointer& pointer);
emulator::Task free_task(cuda::DevicePointer pointer);
// Runs a clone of the graph.
emulator::Task child_task(cuda::Graph child);
std::unique_ptr<cuda::GraphHandle> cloned(const cuda::GraphHandle& graph);

}  // namespace gemmery::drop_in
