// SPDX-License-Identifier: Apache-2.0
// Atomics on global memory by which blocks of a launch tell each other what they are done with.
#pragma once

namespace gemmery::device::ptx {

/// Adds, and returns what was there. What this thread did before, and what it has seen of others,
/// is seen by whoever counts on from here.
__device__ inline unsigned atom_add_acq_rel_gpu(unsigned* address, unsigned value) {
  unsigned before;
  asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(address), "r"(value)
               : "memory");
  return before;
}

}  // namespace gemmery::device::ptx
