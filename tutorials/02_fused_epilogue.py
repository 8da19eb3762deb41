# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # 2. A fused epilogue
#
# The epilogue is applied to the accumulators before they are stored, in the same kernel: bias, activation, residual, scales,
# reductions. Write it as a Python function.

# %%
import numpy as np

import gemmery
from gemmery.fusion import gelu

rng = np.random.default_rng(2)
A = rng.standard_normal((64, 128), dtype=np.float32)
B = rng.standard_normal((128, 96), dtype=np.float32)
bias = rng.standard_normal(96, dtype=np.float32)
out = np.empty((64, 96), dtype=np.float32)


def bias_gelu(accum, bias):
    return gelu(accum + bias)


epilogue = gemmery.EpilogueArguments(bias_gelu, bias=bias)
print(epilogue.program)

# %% [markdown]
# The arguments contain the epilogue; everything else is as before. The function is its own reference, because `gelu` of
# `gemmery.fusion` also computes on arrays.

# %%
args = gemmery.GemmArguments(A, B, out, accumulator_type=np.float32, epilogue=epilogue)
gemmery.get_kernels(args)[0].run(args)
print("largest difference:", np.abs(out - bias_gelu(A @ B, bias)).max())

# %% [markdown]
# ## More than one result
#
# Returned variables are stored under their names, `D` in `out`. The shape of a reduction's tensor says what is reduced:
# (64, 1) holds one value for each row.


# %%
def scaled(accum, residual, scale):
    D = accum * scale + residual
    peak = max(abs(D))
    return D, peak


residual = rng.standard_normal((64, 96), dtype=np.float32)
peak = np.zeros((64, 1), np.float32)
epilogue = gemmery.EpilogueArguments(scaled, residual=residual, scale=0.125, peak=peak)
args = gemmery.GemmArguments(A, B, out, accumulator_type=np.float32, epilogue=epilogue)
gemmery.get_kernels(args)[0].run(args)
assert np.array_equal(peak[:, 0], np.abs(out).max(axis=1))
print(epilogue.program)

# %% [markdown]
# ## Any Python that does not depend on a value
#
# The function is called once, with values that record the operations on them. Loops and closures are Python's own. Names that
# Python does not know (`relu`, `where`, `bf16`) are those of the epilogue language.


# %%
def polynomial(*coefficients):
    def horner(accum):
        value = coefficients[0]
        for coefficient in coefficients[1:]:
            value = value * accum + coefficient
        return relu(value)  # noqa: F821 - of the epilogue language

    return horner


print(gemmery.fusion.trace(polynomial(0.5, -1.0, 0.25)))

# %% [markdown]
# A function that depends on a value is refused, with its file, its line and a hint.


# %%
def branches(accum):
    if accum > 0:
        return accum
    return 0.1 * accum


try:
    gemmery.fusion.trace(branches)
except ValueError as error:
    reason, place = str(error).rsplit("\n", 1)
    print(reason)
    print("the line:", place.rpartition(": ")[2])

# %% [markdown]
# The same in one call, and the same program as text:

# %%
one = gemmery.matmul(A, B, epilogue=bias_gelu, bias=bias)
two = gemmery.matmul(A, B, epilogue="D = gelu(accum + bias)", bias=bias)
assert np.array_equal(one, two)
