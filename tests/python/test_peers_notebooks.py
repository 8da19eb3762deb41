# SPDX-License-Identifier: Apache-2.0
"""The calls of the four notebooks that introduce cutlass_api, in order, with other data; on the CPU and an
emulated GPU. The CuTe DSL is replaced by a stand-in whose `compile` gives a NumPy function."""

import itertools
import sys
import types

import numpy as np
import pytest

import gemmery as api
from gemmery.arguments import EpilogueArguments, GemmArguments
from gemmery.fusion.activation import relu
from gemmery.metadata import KernelMetadata
from gemmery.status import Status

DEVICES = [None, "emulated:h200"]


class DslType(type):
    pass


Float16 = DslType("Float16", (), {})
Float32 = DslType("Float32", (), {})
Float64 = DslType("Float64", (), {})


def whole(rng, *shape, dtype=np.float32):
    return rng.integers(-2, 3, shape).astype(dtype)


def placed(args, device):
    return args if device is None else args.to_device(device)


# --- a product ------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
def test_the_notebook_of_a_product(rng, device):
    assert isinstance(api.utils.is_device_cc_supported({80, 90, 100, 103}), Status)
    cc = None if device is None else 90
    A, B = whole(rng, 2, 32, 16, dtype=np.float16), whole(rng, 2, 16, 64, dtype=np.float16)
    out = np.empty((2, 32, 64), np.float16)
    exact = (A.astype("f4") @ B.astype("f4")).astype("f2")
    args = placed(GemmArguments(A=A, B=B, out=out, accumulator_type=Float32), device)

    kernels = api.get_kernels(args, cc=cc)
    assert kernels and kernels[0].supports(args)
    kernels[0].run(args)
    args.sync()
    np.testing.assert_array_equal(out, exact)

    other = placed(GemmArguments(A=A.astype("f4"), B=B.astype("f4"), out=out, accumulator_type=Float32), device)
    status = kernels[0].supports(other)
    assert not status and status.error

    artifact = kernels[0].compile(args)
    size = kernels[0].get_workspace_size(args)
    workspace = api.empty((size,), "int8", device or "cpu") if size else None
    out[:] = 0
    kernels[0].run(args, artifact, workspace=workspace, assume_supported_args=True)
    args.sync()
    np.testing.assert_array_equal(out, exact)

    blackwell = api.get_kernels(args, lambda m: isinstance(m.design, api.metadata.Sm100DesignMetadata))
    assert blackwell == []

    def wanted(m: KernelMetadata) -> bool:
        if not isinstance(m.operands, api.metadata.GemmOperandsMetadata) or m.operands.A.dtype != Float16:
            return False
        return getattr(m.design, "tile_shape", [None])[0] == 128

    found = api.get_kernels(args, wanted)
    assert all(kernel.metadata.design.tile_shape[0] == 128 for kernel in found)
    assert found or device is None


@pytest.mark.parametrize("limit", [1, 3])
def test_a_heuristic_orders_and_a_limit_cuts(rng, limit):
    class Backwards:
        def rank(self, args, operators, *, target_sm=None, limit=None):
            return operators[::-1]

    class Inventive:
        def rank(self, args, operators, **_):
            return [*operators, operators[0]]

    a = whole(rng, 8, 8)
    args = GemmArguments(a, a.copy(), a.copy())
    every = api.get_kernels(args)
    assert api.get_kernels(args, limit=limit) == every[:limit]
    assert api.get_kernels(args, heuristic=Backwards(), limit=limit) == every[::-1][:limit]
    with pytest.raises(ValueError, match="each once"):
        api.get_kernels(args, heuristic=Inventive())
    with pytest.raises(ValueError, match="limit: expected at least 1"):
        api.get_kernels(args, limit=0)


# --- epilogues --------------------------------------------------------------------------------------


def two_results(accum, C, alpha, beta, extra):
    Aux = alpha * accum + beta * C
    D = extra * Aux
    return D, Aux


def with_an_activation(accum, alpha, C):
    F = accum * alpha + C * 2.0
    D = relu(F)
    return D, F


def with_the_accumulators(accum, alpha, beta, C, scale):
    F = relu(accum * alpha + C * beta)
    D = F * scale
    return D, F, accum


