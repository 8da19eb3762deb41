// SPDX-License-Identifier: Apache-2.0
// Accesses to global memory by which blocks of a launch tell each other what they are done with.
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

/// *address becomes `value` where that is larger.
__device__ inline void red_max_relaxed_gpu(unsigned* address, unsigned value) {
  asm volatile("red.relaxed.gpu.global.max.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

/// Whoever reads `value` so knows all that this thread did before.
__device__ inline void st_release_gpu(unsigned* address, unsigned value) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}
__device__ inline unsigned ld_acquire_gpu(const unsigned* address) {
  unsigned value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}
__device__ inline void st_relaxed_gpu(unsigned* address, unsigned value) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

/// What another block wrote by `st_relaxed_gpu_b64`, all 64 bits of it or none. Nothing else that
/// the other did before is known to be seen.
__device__ inline unsigned long long ld_relaxed_gpu_b64(const unsigned long long* address) {
  unsigned long long value;
  asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
  return value;
}

__device__ inline void st_relaxed_gpu_b64(unsigned long long* address, unsigned long long value) {
  asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

}  // namespace gemmery::device::ptx
