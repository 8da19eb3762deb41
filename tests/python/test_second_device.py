# SPDX-License-Identifier: Apache-2.0
"""Two devices in one process: objects of a device are used there, whichever device is current; mixtures are refused by name.

Pairs of emulated devices; also the second of two GPUs if there is one.
"""

import contextlib
import ctypes
import gc
import importlib.util
import pathlib
import sys

import numpy
import pytest

import gemmery
from gemmery import _core
from gemmery.metadata import GemmOperandsMetadata, KernelMetadata, TensorAttributes

PAIRS = [("emulated:h200", "emulated:h100"), pytest.param(("cuda:0", "cuda:1"), marks=pytest.mark.gpu)]


@pytest.fixture(params=PAIRS, ids="-".join)
def pair(request):
    missing = [device for device in request.param if device.startswith("cuda") and device not in gemmery.devices()]
    if missing:
        pytest.skip(f"{missing[0]} is not here")
    return request.param


@pytest.fixture
def on_both(pair, gemm):
    """Equal arguments on both devices, and a kernel for both."""
    args, _ = gemm(33, 24, 16)
    staged = [args.to_device(device) for device in pair]
    return *staged, gemmery.get_kernels(staged[0])[-1]


# --- what belongs to a device --------------------------------------------------------------------


def test_an_artifact_of_one_device_runs_on_another_of_its_kind(on_both):
    here, there, kernel = on_both
    artifact = kernel.compile(here)
    kernel.run(there, artifact)
    there.sync()
    assert gemmery.check_result(there, kernel).passed
    launch = artifact.bind(there)
    launch()
    kernel.run(here, artifact)
    for args in (here, there):
        args.sync()
        assert gemmery.check_result(args, kernel).passed


def test_an_artifact_of_another_architecture_is_refused_by_its_name(gemm):
    args, _ = gemm(33, 24, 16)
    here, there = args.to_device("emulated:h200"), args.to_device("emulated:a100")
    kernel = gemmery.get_kernels(here)[-1]
    with pytest.raises(gemmery.UnsupportedError, match=r"emulated:a100|sm_80") as raised:
        kernel.run(there, kernel.compile(here))
    assert "sm_90" in str(raised.value)


def test_operands_on_two_devices_are_refused_by_operand_and_device(pair):
    def on(*devices):
        return [gemmery.empty((8, 8), "float32", pair[device]) for device in devices]

    for places, operand in (((0, 1, 0), "B"), ((1, 0, 0), "A"), ((0, 0, 1), "A")):
        wanted = pair[places[-1]]
        with pytest.raises(gemmery.InvalidArgumentError, match=pair[1 - places[-1]]) as raised:
            gemmery.GemmArguments(*on(*places))
        assert raised.value.operand == f"gemm: {operand}" and wanted in raised.value.expected
    epilogue = gemmery.EpilogueArguments("D = accum + bias", bias=gemmery.empty((8,), "float32", pair[1]))
    with pytest.raises(gemmery.InvalidArgumentError, match=pair[1]) as raised:
        gemmery.GemmArguments(*on(0, 0, 0), epilogue=epilogue)
    assert "bias" in raised.value.operand


def test_memory_of_the_other_device_does_not_take_an_operands_place(on_both, pair):
    here, there, kernel = on_both
    launch = kernel.compile(here).bind(here)
    for target in (here, launch):
        with pytest.raises(gemmery.InvalidArgumentError, match=pair[1]) as raised:
            target.set_data("A", there.A)
        assert raised.value.operand == "A"
    with pytest.raises(gemmery.InvalidArgumentError, match=pair[0]) as raised:
        kernel.run(here, workspace=gemmery.empty((1024,), "uint8", pair[1]))
    assert raised.value.operand == "workspace"


