# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # 1. A first GEMM
#
# The four steps of this library are arguments, discovery, compilation and a run. Everything here runs on the CPU with NumPy;
# on a machine with a GPU the same calls take torch, CuPy or JAX arrays on it.

# %%
import ml_dtypes
import numpy as np

import gemmery

m, n, k = 512, 384, 256
rng = np.random.default_rng(1)
A = rng.standard_normal((m, k), dtype=np.float32)
B = rng.standard_normal((k, n), dtype=np.float32)
out = np.empty((m, n), dtype=np.float32)

args = gemmery.GemmArguments(A, B, out, accumulator_type=np.float32)
print(args.problem)

# %% [markdown]
# `get_kernels` returns the kernels that run these arguments where their memory is, best first. Each has metadata.

# %%
kernels = gemmery.get_kernels(args)
for kernel in kernels:
    print(kernel.name, kernel.provider, kernel.metadata.operands.A)

# %% [markdown]
# A kernel is compiled once for a device and run as often as you like. `run` also works without an artifact: it then uses
# the process-wide store of compiled kernels.

# %%
kernel = kernels[0]
artifact = kernel.compile(args)
kernel.run(args, artifact)
print("largest difference from NumPy:", np.abs(out - A @ B).max())

# %% [markdown]
# Is that difference acceptable? The library's oracle has a proven bound for every element. The bound takes the kernel's
# accumulators into account.

# %%
report = gemmery.check_result(args, kernel)
print(f"{report.elements} elements, {report.mismatches} outside of their bounds")
assert report.passed

# %% [markdown]
# ## What would run elsewhere?
#
# Discovery needs no GPU: ask about a device by its name. The first kernel of this list is the one that an H200 would run for
# the same product in bfloat16.

# %%
half = [x.astype(ml_dtypes.bfloat16) for x in (A, B, out)]
wanted = gemmery.GemmArguments(*half, accumulator_type=np.float32)
on_h200 = gemmery.get_kernels(wanted, cc="h200")
print(len(on_h200), "kernels; the first three:")
for kernel in on_h200[:3]:
    print(f"  {kernel.name}: {kernel.predicted_us:.1f} us expected, tile {kernel.metadata.design.tile_shape}")

# %% [markdown]
# A filter is a function of the metadata.

# %%
square = gemmery.get_kernels(wanted, lambda metadata: metadata.design.tile_shape[:2] == (128, 128), cc="h200")
print(len(square), "kernels with tiles of 128 x 128")

# %% [markdown]
# For kernels that do not support the arguments, `explain` says which condition failed.

# %%
print(gemmery.explain(args))

# %% [markdown]
# ## In one call

# %%
product = gemmery.matmul(A, B)
assert np.array_equal(product, out)
