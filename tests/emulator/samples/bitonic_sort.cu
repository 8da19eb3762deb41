// SPDX-License-Identifier: Apache-2.0
// Sorts each block's 256 keys in shared memory with 128 threads.
__device__ void order(int& first, int& second, bool rising) {
  const int a = first, b = second;  // fault: keys of the step before, by other warps
  if ((a > b) != rising) return;
  first = b, second = a;
}

__global__ void bitonic_sort(int* keys) {
  __shared__ int shared[256];
  const unsigned thread = threadIdx.x;
  int* const own = keys + blockIdx.x * 256;
  shared[thread] = own[thread], shared[thread + 128] = own[thread + 128];
  for (unsigned size = 2; size <= 256; size *= 2)
    for (unsigned stride = size / 2; stride > 0; stride /= 2) {
#ifdef FAULT
      if (stride >= 32 || stride == size / 2) __syncthreads();
#else
      __syncthreads();
#endif
      const unsigned at = 2 * thread - (thread & (stride - 1));
      order(shared[at], shared[at + stride], (at & size) == 0);
    }
  __syncthreads();
  own[thread] = shared[thread], own[thread + 128] = shared[thread + 128];
}