WAYS = {
    "run": lambda args, kernel, stream: kernel.run(args, stream=stream),
    "run with an artifact": lambda args, kernel, stream: kernel.run(args, kernel.compile(args), stream=stream),
    "prepared launch": lambda args, kernel, stream: kernel.compile(args).bind(args)(stream),
    "sync": lambda args, kernel, stream: args.sync(stream),
    "check_result": lambda args, kernel, stream: gemmery.check_result(args, kernel, stream),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_of_the_other_device_is_refused_by_name(on_both, pair, way):
    here, _, kernel = on_both
    kernel.run(here)
    other = gemmery.Stream(pair[1])
    with pytest.raises(gemmery.InvalidArgumentError, match=f"stream of {pair[0]}.*a stream of {pair[1]}") as raised:
        WAYS[way](here, kernel, other)
    assert raised.value.operand == "stream"
    WAYS[way](here, kernel, gemmery.Stream(pair[0]))


@pytest.mark.parametrize("way", ["run", "run with an artifact", "prepared launch"])
def test_a_bare_handle_of_the_other_device_is_refused(on_both, pair, way):
    here, _, kernel = on_both
    kernel.run(here)
    other = gemmery.Stream(pair[1])
    with pytest.raises(gemmery.Error, match=r"stream|context"):
        WAYS[way](here, kernel, other.__cuda_stream__()[1])
    kernel.run(here)
    here.sync()
    assert gemmery.check_result(here, kernel).passed


# --- torch ---------------------------------------------------------------------------------------


@pytest.fixture
def torch():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if torch.cuda.device_count() < 2:
        pytest.skip("cuda:1 is not here")
    with torch.cuda.device(0):
        yield torch
        assert torch.cuda.current_device() == 0, "the current device stays"


def whole(torch, *shape, device="cuda:1", dtype=None):
    """Small integers, whose sums are exact. Drawn on the CPU: a GPU's generator becomes unusable after a capture that
    fails, and later tests would fail, too."""
    return torch.randint(-4, 5, shape).to(device, dtype or torch.float32)


def capture_on(torch, device, graph, **options):
    """Captures a stream of this device, since torch's stream for captures always belongs to the device that was current at the
    first capture."""
    return torch.cuda.graph(graph, stream=torch.cuda.Stream(device), **options)


def operands(torch, m=320, n=192, k=64, dtype=None):
    """[A, B, out] on cuda:1 and A @ B, while cuda:0 is current."""
    dtype = dtype or torch.float16
    a, b = whole(torch, m, k, dtype=dtype), whole(torch, k, n, dtype=dtype)
    return a, b, torch.full((m, n), float("nan"), device="cuda:1").to(dtype), (a.double() @ b.double()).to(dtype)


@pytest.mark.gpu
def test_every_call_serves_the_operands_device_while_another_is_current(torch):
    a, b, out, exact = operands(torch)
    args = gemmery.GemmArguments(a, b, out, torch.float32)
    assert args.device == "cuda:1"
    for kernel in gemmery.get_kernels(args)[:3]:
        artifact = kernel.compile(args)
        for call in (lambda: kernel.run(args, artifact), artifact.bind(args), lambda: kernel.run(args, verify=True)):  # noqa: B023
            out.zero_()
            call()
            assert torch.equal(out, exact), kernel.name
            assert torch.cuda.current_device() == 0
        assert gemmery.check_result(args, kernel).passed
    result = gemmery.matmul(a, b)
    assert result.device == a.device and torch.equal(result, exact)
    assert gemmery.explain(args)


@pytest.mark.gpu
def test_the_current_stream_of_the_operands_device_is_taken(torch):
    a, b, out, _ = operands(torch)
    args = gemmery.GemmArguments(a, b, out, torch.float32)
    kernel = gemmery.get_kernels(args)[0]
    artifact = kernel.compile(args)
    side = torch.cuda.Stream("cuda:1")
    torch.cuda.synchronize(1)
    with torch.cuda.stream(side):
        torch.cuda._sleep(200_000_000)
        a.zero_()
        with torch.cuda.device(0), torch.cuda.stream(torch.cuda.Stream("cuda:0")):
            assert _core.resolve_stream(None, args) == side.cuda_stream
            kernel.run(args, artifact)
        assert not side.query(), "the kernel waits behind the work of its stream"
    side.synchronize()
    assert (out == 0).all()


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["torch", "int", "cupy", "cuda.core"])
def test_streams_of_frameworks_for_the_other_device_are_refused(torch, kind):
    a, b, out, exact = operands(torch)
    args = gemmery.GemmArguments(a, b, out, torch.float32)
    kernel = gemmery.get_kernels(args)[0]
    artifact = kernel.compile(args)
    other = torch.cuda.Stream("cuda:0")
    words = "stream of cuda:1.*a stream of cuda:0"
    if kind == "int":
        other, words = other.cuda_stream, "stream|context"
    elif kind == "cupy":
        cupy = pytest.importorskip("cupy", reason="cupy is not installed")
        with cupy.cuda.Device(0):
            other = cupy.cuda.Stream(non_blocking=True)
    elif kind == "cuda.core":
        core = pytest.importorskip("cuda.core", reason="cuda.core is not installed")
        device = (getattr(core, "Device", None) or core.experimental.Device)(0)
        device.set_current()
        other = device.create_stream()
    for call in (lambda: kernel.run(args, artifact, other), lambda: artifact.bind(args)(other)):
        with pytest.raises(gemmery.Error, match=words):
            call()
    kernel.run(args, artifact, stream=torch.cuda.Stream("cuda:1"))
    torch.cuda.synchronize(1)
    assert torch.equal(out, exact)


