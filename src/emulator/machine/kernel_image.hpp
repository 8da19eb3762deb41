// SPDX-License-Identifier: Apache-2.0
// An entry function of a program, decoded and laid out, ready to launch any number of times.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "emulator/machine/aligned_bytes.hpp"
#include "emulator/machine/operation.hpp"
#include "emulator/memory/address.hpp"
#include "emulator/memory/global_memory.hpp"
#include "emulator/program/program.hpp"

namespace gemmery::emulator {

// The addresses of the module's global and constant variables; made once per module and device.
struct ModuleVariables {
  std::map<std::string, std::uint64_t, std::less<>> addresses;
};

struct KernelImage {
  std::shared_ptr<const Program> program;
  const Function* entry = nullptr;
  std::string name;
  std::vector<Operation> code;  // the entry and all functions that it may call
  std::uint32_t entry_pc = 0;
  AlignedBytes constants;  // lane vectors of immediates
  // Lane vectors among the constants that hold shared addresses. Such an address names its CTA
  // (memory/address.hpp), so the machine keeps a copy of the constants for each rank of a cluster,
  // with `rank << shared_rank_shift` added to every lane of these.
  struct SharedConstant {
    std::uint32_t offset = 0;      // into `constants`
    std::uint32_t lane_bytes = 4;  // 4 or 8
  };
  std::vector<SharedConstant> shared_constants;
  std::uint32_t register_count = 0;  // of all functions together, each its own
  std::uint32_t register_bytes = 0;
  std::vector<std::uint32_t> register_offset;  // by register index over all functions
  std::vector<ScalarType> register_type;
  std::vector<std::string> register_name;
  std::uint32_t parameter_bytes = 0;
  std::vector<std::uint32_t> parameter_offset;  // the offset of each parameter, and
  std::vector<std::uint32_t> parameter_size;
  std::uint32_t shared_begin = shared_reserved_bytes;  // less if it uses reserved memory
  std::uint32_t static_shared_bytes = 0;               // dynamic shared memory follows it
  std::uint32_t dynamic_shared_alignment = 16;
  std::uint32_t local_bytes = 0;  // per thread
  // Local memory from here on is a stack for arrays of functions that call themselves.
  std::uint32_t call_stack_begin = 0;
  // True if CTAs may communicate through global memory (atomics, acquire, release, volatile). They
  // then take turns on one host thread in an order given by the seed, as many at a time as a device
  // would hold.
  bool needs_ordered_grid = false;
  bool names_grid_workspace = false;  // %envreg1 and 2, as the grid's barrier does

  // PTX line, its text and the source line of a pc.
  FaultPlace place_of(std::uint32_t pc) const;
};

}  // namespace gemmery::emulator
