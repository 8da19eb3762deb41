# SPDX-License-Identifier: Apache-2.0
"""Kernels of the user: classes, source, and callables, found and run like the library's."""

import ctypes
import importlib.machinery
import importlib.util
import itertools
import random
import sys
import threading
import types

import numpy as np
import pytest

import gemmery
from gemmery import own_kernels
from gemmery.metadata import BLASDesignMetadata, GemmOperandsMetadata, KernelMetadata, TensorAttributes
from gemmery.status import Status

unique = itertools.count(random.randrange(10**6))


def gemm_arguments(shape=(5, 7, 9), dtype=np.float32, epilogue=None, seed=None):
    seed = random.randrange(2**31) if seed is None else seed
    print("seed", seed)
    rng = np.random.default_rng(seed)
    m, n, k = shape
    a = rng.integers(-8, 9, (m, k)).astype(dtype)
    b = rng.integers(-8, 9, (k, n)).astype(dtype)
    return gemmery.GemmArguments(a, b, np.full((m, n), -1, dtype), dtype, epilogue=epilogue)


def expected_of(args):
    return (args.A.astype(np.float64) @ args.B.astype(np.float64)).astype(args.out.dtype)


def operands(dtype=gemmery.float32):
    any_layout = TensorAttributes(dtype, None, 4)
    return GemmOperandsMetadata(A=any_layout, B=any_layout, out=any_layout, accumulator_type=dtype)


class NumPyGemm(gemmery.Kernel):
    """A class like those of cutlass_api, with a body in NumPy."""

    runs_on = "cpu"
    compilations = 0

    @staticmethod
    def generate_kernels(metadata_filter, epilogue_args=None, cc=None):
        if epilogue_args is not None:
            return []
        kernels = []
        for order in ("C", "F"):
            metadata = KernelMetadata(
                f"numpy_gemm_{order}", NumPyGemm, 0, operands(), BLASDesignMetadata((1, 1, 1), order=order)
            )
            if metadata_filter(metadata):
                kernels.append(NumPyGemm(metadata))
        return kernels

    def _supports(self, args):
        return Status.success() if args.problem_size[3] == 1 else Status.fail("one matrix at a time")

    def compile(self, args, cc=None):
        NumPyGemm.compilations += 1
        return gemmery.CompiledArtifact(np.matmul, self)

    def get_workspace_size(self, args):
        return 4 * args.problem_size[0] * args.problem_size[1] if self.metadata.design.order == "F" else 0

    def _run(self, args, artifact, stream, workspace):
        assert stream == 0
        if workspace is None:
            artifact.compiled_obj(args.A, args.B, out=args.out)
            return
        m, n = args.problem_size[:2]
        scratch = np.from_dlpack(workspace).view(np.float32)[: m * n].reshape((n, m)).T
        artifact.compiled_obj(args.A, args.B, out=scratch)
        args.out[...] = scratch


@pytest.fixture
def numpy_gemm():
    gemmery.Provider.register(NumPyGemm)
    NumPyGemm.compilations = 0
    yield NumPyGemm
    gemmery.Provider.withdraw(NumPyGemm)


def ours(kernels, kernel_class=NumPyGemm):
    return [kernel for kernel in kernels if isinstance(kernel, kernel_class)]


# --- classes -------------------------------------------------------------------------------------


def test_a_class_joins_discovery_and_leaves_it(numpy_gemm):
    args = gemm_arguments()
    found = ours(gemmery.get_kernels(args))
    assert [kernel.name for kernel in found] == ["numpy_gemm_C", "numpy_gemm_F"]
    assert all(kernel.provider == "python" for kernel in found)
    assert [kernel.name for kernel in gemmery.get_kernels(args, providers=["python"])] == [k.name for k in found]
    assert len(gemmery.get_kernels(args, providers=[gemmery.Provider])) == 2
    assert not ours(gemmery.get_kernels(args, providers=["host"]))
    gemmery.Provider.withdraw(numpy_gemm)
    assert not ours(gemmery.get_kernels(args))
    gemmery.Provider.register(numpy_gemm)


