# SPDX-License-Identifier: Apache-2.0
"""torch operators: functional and out=, with torch.compile, in CUDA graphs, with derivatives."""

import random

import pytest

import gemmery

torch = pytest.importorskip("torch", reason="torch is not installed")
if not hasattr(torch.library, "register_fake"):
    pytest.skip("torch is older than 2.4", allow_module_level=True)

import gemmery.torch_ops as gt  # noqa: E402
from gemmery.fusion import silu  # noqa: E402

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
operators = torch.ops.gemmery


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.fixture(autouse=True)
def _seeded():
    seed = random.randrange(2**31)
    print("seed", seed)
    torch.manual_seed(seed)


def whole(*shape, device, dtype=torch.float32):
    """Small integers: sums of them are exact in every type."""
    return torch.randint(-4, 5, shape, device=device).to(dtype)


def swish_of(device):
    a, b, bias = whole(5, 7, device=device), whole(7, 9, device=device), whole(9, device=device)
    fused = gt.fused(lambda accum, bias, scale: silu(accum + bias) * scale)
    expected = torch.nn.functional.silu(a @ b + bias) * 0.5
    return fused, (a, b, bias), expected


def close(x, y):
    """The error of silu relative to torch's, for values up to 120."""
    return (x - y).abs().max() <= 32 * 2.0**-24 * max(1.0, y.abs().max().item())


def with_peak(accum):
    D = accum * 2
    peak = max(abs(accum))
    return D, peak


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_the_product_is_the_product(device, dtype):
    a, b = whole(3, 5, 7, device=device, dtype=dtype), whole(7, 9, device=device, dtype=dtype)
    exact = (a.double() @ b.double()).to(dtype)
    assert torch.equal(gt.matmul(a, b), exact)
    out = torch.empty_like(exact)
    assert gt.matmul(a, b, out=out) is out and torch.equal(out, exact)
    assert torch.equal(gemmery.matmul(a, b), exact)


def test_an_epilogue_is_traced_once_and_fused(device):
    fused, (a, b, bias), expected = swish_of(device)
    assert close(fused(a, b, bias=bias, scale=0.5), expected)
    out = torch.empty_like(expected)
    assert fused(a, b, out, bias=bias, scale=0.5) is out and close(out, expected)


def test_further_results_are_written(device):
    a, b = whole(5, 7, device=device), whole(7, 9, device=device)
    peak = torch.zeros(1, device=device)
    assert torch.equal(gt.fused(with_peak)(a, b, peak=peak), 2 * (a @ b))
    assert peak.item() == (a @ b).abs().max().item()


def test_torch_compile_sees_no_graph_break(device):
    fused, (a, b, bias), expected = swish_of(device)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def model(a, b, bias, out):
        gt.matmul(a, b, out=out)
        return fused(a, b, bias=bias, scale=0.5) + gt.matmul(a, b)

    out = torch.empty(5, 9, device=device)
    assert close(model(a, b, bias, out), expected + a @ b) and torch.equal(out, a @ b)
    longer = whole(11, 7, device=device)  # another shape: compiled for any
    assert torch.equal(torch.compile(gt.matmul, fullgraph=True, backend="aot_eager", dynamic=True)(longer, b), longer @ b)


@pytest.mark.filterwarnings("ignore")  # of torch, about its own checks
def test_opcheck_passes(device):
    fused, (a, b, bias), _ = swish_of(device)
    out = torch.empty(5, 9, device=device)
    peak = torch.zeros(1, device=device)
    text = gt.fused(with_peak).program
    torch.library.opcheck(operators.matmul, (a.clone().requires_grad_(), b.clone().requires_grad_()))
    torch.library.opcheck(operators.matmul, (a, b, torch.float16))
    torch.library.opcheck(operators.matmul_out, (a, b, out))
    torch.library.opcheck(operators.fused_matmul, (a, b, fused.program, ["bias"], [bias], ["scale"], [0.5]))
    torch.library.opcheck(operators.fused_matmul_out, (a, b, text, [], [], [], [], out, ["peak"], [peak]))


