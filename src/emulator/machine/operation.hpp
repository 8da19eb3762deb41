// SPDX-License-Identifier: Apache-2.0
// A decoded instruction: a function with its operands resolved, run for one warp at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "emulator/program/program.hpp"

namespace gemmery::emulator {

using LaneMask = std::uint32_t;
inline constexpr int lanes_per_warp = 32;
inline constexpr LaneMask all_lanes = ~LaneMask{0};

class Warp;
struct Operation;

// How the lanes that ran an operation continue.
enum class Step : std::uint8_t {
  next,     // continue with the following instruction
  jumped,   // the operation has sent its lanes itself (branches, calls, exits)
  blocked,  // no effect; the operation is retried later (Warp::describe_wait names the reason)
  yield,    // as `next`, but other warps run first
};

// `active`: the lanes at the operation whose guard is true; never 0 (the machine skips operations
// whose guard is true in no lane).
using Execute = Step (*)(Warp& warp, const Operation& operation, LaneMask active);

// The location of an operand's 32 lanes: in the warp's registers or among the kernel's constants.
// Both are lane vectors: values of 8, 16 and 32 bits are std::uint32_t[32], the unused high bits
// zero; 64-bit ones std::uint64_t[32]; 128-bit ones 32 times 16 bytes; a predicate is one LaneMask.
// Vectors are aligned to 64 bytes, predicates to 4.
struct OperandSlot {
  std::uint32_t offset = 0;
  bool is_constant = false;
  RegisterIndex reg = no_register;  // the register, for definedness; no_register for constants
};

// Further data that a decoder adds to an operation; immutable.
struct OperationDetail {
  virtual ~OperationDetail() = default;
};

inline constexpr std::size_t max_slots = 8;

struct Operation {
  Execute execute = nullptr;
  std::uint32_t pc = 0;  // index into KernelImage::code
  std::uint32_t guard_offset = 0;
  bool has_guard = false;
  bool is_guard_negated = false;
  // The machine itself tracks definedness: the destinations are defined, lane by lane, if all
  // sources are. Loads, shuffles and matrix operations clear this and do it themselves.
  bool propagates_definedness = true;
  // Runs only when all live lanes of the warp have reached it; otherwise the machine waits for them
  // and reports divergent_barrier if they cannot (.aligned, .sync of a full mask …).
  bool needs_convergence = false;
  // … except for lanes that have exited: barriers of a CTA continue without those.
  bool tolerates_exited = false;
  // Has an effect that another warp, or memory, can observe. Deadlock detection counts these.
  bool has_side_effect = false;
  std::uint8_t slot_count = 0;
  std::array<OperandSlot, max_slots> slot{};  // in an order that the decoder chooses
  std::uint64_t immediate = 0;                // free for the decoder: offsets, sizes, table indices
  std::uint32_t flags = 0;                    // free for the decoder
  std::shared_ptr<const OperationDetail> detail;

  // The registers that it reads and writes, including the guard, for definedness and for accesses
  // to registers of a wgmma in flight. Lists of wgmma are long.
  std::vector<RegisterIndex> reads;
  std::vector<RegisterIndex> writes;

  const Instruction* text = nullptr;  // the instruction that was decoded
};

}  // namespace gemmery::emulator