@pytest.mark.parametrize("order", ["C", "F"])
def test_it_is_filtered_compiled_and_run_by_the_same_calls(numpy_gemm, order):
    args = gemm_arguments()
    [kernel] = gemmery.get_kernels(args, lambda metadata: metadata.kernel_class is NumPyGemm and metadata.design.order == order)
    assert kernel.supports(args)
    artifact = kernel.compile(args)
    assert artifact.kernel_obj is kernel and not artifact.is_native
    workspace = np.empty(max(1, kernel.get_workspace_size(args)), np.uint8)
    kernel.run(args, artifact, stream=None, workspace=workspace if order == "F" else None)
    np.testing.assert_array_equal(args.out, expected_of(args))
    kernel.run(args, artifact, assume_supported_args=True)  # the library's workspace
    np.testing.assert_array_equal(args.out, expected_of(args))


def test_without_an_artifact_it_is_compiled_once_for_a_problem(numpy_gemm):
    args = gemm_arguments(shape=(3, 4, 5))
    kernel = ours(gemmery.get_kernels(args))[0]
    start = threading.Barrier(4)

    def run():
        start.wait()
        kernel.run(args)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert NumPyGemm.compilations == 1
    kernel.run(gemm_arguments(shape=(3, 4, 6)))
    assert NumPyGemm.compilations == 2


def test_what_it_does_not_support_is_refused_with_the_reason(numpy_gemm):
    kernel = ours(gemmery.get_kernels(gemm_arguments()))[0]
    batched = gemmery.GemmArguments(*(np.zeros((2, 3, 3), np.float32) for _ in range(3)), np.float32)
    assert not kernel.supports(batched)
    with pytest.raises(ValueError, match="does not support the provided arguments: one matrix at a time"):
        kernel.run(batched)
    halves = gemm_arguments(dtype=np.float64)
    assert "element type" in str(kernel.supports(halves).error)
    assert not ours(gemmery.get_kernels(batched)) and not ours(gemmery.get_kernels(halves))
    reasons = {reason.family: reason.failed for reason in gemmery.explain(batched).reasons}
    assert "one matrix at a time" in reasons["NumPyGemm"]
    assert "NumPyGemm" in str(gemmery.explain(batched))


@pytest.mark.parametrize("options", [{"alpha": 2.0}, {"beta": 1.0, "C": np.ones((5, 9), np.float32)}, {"math": "tf32"}])
def test_what_it_does_not_declare_is_never_left_out_unseen(numpy_gemm, options):
    kernel = ours(gemmery.get_kernels(gemm_arguments()))[0]
    a, b, out = (np.ones(shape, np.float32) for shape in ((5, 7), (7, 9), (5, 9)))
    args = gemmery.GemmArguments(a, b, out, np.float32, **options)
    assert next(iter(options)) in str(kernel.supports(args).error)
    assert not ours(gemmery.get_kernels(args))


def test_a_short_workspace_is_refused(numpy_gemm):
    args = gemm_arguments()
    kernel = ours(gemmery.get_kernels(args))[1]
    with pytest.raises(ValueError, match=f"expected {kernel.get_workspace_size(args)} bytes, got 8"):
        kernel.run(args, workspace=np.empty(8, np.uint8))


def test_predictions_rank_it_among_the_others(numpy_gemm, monkeypatch):
    args = gemm_arguments()
    monkeypatch.setattr(NumPyGemm, "predict_us", lambda self, args: 0.0)
    assert isinstance(gemmery.get_kernels(args)[0], NumPyGemm)
    monkeypatch.setattr(NumPyGemm, "predict_us", lambda self, args: 1e9)
    assert isinstance(gemmery.get_kernels(args)[-1], NumPyGemm)


@pytest.mark.parametrize("where", ["generate_kernels", "_supports", "predict_us"])
def test_a_faulty_class_is_named_and_the_others_are_found(numpy_gemm, monkeypatch, where):
    args = gemm_arguments()
    before = [kernel for kernel in gemmery.get_kernels(args) if not isinstance(kernel, NumPyGemm)]

    def broken(*_, **__):
        raise RuntimeError("broken by the test")

    monkeypatch.setattr(NumPyGemm, where, staticmethod(broken) if where == "generate_kernels" else broken)
    monkeypatch.setattr(gemmery._ignored, "_told", set())
    with pytest.warns(RuntimeWarning, match="skips python/NumPyGemm: .* broken by the test"):
        assert gemmery.get_kernels(args) == before
    assert gemmery.get_kernels(args) == before  # a further warning would be an error here
    reasons = {reason.family: reason.failed for reason in gemmery.explain(args).reasons}
    assert "RuntimeError: broken by the test" in reasons["NumPyGemm"]


def test_a_callers_own_faulty_filter_is_the_callers(numpy_gemm):
    with pytest.raises(ZeroDivisionError):
        gemmery.get_kernels(gemm_arguments(), lambda metadata: 1 / 0)


