// SPDX-License-Identifier: Apache-2.0
// What is wrong with a kernel, and where: thrown by whatever notices it, ends the launch.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace gemmery::emulator {

enum class FaultKind : std::uint8_t {
  out_of_bounds,        // an access outside of any allocation, shared memory, local memory or map
  misaligned,           // an address that the access's width does not allow
  unwritten_read,       // memory that nobody wrote decided something (or was read by hardware)
  unwritten_register,   // a register that nobody wrote, or holding unwritten memory, decided
                        // something
  race,                 // two accesses, one a write, without order between them
  missing_proxy_fence,  // ordered, but the async proxy need not see it: fence.proxy.async
  in_flight,            // a register or tile touched before the wait of the wgmma that uses it
  mbarrier_misuse,      // uninitialised, too many arrivals, wrong byte count, wrong phase
  barrier_misuse,       // bar / barrier.cluster with wrong counts or warps
  divergent_barrier,    // an .aligned instruction or barrier that part of a warp skipped
  early_exit,           // a CTA left while its cluster still uses it
  deadlock,             // everybody waits
  timeout,              // no end within the step limit
  tensor_map,           // a map or box that is not valid
  illegal_instruction,  // operands that the hardware refuses: lengths, ids, descriptors
  trap,                 // trap or a failed assertion
};

// "race", "missing proxy fence", …
const char* name(FaultKind kind) noexcept;

// Who and where. Everything that is not known stays at its default.
struct FaultPlace {
  std::string kernel;
  std::array<std::uint32_t, 3> cta{};
  int warp = -1;
  int lane = -1;
  std::uint32_t ptx_line = 0;
  std::string ptx_text;     // the line itself
  std::string source_file;  // with -lineinfo
  std::uint32_t source_line = 0;
  std::string call_file;  // where the function that was inlined there was called, the outermost
  std::uint32_t call_line = 0;
};

// "kernel gemm, CTA (1,0,0), warp 3, lane 0, PTX line 412: st.shared.b32 …; kernel.cu:37,
// called at kernel.cu:90"
std::string to_string(const FaultPlace& place);

struct Fault : std::exception {
  FaultKind kind;
  std::string message;  // one sentence: what was done, what was expected, what to do
  FaultPlace place;
  // The access or the waits on the other side, one per line; empty where there is none.
  std::string other_side;

  Fault(FaultKind what_kind, std::string text) : kind(what_kind), message(std::move(text)) {}
  // "race: … \n  at kernel …\n  with …"; made when `place` is filled in.
  std::string report() const;
  const char* what() const noexcept override { return message.c_str(); }
};

}  // namespace gemmery::emulator
