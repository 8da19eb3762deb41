// SPDX-License-Identifier: Apache-2.0
// Values and elections that are uniform in a warp.
#pragma once

namespace gemmery::device::ptx {

/// A value that is the same in all lanes, in a form that the compiler knows to be uniform: it stays
/// in uniform registers, which wgmma and TMA copies need, without a loop over lanes. Called by all
/// lanes.
__device__ inline unsigned same_in_warp(unsigned value) {
  return __shfl_sync(0xffffffffU, value, 0);
}

/// The same for an address.
template <class Value>
__device__ inline const Value* same_in_warp(const Value* address) {
  const auto bits = reinterpret_cast<unsigned long long>(address);
  const unsigned low = same_in_warp(static_cast<unsigned>(bits));
  const unsigned high = same_in_warp(static_cast<unsigned>(bits >> 32));
  return reinterpret_cast<const Value*>(static_cast<unsigned long long>(high) << 32 | low);
}

/// The same value, opaque to the compiler: values that depend on it are computed here and not
/// earlier.
__device__ inline unsigned opaque(unsigned value) {
  asm volatile("" : "+r"(value));
  return value;
}

/// threadIdx.x, and the number of blocks along x, read here rather than earlier.
__device__ inline unsigned tid_x() {
  unsigned thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}
__device__ inline unsigned nctaid_x() {
  unsigned count;
  asm volatile("mov.u32 %0, %%nctaid.x;" : "=r"(count));
  return count;
}

/// The lane of a thread, in blocks whose first dimension holds whole warps.
__device__ inline unsigned lane_id() { return threadIdx.x % 32; }

/// The value of lane `lane`, and the value of the lane `distance` below the caller's (the caller's
/// own if there is none). Called by all lanes.
__device__ inline unsigned value_of_lane(unsigned value, unsigned lane) {
  return __shfl_sync(0xffffffffU, value, static_cast<int>(lane));
}
__device__ inline long long value_of_lane(long long value, unsigned lane) {
  const auto bits = static_cast<unsigned long long>(value);
  const unsigned low = value_of_lane(static_cast<unsigned>(bits), lane);
  const unsigned high = value_of_lane(static_cast<unsigned>(bits >> 32), lane);
  return static_cast<long long>(static_cast<unsigned long long>(high) << 32 | low);
}
__device__ inline unsigned value_of_lane_below(unsigned value, unsigned distance) {
  return __shfl_up_sync(0xffffffffU, value, distance);
}

/// A bit for every lane where the condition holds. Called by all lanes.
__device__ inline unsigned lanes_where(bool condition) {
  return __ballot_sync(0xffffffffU, condition ? 1 : 0);
}
/// The lowest lane of a mask, which must not be empty.
__device__ inline unsigned lowest_lane(unsigned lanes) {
  return static_cast<unsigned>(__ffs(static_cast<int>(lanes)) - 1);
}

/// True in one lane, always the same. Called by all lanes. The compiler knows that code guarded by
/// it runs in one lane, and needs no loop over lanes for a TMA copy's operands.
__device__ inline bool elect_sync() {
  unsigned is_elected;
  asm volatile(
      "{ .reg .pred elected; elect.sync _|elected, 0xffffffff; selp.u32 %0, 1, 0, elected; }"
      : "=r"(is_elected));
  return is_elected != 0;
}

}  // namespace gemmery::device::ptx
