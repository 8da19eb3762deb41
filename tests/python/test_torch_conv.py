# SPDX-License-Identifier: Apache-2.0
"""Convolutions of torch: against a loop and torch's own, their derivatives, their fake kernels, their refusals."""

import itertools
import random

import pytest

import gemmery

torch = pytest.importorskip("torch", reason="torch is not installed")
if not hasattr(torch.library, "register_fake"):
    pytest.skip("torch is older than 2.4", allow_module_level=True)

import gemmery.torch_ops as gt  # noqa: E402

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
OURS = {1: gt.conv1d, 2: gt.conv2d, 3: gt.conv3d}
THEIRS = {1: torch.nn.functional.conv1d, 2: torch.nn.functional.conv2d, 3: torch.nn.functional.conv3d}

# input, weight, settings
CASES = [
    ((2, 6, 9, 8), (5, 6, 3, 2), {"padding": 1}),
    ((2, 6, 9, 8), (8, 3, 3, 3), {"stride": (2, 3), "padding": (1, 0), "dilation": (1, 2), "groups": 2}),
    ((1, 4, 7, 7), (4, 1, 3, 3), {"padding": "same", "groups": 4}),
    ((2, 3, 8, 9), (4, 3, 2, 4), {"padding": "same", "dilation": (1, 2)}),
    ((3, 5, 11), (7, 5, 4), {"stride": 3, "padding": (3,)}),
    ((1, 3, 5, 6, 4), (4, 3, 2, 3, 2), {"stride": (1, 2, 1), "padding": (1, 1, 0), "dilation": (2, 1, 1)}),
    ((2, 8, 5, 5), (6, 8, 1, 1), {"padding": "valid"}),
    ((2, 8, 9, 7), (6, 8, 1, 1), {"stride": 2}),
    ((6, 9, 8), (5, 6, 3, 3), {"padding": 2}),
]


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.fixture(autouse=True)
def _seeded():
    seed = random.randrange(2**31)
    print("seed", seed)
    torch.manual_seed(seed)


def whole(shape, device, dtype=torch.float32):
    """Small whole numbers: sums of them are exact in every type."""
    return torch.randint(-2, 3, tuple(shape), device=device).to(dtype)


def dimensions_of(weight):
    return len(weight) - 2


