// SPDX-License-Identifier: Apache-2.0
// Fences, barriers of some of a block's threads, and a warpgroup's register count.
#pragma once

namespace gemmery::device::ptx {

/// Makes initialised mbarriers visible to the cluster and to copies.
__device__ inline void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Makes this thread's writes to shared memory visible to copies and wgmma.
__device__ inline void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// Waits until `threads` threads have arrived at this barrier (1 to 15; 0 is __syncthreads).
template <int threads>
__device__ inline void bar_sync(unsigned barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(threads) : "memory");
}

/// Arrives at this barrier without waiting; `threads` counts both waiting and arriving threads.
template <int threads>
__device__ inline void bar_arrive(unsigned barrier) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(threads) : "memory");
}

/// Emits no instruction; keeps a value's computation at this point of the program.
__device__ __forceinline__ void pin(unsigned& value) { asm volatile("" : "+r"(value)::"memory"); }
__device__ __forceinline__ void pin(const char*& value) {
  asm volatile("" : "+l"(value)::"memory");
}

/// Called by all warps of a warpgroup.
template <int registers>
__device__ inline void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

template <int registers>
__device__ inline void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

}  // namespace gemmery::device::ptx