def test_incomplete_classes_and_second_registrations_are_refused(numpy_gemm):
    class Incomplete(gemmery.Kernel):
        pass

    with pytest.raises(TypeError, match="_run, compile, generate_kernels"):
        gemmery.Provider.register(Incomplete)
    with pytest.raises(TypeError, match="derives from Kernel"):
        gemmery.Provider.register(int)
    with pytest.raises(ValueError, match="NumPyGemm"):
        gemmery.Provider.register(NumPyGemm)


def test_kernels_of_the_library_are_kernels():
    assert all(isinstance(kernel, gemmery.Kernel) for kernel in gemmery.get_kernels(gemm_arguments()))


def test_providers_have_names():
    name = f"mine{next(unique)}"

    @gemmery.providers.register_provider(name)
    class Mine(gemmery.Provider):
        pass

    assert name in gemmery.providers.available_providers()
    assert gemmery.get_kernels(gemm_arguments(), providers=[name]) == []
    with pytest.raises(ValueError, match=name):
        gemmery.providers.register_provider(name)(Mine)
    with pytest.raises(ValueError, match="nobody"):
        gemmery.get_kernels(gemm_arguments(), providers=["nobody"])


@pytest.mark.parametrize("installed", ["nothing", "another package of the name"])
def test_a_provider_without_its_package_says_so(installed, tmp_path, monkeypatch):
    spec = importlib.machinery.ModuleSpec("cutlass", None, is_package=True)
    spec.submodule_search_locations.append(str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if installed == "nothing" else spec)
    assert "cutedsl" not in gemmery.providers.available_providers()
    with pytest.raises(ValueError, match="pip install nvidia-cutlass-dsl"):
        gemmery.get_kernels(gemm_arguments(), providers=["cutedsl"])


# --- callables -----------------------------------------------------------------------------------


def numpy_callable(**metadata):
    calls = []

    @own_kernels.register_callable(
        f"numpy_{next(unique)}",
        **{"A": "float32", "B": "float32", "out": "float32", "targets": ["cpu"], "design": {"tile": "1x1x1"}} | metadata,
    )
    def kernel(call):
        calls.append(call)
        sums = np.matmul(np.from_dlpack(call.A), np.from_dlpack(call.B))
        np.from_dlpack(call.out)[...] = call.alpha * sums

    return kernel, calls


@pytest.fixture
def callable_kernel():
    kernel, calls = numpy_callable()
    yield kernel, calls
    own_kernels.withdraw_kernel(kernel)


def test_a_callable_is_a_kernel_of_the_library(callable_kernel):
    kernel, calls = callable_kernel
    args = gemm_arguments()
    assert kernel in gemmery.get_kernels(args)
    assert kernel in gemmery.get_kernels(args, providers=["user"])
    assert kernel.metadata.design.tile_shape == (1, 1, 1)
    kernel.run(args)
    np.testing.assert_array_equal(args.out, expected_of(args))
    assert calls[0].problem_size == (5, 7, 9, 1) and calls[0].device == "cpu" and calls[0].stream == 0
    assert gemmery.find_kernel(kernel.name) == kernel


def test_a_callable_is_verified_like_every_kernel(callable_kernel):
    kernel, _ = callable_kernel
    assert gemmery.verify(kernel, "gemm 33x17x65 a=f32").passed


def test_a_wrong_callable_does_not_pass():
    @own_kernels.register_callable(f"wrong_{next(unique)}", A="float32", B="float32", out="float32", targets=["cpu"])
    def wrong(call):
        np.from_dlpack(call.out)[...] = 0

    assert not gemmery.verify(wrong, "gemm 8x8x8 a=f32").passed
    own_kernels.withdraw_kernel(wrong)


def test_what_a_callable_raises_comes_out_with_the_kernels_name():
    @own_kernels.register_callable(f"raising_{next(unique)}", A="float32", B="float32", out="float32", targets=["cpu"])
    def raising(call):
        raise KeyError("lost by the test")

    with pytest.raises(gemmery.LaunchError, match="lost by the test") as raised:
        raising.run(gemm_arguments())
    assert raising.name in str(raised.value)
    own_kernels.withdraw_kernel(raising)