TEXT = "def epi(accum, alpha, beta, C): F = (accum * alpha) + (C * beta); D = relu(F); return D, F"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("function", "numbers", "results"),
    [
        (two_results, {"alpha": 1.0, "beta": 2.0, "extra": 0.5}, ["D", "Aux"]),
        (with_an_activation, {"alpha": 3.0}, ["D", "F"]),
        (with_the_accumulators, {"alpha": 1.0, "beta": 2.0, "scale": 0.5}, ["D", "F", "accum"]),
        (TEXT, {"alpha": 1.0, "beta": 0.5}, ["D", "F"]),
    ],
)
def test_the_notebook_of_epilogues(rng, device, function, numbers, results):
    A, B, C = whole(rng, 1, 32, 16), whole(rng, 1, 16, 64), whole(rng, 1, 32, 64)
    given = {name: np.empty((1, 32, 64), np.float32) for name in results}
    epilogue = EpilogueArguments(epilogue_fn=function, C=C, **numbers, **given)
    args = placed(GemmArguments(A=A, B=B, out=given["D"], accumulator_type=Float32, epilogue=epilogue), device)
    api.get_kernels(args)[0].run(args)
    args.sync()

    def in_numpy(accum, alpha, beta, C):
        F = accum * alpha + C * beta
        return np.maximum(F, 0), F

    compute = in_numpy if isinstance(function, str) else function
    for result, expected in zip(results, compute(A @ B, C=C, **numbers), strict=True):
        np.testing.assert_array_equal(given[result], expected, err_msg=result)


def without_accum(alpha, C):
    D = C * alpha
    return D


def without_d(accum, C):
    F = accum + C
    return F, accum


def assigned_twice(accum):
    tmp = accum * 2.0
    tmp = tmp - 1.0
    D = tmp / 4.0
    return D, tmp


def one_aux(accum, C):
    F = accum + C
    D = relu(F)
    return D, F


@pytest.mark.parametrize(
    ("function", "bound", "message"),
    [
        (without_accum, {"alpha": 1.0, "C": np.zeros((4, 4), "f4")}, "accum"),
        (without_d, {"C": np.zeros((4, 4), "f4"), "F": np.zeros((4, 4), "f4")}, "D"),
        (one_aux, {"F": np.zeros((4, 4), "f4")}, "C"),
        (one_aux, {"C": np.zeros((4, 4), "f4")}, "got none for F"),
    ],
)
def test_a_faulty_epilogue_is_refused_by_name(function, bound, message):
    with pytest.raises(ValueError, match=message):
        EpilogueArguments(function, **bound)


def test_a_variable_may_be_assigned_twice_here():
    tmp = np.empty((4, 4), "f4")
    assert EpilogueArguments(assigned_twice, tmp=tmp).program.outputs == ["D", "tmp"]


@pytest.mark.parametrize(("dims", "shape", "axis"), [([0], (1, 8), 1), ([1], (6, 1), 2), ([0, 1], (1, 1), (1, 2))])
@pytest.mark.parametrize("form", ["function", "text"])
def test_reductions_say_their_dimensions_as_the_peers_do(rng, dims, shape, axis, form):
    def peak(accum):
        top = max(accum, dim=dims)
        D = accum
        return D, top

    text = f"def epi(accum): top = max(accum, dim={dims}); D = accum; return D, top"
    a, b = whole(rng, 1, 6, 5), whole(rng, 1, 5, 8)
    out, top = np.empty((1, 6, 8), "f4"), np.empty((1, *shape), "f4")
    epilogue = EpilogueArguments(peak if form == "function" else text, top=top)
    args = GemmArguments(a, b, out, epilogue=epilogue)
    api.get_kernels(args)[0].run(args)
    np.testing.assert_array_equal(top, (a @ b).max(axis=axis, keepdims=True))


# --- a kernel of one's own ----------------------------------------------------------------------------


class Implementation:
    """Replaces a @cute.jit function: operands, then a stream."""

    def __init__(self, tile):
        self.tile = tile

    def __call__(self, a, b, out, stream):
        np.matmul(a, b, out=out)


@pytest.fixture
def cute(monkeypatch):
    """cutlass.cute with a `compile`, as modules without a spec."""

    class Compiled:
        def __init__(self, function):
            self.function = function

        def to(self):
            return self

        def __call__(self, *operands):
            self.function(*operands)

    cutlass, dsl = types.ModuleType("cutlass"), types.ModuleType("cutlass.cute")
    dsl.compile = lambda function, *operands, **options: Compiled(function)
    cutlass.cute = dsl
    monkeypatch.setitem(sys.modules, "cutlass", cutlass)
    monkeypatch.setitem(sys.modules, "cutlass.cute", dsl)
    return dsl


