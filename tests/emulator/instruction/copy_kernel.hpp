// SPDX-License-Identifier: Apache-2.0
// Small kernels around one copy instruction: their text, launch and results.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "emulator/instruction/image/build_image.hpp"
#include "emulator/machine/launch.hpp"
#include "emulator/memory/tensor_map.hpp"
#include "emulator/program/parser.hpp"

namespace gemmery::emulator::tests {

// A kernel k(in, out, map) with registers, a tile and an mbarrier in shared memory. %rd1 and %rd2
// hold in and out, %rd3 the map's generic address, %r1 the tile, %r2 the mbarrier, %r3 %tid.x, %r4
// the CTA's rank in its cluster.
inline std::string copy_kernel(const std::string& body) {
  return R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out, .param .align 64 .b8 map[128])
{
.reg .pred %p<8>;
.reg .b16 %h<8>;
.reg .b32 %r<64>;
.reg .b64 %rd<32>;
.shared .align 1024 .b8 tile[32768];
.shared .align 8 .b64 bar[2];
ld.param.u64 %rd1, [in];
ld.param.u64 %rd2, [out];
mov.b64 %rd4, map;
cvta.param.u64 %rd3, %rd4;
mov.u32 %r1, tile;
mov.u32 %r2, bar;
mov.u32 %r3, %tid.x;
mov.u32 %r4, %cluster_ctarank;
)" + body +
         "\nret;\n}\n";
}

// Waits for phase 0 of the mbarrier at %r2.
inline std::string wait_for_phase_0(const std::string& label = "WAIT") {
  return label + ": mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;\n@!%p1 bra " + label +
         ";\n";
}

struct CopyLaunch {
  std::uint32_t threads = 1;
  std::uint32_t cluster = 1;
  std::uint32_t clusters = 1;  // in the grid
  std::uint64_t seed = 1;
  TensorMapBytes map{};
};

class CopyMachine {
 public:
  std::uint64_t allocate(std::uint64_t bytes) { return memory_.allocate(bytes); }
  template <class T>
  std::uint64_t upload(const std::vector<T>& values) {
    const std::uint64_t address = memory_.allocate(values.size() * sizeof(T));
    EXPECT_TRUE(memory_.copy_in(address, values.data(), values.size() * sizeof(T)));
    return address;
  }
  template <class T>
  std::vector<T> download(std::uint64_t address, std::size_t count) {
    std::vector<T> values(count);
    EXPECT_TRUE(memory_.copy_out(values.data(), address, count * sizeof(T)));
    return values;
  }

  void run(const std::string& body, std::uint64_t in, std::uint64_t out,
           const CopyLaunch& launch = {}) {
    const auto program = std::make_shared<const Program>(parse_ptx(copy_kernel(body)));
    const ModuleVariables variables = place_variables(*program, memory_);
    std::vector<std::byte> parameters(192);
    std::memcpy(parameters.data(), &in, 8);
    std::memcpy(parameters.data() + 8, &out, 8);
    std::memcpy(parameters.data() + 64, launch.map.data(), 128);
    run_grid({.image = build_image(program, "k", variables),
              .grid = {launch.cluster * launch.clusters, 1, 1},
              .block = {launch.threads, 1, 1},
              .cluster = {launch.cluster, 1, 1},
              .parameters = parameters,
              .seed = launch.seed},
             memory_);
    memory_.forget_accesses();
  }

  // The fault that is reported for the kernel; the test fails if there is none.
  Fault fault_of(const std::string& body, std::uint64_t in, std::uint64_t out,
                 const CopyLaunch& launch = {}) {
    try {
      run(body, in, out, launch);
    } catch (const Fault& fault) {
      memory_.forget_accesses();
      return fault;
    }
    ADD_FAILURE() << "no fault was found in\n" << body;
    return {FaultKind::trap, ""};
  }

  GlobalMemory& memory() { return memory_; }

 private:
  GlobalMemory memory_{std::uint64_t{1} << 30};
};

}  // namespace gemmery::emulator::tests