@pytest.mark.gpu
def test_an_artifact_is_captured_where_it_was_loaded(torch):
    a, b, out, _ = operands(torch)
    exact = (a.double() @ b.double() + 0.8125).to(out.dtype)
    epilogue = gemmery.EpilogueArguments("D = accum + 0.8125")  # a program that no other test has loaded
    near = gemmery.GemmArguments(*(tensor.to("cuda:0") for tensor in (a, b, out)), torch.float32, epilogue=epilogue)
    far = gemmery.GemmArguments(a, b, out, torch.float32, epilogue=epilogue)
    kernel = gemmery.get_kernels(near)[0]
    artifact = kernel.compile(near)
    graph = torch.cuda.CUDAGraph()
    with capture_on(torch, "cuda:1", graph):
        with pytest.raises(gemmery.UnsupportedError, match="cuda:1"):
            kernel.run(far, artifact)
        out.fill_(5)
    graph.replay()
    torch.cuda.synchronize(1)
    assert (out == 5).all(), "the capture stayed valid"
    artifact.load_on("cuda:1")
    graph = torch.cuda.CUDAGraph()
    with capture_on(torch, "cuda:1", graph):
        kernel.run(far, artifact)
    graph.replay()
    torch.cuda.synchronize(1)
    assert torch.equal(out, exact)


@pytest.mark.gpu
def test_operands_on_the_second_gpu_may_be_freed_right_after_a_call(torch):
    for _ in range(10):
        a, b, out, exact = operands(torch, 512, 512, 512)
        args = gemmery.GemmArguments(a, b, out, torch.float32)
        kernel = gemmery.get_kernels(args)[0]
        artifact = kernel.compile(args)
        torch.cuda.synchronize(1)
        with torch.cuda.device(1):
            torch.cuda._sleep(10_000_000)
        kernel.run(args, artifact)
        del a, b, args
        gc.collect()
        scribbled = [torch.full((512, 512), 7, device="cuda:1", dtype=torch.float16) for _ in range(4)]
        torch.cuda.synchronize(1)
        assert torch.equal(out, exact)
        del scribbled


@pytest.mark.gpu
def test_a_workspace_of_ours_lies_on_the_operands_device(torch):
    a, b, out, exact = operands(torch, 64, 64, 8192)
    args = gemmery.GemmArguments(a, b, out, torch.float32)
    needing = [kernel for kernel in gemmery.get_kernels(args) if kernel.get_workspace_size(args) > 0]
    if not needing:
        pytest.skip("no kernel for this problem needs a workspace")
    needing[0].run(args)
    torch.cuda.synchronize(1)
    assert torch.equal(out, exact)


@pytest.mark.gpu
def test_the_operators_of_torch_serve_the_second_gpu(torch):
    import gemmery.torch_ops as gt

    a, b, out, exact = operands(torch, dtype=torch.float32)
    assert torch.equal(gt.matmul(a, b), exact)
    assert torch.equal(torch.compile(gt.matmul, fullgraph=True, backend="aot_eager")(a, b), exact)
    assert gt.matmul(a, b, out=out) is out and torch.equal(out, exact)
    with pytest.raises((ValueError, RuntimeError), match="cuda"):
        gt.matmul(a, b.to("cuda:0"))


