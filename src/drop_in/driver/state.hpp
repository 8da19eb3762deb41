// SPDX-License-Identifier: Apache-2.0
// What the library knows beside the emulator: memory shared with the host, pools, contexts that
// programs create.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "drop_in/driver/call.hpp"

namespace gemmery::drop_in {

// Memory of the host that kernels may access.
struct HostBlock {
  std::uint64_t address = 0;  // as kernels see it
  void* host = nullptr;
  std::size_t bytes = 0;
  unsigned flags = 0;
  bool is_managed = false;
  bool is_registered = false;  // the program's own memory
};

// Memory that a node of a graph allocates: it has its address as long as the graph has the node.
struct GraphBlock {
  std::size_t bytes = 0;
  bool is_live = false;  // allocated by a launch, and not freed since
};

struct State {
  std::mutex mutex;
  std::map<std::uint64_t, HostBlock> host_blocks;        // by `address`
  std::map<std::uint64_t, GraphBlock> graph_blocks;      // by address
  std::map<int, cuda::MemoryPoolHandle*> default_pools;  // by ordinal
  std::map<int, cuda::MemoryPool> current_pools;         // that programs have set
  std::set<std::pair<int, int>> peers;                   // (device, its peer)
  std::map<int, unsigned> context_flags;                 // of primary contexts
  std::map<int, std::size_t> limits;                     // that programs have set
};
State& state();

cuda::MemoryPoolHandle& default_pool(EmulatedDevice& device);
cuda::MemoryPoolHandle& current_pool(EmulatedDevice& device);

// The block with this address (as kernels or as the host sees it) somewhere inside.
std::optional<HostBlock> find_host_block(std::uint64_t address);

// Whose memory an address is: a device's, or the host's with a place in the devices' address space.
struct Owner {
  emulator::GlobalMemory* memory = nullptr;  // nullptr: other memory of the host
  EmulatedDevice* device = nullptr;          // nullptr: the host's
  std::string name() const;
};
Owner owner_of(std::uint64_t address);

}  // namespace gemmery::drop_in
