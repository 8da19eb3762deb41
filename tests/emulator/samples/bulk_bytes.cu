// SPDX-License-Identifier: Apache-2.0
// Two bulk copies complete on one mbarrier, which must expect the bytes of both.
__device__ unsigned shared_address(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}
__device__ void fetch(void* to, const void* from, unsigned bytes, unsigned long long* barrier) {
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

__global__ void bulk_bytes(const int* a, const int* b, int* out) {
  __shared__ alignas(16) int tile_a[128], tile_b[128];
  __shared__ unsigned long long arrived;
#ifdef FAULT
  constexpr unsigned expected = sizeof tile_a + sizeof tile_b + 16;
#else
  constexpr unsigned expected = sizeof tile_a + sizeof tile_b;
#endif
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared_address(&arrived)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile(
        "mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared_address(&arrived)),
        "r"(expected)
        : "memory");
    fetch(tile_a, a + blockIdx.x * 128, sizeof tile_a, &arrived);
    fetch(tile_b, b + blockIdx.x * 128, sizeof tile_b, &arrived);
  }
  __syncthreads();
  wait(&arrived);  // fault: 16 bytes never come
  out[blockIdx.x * 128 + threadIdx.x] = tile_a[threadIdx.x] * tile_b[threadIdx.x];
}
