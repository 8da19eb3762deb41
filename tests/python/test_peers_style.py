# SPDX-License-Identifier: Apache-2.0
"""Scripts of users of similar packages: only the import is changed. On the CPU, an emulated GPU and a GPU."""

import numpy
import pytest

import gemmery

SCRIPT = """
import gemmery as api

args = api.GemmArguments(A=A, B=B, out=D, accumulator_type=accumulator_type)
if device is not None:
    args = args.to_device(device)

# discovery, by arguments and by the attributes of designs
kernels = api.get_kernels(args)
assert len(kernels) > 0
names = [kernel.metadata.kernel_name for kernel in kernels]
assert len(set(names)) == len(names)
manifest = api.Manifest()
manifest.add_kernels(args, metadata_filter=lambda metadata: metadata.min_cc <= 90)
assert manifest.kernels == kernels
fitting = api.get_kernels(
    args, metadata_filter=lambda m: isinstance(m.design, api.metadata.BLASDesignMetadata) and m.design.tile_shape[0] >= 32
)

kernel = fitting[0] if fitting else kernels[0]
status = kernel.supports(args)
assert status and status.error is None
status.raise_on_error()

# just in time
kernel.run(args)
args.sync()
check(D)

# compiled before, on a stream, with a workspace
compiled_artifact = kernel.compile(args)
assert compiled_artifact.kernel_obj is kernel
size = kernel.get_workspace_size(args)
workspace = make_workspace(size) if size else None
kernel.initialize_workspace(args, workspace)
kernel.run(args, compiled_artifact, stream=stream, workspace=workspace, assume_supported_args=True)
args.sync()
check(D)

# an epilogue
def epilogue(accum, bias, scale):
    Z = relu(accum * scale + bias)
    D = Z
    return D

epi_args = api.EpilogueArguments(epilogue, bias=bias, scale=0.5, D=D)
args = api.GemmArguments(A, B, D, accumulator_type, epilogue=epi_args)
if device is not None:
    args = args.to_device(device)
kernel = api.get_kernels(args)[0]
assert kernel.metadata.epilogue is not None
kernel.run(args, kernel.compile(args), stream=stream)
args.sync()
check_epilogue(D)
"""


def run_script(**names):
    exec(compile(SCRIPT, "script.py", "exec"), names)


@pytest.mark.parametrize("device", [None, "emulated:h200"])
def test_a_script_runs_with_numpy(rng, device):
    a, b = rng.standard_normal((64, 96)).astype("f"), rng.standard_normal((96, 128)).astype("f")
    bias = rng.standard_normal(128).astype("f")
    exact = a.astype("d") @ b.astype("d")
    run_script(
        A=a,
        B=b,
        D=numpy.zeros((64, 128), "f"),
        bias=bias,
        accumulator_type=numpy.float32,
        device=device,
        stream=None,
        make_workspace=lambda size: gemmery.empty((size,), "uint8", device or "cpu"),
        check=lambda d: numpy.testing.assert_allclose(d, exact, rtol=1e-4, atol=1e-4),
        check_epilogue=lambda d: numpy.testing.assert_allclose(d, numpy.maximum(exact * 0.5 + bias, 0), rtol=1e-4, atol=1e-4),
    )


@pytest.mark.gpu
def test_a_script_runs_with_torch():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    a, b = (torch.randn(256, 256, device="cuda").to(torch.float16) for _ in range(2))
    bias = torch.randn(256, device="cuda")
    exact = a.double() @ b.double()
    run_script(
        A=a,
        B=b,
        D=torch.zeros(256, 256, device="cuda", dtype=torch.float16),
        bias=bias,
        accumulator_type=torch.float32,
        device=None,
        stream=torch.cuda.current_stream(),
        make_workspace=lambda size: torch.empty(size, dtype=torch.uint8, device="cuda"),
        check=lambda d: torch.testing.assert_close(d.double(), exact, rtol=1e-2, atol=1e-1),
        check_epilogue=lambda d: torch.testing.assert_close(d.double(), (exact * 0.5 + bias).relu(), rtol=1e-2, atol=1e-1),
    )
