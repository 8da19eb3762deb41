// SPDX-License-Identifier: Apache-2.0
// A statement and its mark share a line.
// clang-format off

// Faults without tensor cores, one kernel each, with the sound form beside it (FAULT 0). The line
// that must be reported carries `fault N` in a comment.
#ifndef FAULT
#define FAULT 0
#endif

// A tile goes through shared memory and comes back turned round.
extern "C" __global__ void reverse(const float* in, float* out, int count) {
  __shared__ float tile[128];
  tile[threadIdx.x] = (int)threadIdx.x < count ? in[threadIdx.x] : 0;
  if (FAULT != 16) __syncthreads();
  out[threadIdx.x] = tile[127 - threadIdx.x];  // fault 16
}

// Neighbours of one warp exchange through shared memory.
extern "C" __global__ void exchange(const float* in, float* out) {
  __shared__ float tile[128];
  tile[threadIdx.x] = in[threadIdx.x];
  if (FAULT != 17) __syncwarp();
  out[threadIdx.x] = tile[threadIdx.x ^ 1];  // fault 17
}

// Every block adds its sum to one word.
extern "C" __global__ void reduce(const float* in, float* sum) {
  __shared__ float part[4];
  float value = in[blockIdx.x * 128 + threadIdx.x];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x == 0) {
    const float all = part[0] + part[1] + part[2] + part[3];
    if (FAULT == 15) *sum += all;  // fault 15
    else atomicAdd(sum, all);
  }
}

// A barrier that half of a warp goes around to the next one; whoever leaves is not missed.
extern "C" __global__ void part_way(const float* in, float* out) {
  __shared__ float tile[128];
  tile[threadIdx.x] = in[threadIdx.x];
  if (FAULT != 18 || threadIdx.x % 32 < 16) {
    asm volatile("bar.sync 0;" ::: "memory");  // fault 18
  }
  asm volatile("bar.sync 0;" ::: "memory");
  out[threadIdx.x] = tile[threadIdx.x];
}

// Four elements at a time, from an address that may not be a multiple of 16.
extern "C" __global__ void wide(const float* in, float* out) {
  const float4 four = *(const float4*)(in + (FAULT == 19 ? 1 : 0) + 4 * threadIdx.x);  // fault 19
  out[threadIdx.x] = four.x + four.y + four.z + four.w;
}

// Blocks of 128 floats through two cp.async stages.
extern "C" __global__ void stages(const float* in, float* out, int blocks) {
  __shared__ alignas(16) float tile[2][128];
  const auto fetch = [&](int block) {
    if (threadIdx.x < 32 && block < blocks) {
      const unsigned to = (unsigned)__cvta_generic_to_shared(&tile[block % 2][4 * threadIdx.x]);
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + 128 * block + 4 * threadIdx.x) : "memory");  // fault 12
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  fetch(0);
  float sum = 0;
  for (int block = 0; block < blocks; ++block) {
    fetch(block + 1);
    if (FAULT == 12) asm volatile("cp.async.wait_group 2;" ::: "memory");
    else asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    sum += tile[block % 2][127 - threadIdx.x];  // fault 12
    __syncthreads();
  }
  out[threadIdx.x] = sum;
}

// An address from memory that nobody wrote.
extern "C" __global__ void unwritten(const float* in, float* out) {
  __shared__ float tile[256];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  const int half = (int)tile[FAULT == 24 ? 128 + threadIdx.x : threadIdx.x] & 1;
  out[128 * half + threadIdx.x] = 1;  // fault 24
}

// One element beyond shared memory.
extern "C" __global__ void beyond(const float* in, float* out) {
  extern __shared__ float dynamic[];
  dynamic[threadIdx.x + (FAULT == 25 ? 1 : 0)] = in[threadIdx.x];  // fault 25
  __syncthreads();
  out[threadIdx.x] = dynamic[threadIdx.x + (FAULT == 25 ? 1 : 0)];
}
