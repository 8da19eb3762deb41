# SPDX-License-Identifier: Apache-2.0
"""The examples of own kernels: found among the library's, and correct."""

import importlib.util
import pathlib
import re
import subprocess
import sys

import pytest

import gemmery
from gemmery import own_kernels

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"


@pytest.fixture(scope="module")
def cuda_gemm():
    module = load("cuda_gemm")
    yield module.blocked_gemm
    own_kernels.withdraw_kernel(module.blocked_gemm)


@pytest.fixture(scope="module")
def triton_gemm():
    pytest.importorskip("triton", reason="triton is not installed")
    module = load("triton_gemm")
    yield module
    own_kernels.withdraw_kernel(module.triton_64)
    gemmery.providers.TritonProvider.withdraw(module.TritonGemm)


@pytest.fixture(scope="module")
def cutedsl_gemm():
    pytest.importorskip("cutlass", reason="the CuTe DSL is not installed (nvidia-cutlass-dsl)")
    module = load("cutedsl_gemm")
    yield module
    gemmery.providers.CuTeDSLProvider.withdraw(module.CuteGemm)


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- whole programs ------------------------------------------------------------------------------

NEEDS = {"cuda_gemm": None, "cubin_gemm": None, "cutedsl_gemm": "cutlass", "mixture": None, "triton_gemm": "triton"}
ON_A_GPU_ALONE = {"triton_gemm"}