@pytest.mark.gpu
def test_cupy_arrays_on_the_second_gpu(torch):
    cupy = pytest.importorskip("cupy", reason="cupy is not installed")
    with cupy.cuda.Device(1):
        a = cupy.random.randint(-4, 5, (96, 64)).astype("f")
        b = cupy.random.randint(-4, 5, (64, 80)).astype("f")
        side = cupy.cuda.Stream(non_blocking=True)
        cupy.cuda.Device(1).synchronize()
    with cupy.cuda.Device(0):
        result = gemmery.matmul(a, b)
        assert result.device.id == 1
        args = gemmery.GemmArguments(a, b, result)
        kernel = gemmery.get_kernels(args)[0]
        kernel.run(args, stream=side)
        assert cupy.cuda.Device().id == 0
    with cupy.cuda.Device(1):
        cupy.cuda.Device(1).synchronize()
        assert (result == a @ b).all()


@pytest.mark.gpu
def test_jax_arrays_on_the_second_gpu(torch):
    jax = pytest.importorskip("jax", reason="jax is not installed")
    gpus = [device for device in jax.devices() if device.platform == "gpu"]
    if len(gpus) < 2:
        pytest.skip("jax sees no second GPU")
    a = jax.device_put(numpy.random.default_rng().integers(-4, 5, (96, 64)).astype("f"), gpus[1])
    b = jax.device_put(numpy.random.default_rng().integers(-4, 5, (64, 80)).astype("f"), gpus[1])
    result = gemmery.matmul(a, b)
    assert result.devices() == {gpus[1]}
    numpy.testing.assert_array_equal(numpy.asarray(result), numpy.asarray(a) @ numpy.asarray(b))
    # JAX determines the current device after its calls; the library's calls are tested with torch and CuPy.
    torch.cuda.set_device(0)


# --- kernels in Python ---------------------------------------------------------------------------


class TorchGemm(gemmery.Kernel):
    """A body in torch, with a workspace that is in use for a while."""

    @staticmethod
    def generate_kernels(metadata_filter, epilogue_args=None, cc=None):
        any_layout = TensorAttributes(gemmery.float32, None, 4)
        asked = GemmOperandsMetadata(A=any_layout, B=any_layout, out=any_layout, accumulator_type=gemmery.float32)
        return [TorchGemm(KernelMetadata("torch_gemm_v1", TorchGemm, 80, asked))]

    def get_workspace_size(self, args):
        return 4 * args.problem_size[0] * args.problem_size[1]

    def compile(self, args, cc=None):
        return gemmery.CompiledArtifact(None, self)

    def _run(self, args, artifact, stream, workspace):
        import torch

        a, b, out = (
            torch.from_dlpack(args.views[name].__dlpack__(stream=-1, max_version=(1, 0))) for name in ("A", "B", "out")
        )
        with torch.cuda.stream(torch.cuda.ExternalStream(stream, device=args.device)):
            sums = workspace.view(torch.float32).view(out.shape)
            torch.matmul(a, b, out=sums)
            torch.cuda._sleep(200_000_000)
            out.copy_(sums)


@pytest.fixture(params=["cuda:0", "cuda:1"])
def of_torch(request):
    """(torch, a device that is not always the current one, arguments on it, A @ B)"""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if request.param not in gemmery.devices():
        pytest.skip(f"{request.param} is not here")
    a, b = whole(torch, 256, 64, device=request.param), whole(torch, 64, 128, device=request.param)
    args = gemmery.GemmArguments(a, b, torch.zeros(256, 128, device=request.param), torch.float32)
    with torch.cuda.device(0):
        return torch, request.param, args, a @ b