def test_faulty_questions_are_named_and_break_nothing():
    def broken(problem, device):
        raise RuntimeError("asked by the test")

    kernel, _ = numpy_callable(supports=broken)
    args = gemm_arguments()
    assert kernel not in gemmery.get_kernels(args) and gemmery.get_kernels(args)
    assert "asked by the test" in str(gemmery.explain(args))
    own_kernels.withdraw_kernel(kernel)
    kernel, _ = numpy_callable(predicted_us=broken)
    assert gemmery.get_kernels(args)[-1] == kernel
    own_kernels.withdraw_kernel(kernel)


@pytest.mark.parametrize("answer", [None, "wide", 1, (1, 2), (1, 2, 3, 4), (1, -1, 1), (1.5, 1, 1), 2**40])
def test_a_grid_that_is_none_is_named_with_what_was_returned(answer):
    kernel = source_kernel(grid=lambda problem, device: answer)
    args = gemm_arguments().to_device("emulated:h200")
    assert kernel not in gemmery.get_kernels(args)
    reason = str(kernel.supports(args).error)
    assert "grid: expected a function that returns three whole numbers" in reason, reason
    assert f"got one that returned {answer!r}" in reason and "bad_cast" not in reason, reason
    own_kernels.withdraw_kernel(kernel)


@pytest.mark.parametrize(
    ("hook", "expected"), [("workspace", "a whole number of bytes"), ("predicted_us", "a number of micro")]
)
@pytest.mark.parametrize("answer", [None, "many", [1]])
def test_answers_of_another_kind_are_named_with_what_was_returned(hook, expected, answer):
    kernel, _ = numpy_callable(**{hook: lambda problem, device: answer})
    args = gemm_arguments()
    words = str(gemmery.explain(args))
    if hook == "workspace":
        with pytest.raises(gemmery.Error) as raised:
            kernel.get_workspace_size(args)
        words = str(raised.value)
    assert f"{hook}: expected a function that returns {expected}" in words, words
    assert f"got one that returned {answer!r}" in words, words
    own_kernels.withdraw_kernel(kernel)


def test_an_empty_reason_is_told_as_such():
    kernel, _ = numpy_callable(supports=lambda problem, device: "")
    assert "supports() gave an empty text" in str(kernel.supports(gemm_arguments()).error)
    own_kernels.withdraw_kernel(kernel)


def test_questions_see_the_problem_and_the_device():
    seen = []

    def supports(problem, device):
        seen.append((problem.m, problem.n, problem.k, problem.l, device.target))
        return "too small for the test" if problem.m < 6 else None

    kernel, _ = numpy_callable(supports=supports, predicted_us=lambda problem, device: 0.001)
    assert gemmery.get_kernels(gemm_arguments((6, 7, 9)))[0] == kernel
    assert seen[0] == (6, 7, 9, 1, "cpu")
    assert "too small for the test" in str(gemmery.explain(gemm_arguments((5, 7, 9))))
    own_kernels.withdraw_kernel(kernel)


def test_a_callable_with_an_epilogue_gets_its_operands():
    @own_kernels.register_callable(
        f"relu_{next(unique)}",
        A="float32", B="float32", out="float32", targets=["cpu"],
        epilogue="D = relu(accum + bias) * scale",
        epilogue_operands={"bias": own_kernels.EpilogueOperand("float32", "n"), "scale": "number"},
    )  # fmt: skip
    def relu(call):
        sums = np.matmul(np.from_dlpack(call.A), np.from_dlpack(call.B)) + np.from_dlpack(call.operands["bias"])
        np.from_dlpack(call.out)[...] = np.maximum(sums, 0) * call.operands["scale"]

    bias = np.arange(7, dtype=np.float32)
    program = lambda accum, bias, scale: gemmery.fusion.relu(accum + bias) * scale  # noqa: E731
    epilogue = gemmery.EpilogueArguments(program, bias=bias, scale=2.0)
    args = gemm_arguments(epilogue=epilogue)
    assert relu in gemmery.get_kernels(args)
    assert relu not in gemmery.get_kernels(gemm_arguments())
    relu.run(args)
    np.testing.assert_array_equal(args.out, np.maximum(expected_of(args) + bias, 0) * 2)
    own_kernels.withdraw_kernel(relu)


def test_withdrawn_kernels_are_not_found_and_names_are_free():
    kernel, _ = numpy_callable()
    own_kernels.withdraw_kernel(kernel)
    assert kernel not in gemmery.get_kernels(gemm_arguments())
    kernel.run(gemm_arguments())  # still usable through this reference
    with pytest.raises(ValueError):
        own_kernels.withdraw_kernel(kernel)
    with pytest.raises(ValueError):
        own_kernels.withdraw_kernel(gemmery.get_kernels(gemm_arguments())[0])


