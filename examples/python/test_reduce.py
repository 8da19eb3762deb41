# SPDX-License-Identifier: Apache-2.0
"""A test of a CUDA kernel that needs no GPU: `pytest -p gemmery.testing examples/python/test_reduce.py`.

The kernel runs on an emulated H200 under 8 schedules. Take the second __syncthreads() away, and the test fails with the race:
which line, which lanes, and what it needs.
"""

import numpy as np

from gemmery.testing import emulated

REDUCE = """
__global__ void sum(const float* numbers, float* sums, unsigned count) {
  __shared__ float partial[256];
  const unsigned at = blockIdx.x * 256 + threadIdx.x;
  partial[threadIdx.x] = at < count ? numbers[at] : 0;
  __syncthreads();
  for (unsigned step = 128; step > 0; step /= 2) {
    if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = partial[0];
}
"""


@emulated("h200", seeds=8)
def test_sums_of_a_ragged_array(launch):
    numbers = np.arange(1000, dtype=np.float32)
    sums = np.empty(4, np.float32)
    launch(REDUCE, grid=4, block=256, args=[numbers, sums, len(numbers)])
    expected = [numbers[block * 256 : block * 256 + 256].sum() for block in range(4)]
    assert np.array_equal(sums, expected)