@pytest.mark.gpu
def test_a_workspace_of_torch_stays_while_the_launchs_stream_needs_it(of_torch):
    torch, device, args, exact = of_torch
    [kernel] = TorchGemm.generate_kernels(lambda metadata: True)
    artifact = kernel.compile(args)
    side = torch.cuda.Stream(device)
    torch.cuda.synchronize(device)
    kernel.run(args, artifact, stream=side)
    size = kernel.get_workspace_size(args)
    scribbled = [torch.full((size,), 7, device=device, dtype=torch.uint8) for _ in range(16)]
    assert not side.query(), "the workspace is in use"
    torch.cuda.synchronize(device)
    assert torch.equal(args.out, exact)
    del scribbled


REFUSED_IN_CAPTURE = "compiled before the stream is captured"


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_python_kernels_that_are_not_compiled_are_refused_where_their_device_is_captured(of_torch):
    torch, device, args, _ = of_torch
    [kernel] = TorchGemm.generate_kernels(lambda metadata: True)
    other = torch.cuda.device_count() - 1 - torch.device(device).index  # the same one if there is only one
    refused = pytest.raises(gemmery.UnsupportedError, match=REFUSED_IN_CAPTURE)
    # Relaxed: if nothing is refused, the capture does not fail with this test, and torch stays usable for the next.
    capture = capture_on(torch, device, torch.cuda.CUDAGraph(), capture_error_mode="relaxed")
    with capture, torch.cuda.device(other), refused:
        kernel.run(args)


@contextlib.contextmanager
def captured_aside(torch, device):
    """A stream that is being captured in strict mode and is not torch's current one; the capture must stay valid."""
    graph, side, written = torch.cuda.CUDAGraph(), torch.cuda.Stream(device), torch.zeros(8, device=device)
    torch.cuda.synchronize(device)
    with torch.cuda.stream(side):
        graph.capture_begin(capture_error_mode="global")
    try:
        yield side
        with torch.cuda.stream(side):
            written.fill_(5)
    finally:
        with torch.cuda.stream(side):
            graph.capture_end()
    graph.replay()
    torch.cuda.synchronize(device)
    assert (written == 5).all()


class AllocatingGemm(TorchGemm):
    """Makes calls in its compilation that captures forbid. Launches nothing, so that torch's behaviour does not matter."""

    def __init__(self, metadata):
        super().__init__(metadata)
        self.memory = ctypes.c_uint64()
        self.status = None
        self.launches = 0

    def compile(self, args, cc=None):
        self.status = ctypes.CDLL("libcuda.so.1").cuMemAlloc_v2(ctypes.byref(self.memory), ctypes.c_size_t(1 << 20))
        return super().compile(args, cc)

    def get_workspace_size(self, args):
        return 256

    def _run(self, args, artifact, stream, workspace):
        self.launches += 1

    def free(self):
        if self.status == 0:
            ctypes.CDLL("libcuda.so.1").cuMemFree_v2(self.memory)

    def compile_key(self, args):
        return self, args.device  # not what another test compiled


@pytest.fixture
def allocating_gemm():
    [kernel] = TorchGemm.generate_kernels(lambda metadata: True)
    allocating = AllocatingGemm(kernel.metadata)
    yield allocating
    allocating.free()


@pytest.mark.gpu
def test_python_kernels_that_are_not_compiled_are_refused_on_a_captured_stream_that_is_not_torchs_current(
    of_torch, allocating_gemm
):
    torch, device, args, _ = of_torch
    with captured_aside(torch, device) as side:
        with pytest.raises(gemmery.UnsupportedError, match=REFUSED_IN_CAPTURE):
            allocating_gemm.run(args, stream=side)
        with pytest.raises(gemmery.UnsupportedError, match=REFUSED_IN_CAPTURE):
            allocating_gemm.run(args, stream=side.cuda_stream)


@pytest.mark.gpu
def test_python_kernels_are_compiled_beside_a_capture_of_another_stream(of_torch, allocating_gemm):
    torch, device, args, _ = of_torch
    workspace = torch.empty(256, dtype=torch.uint8, device=device)
    with captured_aside(torch, device), torch.cuda.device(device):
        allocating_gemm.run(args, workspace=workspace)
    assert allocating_gemm.status == 0 and allocating_gemm.launches == 1


