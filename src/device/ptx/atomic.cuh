// SPDX-License-Identifier: Apache-2.0
// Accesses to global memory by which blocks of a launch synchronise.
#pragma once

namespace gemmery::device::ptx {

/// Counts from 0 to `last`, then wraps to 0; returns the previous value. Acquire and release:
/// everything that this thread did or has observed is visible to every thread that counts after it.
__device__ inline unsigned atom_inc_acq_rel_gpu(unsigned* address, unsigned last) {
  unsigned before;
  asm volatile("atom.inc.acq_rel.gpu.global.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(address), "r"(last)
               : "memory");
  return before;
}

/// *address becomes the maximum of itself and `value`.
__device__ inline void red_max_relaxed_gpu(unsigned* address, unsigned value) {
  asm volatile("red.relaxed.gpu.global.max.u32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}

/// A thread that acquires `value` observes everything that this thread did before.
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

/// A value written by another block with `st_relaxed_gpu_b64`: all 64 bits or none. It orders no
/// other accesses.
__device__ inline unsigned long long ld_relaxed_gpu_b64(const unsigned long long* address) {
  unsigned long long value;
  asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(value) : "l"(address) : "memory");
  return value;
}

__device__ inline void st_relaxed_gpu_b64(unsigned long long* address, unsigned long long value) {
  asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(address), "l"(value) : "memory");
}

}  // namespace gemmery::device::ptx
