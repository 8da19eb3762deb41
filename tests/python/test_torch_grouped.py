# SPDX-License-Identifier: Apache-2.0
"""torch's grouped_mm: compared with a loop and with torch's own; derivatives, fake kernel, errors."""

import random

import pytest

import gemmery

torch = pytest.importorskip("torch", reason="torch is not installed")
if not hasattr(torch.library, "register_fake"):
    pytest.skip("torch is older than 2.4", allow_module_level=True)

import gemmery.torch_ops as gt  # noqa: E402

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
FORMS = ["rows", "columns", "depth", "stacks"]
SIZES = [[0, 7, 1, 13, 0, 11], [5], [1] * 40, [0, 0, 3], [128, 0, 65]]


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
    return torch.randint(-2, 3, shape, device=device).to(dtype)


def operands_of(form, sizes, device, dtype=torch.float32, rest=0):
    """a, b and offs; `rest` is the part of the extent that differs that belongs to no group."""
    groups, total, m, n, k = len(sizes), sum(sizes) + rest, 9, 24, 16
    shapes = {
        "rows": ((total, k), (groups, k, n)),
        "columns": ((groups, m, k), (k, total)),
        "depth": ((m, total), (total, n)),
        "stacks": ((groups, m, k), (groups, k, n)),
    }[form]
    ends = torch.tensor(sizes, device=device).cumsum(0).to(torch.int32)
    a, b = (whole(*shape, device=device, dtype=dtype) for shape in shapes)
    return a, b, None if form == "stacks" else ends


def loop(a, b, offs):
    """The products one by one, in float64. Elements of no group are zero."""
    a, b = a.double(), b.double()
    if offs is None:
        return torch.stack([x @ y for x, y in zip(a, b, strict=True)])
    parts = list(zip([0, *offs.tolist()], offs.tolist(), strict=False))
    if a.dim() == b.dim():
        return torch.stack([a[:, start:end] @ b[start:end] for start, end in parts])
    result = a.new_zeros((a.shape[-2], b.shape[-1]))
    for group, (start, end) in enumerate(parts):
        if a.dim() == 2:
            result[start:end] = a[start:end] @ b[group]
        else:
            result[:, start:end] = a[group] @ b[:, start:end]
    return result


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_loop(device, form, dtype):
    for sizes in SIZES:
        a, b, offs = operands_of(form, sizes, device, dtype)
        result = gt.grouped_mm(a, b, offs=offs)
        assert result.dtype == dtype and result.is_contiguous()
        assert torch.equal(result, loop(a, b, offs).to(dtype))
        wide = gt.grouped_mm(a, b, offs=offs, out_dtype=torch.float32)
        assert torch.equal(wide, loop(a, b, offs).float())
        if offs is not None:
            assert torch.equal(gt.grouped_mm(a, b, offs=offs.long()), result)


@pytest.mark.parametrize("form", FORMS)
def test_operands_may_be_transposed_views(device, form):
    a, b, offs = operands_of(form, SIZES[0], device, torch.bfloat16)
    expected = loop(a, b, offs).bfloat16()
    a, b = (operand.mT.contiguous().mT for operand in (a, b))
    assert torch.equal(gt.grouped_mm(a, b, offs=offs), expected)


@pytest.mark.parametrize("form", FORMS)
def test_it_is_what_torch_computes(device, form):
    """Sizes that torch also supports: multiples of 16 bytes."""
    theirs = getattr(torch.nn.functional, "grouped_mm", None)
    if theirs is None:
        pytest.skip("this torch has no torch.nn.functional.grouped_mm")
    a, b, offs = operands_of(form, [16, 8, 32], device, torch.bfloat16)
    try:
        expected = theirs(a, b, offs=offs)
    except (RuntimeError, NotImplementedError) as error:
        pytest.skip(f"torch {torch.__version__} refuses it: {str(error).splitlines()[0]}")
    assert torch.equal(gt.grouped_mm(a, b, offs=offs), expected)


@pytest.mark.parametrize("form", ["rows", "depth", "stacks"])
def test_a_bias_is_a_row_for_each_group_or_for_all(device, form):
    a, b, offs = operands_of(form, SIZES[0], device)
    groups, n = len(SIZES[0]), b.shape[-1]
    exact = loop(a, b, offs).float()
    each, one = whole(groups, n, device=device), whole(n, device=device)
    group_of_row = torch.repeat_interleave(torch.arange(groups, device=device), torch.tensor(SIZES[0], device=device))
    rows = each[group_of_row] if form == "rows" else each[:, None]
    assert torch.equal(gt.grouped_mm(a, b, offs=offs, bias=each), exact + rows)
    assert torch.equal(gt.grouped_mm(a, b, offs=offs, bias=one), exact + one)


def test_what_is_of_no_group_becomes_zero_on_request(device):
    for form in ("rows", "columns"):
        a, b, offs = operands_of(form, SIZES[0], device, rest=5)
        behind = a[offs[-1] :] if form == "rows" else b[:, offs[-1] :]
        behind.fill_(float("nan"))
        for _ in range(3):  # also in memory that was used before
            result = gt.grouped_mm(a, b, offs=offs, outside="zero")
            assert torch.equal(result, loop(a, b, offs).float())
            result.fill_(float("nan"))


def test_no_groups_and_no_k(device):
    ends = torch.zeros(0, dtype=torch.int32, device=device)
    assert gt.grouped_mm(torch.ones(0, 4, device=device), torch.ones(0, 4, 8, device=device), offs=ends).shape == (0, 8)
    assert gt.grouped_mm(torch.ones(3, 0, device=device), torch.ones(0, 8, device=device), offs=ends).shape == (0, 3, 8)
    ends = torch.zeros(4, dtype=torch.int32, device=device)  # a total K of 0
    result = gt.grouped_mm(torch.ones(3, 0, device=device), torch.ones(0, 8, device=device), offs=ends)
    assert result.shape == (4, 3, 8) and not result.any()


