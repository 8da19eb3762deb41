# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # 3. Bring your own kernel
#
# A kernel of yours joins discovery beside the library's own, and everything that the library does with kernels works on it:
# here one of plain NumPy and one of CUDA C++. `examples/python/triton_gemm.py` has the same in Triton.

# %%
import numpy as np

import gemmery
from gemmery import own_kernels

# %% [markdown]
# ## Any callable
#
# Said with it: what it asks of its operands, where it runs, and (if you like) how long it takes, by which it is ranked.


# %%
@own_kernels.register_callable(
    "numpy_dot",
    A="float32",
    B="float32",
    out="float32",
    targets=["cpu"],
    supports=lambda problem, device: None if problem.l == 1 else "one product at a time",
    predicted_us=lambda problem, device: 5 + 2e-5 * problem.m * problem.n * problem.k,
)
def numpy_dot(call):
    a, b, out = (np.from_dlpack(tensor)[0] for tensor in (call.A, call.B, call.out))
    np.multiply(a @ b, call.alpha, out=out)


rng = np.random.default_rng(3)
A = rng.standard_normal((300, 200), dtype=np.float32)
B = rng.standard_normal((200, 100), dtype=np.float32)
out = np.empty((300, 100), dtype=np.float32)
args = gemmery.GemmArguments(A, B, out, accumulator_type=np.float32)
assert numpy_dot in gemmery.get_kernels(args)
numpy_dot.run(args)
print("largest difference:", np.abs(out - A @ B).max())

# %% [markdown]
# It is held to the same oracle as every kernel, with operands that are placed to find out what it should not do.

# %%
print("verified:", gemmery.verify(numpy_dot, "gemm 33x47x29 a=f32 alpha=0.5").passed)

# %% [markdown]
# Where it does not serve, `explain` has its own words.

# %%
batched = gemmery.GemmArguments(*(np.zeros((2, 4, 4), np.float32) for _ in range(3)), accumulator_type=np.float32)
print(next(line for line in str(gemmery.explain(batched)).splitlines() if "one product at a time" in line))

# %% [markdown]
# ## CUDA C++
#
# Source, the name of its function, what that takes and how it is launched. It is compiled by NVRTC for any GPU, here one
# that is not in this machine, and kept by the disk cache.

# %%
SOURCE = r"""
extern "C" __global__ void simple(const float* a, const float* b, float* out, int m, int n, int k,
                                  long long a_leading, long long b_leading, long long out_leading, float alpha) {
  const int column = blockIdx.x * 16 + threadIdx.x;
  const int row = blockIdx.y * 16 + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int at = 0; at < k; ++at) sum += a[row * a_leading + at] * b[at * b_leading + column];
  out[row * out_leading + column] = alpha * sum;
}
"""
rows = own_kernels.Operand("float32", layout="row")
simple = own_kernels.register_source(
    "simple",
    SOURCE,
    entry="simple",
    parameters=["A", "B", "out", "m", "n", "k", "A.leading", "B.leading", "out.leading", "alpha"],
    grid=("n/16", "m/16"),
    block=(16, 16),
    A=rows,
    B=rows,
    out=rows,
    design={"tile": "16x16x1"},
)
artifact = simple.compile(cc="sm_90")
print(simple.name, artifact.resources)

# %% [markdown]
# The emulator runs it as a GPU would, with every race and every access out of bounds found.

# %%
print("verified:", gemmery.verify(simple, "gemm 33x20x17 a=f32", device="emulated:h200").passed)

# %% [markdown]
# ## A mistake is named
#
# What is declared is checked when it is declared.

# %%
try:
    own_kernels.register_source("broken", SOURCE, entry="simple", parameters=["A", "q"], grid=(1,), A=rows, B=rows, out=rows)
except ValueError as error:
    print(error)

# %%
own_kernels.withdraw_kernel(simple)
own_kernels.withdraw_kernel(numpy_dot)
