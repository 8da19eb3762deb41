// SPDX-License-Identifier: Apache-2.0
// What all lanes of a warp have in common.
#pragma once

namespace gemmery::device::ptx {

/// A value that is the same in all lanes, so that the compiler knows it: it then stays in uniform
/// registers, which wgmma and copies by TMA take, and no loop over lanes makes it one. All lanes
/// call it.
__device__ inline unsigned same_in_warp(unsigned value) {
  return __shfl_sync(0xffffffffU, value, 0);
}

/// The same of an address.
template <class Value>
__device__ inline const Value* same_in_warp(const Value* address) {
  const auto bits = reinterpret_cast<unsigned long long>(address);
  const unsigned low = same_in_warp(static_cast<unsigned>(bits));
  const unsigned high = same_in_warp(static_cast<unsigned>(bits >> 32));
  return reinterpret_cast<const Value*>(static_cast<unsigned long long>(high) << 32 | low);
}

/// True in one lane, always the same. All lanes call it. Where it guards a copy by TMA, the
/// compiler knows that one lane comes there, and takes what the copy needs without a loop over
/// lanes.
__device__ inline bool elect_sync() {
  unsigned is_elected;
  asm volatile(
      "{ .reg .pred elected; elect.sync _|elected, 0xffffffff; selp.u32 %0, 1, 0, elected; }"
      : "=r"(is_elected));
  return is_elected != 0;
}

}  // namespace gemmery::device::ptx
