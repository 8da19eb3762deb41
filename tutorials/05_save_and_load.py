# SPDX-License-Identifier: Apache-2.0
# %% [markdown]
# # 5. Save and load
#
# Compile on a machine with a compiler, run on one without it. Compiling needs no GPU.

# %%
import pathlib
import tempfile

import ml_dtypes
import numpy as np

import gemmery

A = np.ones((256, 128), ml_dtypes.bfloat16)
B = np.ones((128, 512), ml_dtypes.bfloat16)
out = np.zeros((256, 512), ml_dtypes.bfloat16)
args = gemmery.GemmArguments(A, B, out, accumulator_type=np.float32)
kernels = gemmery.get_kernels(args, cc="h200")[:2]

# %% [markdown]
# `compile_all` compiles in parallel. A kernel that fails does not affect the others; its exception is returned in its place.

# %%
artifacts = gemmery.compile_all(kernels, cc="sm_90a", progress=lambda done, all: print(f"{done} of {all}"))
for artifact in artifacts:
    print(artifact.kernel_obj.name, artifact.targets, artifact.resources)

# %% [markdown]
# `save` writes one self-contained file: machine code, sources, logs, designs.

# %%
folder = tempfile.TemporaryDirectory()
path = pathlib.Path(folder.name) / "kernels.gemmery"
gemmery.artifact.save(path, artifacts)
print(path.stat().st_size // 1024, "KiB")

# %% [markdown]
# Loading needs no compiler. A damaged file, or one of an unknown version, is refused by name.

# %%
loaded = gemmery.artifact.load(path)
for artifact in loaded:
    print(artifact.kernel_obj.name, artifact.targets)
assert [artifact.kernel_obj for artifact in loaded] == [artifact.kernel_obj for artifact in artifacts]

# %%
damaged = bytearray(path.read_bytes())
damaged[len(damaged) // 2] ^= 1
path.write_bytes(damaged)
try:
    gemmery.artifact.load(path)
except gemmery.FileError as error:
    print(str(error).replace(str(path), "kernels.gemmery"))

# %% [markdown]
# The emitted source is readable: a dozen lines that name a template of this library.

# %%
print(loaded[0].source)
folder.cleanup()
