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
