// SPDX-License-Identifier: Apache-2.0
// One launch of one kernel, packed: how many threads, which parameters, how much scratch memory.
// What a family fills in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "driver/launch.hpp"

namespace gemmery::runtime {

// A plan is made on the stack for every run, so its parameter bytes are not cleared beforehand.
struct LaunchPlan {
  // What a kernel takes at most (CUDA C++ programming guide, __global__ function parameters).
  static constexpr std::size_t parameter_capacity = 4096;
  static constexpr std::size_t no_slot = static_cast<std::size_t>(-1);

  LaunchPlan() noexcept {}  // not defaulted: `LaunchPlan{}` would clear the parameter bytes

  // The struct that the kernel takes, by value; its only parameter.
  template <class Parameters>
  void set_parameters(const Parameters& parameters) noexcept {
    static_assert(std::is_trivially_copyable_v<Parameters>);
    static_assert(sizeof(Parameters) <= parameter_capacity && alignof(Parameters) <= 64);
    std::memcpy(parameter_bytes, &parameters, sizeof parameters);
    parameter_size = sizeof parameters;
  }

  // Writes the address of the scratch memory into the parameters.
  void place_workspace(void* workspace) noexcept {
    if (workspace_slot != no_slot)
      std::memcpy(parameter_bytes + workspace_slot, &workspace, sizeof workspace);
  }

  driver::LaunchShape shape;

  // Scratch memory on the device, aligned to 256 bytes; its address is written to the parameters at
  // `workspace_slot` (the offset of a pointer in the struct). Its first `zeroed_workspace_bytes`
  // are set to zero on the stream before every launch; where the kernel leaves them zero again, not
  // before one that nothing but such a kernel's launches came before in that memory.
  std::size_t workspace_bytes = 0;
  std::size_t zeroed_workspace_bytes = 0;
  bool leaves_zeros = false;
  std::size_t workspace_slot = no_slot;

  std::size_t parameter_size = 0;
  alignas(64) std::byte parameter_bytes[parameter_capacity];

  // Where each parameter of an entry that takes several begins; 0: it takes one, all the bytes.
  static constexpr std::size_t most_parameters = 64;
  std::size_t parameter_count = 0;
  std::uint16_t parameter_offsets[most_parameters];
};

}  // namespace gemmery::runtime
