# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # 4. Host latency
#
# For small products the time on the host matters. This page measures the cost of each call, on the CPU, with a product so
# small that only the calls take time, and says what to keep.

# %%
import time

import numpy as np

import gemmery


def microseconds(call, count=2000):
    """The least of five means: the cost of the call when nothing else uses the machine."""
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
# From the most repeated work to the least:

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
# **Keep the kernel and the artifact.** `run` without an artifact finds the compiled code in a store of the process. It never
# compiles twice and costs little more.
#
# **Keep the arguments** as long as shapes and memory stay the same. `set_data` binds new memory of the same shape.

# %%
other = np.full((8, 8), 2, np.float32)
launch.set_data("A", other)
launch()
assert (out == 16).all()

# %% [markdown]
# **Bind.** A prepared launch has its parameters packed: `launch()` is little more than the driver's call. Only one thread at a
# time may use it.
#
# **Trace once.** `EpilogueArguments` traces a Python function; keep the traced `Program`, or the arguments themselves.

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
# On a GPU, a CUDA graph removes the host's part altogether: call `compile` (or `run` once), then capture. A captured launch
# does nothing but launch.