def loop(x, w, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """The definition in float64, tap by tap. Uses no convolution."""
    x, w = x.double(), w.double()
    is_single = x.dim() < w.dim()
    x = x.unsqueeze(0) if is_single else x
    count = w.dim() - 2
    stride, dilation = ((one,) * count if isinstance(one, int) else tuple(one) for one in (stride, dilation))
    total = [d * (r - 1) for d, r in zip(dilation, w.shape[2:], strict=True)]
    if padding == "same":
        pads = [(t // 2, t - t // 2) for t in total]
    else:
        numbers = 0 if padding == "valid" else padding
        numbers = (numbers,) * count if isinstance(numbers, int) else tuple(numbers)
        pads = [(one, one) for one in numbers * (count if len(numbers) == 1 else 1)]
    padded = torch.nn.functional.pad(x, [side for pair in reversed(pads) for side in pair])
    extents = [(h - t - 1) // u + 1 for h, t, u in zip(padded.shape[2:], total, stride, strict=True)]
    parts = []
    for of_x, of_w in zip(padded.chunk(groups, 1), w.chunk(groups, 0), strict=True):
        y = x.new_zeros((x.shape[0], of_w.shape[0], *extents))
        for tap in itertools.product(*(range(r) for r in w.shape[2:])):
            rows = [slice(r * d, r * d + (p - 1) * u + 1, u) for r, d, p, u in zip(tap, dilation, extents, stride, strict=True)]
            pixels = of_x[(slice(None), slice(None), *rows)]
            y = y + torch.einsum("nc...,kc->nk...", pixels, of_w[(slice(None), slice(None), *tap)])
        parts.append(y)
    y = torch.cat(parts, 1)
    if bias is not None:
        y = y + bias.double().reshape(-1, *(1 for _ in range(count)))
    return y.squeeze(0) if is_single else y


def is_channels_last(y, count):
    images = y if y.dim() == count + 2 else y.unsqueeze(0)
    return images.movedim(1, -1).is_contiguous()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("case", CASES)
def test_it_is_the_loop(device, case, dtype):
    x_shape, w_shape, settings = case
    x, w = whole(x_shape, device, dtype), whole(w_shape, device, dtype)
    bias = whole(w_shape[:1], device)
    ours = OURS[dimensions_of(w_shape)]
    expected = loop(x, w, **settings)
    y = ours(x, w, **settings)
    assert y.dtype == dtype and is_channels_last(y, len(w_shape) - 2)
    assert torch.equal(y, expected.to(dtype))
    assert torch.equal(ours(x, w, bias, **settings, out_dtype=torch.float32), loop(x, w, bias, **settings).float())
    if x.dim() == 4:
        last = x.contiguous(memory_format=torch.channels_last)
        assert torch.equal(ours(last, w.contiguous(memory_format=torch.channels_last), **settings), y)


@pytest.mark.filterwarnings("ignore:Using padding='same':UserWarning")  # torch's own
@pytest.mark.parametrize("case", CASES)
def test_it_is_what_torch_computes(device, case):
    x_shape, w_shape, settings = case
    x, w, bias = whole(x_shape, device), whole(w_shape, device), whole(w_shape[:1], device)
    for one in (x, w, bias):
        one.requires_grad_()
    count = dimensions_of(w_shape)
    ours, theirs = (convs[count](x, w, bias, **settings) for convs in (OURS, THEIRS))
    assert torch.equal(ours, theirs)
    gradient = whole(ours.shape, device)
    for mine, of_torch in zip(*(torch.autograd.grad(y, (x, w, bias), gradient) for y in (ours, theirs)), strict=True):
        assert mine.dtype == of_torch.dtype and torch.equal(mine, of_torch)


@pytest.mark.parametrize("case", CASES[:6])
def test_derivatives_are_right(device, case):
    x_shape, w_shape, settings = case
    ours = OURS[dimensions_of(w_shape)]
    shapes = (tuple(min(one, 6) if at > 1 else one for at, one in enumerate(x_shape)), w_shape, w_shape[:1])
    operands = [torch.randn(shape, dtype=torch.float64, device=device, requires_grad=True) for shape in shapes]

    def call(x, w, bias):
        return ours(x, w, bias, **settings)

    assert torch.autograd.gradcheck(call, operands, fast_mode=True)
    assert torch.autograd.gradgradcheck(call, operands, fast_mode=True)


def test_derivatives_of_other_types(device):
    x, w = whole((2, 8, 6, 6), device, torch.bfloat16), whole((8, 8, 3, 3), device, torch.bfloat16)
    bias = whole((8,), device)
    for one in (x, w, bias):
        one.requires_grad_()
    y = gt.conv2d(x, w, bias, padding=1, out_dtype=torch.float32)
    assert y.dtype == torch.float32
    y.backward(whole(y.shape, device))
    assert (x.grad.dtype, w.grad.dtype, bias.grad.dtype) == (torch.bfloat16, torch.bfloat16, torch.float32)
    only_w = gt.conv2d(x.detach(), w, padding=1)
    only_w.sum().backward()


@pytest.mark.parametrize("case", CASES[:6])
def test_operators_pass_torchs_own_checks(device, case):
    x_shape, w_shape, settings = case
    x, w, bias = (whole(shape, device).requires_grad_() for shape in (x_shape, w_shape, w_shape[:1]))
    calls = []

    class Recorded(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func.namespace == "gemmery":
                calls.append((func, args))
            return func(*args, **(kwargs or {}))

    with Recorded():
        OURS[dimensions_of(w_shape)](x, w, bias, **settings).sum().backward()
    assert {func.overloadpacket.__name__ for func, _ in calls} == {
        "conv_forward",
        "conv_input_gradient",
        "conv_weight_gradient",
    }
    for func, args in calls:
        inputs = [one.detach().requires_grad_() if isinstance(one, torch.Tensor) else one for one in args]
        torch.library.opcheck(func, tuple(inputs))


def test_compiled_is_eager(device):
    x, w, bias = whole((2, 6, 9, 8), device), whole((5, 6, 3, 2), device), whole((5,), device)

    def layer(x, w, bias):
        return torch.relu(gt.conv2d(x, w, bias, stride=2, padding=1))

    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for images in (x, whole((3, 6, 9, 8), device)):
        assert torch.equal(compiled(images, w, bias), layer(images, w, bias))


def test_shapes_and_numbers_are_refused(device):
    x, w = whole((2, 6, 9, 8), device), whole((5, 6, 3, 2), device)
    for message, call in {
        "weight: expected rank 4": lambda: gt.conv2d(x, w[0]),
        "input: expected rank 4, or 3": lambda: gt.conv2d(x[0, 0], w),
        "input: expected 6 channels": lambda: gt.conv2d(x[:, :4], w),
        "groups: expected a divisor of the 5 filters": lambda: gt.conv2d(x, w, groups=2),
        "bias: expected": lambda: gt.conv2d(x, w, whole((4,), device)),
        "stride: expected a whole number from 1": lambda: gt.conv2d(x, w, stride=0),
        "dilation: expected a whole number from 1": lambda: gt.conv2d(x, w, dilation=(1, 2, 3)),
        "padding: expected a whole number from 0": lambda: gt.conv2d(x, w, padding=-1),
        'padding: expected numbers, "same"': lambda: gt.conv2d(x, w, padding="full"),
        "where the stride is not 1": lambda: gt.conv2d(x, w, padding="same", stride=2),
        "reaches over at most the padded image": lambda: gt.conv2d(x, w, dilation=8),
    }.items():
        with pytest.raises(ValueError, match=f"conv2d: .*{message}"):
            call()
    with pytest.raises(gemmery.Error):
        gt.conv2d(x.to(torch.complex64), w.to(torch.complex64))
