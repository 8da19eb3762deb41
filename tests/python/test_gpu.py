# SPDX-License-Identifier: Apache-2.0
"""Torch, CuPy and JAX on a GPU: streams, graphs, lifetimes, and results against the oracle."""

import functools
import gc

import numpy
import pytest

import gemmery
from gemmery import _core

pytestmark = pytest.mark.gpu


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="torch is not installed")


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy", reason="cupy is not installed")


@pytest.fixture
def jax():
    return pytest.importorskip("jax", reason="jax is not installed")


@pytest.fixture
def operands(torch):
    """operands(m, n, k, dtype) -> [A, B, out] on cuda:0, out full of NaN."""

    def make(m=256, n=192, k=128, dtype="bfloat16", device="cuda:0"):
        kind = getattr(torch, dtype)
        a, b = torch.randn(m, k, device=device), torch.randn(k, n, device=device)
        return [a.to(kind), b.to(kind), torch.full((m, n), float("nan"), device=device).to(kind)]

    return make


def busy(torch, microseconds=20_000):
    """Keeps the current stream busy for about this time."""
    torch.cuda._sleep(int(microseconds * 1500))


def best(args):
    kernel = gemmery.get_kernels(args)[0]
    return kernel, kernel.compile(args)


def assert_close(torch, out, a, b):
    expected = a.double() @ b.double()
    torch.testing.assert_close(out.double(), expected, rtol=2e-2, atol=2e-2 * a.shape[1] ** 0.5)


# --- results -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_results_of_torch_tensors_hold_the_bound(torch, operands, dtype):
    a, b, out = operands(dtype=dtype)
    args = gemmery.GemmArguments(a, b, out)
    for kernel in gemmery.get_kernels(args)[:3]:
        out.zero_()
        kernel.run(args)
        report = gemmery.check_result(args, kernel)
        assert report.passed, (kernel.name, report.first_failure)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_eight_bit_floats_of_torch(torch, operands, dtype):
    a, b, _ = operands(dtype=dtype)
    out = torch.zeros(256, 192, device="cuda:0")
    args = gemmery.GemmArguments(a, b.t().contiguous().t(), out, torch.float32)
    kernel, artifact = best(args)
    kernel.run(args, artifact)
    assert gemmery.check_result(args, kernel).passed


def test_eight_bit_integers_of_torch(torch):
    a = torch.randint(-128, 128, (128, 64), device="cuda:0", dtype=torch.int8)
    b = torch.randint(-128, 128, (64, 96), device="cuda:0", dtype=torch.int8)
    out = torch.zeros(128, 96, device="cuda:0", dtype=torch.int32)
    args = gemmery.GemmArguments(a, b, out, torch.int32)
    kernel, artifact = best(args)
    kernel.run(args, artifact)
    assert (out.cpu() == a.cpu().int() @ b.cpu().int()).all()


def test_views_parameters_and_gradients_are_tensors(torch, operands):
    a, b, out = operands(dtype="float32")
    parameter = torch.nn.Parameter(a.t().contiguous()).t()
    args = gemmery.GemmArguments(parameter, b.requires_grad_(), out)
    assert gemmery.as_tensor(parameter).strides == (1, 256)
    kernel, artifact = best(args)
    kernel.run(args, artifact)
    assert_close(torch, out, a, b.detach())


def test_batches_and_epilogues(torch):
    a, b = torch.randn(3, 64, 32, device="cuda:0"), torch.randn(3, 32, 48, device="cuda:0")
    out, bias = torch.zeros(3, 64, 48, device="cuda:0"), torch.randn(48, device="cuda:0")
    epilogue = gemmery.EpilogueArguments("D = relu(accum + bias)", bias=bias)
    args = gemmery.GemmArguments(a, b, out, torch.float32, epilogue=epilogue)
    kernel, artifact = best(args)
    kernel.run(args, artifact)
    torch.testing.assert_close(out, torch.relu(a @ b + bias), rtol=1e-2, atol=1e-2)


def test_numpy_on_a_gpu_is_staged_and_refused_otherwise(gemm, check):
    args, exact = gemm()
    staged = args.to_device()
    assert staged.device == "cuda:0"
    kernel, artifact = best(staged)
    with pytest.raises(ValueError):
        kernel.run(args, artifact)
    kernel.run(staged, artifact)
    staged.sync()
    numpy.testing.assert_allclose(args.out, exact, rtol=1e-3, atol=1e-3)