def test_threads_register_ask_and_run_side_by_side():
    failures = []

    def work(seed):
        try:
            for _ in range(10):
                kernel, _ = numpy_callable(supports=lambda problem, device: None, predicted_us=lambda problem, device: 1.0)
                args = gemm_arguments(seed=seed)
                assert kernel in gemmery.get_kernels(args) and "user/" in str(gemmery.explain(args))
                kernel.run(args)
                kernel.compile(args).bind(args)()
                np.testing.assert_array_equal(args.out, expected_of(args))
                own_kernels.withdraw_kernel(kernel)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,), daemon=True) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
    assert not failures and not any(thread.is_alive() for thread in threads)


# --- a stand-in for the CuTe DSL -----------------------------------------------------------------


def test_the_base_for_the_cute_dsl_compiles_and_calls_what_it_compiled(monkeypatch):
    """With a fake package: cute.compile returns a function with the same arguments, which records its calls. The example
    in examples/python needs the real package."""

    class Compiler:
        def __init__(self, target=None):
            self.target = target

        def __getitem__(self, target):
            return Compiler(target)

        def __call__(self, function, *args):
            return Compiled(function, self.target)

    class Compiled:
        def __init__(self, function, target):
            self.function, self.target, self.is_loaded = function, target, False

        def to(self):
            self.is_loaded = True

        def __call__(self, *args):
            self.function(*args)

    cutlass, cute = types.ModuleType("cutlass"), types.ModuleType("cutlass.cute")
    cutlass.cute, cute.compile, cute.GPUArch = cute, Compiler(), str
    monkeypatch.setitem(sys.modules, "cutlass", cutlass)
    monkeypatch.setitem(sys.modules, "cutlass.cute", cute)
    from gemmery.providers.cutedsl.kernel import CuteDslKernel

    class Stand(CuteDslKernel):
        runs_on = "cpu"

        @staticmethod
        def generate_kernels(metadata_filter, epilogue_args=None, cc=None):
            return [Stand(KernelMetadata("stand_v1", Stand, 0, operands()))]

        def compile(self, args, cc=None):
            return self.cute_compile(np.matmul, args.A, args.B, args.out, target=cc)

        def _run(self, args, artifact, stream, workspace):
            self.cute_run(artifact, args.A, args.B, args.out)

    args = gemm_arguments()
    [kernel] = Stand.generate_kernels(lambda metadata: True)
    kernel.run(args)
    np.testing.assert_array_equal(args.out, expected_of(args))
    here = kernel.compile(args).compiled_obj
    assert here.is_loaded and here.target is None, "a first launch may be captured"
    for target in ("sm_90a", 90):
        elsewhere = kernel.compile(args, cc=target).compiled_obj
        assert not elsewhere.is_loaded and elsewhere.target == (target if isinstance(target, str) else "sm_90")


def test_matmul_sees_kernels_come_and_go(numpy_gemm):
    a, b = np.ones((5, 7), np.float32), np.ones((7, 9), np.float32)
    kernel, calls = numpy_callable(predicted_us=lambda problem, device: 0.0)
    assert (gemmery.matmul(a, b) == 7).all() and (gemmery.matmul(a, b) == 7).all() and len(calls) == 2
    own_kernels.withdraw_kernel(kernel)
    assert (gemmery.matmul(a, b) == 7).all() and len(calls) == 2


# --- source and machine code ---------------------------------------------------------------------

SOURCE = r"""
extern "C" __global__ void NAME(const float* a, const float* b, float* out, int m, int n, int k,
                                long long a_leading, long long b_leading, long long out_leading, float alpha) {
  const int column = blockIdx.x * 16 + threadIdx.x;
  const int row = blockIdx.y * 16 + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int at = 0; at < k; ++at) sum += a[row * a_leading + at] * b[at * b_leading + column];
  out[row * out_leading + column] = alpha * sum;
}
"""
RECIPE = {
    "parameters": ["A", "B", "out", "m", "n", "k", "A.leading", "B.leading", "out.leading", "alpha"],
    "grid": ("n/16", "m/16"),
    "block": (16, 16),
    "A": own_kernels.Operand("float32", "row"),
    "B": own_kernels.Operand("float32", "row"),
    "out": own_kernels.Operand("float32", "row"),
}


