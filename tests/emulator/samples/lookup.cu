// SPDX-License-Identifier: Apache-2.0
// out[i] = in[order[i]], with the block's part of the order staged in shared memory.
__global__ void lookup(const int* order, const float* in, float* out) {
  __shared__ int staged[128];
  const int base = blockIdx.x * 128;
#ifdef FAULT
  if (threadIdx.x < 127) staged[threadIdx.x] = order[base + threadIdx.x];
#else
  staged[threadIdx.x] = order[base + threadIdx.x];
#endif
  __syncthreads();
  out[base + threadIdx.x] = in[staged[127 - threadIdx.x]];  // fault: an index that nobody wrote
}