def test_cupy_arrays_and_its_current_stream(torch, cupy):
    a, b = cupy.random.rand(128, 64, dtype="f"), cupy.random.rand(64, 96, dtype="f")
    args = gemmery.GemmArguments(a, b, cupy.zeros((128, 96), "f"))
    kernel, artifact = best(args)
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        assert _core.resolve_stream(None, args) == stream.ptr
        kernel.run(args, artifact)
    kernel.run(args, artifact, stream=stream)
    stream.synchronize()
    cupy.testing.assert_allclose(args.out, a @ b, rtol=1e-3)


def cupy_whole(cupy, *shape):
    """Small integers, whose sums are exact."""
    return cupy.random.randint(-4, 5, shape).astype("f")


def test_cupy_arrays_may_be_freed_right_after_an_asynchronous_call(cupy):
    late = cupy.RawKernel('extern "C" __global__ void late() { for (int i = 0; i < 5000; ++i) __nanosleep(1000); }', "late")
    with cupy.cuda.Stream(non_blocking=True) as stream:
        for _ in range(10):
            a, b, out = cupy_whole(cupy, 512, 512), cupy_whole(cupy, 512, 512), cupy.empty((512, 512), "f")
            expected = a @ b
            args = gemmery.GemmArguments(a, b, out)
            kernel, artifact = best(args)
            stream.synchronize()
            late((1,), (1,), ())
            kernel.run(args, artifact)
            assert not stream.done, "the call did not wait"
            del a, b, args
            gc.collect()
            # CuPy reuses the memory of the freed operands in the order of the same stream.
            scribbled = [cupy.full((512, 512), 7, "f") for _ in range(4)]
            assert (out == expected).all()
            del scribbled


def test_cupy_captures_the_first_launch(cupy):
    a, b = cupy_whole(cupy, 96, 64), cupy_whole(cupy, 64, 80)
    out = cupy.zeros((96, 80), "f")
    args = gemmery.GemmArguments(a, b, out)
    kernel, artifact = best(args)
    cupy.cuda.Device().synchronize()
    with cupy.cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        kernel.run(args, artifact)
        graph = stream.end_capture()
        assert (out.get() == 0).all(), "captured, not run"
        graph.launch(stream)
        stream.synchronize()
    assert (out == a @ b).all()


def test_jax_arrays_are_operands_and_no_results(torch, jax):
    a = jax.random.normal(jax.random.key(0), (128, 64))
    b = jax.random.normal(jax.random.key(1), (64, 96))
    out = torch.zeros(128, 96, device="cuda:0")
    with pytest.raises(ValueError, match="arrays of JAX never may"):
        gemmery.GemmArguments(out[:, :64].contiguous(), b, jax.numpy.zeros((128, 96)))
    args = gemmery.GemmArguments(a, b, out)
    kernel, artifact = best(args)
    kernel.run(args, artifact)
    torch.cuda.synchronize()
    numpy.testing.assert_allclose(out.cpu().numpy(), numpy.asarray(a) @ numpy.asarray(b), rtol=1e-2, atol=1e-2)


def test_jax_arrays_may_be_freed_right_after_a_call(torch, jax):
    """JAX reuses memory on its own streams, so a call with its arrays waits for its end."""
    key = jax.random.key(0)
    for _ in range(10):
        key, one, other = jax.random.split(key, 3)
        a, b = (jax.random.randint(k, (1024, 1024), -4, 5).astype("float32") for k in (one, other))
        expected = numpy.asarray(a) @ numpy.asarray(b)
        out = torch.zeros(1024, 1024, device="cuda:0")
        args = gemmery.GemmArguments(a, b, out)
        assert args.must_finish
        kernel, artifact = best(args)
        launch = artifact.bind(args)
        calls = [functools.partial(kernel.run, args, artifact), launch]
        for call in calls:
            busy(torch, 5_000)
            call()
            assert torch.cuda.current_stream().query(), "the work has ended"
        del a, b, args, launch, calls, call
        gc.collect()
        scribbled = [jax.numpy.full((1024, 1024), 7.0) + i for i in range(4)]
        assert (out.cpu().numpy() == expected).all()
        del scribbled


# --- streams -------------------------------------------------------------------------------------