@pytest.mark.gpu
def test_a_workspace_is_refused_in_a_capture_whose_memory_nobody_keeps(of_torch, allocating_gemm):
    torch, device, args, _ = of_torch
    artifact = TorchGemm.compile(allocating_gemm, args)
    with (
        captured_aside(torch, device) as side,
        pytest.raises(gemmery.UnsupportedError, match="workspace of .* pass workspace="),
    ):
        allocating_gemm.run(args, artifact, stream=side)


@pytest.mark.gpu
def test_a_capture_of_cupy_forbids_to_compile(of_torch, allocating_gemm):
    cupy = pytest.importorskip("cupy", reason="cupy is not installed")
    torch, device, args, _ = of_torch
    with cupy.cuda.Device(torch.device(device).index):
        stream = cupy.cuda.Stream(non_blocking=True)
        stream.begin_capture()
        try:
            with pytest.raises(gemmery.UnsupportedError, match=REFUSED_IN_CAPTURE):
                allocating_gemm.run(args, stream=stream)
        finally:
            stream.end_capture()


class CapturingTorch:
    """The parts of torch that are queried for captures: a current device, and devices whose current stream is captured."""

    def __init__(self, current, captured):
        self.cuda, self.current, self.captured = self, current, captured

    def is_available(self):
        return True

    def is_current_stream_capturing(self):
        return self.current in self.captured

    @contextlib.contextmanager
    def device(self, device):
        before, self.current = self.current, int(device.removeprefix("cuda:"))
        yield
        self.current = before


class CountingGemm(gemmery.Kernel):
    """Counts its calls."""

    def __init__(self):
        super().__init__(KernelMetadata("counting_gemm_v1", CountingGemm, 80, None))
        self.calls = []

    @staticmethod
    def generate_kernels(metadata_filter, epilogue_args=None, cc=None):
        return []

    def compile(self, args, cc=None):
        self.calls.append("compile")
        return gemmery.CompiledArtifact(None, self)

    def compile_key(self, args):
        return self, args.device  # not what another test compiled

    def _run(self, args, artifact, stream, workspace):
        self.calls.append("run")


@pytest.mark.parametrize("operands_on", [0, 1])
@pytest.mark.parametrize("current", [0, 1])
@pytest.mark.parametrize("captured", [(), (0,), (1,), (0, 1)], ids=str)
def test_a_capture_of_the_operands_device_or_the_current_one_forbids_to_compile(operands_on, current, captured, monkeypatch):
    torch = CapturingTorch(current, captured)
    monkeypatch.setitem(sys.modules, "torch", torch)
    views = [gemmery.Tensor(address << 40, (16, 16), "float32", device=f"cuda:{operands_on}") for address in (1, 2, 3)]
    args, kernel = gemmery.GemmArguments(*views), CountingGemm()
    forbids = operands_on in captured or current in captured
    if forbids:
        with pytest.raises(gemmery.UnsupportedError, match=REFUSED_IN_CAPTURE):
            kernel.run(args, assume_supported_args=True)
        assert kernel.calls == []
    kernel.run(args, kernel.compile(args), assume_supported_args=True)
    assert kernel.calls == ["compile", "run"], "compiled code runs in captures, too"
    if not forbids:
        kernel.run(args, assume_supported_args=True)
        assert kernel.calls[2:] == ["compile", "run"]
    assert torch.current == current, "the current device stays"


@pytest.mark.gpu
def test_triton_kernels_serve_the_second_gpu(torch):
    pytest.importorskip("triton", reason="triton is not installed")
    path = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python" / "triton_gemm.py"
    spec = importlib.util.spec_from_file_location("triton_gemm", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        a, b, out, exact = operands(torch)
        args = gemmery.GemmArguments(a, b, out, torch.float32)
        kernels = gemmery.get_kernels(args, providers=["triton", "user"])
        assert len(kernels) == len(module.DESIGNS) + 1
        for kernel in kernels:
            out.zero_()
            kernel.run(args, kernel.compile(args))
            torch.cuda.synchronize(1)
            assert torch.equal(out, exact), kernel.name
    finally:
        gemmery.own_kernels.withdraw_kernel(module.triton_64)
        gemmery.providers.TritonProvider.withdraw(module.TritonGemm)