@pytest.mark.parametrize("form", FORMS)
def test_derivatives_are_those_of_the_loop(device, form):
    a, b, offs = operands_of(form, [3, 0, 4], device, torch.float64)
    n = b.shape[-1]
    for shape in [None] if form == "columns" else [None, (3, n), (n,)]:
        operands = [
            torch.randn(x, dtype=torch.float64, device=device, requires_grad=True) for x in (a.shape, b.shape, shape) if x
        ]
        assert torch.autograd.gradcheck(
            lambda a, b, bias=None: gt.grouped_mm(a, b, offs=offs, bias=bias), operands, fast_mode=True
        )


@pytest.mark.parametrize("form", ["rows", "columns"])
def test_gradients_of_what_is_of_no_group_are_zero(device, form):
    a, b, offs = operands_of(form, [3, 0, 4], device, rest=2)
    a.requires_grad_(), b.requires_grad_()
    result = gt.grouped_mm(a, b, offs=offs)
    result.backward(torch.full_like(result, float("nan")).where(loop(torch.ones_like(a), torch.ones_like(b), offs) == 0, 1.0))
    gradient = a.grad[7:] if form == "rows" else b.grad[:, 7:]
    assert gradient.numel() and not gradient.any()
    assert not a.grad.isnan().any() and not b.grad.isnan().any()


def test_gradients_have_the_types_of_the_operands(device):
    a, b, offs = operands_of("rows", SIZES[0], device, torch.bfloat16)
    a.requires_grad_(), b.requires_grad_()
    gt.grouped_mm(a, b, offs=offs, out_dtype=torch.float32).sum().backward()
    assert a.grad.dtype == b.grad.dtype == torch.bfloat16
    assert torch.equal(a.grad, loop(torch.ones(32, 24, device=device), b.detach().mT, offs).bfloat16())


def test_torch_compile_sees_no_graph_break(device):
    model = torch.compile(
        lambda a, b, offs: gt.grouped_mm(a, b, offs=offs) + 1, fullgraph=True, backend="aot_eager", dynamic=True
    )
    for sizes in SIZES:  # other shapes and sizes
        a, b, offs = operands_of("rows", sizes, device)
        assert torch.equal(model(a, b, offs), loop(a, b, offs).float() + 1)


@pytest.mark.filterwarnings("ignore")  # of torch, about its own checks
@pytest.mark.parametrize("form", FORMS)
def test_opcheck_passes(device, form):
    a, b, offs = operands_of(form, SIZES[0], device)
    operator = torch.ops.gemmery.grouped_mm
    torch.library.opcheck(operator, (a.clone().requires_grad_(), b.clone().requires_grad_(), offs))
    torch.library.opcheck(operator, (a, b, offs, None, torch.float16, True))
    if form != "columns":
        torch.library.opcheck(operator, (a, b, offs, whole(b.shape[-1], device=device).requires_grad_()))


def test_what_does_not_fit_is_refused_by_name(device):
    a, b, offs = operands_of("rows", [2, 3], device)
    stack = torch.ones(2, 4, 16, device=device)
    wrong = {
        "offs: expected the end of every group": (a, b, {}),
        "offs: expected None": (stack, b, {"offs": offs}),
        "offs: expected 2 ends": (a, b, {"offs": offs[:1]}),
        "offs: expected a vector of int32 or int64": (a, b, {"offs": offs.float()}),
        "mat_b: expected 15 rows": (a[:, :15], b, {"offs": offs}),
        "mat_b: expected 2 matrices": (stack, torch.ones(3, 16, 24, device=device), {}),
        "bias: expected .2, 24. or .24,.": (a, b, {"offs": offs, "bias": torch.ones(3, device=device)}),
        "bias: expected None": (stack, torch.ones(16, 5, device=device), {"offs": offs, "bias": torch.ones(5, device=device)}),
        'outside: expected "untouched" or "zero"': (a, b, {"offs": offs, "outside": "nan"}),
    }
    for message, (x, y, options) in wrong.items():
        with pytest.raises(ValueError, match=message):
            gt.grouped_mm(x, y, **options)
    with pytest.raises(ValueError, match="rank 2 or 3"):
        gt.grouped_mm(a[0], b, offs=offs)


def test_ends_that_make_no_sense_are_refused_on_the_cpu():
    a, b, _ = operands_of("rows", [2, 3], "cpu")
    with pytest.raises(ValueError, match=r"ends\[1\]"):
        gt.grouped_mm(a, b, offs=torch.tensor([4, 2], dtype=torch.int32))
    with pytest.raises(gemmery.Error, match=r"ends\[1\]"):
        gt.grouped_mm(a, b, offs=torch.tensor([4, 6], dtype=torch.int32))


@pytest.mark.gpu
def test_sizes_change_between_replays_of_a_graph():
    a, b, offs = operands_of("rows", [16, 8, 32], "cuda", torch.bfloat16)
    gt.grouped_mm(a, b, offs=offs)  # compiles
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = gt.grouped_mm(a, b, offs=offs)
    for ends in ([16, 24, 56], [0, 56, 56], [1, 2, 56]):
        offs.copy_(torch.tensor(ends, dtype=torch.int32))
        result.fill_(float("nan"))
        graph.replay()
        assert torch.equal(result, loop(a, b, offs).bfloat16())