@pytest.mark.parametrize("shapes", [((4, 5), (5, 3)), ((2, 4, 5), (5, 3)), ((1, 4, 5), (2, 5, 3))])
def test_derivatives_are_the_products(device, shapes):
    operands = [torch.randn(shape, dtype=torch.float64, device=device, requires_grad=True) for shape in shapes]
    assert torch.autograd.gradcheck(gt.matmul, operands)


def test_a_fused_product_has_no_derivative_and_says_so(device):
    fused, (a, b, bias), _ = swish_of(device)
    result = fused(a.requires_grad_(), b, bias=bias, scale=0.5)
    with pytest.raises(NotImplementedError, match="no derivative"):
        result.sum().backward()
    out = torch.empty(5, 9, device=device)
    with pytest.raises(RuntimeError, match=r"torch\.no_grad"):
        gt.matmul(a, b, out=out)
    with torch.no_grad():
        assert torch.equal(gt.matmul(a, b, out=out), a @ b)


def test_shapes_that_do_not_fit_are_refused(device):
    with pytest.raises(ValueError, match="K"):
        gt.matmul(torch.zeros(3, 4, device=device), torch.zeros(5, 6, device=device))
    with pytest.raises(Exception, match="K must agree"):
        torch.compile(gt.matmul, fullgraph=True, backend="aot_eager")(
            torch.zeros(3, 4, device=device), torch.zeros(5, 6, device=device)
        )


def test_traced_functions_take_torch_functions():
    modules = torch.nn.Hardswish(), torch.nn.ReLU6(), torch.nn.SiLU(), torch.nn.GELU(approximate="tanh")
    program = gemmery.fusion.trace(lambda accum: sum(module(accum) for module in modules))
    text = "D = 0 + hardswish(accum) + clamp(accum, 0, 6) + silu(accum) + gelu_tanh(accum)"
    assert program == gemmery.Program(text)

    class Scale(torch.nn.Module):
        def forward(self, accum, scale):
            return torch.relu(accum).to(torch.float16) * scale

    assert gemmery.fusion.trace(Scale()) == gemmery.Program("D = cast(relu(accum), f16) * scale")
    with pytest.raises(ValueError, match="without dimensions"):
        gemmery.fusion.trace(lambda accum: torch.max(accum, 1))
    with pytest.raises(ValueError, match="make it a parameter"):
        gemmery.fusion.trace(lambda accum: accum + torch.ones(3))


def test_functions_compute_on_tensors_what_torch_computes(device):
    x = torch.randn(64, device=device, dtype=torch.float64)
    functional = torch.nn.functional
    for name, theirs in {
        "gelu": functional.gelu,
        "silu": functional.silu,
        "relu": functional.relu,
        "hardswish": functional.hardswish,
        "softplus": functional.softplus,
        "sigmoid": torch.sigmoid,
        "relu6": functional.relu6,
        "erf": torch.erf,
        "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh"),
    }.items():
        # Some of torch's constants are float32 for any type.
        torch.testing.assert_close(getattr(gemmery.fusion, name)(x), theirs(x), rtol=2.0**-23, atol=2.0**-23)


@pytest.mark.gpu
def test_calls_are_captured_into_graphs():
    fused, (a, b, bias), expected = swish_of("cuda")
    fused(a, b, bias=bias, scale=0.5)  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = fused(a, b, bias=bias, scale=0.5)
    result.zero_()
    graph.replay()
    assert close(result, expected)


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore")  # of inductor
def test_reduce_overhead_uses_graphs():
    a, b = whole(64, 64, device="cuda"), whole(64, 64, device="cuda")
    model = torch.compile(lambda a, b: gt.matmul(a, b) + 1, mode="reduce-overhead", fullgraph=True)
    for _ in range(4):
        assert torch.equal(model(a, b).clone(), a @ b + 1)


@pytest.mark.gpu
def test_side_streams_are_used():
    a, b = whole(512, 512, device="cuda"), whole(512, 512, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)
        c = a * 2  # late
        result = gt.matmul(c, b)
    torch.cuda.current_stream().wait_stream(stream)
    assert torch.equal(result, 2 * (a @ b))
