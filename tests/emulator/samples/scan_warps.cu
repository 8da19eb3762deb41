// SPDX-License-Identifier: Apache-2.0
// Inclusive prefix sums within each warp, by shuffles, and the warp's total. The membermask names
// the lanes that have a number; all of them come to every shuffle.
__global__ void scan_warps(const int* in, int* out, int* totals, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = threadIdx.x % 32;
  const unsigned members = __ballot_sync(~0u, i < count);
  if (i >= count) return;
  int sum = in[i];
  for (int step = 1; step < 32; step *= 2) {
#ifdef FAULT
    if (lane >= step) sum += __shfl_up_sync(members, sum, step);  // fault: not all of them come
#else
    const int before = __shfl_up_sync(members, sum, step);
    if (lane >= step) sum += before;
#endif
  }
  out[i] = sum;
  const int total = __shfl_sync(members, sum, 31 - __clz(members));  // fault: some wait here
  if (lane == 0) totals[i / 32] = total;
}
