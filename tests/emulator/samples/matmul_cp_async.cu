// SPDX-License-Identifier: Apache-2.0
// C = A x B in blocks of 32 x 32 with 256 threads; two stages of cp.async, so that the next tiles
// are on their way while these are multiplied. The size is a multiple of 32.
__device__ void copy_16_bytes(void* to, const void* from) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
}
__device__ void commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int pending>
__device__ void wait_for_groups_but() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

struct Stage {
  alignas(16) float a[32][32];
  alignas(16) float b[32][32];
};

// A thread copies four elements of each tile.
__device__ void fetch(Stage& stage, const float* a, const float* b, int size, int k) {
  const int row = threadIdx.x / 8, column = threadIdx.x % 8 * 4;
  copy_16_bytes(&stage.a[row][column], a + (blockIdx.y * 32 + row) * size + k + column);
  copy_16_bytes(&stage.b[row][column], b + (k + row) * size + blockIdx.x * 32 + column);
}

__global__ void matmul_cp_async(const float* a, const float* b, float* c, int size) {
  __shared__ Stage stages[2];
  const int row = threadIdx.x / 8, column = threadIdx.x % 8 * 4;
  float sum[4] = {};
  fetch(stages[0], a, b, size, 0);
  commit_group();
  for (int k = 0; k < size; k += 32) {
    if (k + 32 < size) fetch(stages[(k / 32 + 1) % 2], a, b, size, k + 32);
    commit_group();
#ifdef FAULT
    wait_for_groups_but<2>();
#else
    wait_for_groups_but<1>();
#endif
    __syncthreads();
    const Stage& stage = stages[k / 32 % 2];
    for (int inner = 0; inner < 32; ++inner)
      for (int i = 0; i < 4; ++i)
        sum[i] += stage.a[row][inner] * stage.b[inner][column + i];  // fault: still being copied
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    c[(blockIdx.y * 32 + row) * size + blockIdx.x * 32 + column + i] = sum[i];
}
