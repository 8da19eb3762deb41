// SPDX-License-Identifier: Apache-2.0
// cp.async of sm_80: global to shared memory without registers, in groups that a thread can wait
// for.
#pragma once

namespace gemmery::device::ptx {

/// The address of a shared object within the shared window.
__device__ inline unsigned cvta_shared(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

/// Copies `bytes` (4 or 8); the last `bytes - source_bytes` become zero and are not read.
template <int bytes>
__device__ inline void cp_async_ca(unsigned shared, const void* global, int source_bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared), "l"(global),
               "n"(bytes), "r"(source_bytes)
               : "memory");
}

template <int bytes>
__device__ inline void cp_async_ca(unsigned shared, const void* global) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(shared), "l"(global), "n"(bytes)
               : "memory");
}

/// 16 bytes, bypassing L1.
__device__ inline void cp_async_cg(unsigned shared, const void* global, int source_bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global),
               "r"(source_bytes)
               : "memory");
}

__device__ inline void cp_async_cg(unsigned shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}

__device__ inline void cp_async_commit_group() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// Waits until at most `pending` of this thread's groups are in flight.
template <int pending>
__device__ inline void cp_async_wait_group() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/// Arrives at an mbarrier when all copies that this thread has begun are done; the barrier's count
/// includes this arrival.
__device__ inline void cp_async_mbarrier_arrive_noinc(unsigned barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

}  // namespace gemmery::device::ptx
