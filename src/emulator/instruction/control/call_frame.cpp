// SPDX-License-Identifier: Apache-2.0
#include "emulator/instruction/control/call_frame.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::uint32_t max_depth = 1024;

const KernelImage& image_of(const Warp& warp) noexcept { return *warp.cta.cluster.grid.image; }

// The first byte of a lane's local memory.
std::size_t lane_begin(const Warp& warp, int lane) noexcept {
  return static_cast<std::size_t>(lane) * image_of(warp).local_bytes;
}

template <class Visit>
void for_each_lane(LaneMask lanes, Visit visit) {
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) visit(std::countr_zero(rest));
}

CallStack& stack_of(Warp& warp, int lane) {
  if (warp.call_stacks.empty()) warp.call_stacks.resize(lanes_per_warp);
  return warp.call_stacks[static_cast<std::size_t>(lane)];
}

[[noreturn]] void fail_at(int lane, const std::string& what) {
  Fault fault(FaultKind::trap, what + "; look for a recursion that does not end");
  fault.place.lane = lane;
  throw fault;
}

// --- registers -----------------------------------------------------------------------------------

bool bit_of(LaneMask mask, int lane) noexcept { return (mask >> lane & 1) != 0; }
void set_bit(LaneMask& mask, int lane, bool value) noexcept {
  mask = (mask & ~(LaneMask{1} << lane)) | static_cast<LaneMask>(value) << lane;
}

void save_register(Warp& warp, const CallFrame::SavedRegister& saved, int lane,
                   std::vector<std::byte>& to) {
  to.push_back(static_cast<std::byte>(bit_of(warp.defined[saved.slot.reg], lane)));
  const std::byte* const from = warp.registers + saved.slot.offset;
  if (saved.bytes == 0) {
    to.push_back(static_cast<std::byte>(bit_of(*reinterpret_cast<const LaneMask*>(from), lane)));
  } else {
    const std::byte* const value = from + static_cast<std::size_t>(lane) * saved.bytes;
    to.insert(to.end(), value, value + saved.bytes);
  }
}

const std::byte* restore_register(Warp& warp, const CallFrame::SavedRegister& saved, int lane,
                                  const std::byte* from) {
  set_bit(warp.defined[saved.slot.reg], lane, *from++ != std::byte{0});
  std::byte* const to = warp.registers + saved.slot.offset;
  if (saved.bytes == 0) {
    set_bit(*reinterpret_cast<LaneMask*>(to), lane, *from++ != std::byte{0});
    return from;
  }
  std::memcpy(to + static_cast<std::size_t>(lane) * saved.bytes, from, saved.bytes);
  return from + saved.bytes;
}

// --- blocks --------------------------------------------------------------------------------------

void save_block(const Warp& warp, const FunctionPlace::Block& block, int lane,
                std::vector<std::byte>& to) {
  const std::size_t begin = lane_begin(warp, lane) + block.offset;
  for (std::size_t at = begin; at < begin + block.bytes; ++at) {
    to.push_back(warp.local_memory[at]);
    to.push_back(static_cast<std::byte>(is_local_written(warp, at)));
  }
}

const std::byte* restore_block(Warp& warp, const FunctionPlace::Block& block, int lane,
                               const std::byte* from) {
  const std::size_t begin = lane_begin(warp, lane) + block.offset;
  for (std::size_t at = begin; at < begin + block.bytes; ++at) {
    warp.local_memory[at] = *from++;
    set_local_written(warp, at, *from++ != std::byte{0});
  }
  return from;
}

std::size_t saved_bytes(const CallFrame& frame) noexcept {
  std::size_t bytes = 0;
  for (const CallFrame::SavedRegister& saved : frame.registers)
    bytes += 1 + std::max(saved.bytes, 1u);
  for (const FunctionPlace::Block& block : frame.blocks) bytes += 2 * std::size_t{block.bytes};
  return bytes;
}

}  // namespace

bool is_local_written(const Warp& warp, std::size_t byte) noexcept {
  return ((warp.local_written[byte / 64] >> (byte % 64)) & 1) != 0;
}

void set_local_written(Warp& warp, std::size_t byte, bool value) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << (byte % 64);
  std::uint64_t& bits = warp.local_written[byte / 64];
  bits = value ? bits | bit : bits & ~bit;
}

void save_frame(Warp& warp, const CallFrame& frame, LaneMask lanes) {
  for_each_lane(lanes, [&](int lane) {
    CallStack& stack = stack_of(warp, lane);
    if (++stack.depth > max_depth)
      fail_at(lane, "more than " + std::to_string(max_depth) +
                        " calls inside one another of functions that call themselves");
    for (const CallFrame::SavedRegister& saved : frame.registers)
      save_register(warp, saved, lane, stack.saved);
    for (const FunctionPlace::Block& block : frame.blocks)
      save_block(warp, block, lane, stack.saved);
  });
}

void restore_frame(Warp& warp, const CallFrame& frame, LaneMask lanes,
                   const std::vector<FunctionPlace::Block>& results) {
  const std::size_t bytes = saved_bytes(frame);
  for_each_lane(lanes, [&](int lane) {
    CallStack& stack = stack_of(warp, lane);
    --stack.depth;
    const std::byte* from = stack.saved.data() + stack.saved.size() - bytes;
    for (const CallFrame::SavedRegister& saved : frame.registers)
      from = restore_register(warp, saved, lane, from);
    for (const FunctionPlace::Block& block : frame.blocks)
      if (std::ranges::find(results, block.offset, &FunctionPlace::Block::offset) == results.end())
        from = restore_block(warp, block, lane, from);
      else
        from += 2 * std::size_t{block.bytes};
    stack.saved.resize(stack.saved.size() - bytes);
  });
}

void open_arrays(Warp& warp, const CallFrame& frame, LaneMask lanes) {
  if (frame.array_bytes == 0) return;
  const std::uint32_t begin = image_of(warp).call_stack_begin;
  const std::uint32_t end = image_of(warp).local_bytes;
  for_each_lane(lanes, [&](int lane) {
    CallStack& stack = stack_of(warp, lane);
    const std::uint32_t place = begin + stack.array_bytes;
    if (frame.array_bytes > end - place)
      fail_at(lane, "local arrays of functions that call themselves need more than " +
                        std::to_string(end - begin) + " bytes");
    stack.array_bytes += frame.array_bytes;
    for (std::uint32_t byte = 0; byte < frame.array_bytes; ++byte)
      set_local_written(warp, lane_begin(warp, lane) + place + byte, false);
    for (const CallFrame::LocalArray& array : frame.arrays) {
      auto* const addresses =
          reinterpret_cast<std::uint64_t*>(warp.registers + array.address.offset);
      addresses[lane] = place + array.offset;
      set_bit(warp.defined[array.address.reg], lane, true);
    }
  });
}

void close_arrays(Warp& warp, const CallFrame& frame, LaneMask lanes) noexcept {
  if (frame.array_bytes == 0) return;
  for_each_lane(lanes, [&](int lane) {
    warp.call_stacks[static_cast<std::size_t>(lane)].array_bytes -= frame.array_bytes;
  });
}

}  // namespace gemmery::emulator
