# SPDX-License-Identifier: Apache-2.0
"""A kernel of CUDA C++ source, registered from Python: compiled when it is needed, kept by the disk cache, savable.

python examples/python/cuda_gemm.py                       # on the first GPU, or compiles for one that is not here
"""

import gemmery
from gemmery import own_kernels

SOURCE = r"""
// Tiles of 64 x 64 x 16 in shared memory, 4 x 4 accumulators in every thread.
extern "C" __global__ void __launch_bounds__(256) blocked_gemm(
    const float* a, const float* b, float* out, int m, int n, int k, long long a_leading, long long b_leading,
    long long out_leading, float alpha) {
  __shared__ float a_tile[16][65];
  __shared__ float b_tile[16][64];
  const int first_row = blockIdx.y * 64, first_column = blockIdx.x * 64;
  const int thread_row = threadIdx.x / 16 * 4, thread_column = threadIdx.x % 16 * 4;
  float sums[4][4] = {};
  for (int first = 0; first < k; first += 16) {
    for (int at = threadIdx.x; at < 64 * 16; at += 256) {
      const int row = first_row + at / 16, step = first + at % 16;
      a_tile[at % 16][at / 16] = row < m && step < k ? a[row * a_leading + step] : 0.0f;
    }
    for (int at = threadIdx.x; at < 16 * 64; at += 256) {
      const int step = first + at / 64, column = first_column + at % 64;
      b_tile[at / 64][at % 64] = step < k && column < n ? b[step * b_leading + column] : 0.0f;
    }
    __syncthreads();
    for (int step = 0; step < 16; ++step)
      for (int row = 0; row < 4; ++row)
        for (int column = 0; column < 4; ++column)
          sums[row][column] += a_tile[step][thread_row + row] * b_tile[step][thread_column + column];
    __syncthreads();
  }
  for (int row = 0; row < 4; ++row)
    for (int column = 0; column < 4; ++column) {
      const int r = first_row + thread_row + row, c = first_column + thread_column + column;
      if (r < m && c < n) out[r * out_leading + c] = alpha * sums[row][column];
    }
}
"""

ROW_MAJOR = own_kernels.Operand("float32", "row")

blocked_gemm = own_kernels.register_source(
    "blocked_gemm",
    SOURCE,
    entry="blocked_gemm",
    parameters=["A", "B", "out", "m", "n", "k", "A.leading", "B.leading", "out.leading", "alpha"],
    grid=("n/64", "m/64"),
    block=256,
    A=ROW_MAJOR,
    B=ROW_MAJOR,
    out=ROW_MAJOR,
    design={"tile": "64x64x16"},
)


def main():
    gpus = [device for device in gemmery.devices() if device.startswith("cuda")]
    if not gpus:
        artifact = blocked_gemm.compile(cc="sm_90")
        print(f"{blocked_gemm.name}: no GPU here; compiled for sm_90 in {artifact.compile_ms:.0f} ms, {artifact.resources}")
        return
    report = gemmery.verify(blocked_gemm, "gemm 1000x768x512 a=f32", device=gpus[0])
    print(f"{blocked_gemm.name}: {report.elements} elements, {report.mismatches} outside their bounds")
    assert report.passed


if __name__ == "__main__":
    main()
