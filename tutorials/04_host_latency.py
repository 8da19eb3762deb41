# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # 4. Host latency
#
# For small products the time on the host counts. What costs what, and what to keep: this page measures it here, on the CPU,
# with a product so small that calls are all there is.

# %%
import time

import numpy as np

import gemmery


def microseconds(call, count=2000):
    """The least of five means: what the call costs when nothing else wants the machine."""
    call()
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter() - start) / count)
    return 1e6 * best


A, B, out = (np.ones((8, 8), np.float32) for _ in range(3))

# %% [markdown]
# From the most that can be repeated to the least:

# %%
args = gemmery.GemmArguments(A, B, out, accumulator_type=np.float32)
kernel = gemmery.get_kernels(args)[0]
artifact = kernel.compile(args)
launch = artifact.bind(args)

steps = {
    "gemmery.matmul(A, B, out=out)": lambda: gemmery.matmul(A, B, out=out),
    "get_kernels(args)": lambda: gemmery.get_kernels(args),
    "GemmArguments(A, B, out, ...)": lambda: gemmery.GemmArguments(A, B, out, accumulator_type=np.float32),
    "kernel.supports(args)": lambda: kernel.supports(args),
    "kernel.run(args)": lambda: kernel.run(args),
    "kernel.run(args, artifact)": lambda: kernel.run(args, artifact),
    "... assume_supported_args=True": lambda: kernel.run(args, artifact, assume_supported_args=True),
    "launch()": launch,
}
times = {name: microseconds(call) for name, call in steps.items()}
for name, time_us in times.items():
    print(f"{name:34s} {time_us:7.2f} us")

# %% [markdown]
# **Keep the kernel and the artifact.** `run` without an artifact finds compiled code in a store of the process, never compiles
# twice, and costs little more.
#
# **Keep the arguments** where shapes and memory stay. New memory for the same shapes: `set_data`.

# %%
other = np.full((8, 8), 2, np.float32)
launch.set_data("A", other)
launch()
assert (out == 16).all()

# %% [markdown]
# **Bind.** A prepared launch has everything packed: `launch()` is the driver's call and little beside. It belongs to one
# thread at a time.
#
# **Trace once.** An epilogue from a Python function is traced at every `EpilogueArguments`; a `Program`, or the arguments
# themselves, can be kept.

# %%
bias = np.ones(8, np.float32)
function = lambda accum, bias: gemmery.fusion.relu(accum + bias)  # noqa: E731
program = gemmery.fusion.trace(function)
for name, call in {
    "EpilogueArguments(function, ...)": lambda: gemmery.EpilogueArguments(function, bias=bias),
    "EpilogueArguments(program, ...)": lambda: gemmery.EpilogueArguments(program, bias=bias),
}.items():
    print(f"{name:34s} {microseconds(call, 500):7.2f} us")

# %% [markdown]
# On a GPU, a CUDA graph takes the host out of it altogether: `compile` (or one `run`) first, then capture; a launch that is
# captured does nothing but launch.
