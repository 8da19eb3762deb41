// SPDX-License-Identifier: Apache-2.0
// Fences, barriers of some of a block's threads, and the registers of a warpgroup.
#pragma once

namespace gemmery::device::ptx {

/// Makes initialised mbarriers visible to the cluster and to copies.
__device__ inline void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Lets what this thread wrote to shared memory be read by copies and by wgmma.
__device__ inline void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// Waits for `threads` threads that name this barrier (1 to 15; 0 is __syncthreads).
template <int threads>
__device__ inline void bar_sync(unsigned barrier) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(threads) : "memory");
}

/// Arrives there without waiting; the threads that wait count too.
template <int threads>
__device__ inline void bar_arrive(unsigned barrier) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(threads) : "memory");
}

/// No instruction: ties a value to this place of the program.
__device__ __forceinline__ void pin(unsigned& value) { asm volatile("" : "+r"(value)::"memory"); }
__device__ __forceinline__ void pin(const char*& value) {
  asm volatile("" : "+l"(value)::"memory");
}

/// All warps of a warpgroup must come here.
template <int registers>
__device__ inline void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

template <int registers>
__device__ inline void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

}  // namespace gemmery::device::ptx