def source_kernel(**changes):
    name = f"simple_{next(unique)}"
    fields = {"name": name, "source": SOURCE.replace("NAME", "simple"), "entry": "simple"} | RECIPE | changes
    return own_kernels.register_source(**fields)


def test_source_is_found_for_a_gpu_that_is_not_here():
    kernel = source_kernel(design={"tile": "16x16x1"}, predicted_us=lambda problem, device: 1e-3)
    args = gemm_arguments()
    assert kernel not in gemmery.get_kernels(args)
    assert kernel in gemmery.get_kernels(cc=90, providers=["user"]) and kernel.metadata.min_cc == 80
    assert kernel.metadata.design.tile_shape == (16, 16, 1)
    own_kernels.withdraw_kernel(kernel)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"parameters": ["A", "B", "nothing"]}, "nothing"),
        ({"grid": ("q/16",)}, "q"),
        ({"block": (2048,)}, "1024"),
        ({"name": "Not A Name"}, "name"),
        ({"A": own_kernels.Operand("float32", "diagonal")}, "diagonal"),
        ({"multiples": {"x": 3}}, "m, n and k"),
        (
            {"source": SOURCE.replace("NAME", "simple") + "\n\0 rest"},
            r"source: .* without a null character, got one at byte \d+, in line 12",
        ),
        ({"options": ["-DX=1\0 2"]}, "options: .* without a null character"),
        ({"entry": "simple\0"}, "entry: .* without a null character"),
        ({"parameters": ["A", "B\0", "out"]}, r"parameter \"B\\0\""),
        ({"grid": ("n/16\0", "m/16")}, "grid"),
        ({"epilogue": "D = accum\0 + 1"}, "epilogue"),
        ({"design": {"tile": "16\0"}}, "design: .* without a null character"),
        ({"targets": ["sm_90\0"]}, r'cc: .*got "sm_90\\0"'),
        ({"entry": "other"}, "the __global__ function other, got source with simple"),
        (
            {"epilogue": "D = accum + bias", "epilogue_operands": {"bias": own_kernels.EpilogueOperand("f32", "q")}},
            "l, m and n",
        ),
    ],
)
def test_what_does_not_read_is_refused_at_registration(changes, reason):
    with pytest.raises(ValueError, match=reason):
        source_kernel(**changes)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (SOURCE.replace("NAME", "simple2"), "the __global__ function simple, got only simple2"),
        (SOURCE.replace("NAME", "simple").replace('extern "C"', ""), 'got only _Z6simple.*declare it extern "C"'),
        ("// simple", "the __global__ function simple, got none at all"),
    ],
)
def test_an_entry_that_the_code_lacks_is_refused_with_those_that_there_are(source, words):
    # simple2 contains the name, so that only the compiler can tell.
    kernel = source_kernel(source=source)
    args = gemm_arguments((16, 16, 16)).to_device("emulated:h200")
    for call in (lambda: kernel.compile(cc=90), lambda: kernel.run(args)):
        with pytest.raises(gemmery.CompileError, match=f"(?s){words}"):
            call()
    own_kernels.withdraw_kernel(kernel)


def test_a_compilers_errors_are_told_once_and_before_its_warnings():
    body = "int unused; int wrong = 1\n  undefined_thing(); "
    kernel = source_kernel(source=SOURCE.replace("NAME", "simple").replace("float sum = 0;", body + "float sum = 0;"))
    with pytest.raises(gemmery.CompileError) as raised:
        kernel.compile(cc=90)
    words = str(raised.value)
    assert words.count('expected a ";"') == 1 and words.count('undefined_thing" is undefined') <= 1, words
    assert words.index("error:") < words.index("warning #"), words
    assert "error" not in words[words.index("warning #") :].replace("error detected", "").replace("errors detected", ""), words
    own_kernels.withdraw_kernel(kernel)


def test_a_name_is_given_once():
    kernel = source_kernel()
    name = kernel.name.split("_v1")[0].removeprefix("user_")
    with pytest.raises(ValueError, match=name):
        source_kernel(name=name)
    own_kernels.withdraw_kernel(kernel)