def test_the_default_stream_is_torchs_current_one(torch, operands):
    a, b, out = operands()
    args = gemmery.GemmArguments(a, b, out)
    kernel, artifact = best(args)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        assert _core.resolve_stream(None, args) == side.cuda_stream
        busy(torch)
        a.zero_()  # in the order of the side stream: the kernel must see it
        kernel.run(args, artifact)
        assert not side.query(), "the kernel waits behind the work of its stream"
    side.synchronize()
    assert (out == 0).all()


@pytest.mark.parametrize("kind", ["torch", "int", "protocol", "cupy", "cuda.core"])
def test_an_explicit_stream_is_used(torch, operands, kind):
    a, b, out = operands()
    args = gemmery.GemmArguments(a, b, out)
    kernel, artifact = best(args)
    side = torch.cuda.Stream()
    if kind == "torch":
        stream = side
    elif kind == "int":
        stream = side.cuda_stream
    elif kind == "protocol":
        stream = type("Stream", (), {"__cuda_stream__": lambda self: (0, side.cuda_stream)})()
    elif kind == "cupy":
        external = pytest.importorskip("cupy", reason="cupy is not installed").cuda.Stream.from_external
        stream = external(type("Stream", (), {"__cuda_stream__": lambda self: (0, side.cuda_stream)})())
    else:
        core = pytest.importorskip("cuda.core", reason="cuda.core is not installed")
        stream = (getattr(core, "Stream", None) or core.experimental.Stream).from_handle(side.cuda_stream)
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        busy(torch)
        a.zero_()
    kernel.run(args, artifact, stream)
    side.synchronize()
    assert (out == 0).all()


def test_two_frameworks_with_different_streams_need_an_explicit_one(torch, cupy, operands):
    a, b, out = operands(dtype="float32")
    args = gemmery.GemmArguments(a, cupy.from_dlpack(b), out)
    kernel, artifact = best(args)
    kernel.run(args, artifact)  # both on the default stream
    with torch.cuda.stream(torch.cuda.Stream()):
        with pytest.raises(ValueError, match="different current streams"):
            kernel.run(args, artifact)
        kernel.run(args, artifact, stream=torch.cuda.current_stream())
    torch.cuda.synchronize()
    assert_close(torch, out, a, b)


def test_operands_may_be_freed_right_after_an_asynchronous_call(torch, operands):
    for _ in range(20):
        a, b, out = operands(512, 512, 512)
        expected = a.double() @ b.double()
        args = gemmery.GemmArguments(a, b, out)
        kernel, artifact = best(args)
        torch.cuda.synchronize()
        busy(torch, 5_000)
        kernel.run(args, artifact)
        del a, b, args
        gc.collect()
        # torch reuses the memory of the freed operands in the order of the same stream.
        scribbled = [torch.full((512, 512), 7, device="cuda:0", dtype=torch.bfloat16) for _ in range(4)]
        torch.cuda.synchronize()
        torch.testing.assert_close(out.double(), expected, rtol=2e-2, atol=1)
        del scribbled


def test_operands_on_a_side_stream_are_recorded_by_the_caller(torch, operands):
    a, b, out = operands(512, 512, 512)
    expected = a.double() @ b.double()
    args = gemmery.GemmArguments(a, b, out)
    kernel, artifact = best(args)
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        busy(torch)
    kernel.run(args, artifact, stream=side)
    for tensor in (a, b):
        tensor.record_stream(side)
    del a, b, args, tensor
    scribbled = [torch.full((512, 512), 7, device="cuda:0", dtype=torch.bfloat16) for _ in range(4)]
    torch.cuda.synchronize()
    torch.testing.assert_close(out.double(), expected, rtol=2e-2, atol=1)
    del scribbled


# --- graphs --------------------------------------------------------------------------------------


def test_the_first_launch_may_be_captured(torch, operands):
    a, b, out = operands(320, 224, 96)
    args = gemmery.GemmArguments(a, b, out)
    kernel, artifact = best(args)
    launch = artifact.bind(args)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel.run(args, artifact)
    a.copy_(torch.randn_like(a))
    graph.replay()
    torch.cuda.synchronize()
    assert_close(torch, out, a, b)

    out.zero_()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    graph.replay()
    torch.cuda.synchronize()
    assert_close(torch, out, a, b)