def test_every_example_is_run():
    """Those named test_* are tests themselves; test_emulate.py runs them by pytest."""
    programs = {path.stem for path in EXAMPLES.glob("*.py") if not path.stem.startswith("test_")}
    assert programs == NEEDS.keys()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.gpu) if name in ON_A_GPU_ALONE else name for name in NEEDS]
)
def test_the_program_runs(name):
    if NEEDS[name] is not None:
        pytest.importorskip(NEEDS[name], reason=f"{NEEDS[name]} is not installed")
    done = subprocess.run([sys.executable, EXAMPLES / f"{name}.py"], capture_output=True, text=True, timeout=300, check=False)
    if "UnavailableError" in done.stderr:
        pytest.skip(f"no compiler: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize(
    ("name", "package", "remedy"),
    [
        ("cutedsl_gemm", "cutlass", "nvidia-cutlass-dsl"),
        ("triton_gemm", "torch", "torch triton"),
        ("triton_gemm", "triton", "torch triton"),
    ],
)
def test_a_program_without_its_package_says_what_to_install(name, package, remedy):
    if package == "triton":
        pytest.importorskip("torch", reason="torch, which is asked for first, is not installed")
    without = f"import runpy, sys; sys.modules[{package!r}] = None; runpy.run_path({str(EXAMPLES / name)!r} + '.py')"
    done = subprocess.run([sys.executable, "-c", without], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode != 0
    assert done.stderr.splitlines()[-1].endswith(f"UnavailableError: unavailable: {package}: pip install {remedy}"), done.stderr


# --- CUDA C++ ------------------------------------------------------------------------------------


def test_source_is_verified_on_an_emulated_gpu(cuda_gemm):
    try:
        report = gemmery.verify(cuda_gemm, "gemm 67x70x35 a=f32", device="emulated:h200")
    except gemmery.UnavailableError as error:
        pytest.skip(f"no compiler: {error}")
    assert report.passed, report.first_failure


def test_source_is_compiled_and_saved_without_a_gpu(cuda_gemm, tmp_path):
    try:
        artifact = cuda_gemm.compile(cc="sm_90")
    except gemmery.UnavailableError as error:
        pytest.skip(f"no compiler: {error}")
    assert artifact.resources["registers"] > 0 and "blocked_gemm" in artifact.source
    path = tmp_path / "own.gemmery"
    gemmery.artifact.save(path, artifact)
    [loaded] = gemmery.artifact.load(path)
    assert loaded.kernel_obj == cuda_gemm and loaded.targets == artifact.targets


@pytest.mark.gpu
@pytest.mark.parametrize(
    "problem", ["gemm 1000x768x512 a=f32", "gemm 1x1x1 a=f32", "gemm 65x63x1 a=f32", "gemm 130x70x33 a=f32 alpha=0.5"]
)
def test_source_is_verified_on_a_gpu(cuda_gemm, problem):
    report = gemmery.verify(cuda_gemm, problem, device="cuda:0")
    assert report.passed, report.first_failure


@pytest.mark.gpu
def test_source_is_found_for_torch_tensors(cuda_gemm):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    a, b, out = (torch.randint(-3, 4, shape, device="cuda").float() for shape in ((100, 50), (50, 70), (100, 70)))
    args = gemmery.GemmArguments(a, b, out, torch.float32)
    assert cuda_gemm in gemmery.get_kernels(args)
    cuda_gemm.run(args, cuda_gemm.compile(args))
    assert torch.equal(out, a @ b)
    bound = cuda_gemm.compile(args).bind(args)
    out.zero_()
    bound()
    assert torch.equal(out, a @ b)


# --- machine code --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cubin_gemm():
    module = load("cubin_gemm")
    if module.find_nvcc() is None:
        pytest.skip("nvcc is not here")
    return module


@pytest.mark.parametrize(
    ("form", "architecture", "device"),
    [
        ("ptx", "sm_80", "emulated:a100"),
        ("ptx", "sm_90", "emulated:h200"),
        pytest.param("ptx", "of the device", "cuda:0", marks=pytest.mark.gpu),
        pytest.param("cubin", "of the device", "cuda:0", marks=pytest.mark.gpu),
    ],
)
def test_machine_code_is_found_and_verified(cubin_gemm, form, architecture, device):
    if architecture == "of the device":
        architecture = f"sm_{gemmery.utils.device_cc(device)}"
    code = cubin_gemm.compiled(form, architecture)
    kernel = cubin_gemm.register({architecture: code if form == "cubin" else code.decode()})
    try:
        for problem in ("gemm 67x70x35 a=f32", "gemm 1x1x1 a=f32", "gemm 9x33x17 a=f32 alpha=-1.5"):
            report = gemmery.verify(kernel, problem, device=device)
            assert report.passed, (problem, report.first_failure)
        tensors = [gemmery.empty(shape, "float32", device) for shape in ((8, 4), (4, 6), (8, 6))]
        assert kernel in gemmery.get_kernels(gemmery.GemmArguments(*tensors, "float32"))
    finally:
        own_kernels.withdraw_kernel(kernel)


# --- Triton --------------------------------------------------------------------------------------


def whole(torch, *shape, dtype):
    return torch.randint(-3, 4, shape, device="cuda").to(dtype)


@pytest.mark.gpu
@pytest.mark.parametrize("types", [("float16", "float16"), ("float16", "float32"), ("bfloat16", "bfloat16")])
@pytest.mark.parametrize("shape", [(64, 64, 32), (100, 70, 50), (1, 1, 1), (3, 129, 257)])
def test_triton_classes_are_kernels(triton_gemm, types, shape):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    m, n, k = shape
    inputs, output = (getattr(torch, name) for name in types)
    a, b = whole(torch, m, k, dtype=inputs), whole(torch, n, k, dtype=inputs).T
    out = torch.empty(m, n, device="cuda", dtype=output)
    args = gemmery.GemmArguments(a, b, out, torch.float32, alpha=2.0)
    kernels = gemmery.get_kernels(args, providers=["triton"])
    assert len(kernels) == len(triton_gemm.DESIGNS)
    for kernel in kernels:
        out.zero_()
        kernel.run(args, kernel.compile(args))
        assert torch.equal(out, (2 * (a.double() @ b.double())).to(output)), kernel.name


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_triton_kernels_run_on_the_current_stream_and_in_graphs(triton_gemm):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    a, b = whole(torch, 128, 64, dtype=torch.float16), whole(torch, 64, 128, dtype=torch.float16)
    out = torch.zeros(128, 128, device="cuda", dtype=torch.float16)
    args = gemmery.GemmArguments(a, b, out, torch.float32)
    kernel = gemmery.get_kernels(args, providers=["triton"])[0]
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(gemmery.UnsupportedError, match="compile"), torch.cuda.graph(graph):
        kernel.run(args)
    artifact = kernel.compile(args)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel.run(args, artifact)
    out.zero_()
    graph.replay()
    assert torch.equal(out, a @ b)


@pytest.mark.gpu
def test_a_triton_function_passes_conformance(triton_gemm):
    for problem in ("gemm 100x70x50 a=f16", "gemm 64x64x64 a=f16", "gemm 257x130x96 a=f16 alpha=0.5"):
        report = gemmery.verify(triton_gemm.triton_64, problem, device="cuda:0")
        assert report.passed, report.first_failure


# --- CuTe DSL ------------------------------------------------------------------------------------

CUTE_TYPES = [("float16", "float16"), ("float16", "float32"), ("bfloat16", "bfloat16"), ("bfloat16", "float32")]


def cute_arguments(inputs, output, m=64, n=96, k=32):
    """Operands of a GPU that may be absent."""
    shapes = (((m, k), inputs), ((k, n), inputs), ((m, n), output))
    tensors = [gemmery.Tensor((at + 1) << 40, shape, dtype, device="cuda:0") for at, (shape, dtype) in enumerate(shapes)]
    return gemmery.GemmArguments(*tensors, "float32")


@pytest.mark.parametrize("types", CUTE_TYPES, ids="-".join)
def test_cute_kernels_are_found_by_their_types_and_compiled_for_a_gpu_that_is_not_here(cutedsl_gemm, types):
    args = cute_arguments(*types)
    [kernel] = gemmery.get_kernels(args, cc=90, providers=["cutedsl"])
    assert kernel.metadata.design.tile_shape == cutedsl_gemm.TILE
    assert kernel.compile(args, cc="sm_90a").kernel_obj is kernel
    assert gemmery.get_kernels(args, cc=75, providers=["cutedsl"]) == []
    assert gemmery.get_kernels(args, lambda metadata: metadata.min_cc > 80, cc=90, providers=["cutedsl"]) == []


def test_cute_kernels_refuse_what_they_do_not_take(cutedsl_gemm):
    reasons = gemmery.explain(cute_arguments("float32", "float32"), cc=90).reasons
    assert any("float16" in reason.failed for reason in reasons if reason.family == "CuteGemm")
    [kernel] = gemmery.get_kernels(cute_arguments("float16", "float16"), cc=90, providers=["cutedsl"])
    assert "extents" in str(kernel.supports(cute_arguments("float16", "float16", m=0)).error)


def with_a_parameter_for_each_field(ptx):
    """The DSL passes a matrix as a struct: address, three extents, three strides. Here each field is a separate parameter,
    as in gemmery's launches; only the instructions that read them differ."""
    types = {0: "b64", 8: "b32", 12: "b32", 16: "b32", 24: "b64", 32: "b64", 40: "b64"}
    fields = "(entry_param_[012])"
    text = ptx.replace(re.search(r"\.visible \.entry (\w+)\(", ptx)[1], "entry")
    text = re.sub(
        rf"\.param \.align 8 \.b8 {fields}\[48\]",
        lambda found: ",\n".join(f".param .{kind} {found[1]}_{at}" for at, kind in types.items()),
        text,
    )
    text = re.sub(
        rf"ld\.param\.v2\.b32\s+\{{(%r\d+), (%r\d+)\}}, \[{fields}\+(\d+)\];",
        lambda found: (
            f"ld.param.b32 {found[1]}, [{found[3]}_{found[4]}]; ld.param.b32 {found[2]}, [{found[3]}_{int(found[4]) + 4}];"
        ),
        text,
    )
    return re.sub(rf"\[{fields}\]", r"[\1_0]", re.sub(rf"\[{fields}\+(\d+)\]", r"[\1_\2]", text))


def strides_of(operand, first, second):
    return [f"{operand}.{first}_stride", f"{operand}.{second}_stride", f"{operand}.batch_stride"]


CUTE_PARAMETERS = [
    *["A", "m", "k", "l", *strides_of("A", "row", "column")],
    *["B", "n", "k", "l", *strides_of("B", "column", "row")],
    *["out", "m", "n", "l", *strides_of("out", "row", "column")],
    "alpha",
]


@pytest.mark.parametrize("device", ["emulated:h200", pytest.param("cuda:0", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("types", CUTE_TYPES, ids="-".join)
def test_what_the_dsl_compiles_passes_conformance(cutedsl_gemm, types, device, tmp_path):
    from cutlass import cute

    inputs, output = types
    a, out = (gemmery.utils.to_gemmery_type(name).alias for name in types)
    words = cutedsl_gemm.words_of(cute_arguments(inputs, output), stream=0)
    options = f"--gpu-arch sm_90a --keep-ptx --dump-dir {tmp_path}"
    ptx = cute.compile(cutedsl_gemm.multiply, *words, options=options).__ptx__
    kernel = own_kernels.register_image(
        "of_the_cute_dsl",
        {"sm_90a": with_a_parameter_for_each_field(ptx)},
        entry="entry",
        parameters=CUTE_PARAMETERS,
        grid=["n/64", "m/64", "l"],
        block=cutedsl_gemm.THREADS,
        A=own_kernels.Operand(inputs, "any"),
        B=own_kernels.Operand(inputs, "any"),
        out=own_kernels.Operand(output, "any"),
        design={"instruction": "mma"},
    )
    try:
        for extents in ("64x64x32", "100x70x50 alpha=-1.5", "1x1x1", "3x129x257", "2x130x66x40 alpha=0.5"):
            shape, _, rest = extents.partition(" ")
            problem = f"gemm {shape} a={a} out={out} acc=f32 {rest}"
            report = gemmery.verify(kernel, problem.strip(), device=device)
            assert report.passed, (problem, report.first_failure)
    finally:
        own_kernels.withdraw_kernel(kernel)


@pytest.mark.gpu
@pytest.mark.parametrize("types", CUTE_TYPES, ids="-".join)
@pytest.mark.parametrize("shape", [(64, 64, 32), (100, 70, 50), (1, 1, 1), (3, 129, 257)], ids=str)
def test_cute_kernels_are_right(cutedsl_gemm, types, shape):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    m, n, k = shape
    inputs, output = (getattr(torch, name) for name in types)
    a, b = whole(torch, 2, m, k, dtype=inputs), whole(torch, n, k, dtype=inputs).T
    out = torch.empty(2, m, n, device="cuda", dtype=output)
    args = gemmery.GemmArguments(a, b, out, torch.float32, alpha=2.0)
    [kernel] = gemmery.get_kernels(args, providers=["cutedsl"])
    kernel.run(args, kernel.compile(args))
    assert torch.equal(out, (2 * (a.double() @ b.double())).to(output))
    assert gemmery.check_result(args, kernel).passed


@pytest.mark.gpu
def test_cute_kernels_run_on_the_current_stream_and_in_graphs_from_the_first_launch(cutedsl_gemm):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    a, b = whole(torch, 128, 64, dtype=torch.float16), whole(torch, 64, 128, dtype=torch.float16)
    out = torch.zeros(128, 128, device="cuda", dtype=torch.float16)
    args = gemmery.GemmArguments(a, b, out, torch.float32)
    [kernel] = gemmery.get_kernels(args, providers=["cutedsl"])
    artifact = kernel.compile(args)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel.run(args, artifact)
    assert (out == 0).all(), "captured, not run"
    graph.replay()
    assert torch.equal(out, a @ b)
