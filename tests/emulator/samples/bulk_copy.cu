// SPDX-License-Identifier: Apache-2.0
// 1024 bytes come by one bulk copy, whose bytes an mbarrier counts, are changed, and leave by
// another; a fence makes the changes visible to it.
__device__ unsigned shared_address(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

__device__ void fetch(void* to, const void* from, unsigned bytes, unsigned long long* barrier) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(barrier))
      : "memory");
}
__device__ void wait(unsigned long long* barrier) {
  asm volatile(
      "{ .reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared.b64 done, [%0], 0;\n"
      "@!done bra again; }" ::"r"(shared_address(barrier))
      : "memory");
}
__device__ void store(void* to, const void* from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(shared_address(from)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

__global__ void bulk_copy(const int* in, int* out) {
  __shared__ alignas(128) int tile[256];
  __shared__ unsigned long long arrived;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(&arrived)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    fetch(tile, in + blockIdx.x * 256, sizeof tile, &arrived);
  }
  __syncthreads();
  wait(&arrived);
  tile[threadIdx.x] = 3 * tile[threadIdx.x] + 1;  // fault: the copy below may not see it
#ifndef FAULT
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
  __syncthreads();
  if (threadIdx.x == 0) store(out + blockIdx.x * 256, tile, sizeof tile);
}