def test_what_is_not_compiled_is_refused_in_a_capture_that_stays_valid(torch, operands):
    a, b, out = operands(64, 64, 64, dtype="float32")
    epilogue = gemmery.EpilogueArguments("D = accum * 0.123456 + 3")  # a program that no other test uses
    args = gemmery.GemmArguments(a, b, out, epilogue=epilogue)
    kernel = gemmery.get_kernels(args)[0]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        with pytest.raises(gemmery.UnsupportedError, match="compile"):
            kernel.run(args)
        out.fill_(5)
    graph.replay()
    torch.cuda.synchronize()
    assert (out == 5).all()


# --- the rest ------------------------------------------------------------------------------------


def test_a_workspace_of_the_caller_is_used_and_checked(torch, operands):
    a, b, out = operands(64, 64, 8192, dtype="float16")
    args = gemmery.GemmArguments(a, b, out, torch.float32)
    needing = [kernel for kernel in gemmery.get_kernels(args) if kernel.get_workspace_size(args) > 0]
    if not needing:
        pytest.skip("no kernel for this problem needs a workspace")
    kernel = needing[0]
    artifact = kernel.compile(args)
    workspace = torch.empty(kernel.get_workspace_size(args), device="cuda:0", dtype=torch.uint8)
    kernel.run(args, artifact, workspace=workspace)
    torch.cuda.synchronize()
    assert_close(torch, out, a, b)
    with pytest.raises(ValueError, match="workspace"):
        kernel.run(args, artifact, workspace=workspace[:-1])
    with pytest.raises(ValueError, match="workspace"):
        kernel.run(args, artifact, workspace=numpy.zeros(workspace.numel(), numpy.uint8))


def test_a_prepared_launch_takes_new_memory(torch, operands):
    a, b, out = operands()
    args = gemmery.GemmArguments(a, b, out)
    launch = best(args)[1].bind(args)
    other = torch.randn_like(a)
    launch.set_data("A", other)
    launch()
    torch.cuda.synchronize()
    assert_close(torch, out, other, b)


def test_fake_and_meta_tensors_discover_and_compile(torch):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = [torch.empty(256, 256, device="cuda:0", dtype=torch.bfloat16) for _ in range(3)]
        args = gemmery.GemmArguments(*fake)
    assert args.is_fake and args.device == "cuda:0"
    meta = gemmery.GemmArguments(*[torch.empty(256, 256, device="meta", dtype=torch.bfloat16) for _ in range(3)])
    assert meta.is_fake and meta.device == "meta"
    real = gemmery.GemmArguments(*[torch.empty(256, 256, device="cuda:0", dtype=torch.bfloat16) for _ in range(3)])
    kernels = gemmery.get_kernels(args)
    assert kernels == gemmery.get_kernels(real) == gemmery.get_kernels(meta)
    artifact = kernels[0].compile(args)
    assert kernels[0].supports(meta) and kernels[0].compile(meta).targets == artifact.targets
    with pytest.raises(ValueError, match="tensors with memory"):
        kernels[0].run(args, artifact)
    kernels[0].run(real, artifact)


def test_memory_of_our_own_goes_to_torch(torch):
    tensor = gemmery.empty((4, 8), "bfloat16", "cuda:0")
    shared = torch.from_dlpack(tensor)
    assert shared.data_ptr() == tensor.data_ptr and shared.dtype is torch.bfloat16
    shared.fill_(3)
    pointer = tensor.data_ptr
    del tensor
    gc.collect()
    assert (shared == 3).all() and shared.data_ptr() == pointer


def test_the_current_device_stays(torch, operands):
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU only")
    a, b, out = operands(device="cuda:1")
    with torch.cuda.device(0):
        args = gemmery.GemmArguments(a, b, out)
        kernel, artifact = best(args)
        kernel.run(args, artifact)
        assert torch.cuda.current_device() == 0
    torch.cuda.synchronize(1)
    assert_close(torch, out, a, b)


def test_discovery_on_this_device(torch, operands):
    args = gemmery.GemmArguments(*operands())
    own = [kernel for kernel in gemmery.get_kernels(args) if kernel.metadata.provider == "templates"]
    assert own[-1].family == "simt"
    assert gemmery.utils.device_cc() == gemmery.device_info("cuda:0").cc
    assert "cuda:0" in gemmery.devices()
