# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # 3. Bring your own kernel
#
# Your own kernel takes part in discovery beside the library's kernels, and everything that the library does with kernels
# works with it. This page registers one in plain NumPy and one in CUDA C++. `examples/python/triton_gemm.py` has one in Triton.

# %%
import numpy as np

import gemmery
from gemmery import own_kernels

# %% [markdown]
# ## Any callable
#
# The declaration states the operand types, the target, and optionally the predicted time, by which discovery ranks it.


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
# It is checked by the same oracle as every kernel, with operands placed so that accesses out of bounds are found.

# %%
print("verified:", gemmery.verify(numpy_dot, "gemm 33x47x29 a=f32 alpha=0.5").passed)

# %% [markdown]
# If it does not support a problem, `explain` repeats its own reason.

# %%
batched = gemmery.GemmArguments(*(np.zeros((2, 4, 4), np.float32) for _ in range(3)), accumulator_type=np.float32)
print(next(line for line in str(gemmery.explain(batched)).splitlines() if "one product at a time" in line))

# %% [markdown]
# ## CUDA C++
#
# The declaration has the source, the name of its function, the parameters and the launch. NVRTC compiles it for any GPU, here
# for one that is not in this machine; the disk cache keeps the code.

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
# The emulator runs it as a GPU would, and reports every race and every access out of bounds.

# %%
print("verified:", gemmery.verify(simple, "gemm 33x20x17 a=f32", device="emulated:h200").passed)

# %% [markdown]
# ## Errors
#
# A declaration is checked when it is registered.

# %%
try:
    own_kernels.register_source("broken", SOURCE, entry="simple", parameters=["A", "q"], grid=(1,), A=rows, B=rows, out=rows)
except ValueError as error:
    print(error)

# %%
own_kernels.withdraw_kernel(simple)
own_kernels.withdraw_kernel(numpy_dot)