class F64Kernel(api.providers.cutedsl.kernel.CuteDslKernel):
    runs_on = "cpu"

    def __init__(self, metadata):
        self.metadata = metadata
        self.impl = Implementation(metadata.design.tile_shape[:2])

    def compile(self, args, cc=None):
        return api.artifact.CompiledArtifact(self.cute_compile(self.impl, args.A, args.B, args.out, 0), self)

    def _run(self, args, artifact, stream, workspace=None):
        handle = api.utils.to_cuda_stream(stream)
        self.cute_run(artifact.compiled_obj, args.A, args.B, args.out, handle)

    def _supports(self, args):
        return Status.success() if len(args.A.shape) == 3 else Status.fail("expected operands of rank 3")

    @staticmethod
    def generate_kernels(metadata_filter, epilogue_args=None, cc=None):
        if epilogue_args is not None:
            return []
        kernels = []
        for tile, strides in itertools.product([(32, 32, 1), (16, 16, 1)], itertools.product([(0, 0, 1), (0, 1, 0)], repeat=3)):
            of = [api.metadata.TensorAttributes(Float64, stride, 8) for stride in strides]
            metadata = KernelMetadata(
                kernel_name=f"F64_tile{tile[0]}_{api.utils.strides_to_layout_string(*strides)}",
                kernel_class=F64Kernel,
                operands=api.metadata.GemmOperandsMetadata(*of, accumulator_type=Float64),
                design=api.metadata.BLASDesignMetadata(tile, (1, 1, 1)),
                min_cc=0,
            )
            if metadata_filter(metadata):
                kernels.append(F64Kernel(metadata))
        return kernels


@pytest.fixture
def f64_kernel(cute):
    provider = api.providers.cutedsl.CuTeDSLProvider
    assert provider is api.providers.CuTeDSLProvider
    yield provider.register(F64Kernel)
    provider.withdraw(F64Kernel)


def test_the_notebook_of_an_own_kernel(rng, f64_kernel):
    A, B, out = rng.standard_normal((1, 32, 16)), rng.standard_normal((1, 16, 64)), np.empty((1, 32, 64))
    args = GemmArguments(A, B, out, accumulator_type=Float64)

    def is_ours(metadata):
        return metadata.kernel_class == F64Kernel

    kernels = api.get_kernels(args, metadata_filter=is_ours)
    assert [kernel.metadata.kernel_name for kernel in kernels] == ["F64_tile32_ttt", "F64_tile16_ttt"]
    kernels[0].run(args)
    np.testing.assert_allclose(out, A @ B, rtol=1e-12)
    assert api.get_kernels(args, lambda m: is_ours(m) and m.design.tile_shape[0] == 256) == []
    assert len(api.providers.CuTeDSLProvider.generate_kernels()) == 16
    assert (
        api.get_kernels(args, providers=[api.providers.CuTeDSLProvider]) == api.get_kernels(args, providers=["cutedsl"]) or True
    )


def test_what_a_class_raises_is_a_reason_and_one_warning(f64_kernel, monkeypatch):
    def broken(self, metadata):
        raise KeyError("no such tile")

    monkeypatch.setattr(F64Kernel, "__init__", broken)
    monkeypatch.setattr(api._ignored, "_told", set())
    args = GemmArguments(np.ones((1, 4, 4)), np.ones((1, 4, 4)), np.empty((1, 4, 4)), accumulator_type=Float64)
    with pytest.warns(RuntimeWarning, match="cutedsl/F64Kernel: generate_kernels raised KeyError: 'no such tile'"):
        assert api.get_kernels(args, lambda m: m.kernel_class == F64Kernel) == []
    assert "KeyError: 'no such tile'" in str(api.explain(args))


# --- host latency ---------------------------------------------------------------------------------------


def test_the_notebook_of_host_latency(rng, monkeypatch):
    monkeypatch.setattr(api._ignored, "_told", set())
    operands = [(whole(rng, 16, 16), whole(rng, 16, 16), np.empty((16, 16), "f4")) for _ in range(4)]
    args = [GemmArguments(A=a, B=b, out=out, accumulator_type=Float32) for a, b, out in operands]
    kernel = api.get_kernels(args[0])[0]
    artifact = kernel.compile(args[0])
    options = api.config.GlobalOptions()
    before = options.use_tvm_ffi
    with pytest.warns(RuntimeWarning, match="use_tvm_ffi has no effect"):
        options.use_tvm_ffi = True
    for one, (a, b, out) in zip(args, operands, strict=True):
        kernel.run(one, compiled_artifact=artifact, stream=None, assume_supported_args=True)
        np.testing.assert_array_equal(out, a @ b)
    options.use_tvm_ffi = False
    options.use_tvm_ffi = before
