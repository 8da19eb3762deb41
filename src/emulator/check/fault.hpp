// SPDX-License-Identifier: Apache-2.0
// A fault of a kernel and its place: thrown by the check that finds it; ends the launch.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

namespace gemmery::emulator {

enum class FaultKind : std::uint8_t {
  out_of_bounds,        // an access outside of every allocation, shared memory, local memory or map
  misaligned,           // an address that is not a multiple of the access's width
  unwritten_read,       // unwritten memory was used in a decision (or read by hardware)
  unwritten_register,   // a decision used a register that was never written, or that holds
                        // unwritten memory
  race,                 // two unordered accesses, one of them a write
  missing_proxy_fence,  // ordered, but not visible to the async proxy: fence.proxy.async
  in_flight,            // a register or tile was accessed before the wait for its wgmma
  mbarrier_misuse,      // uninitialised, too many arrivals, wrong byte count, wrong phase
  barrier_misuse,       // bar / barrier.cluster with wrong counts or warps
  divergent_barrier,    // an .aligned instruction or barrier that part of a warp skipped
  early_exit,           // a CTA exited while its cluster still used it
  deadlock,             // all warps wait
  timeout,              // the step limit was reached
  tensor_map,           // a map or box that is not valid
  illegal_instruction,  // invalid operands: lengths, ids, descriptors
  trap,                 // trap or a failed assertion
};

// "race", "missing proxy fence", …
const char* name(FaultKind kind) noexcept;

// The place of a fault. Unknown fields keep their defaults.
struct FaultPlace {
  std::string kernel;
  std::array<std::uint32_t, 3> cta{};
  int warp = -1;
  int lane = -1;
  std::uint32_t ptx_line = 0;
  std::string ptx_text;     // the text of the PTX line
  std::string source_file;  // with -lineinfo
  std::uint32_t source_line = 0;
  std::string call_file;  // the call site of the outermost function that was inlined there
  std::uint32_t call_line = 0;
};

// "sum<float>(float const*)" for a mangled C++ name; other names are returned unchanged.
std::string demangled(const std::string& name);

// "kernel gemm, CTA (1,0,0), warp 3, lane 0, PTX line 412: st.shared.b32 …; kernel.cu:37,
// called at kernel.cu:90"
std::string to_string(const FaultPlace& place);

struct Fault : std::exception {
  FaultKind kind;
  std::string message;  // one sentence: what happened, what was expected, what to do
  FaultPlace place;
  // The other access or the waits, one per line; empty if there is none.
  std::string other_side;
  FaultPlace other;               // the place of the other access; ptx_line 0: there is none
  bool is_by_the_letter = false;  // the order is missing, but no execution gives another result

  Fault(FaultKind what_kind, std::string text) : kind(what_kind), message(std::move(text)) {}
  // "race: … \n  at kernel …\n  with …". Requires `place`.
  std::string report() const;
  const char* what() const noexcept override { return message.c_str(); }
};

}  // namespace gemmery::emulator
