// SPDX-License-Identifier: Apache-2.0
// y = A x for a sparse matrix in compressed rows, one warp a row.
__global__ void spmv_csr(const int* starts, const int* columns, const float* values, const float* x,
                         float* y, int rows) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  const int lane = threadIdx.x % 32;
  if (row >= rows) return;
  float sum = 0;
#ifdef FAULT
  for (int at = starts[row] + lane; at <= starts[row + 1]; at += 32)
#else
  for (int at = starts[row] + lane; at < starts[row + 1]; at += 32)
#endif
    sum += values[at] * x[columns[at]];  // fault: one element behind the last row
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
  if (lane == 0) y[row] = sum;
}
