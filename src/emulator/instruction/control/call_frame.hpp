// SPDX-License-Identifier: Apache-2.0
// The frame of a function that may be entered again before it has returned. Functions have static
// places for their registers and parameters (decode.hpp), so a call that may lead back to its
// caller saves the caller's; local arrays, whose addresses may be known elsewhere, lie in a stack.
#pragma once

#include <vector>

#include "emulator/instruction/decode.hpp"

namespace gemmery::emulator {

struct CallFrame {
  struct SavedRegister {
    OperandSlot slot;
    std::uint32_t bytes = 0;  // of one lane; 0: a predicate
  };
  struct LocalArray {
    OperandSlot address;  // the hidden register that holds it
    std::uint32_t offset = 0;
  };
  std::vector<SavedRegister> registers;
  std::vector<FunctionPlace::Block> blocks;  // parameters, results, those of its calls
  std::vector<LocalArray> arrays;
  std::uint32_t array_bytes = 0;
};

// Whether bytes of local memory were written; `byte` counts over all lanes.
bool is_local_written(const Warp& warp, std::size_t byte) noexcept;
void set_local_written(Warp& warp, std::size_t byte, bool value) noexcept;

// Keeps the caller's frame. Throws Fault for calls inside one another that do not end.
void save_frame(Warp& warp, const CallFrame& frame, LaneMask lanes);
// Brings it back, except for the blocks that hold the results of the call.
void restore_frame(Warp& warp, const CallFrame& frame, LaneMask lanes,
                   const std::vector<FunctionPlace::Block>& results);
// Gives the callee's arrays places, unwritten; takes them back. Throws Fault if the stack is full.
void open_arrays(Warp& warp, const CallFrame& frame, LaneMask lanes);
void close_arrays(Warp& warp, const CallFrame& frame, LaneMask lanes) noexcept;

}  // namespace gemmery::emulator