@pytest.mark.parametrize("words", ["a\udc80b", "a\x00b", "\U0001f4a5", ""], ids=ascii)
@pytest.mark.parametrize("hook", ["run", "supports"])
def test_whatever_text_a_callable_raises_is_told(hook, words):
    def fail(*_):
        raise RuntimeError(words)

    hooks = {"run": lambda call: None, hook: fail}
    kernel = own_kernels.register_callable(
        f"raises_{next(unique)}",
        A="float32",
        B="float32",
        out="float32",
        targets=["cpu"],
        **{name: hook for name, hook in hooks.items() if name != "run"},
    )(hooks["run"])
    try:
        args = gemm_arguments()
        assert gemmery.get_kernels(args)
        with pytest.raises(gemmery.Error, match="threw: (.|\n)*RuntimeError"):
            kernel.run(args)
    finally:
        own_kernels.withdraw_kernel(kernel)


# --- what ends a call ------------------------------------------------------------------------------


def declared(name, **changes):
    fields = {"A": "float32", "B": "float32", "out": "float32", "targets": ["cpu"]} | changes
    return own_kernels.register_callable(f"{name}_{next(unique)}", **fields)


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("hook", ["run", "supports", "predicted_us", "workspace"])
def test_what_ends_a_program_comes_out_of_a_callable_as_it_is(hook, raised):
    error = raised("enough")

    def end(*_):
        raise error

    kernel = declared("ends")(end) if hook == "run" else declared("ends", **{hook: end})(lambda call: None)
    calls = {
        "run": lambda args: kernel.run(args),
        "supports": lambda args: kernel.supports(args),
        "predicted_us": gemmery.get_kernels,
        "workspace": lambda args: kernel.get_workspace_size(args),
    }
    try:
        with pytest.raises(raised) as caught:
            calls[hook](gemm_arguments())
        assert caught.value is error
    finally:
        own_kernels.withdraw_kernel(kernel)


# --- what is declared ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"colour": "red"}, TypeError, "unexpected 'colour'; it takes A, B"),
        ({"targets": "cpu"}, TypeError, "targets: expected a list, got 'cpu'"),
        ({"targets": 90}, TypeError, "targets: expected a list, got 90"),
        ({"version": "new"}, TypeError, "version: expected a whole number, got 'new'"),
        ({"version": 2**40}, TypeError, "version: expected a whole number"),
        ({"multiples": 5}, TypeError, "multiples: expected a dict, got 5"),
        ({"multiples": {"n": "a"}}, TypeError, "multiples: expected whole numbers"),
        ({"multiples": {"n": 0}}, ValueError, "multiples"),
        ({"deterministic": "no"}, TypeError, "deterministic: expected a bool, got 'no'"),
        ({"math": 4}, TypeError, "math: expected a str, got int"),
        ({"math": "fast"}, ValueError, "math"),
        ({"design": 5}, TypeError, "design: expected a dict, got 5"),
        ({"design": {5: 5}}, TypeError, "design: expected values by names"),
        ({"epilogue_operands": 5}, TypeError, "epilogue_operands: expected a dict, got 5"),
        ({"workspace": -4}, ValueError, "workspace"),
        ({"supports": 5}, TypeError, "supports: expected what can be called, got int"),
        ({"predicted_us": 1.0}, TypeError, "predicted_us: expected what can be called, got float"),
        ({"prepare": 5}, TypeError, "prepare: expected what can be called, got int"),
        ({"A": own_kernels.Operand("float32", 5)}, TypeError, "layout of A: expected a str, got int"),
        ({"A": own_kernels.Operand("float32", "row", -3)}, ValueError, "A: expected an alignment"),
        ({"A": own_kernels.Operand("float32", "row", "a")}, TypeError, "alignment of A: expected a number of bytes, got 'a'"),
        ({"B": None}, TypeError, "B: expected an element type, got NoneType"),
        ({"out": "float31"}, ValueError, "out: expected an element type"),
    ],
    ids=lambda value: "" if isinstance(value, type) else str(value)[:40],
)
def test_what_a_callable_declares_is_checked_by_field(changes, kind, words):
    with pytest.raises(kind, match=words):
        declared("wrong", **changes)(lambda call: None)


def test_what_is_no_callable_has_no_kernel():
    with pytest.raises(TypeError, match="run: expected what can be called, got int"):
        declared("wrong")(5)
    with pytest.raises(TypeError, match="name: expected a str, got int"):
        own_kernels.register_callable(5, A="f32", B="f32", out="f32", targets=["cpu"])(print)
    with pytest.raises(TypeError, match="expected out=, got none"):
        own_kernels.register_callable("lacks", A="f32", B="f32")
    with pytest.raises(TypeError, match="expected entry=, got none"):
        own_kernels.register_source("lacks", "", A="f32", B="f32", out="f32", parameters=[], grid=[1])


