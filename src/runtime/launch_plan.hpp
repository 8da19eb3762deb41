// SPDX-License-Identifier: Apache-2.0
// One packed launch of one kernel: its grid, parameters and scratch memory. A family fills it in.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>

#include "driver/launch.hpp"

namespace gemmery::runtime {

// A kernel of the same code that fills a part of the workspace. It is launched before the plan's
// kernel on the same stream and takes one struct.
struct Preparation {
  static constexpr std::size_t parameter_capacity = 256;

  Preparation() noexcept {}  // not defaulted, as in LaunchPlan

  template <class Parameters>
  void set_parameters(const Parameters& parameters) noexcept {
    static_assert(std::is_trivially_copyable_v<Parameters>);
    static_assert(sizeof(Parameters) <= parameter_capacity && alignof(Parameters) <= 16);
    std::memcpy(parameter_bytes, &parameters, sizeof parameters);
  }

  driver::LaunchShape shape;
  std::size_t workspace_slot = 0;  // offset of the workspace's address in its parameters
  alignas(16) std::byte parameter_bytes[parameter_capacity];
};

// A tensor map among a plan's parameters that describes a part of the workspace.
struct WorkspaceMap {
  std::size_t parameter_offset = 0;
  std::size_t workspace_offset = 0;  // a multiple of 16
};

// A plan is made on the stack for every run, so its parameter bytes are not cleared.
struct LaunchPlan {
  // The most parameter bytes that all targets and drivers accept, and that sm_70 and later accept
  // with drivers of CUDA 12.1 and later (CUDA C++ programming guide, __global__ function
  // parameters).
  static constexpr std::size_t parameter_capacity = 4096;
  static constexpr std::size_t large_capacity = 32764;
  static constexpr std::size_t no_slot = static_cast<std::size_t>(-1);

  LaunchPlan() noexcept {}  // not defaulted: `LaunchPlan{}` would clear the parameter bytes

  // Sets the struct that the kernel takes by value as its only parameter.
  template <class Parameters>
  void set_parameters(const Parameters& parameters) noexcept {
    static_assert(std::is_trivially_copyable_v<Parameters>);
    static_assert(sizeof(Parameters) <= parameter_capacity && alignof(Parameters) <= 64);
    std::memcpy(parameter_bytes, &parameters, sizeof parameters);
    parameter_size = sizeof parameters;
  }

  // The same for a struct of more than parameter_capacity bytes, which is not changed later.
  template <class Parameters>
  void set_large_parameters(std::shared_ptr<Parameters> parameters) noexcept {
    static_assert(std::is_trivially_copyable_v<Parameters>);
    static_assert(sizeof(Parameters) <= large_capacity);
    large_parameters = std::move(parameters);
  }

  void* parameters() noexcept {
    return large_parameters ? large_parameters.get() : static_cast<void*>(parameter_bytes);
  }

  void add_workspace_map(const WorkspaceMap& map) noexcept {
    workspace_maps[workspace_map_count++] = map;
  }

  driver::LaunchShape shape;

  // Scratch memory on the device, aligned to 256 bytes. Its address is written into the parameters
  // at `workspace_slot` (the offset of a pointer in the struct). The first `zeroed_workspace_bytes`
  // are set to zero on the stream before every launch. If the kernel leaves them zero, they are not
  // cleared again while only launches of such a kernel use that memory.
  std::size_t workspace_bytes = 0;
  std::size_t zeroed_workspace_bytes = 0;
  bool leaves_zeros = false;
  std::size_t workspace_slot = no_slot;
  // The same for the address after the first `later_workspace_offset` bytes.
  std::size_t later_workspace_slot = no_slot;
  std::size_t later_workspace_offset = 0;
  static constexpr std::size_t most_workspace_maps = 2;
  std::size_t workspace_map_count = 0;
  std::array<WorkspaceMap, most_workspace_maps> workspace_maps;

  // If true, the entry of EmittedSource::preparation runs before the kernel.
  bool has_preparation = false;
  Preparation preparation;

  std::size_t parameter_size = 0;
  alignas(64) std::byte parameter_bytes[parameter_capacity];
  std::shared_ptr<void> large_parameters;  // shared by copies of the plan

  // The offset of each parameter, for an entry that takes several; 0: it takes one, all the bytes.
  static constexpr std::size_t most_parameters = 64;
  std::size_t parameter_count = 0;
  std::uint16_t parameter_offsets[most_parameters];
};

}  // namespace gemmery::runtime
