// SPDX-License-Identifier: Apache-2.0
// Atomics on global memory by which blocks of a launch tell each other what they are done with.
#pragma once

namespace gemmery::device::ptx {

/// Counts from 0 to `last` and then from 0 again; returns what was there. What this thread did
/// before, and what it has seen of others, is seen by whoever counts on from here.
__device__ inline unsigned atom_inc_acq_rel_gpu(unsigned* address, unsigned last) {
  unsigned before;
  asm volatile("atom.inc.acq_rel.gpu.global.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(address), "r"(last)
               : "memory");
  return before;
}

}  // namespace gemmery::device::ptx