def test_source_includes_the_device_headers_of_the_package():
    with_header = "#include <device/ptx/warp.cuh>\n" + SOURCE.replace("NAME", "simple")
    source = with_header.replace("threadIdx.x", "gemmery::device::ptx::tid_x()")
    kernel = source_kernel(source=source, options=[f"-I{gemmery.get_include()}"])
    try:
        assert gemmery.verify(kernel, "gemm 20x40x30 a=f32", device="emulated:h200").passed
    finally:
        own_kernels.withdraw_kernel(kernel)


# --- machine code ----------------------------------------------------------------------------------


def compiled_by_nvrtc(source, architecture, form):
    """PTX or a cubin, by the library that gemmery has opened."""
    warm = source_kernel()
    warm.compile(cc=90)
    own_kernels.withdraw_kernel(warm)
    nvrtc = next(library for library in map(loaded_library, ("libnvrtc.so.13", "libnvrtc.so.12")) if library)
    program = ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"own.cu", 0, None, None) == 0
    options = (ctypes.c_char_p * 1)(f"--gpu-architecture={architecture}".encode())
    assert nvrtc.nvrtcCompileProgram(program, 1, options) == 0
    size = ctypes.c_size_t()
    assert getattr(nvrtc, f"nvrtcGet{form}Size")(program, ctypes.byref(size)) == 0
    code = ctypes.create_string_buffer(size.value)
    assert getattr(nvrtc, f"nvrtcGet{form}")(program, code) == 0
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return code.raw


def loaded_library(name):
    try:
        return ctypes.CDLL(name)
    except OSError:
        return None


def image_kernel(images, **changes):
    fields = {"entry": "simple"} | RECIPE | changes
    return own_kernels.register_image(f"image_{next(unique)}", images, **fields)


@pytest.fixture
def simple_source():
    return SOURCE.replace("NAME", "simple")


def test_ptx_of_the_users_own_runs_and_is_verified(simple_source):
    ptx = compiled_by_nvrtc(simple_source, "compute_90", "PTX").rstrip(b"\0").decode()
    kernel = image_kernel({"sm_90": ptx})
    try:
        args = gemm_arguments((33, 47, 29)).to_device("emulated:h200")
        assert kernel in gemmery.get_kernels(args)
        kernel.run(args, kernel.compile(args))
        args.sync()
        assert gemmery.check_result(args, kernel).passed
        assert gemmery.verify(kernel, "gemm 20x40x30 a=f32 alpha=0.5", device="emulated:h200").passed
        assert not kernel.supports(gemm_arguments().to_device("emulated:a100"))
    finally:
        own_kernels.withdraw_kernel(kernel)


def test_a_cubin_alone_is_compiled_saved_and_refused_on_an_emulated_device_by_name(simple_source, tmp_path):
    cubin = compiled_by_nvrtc(simple_source, "sm_90", "CUBIN")
    kernel = image_kernel({"sm_90": cubin})
    try:
        artifact = kernel.compile(cc="sm_90")
        assert artifact.targets == ["sm_90"]
        path = str(tmp_path / "own.gemmery")
        gemmery.artifact.save(path, [artifact])
        (loaded,) = gemmery.artifact.load(path)
        assert loaded.kernel_obj == kernel
        args = gemm_arguments().to_device("emulated:h200")
        with pytest.raises(gemmery.Error, match="(?s)image_.*PTX"):
            kernel.run(args)
        assert gemmery.get_kernels(args)
    finally:
        own_kernels.withdraw_kernel(kernel)


@pytest.mark.parametrize(
    ("images", "changes", "kind", "words"),
    [
        ({"sm_90": b"no code"}, {}, ValueError, "cubin"),
        ({"sm_90": 5}, {}, TypeError, "images: expected the bytes of a cubin or a str of PTX, got int"),
        ({}, {}, ValueError, "image"),
        (b"code", {}, TypeError, "images: expected a dict"),
        ({"h2o": "ptx"}, {}, ValueError, "h2o"),
        (None, {"entry": "tilted"}, ValueError, "tilted"),
        (None, {"parameters": RECIPE["parameters"][:-1]}, ValueError, "parameter"),
    ],
    ids=str,
)
def test_machine_code_is_held_against_what_is_declared(images, changes, kind, words, simple_source):
    if images is None:
        images = {"sm_90": compiled_by_nvrtc(simple_source, "sm_90", "CUBIN")}
    with pytest.raises(kind, match=words):
        image_kernel(images, **changes)
