# SPDX-License-Identifier: Apache-2.0
"""ConvArguments: torch's order of dimensions, channels-last memory, all kinds compared with a loop in NumPy."""

import gc
import itertools

import numpy
import pytest

import gemmery


def channels_last(shape, random=None, dtype="f4"):
    """An array in torch's order whose memory is channels last."""
    memory = (shape[0], *shape[2:], shape[1])
    values = numpy.full(memory, numpy.nan, dtype) if random is None else random.integers(-3, 4, memory).astype(dtype)
    return numpy.moveaxis(values, -1, 1)


def output_extent(h, r, u, lower, upper, d):
    return (h + lower + upper - d * (r - 1) - 1) // u + 1


class Case:
    """x, w and y of one geometry, and the expected result of each kind."""

    def __init__(self, x, w, stride, lower, upper=None, dilation=None, groups=1):
        self.x_shape, self.w_shape = x, w
        self.stride, self.lower, self.groups = stride, lower, groups
        self.upper = lower if upper is None else upper
        self.dilation = dilation or (1,) * len(stride)
        spatial = [
            output_extent(*numbers)
            for numbers in zip(x[2:], w[2:], self.stride, self.lower, self.upper, self.dilation, strict=True)
        ]
        self.y_shape = (x[0], w[0], *spatial)

    def terms(self):
        """For every tap of w the slices of x and y that it connects."""
        for tap in itertools.product(*(range(extent) for extent in self.w_shape[2:])):
            of_x, of_y = [], []
            for d, r in enumerate(tap):
                first = r * self.dilation[d] - self.lower[d]
                pixels = [
                    (p, p * self.stride[d] + first)
                    for p in range(self.y_shape[2 + d])
                    if 0 <= p * self.stride[d] + first < self.x_shape[2 + d]
                ]
                of_y.append([p for p, _ in pixels])
                of_x.append([h for _, h in pixels])
            yield tap, numpy.ix_(*of_x), numpy.ix_(*of_y)

    def groups_of_channels(self):
        c, k = self.w_shape[1], self.w_shape[0] // self.groups
        for group in range(self.groups):
            yield slice(group * c, (group + 1) * c), slice(group * k, (group + 1) * k)

    def expected(self, kind, x, w, y):
        x, w, y = (numpy.asarray(value, "f8") for value in (x, w, y))
        result = numpy.zeros({"fprop": self.y_shape, "dgrad": self.x_shape, "wgrad": self.w_shape}[kind])
        for (c, k), (tap, pixels, outputs) in itertools.product(list(self.groups_of_channels()), list(self.terms())):
            in_x = (slice(None), c, *pixels)
            in_y = (slice(None), k, *outputs)
            in_w = (k, slice(None), *tap)
            if kind == "fprop":
                result[in_y] += numpy.einsum("nc...,kc->nk...", x[:, c][(slice(None), slice(None), *pixels)], w[in_w])
            elif kind == "dgrad":
                result[in_x] += numpy.einsum("nk...,kc->nc...", y[:, k][(slice(None), slice(None), *outputs)], w[in_w])
            else:
                of_x = x[:, c][(slice(None), slice(None), *pixels)]
                of_y = y[:, k][(slice(None), slice(None), *outputs)]
                flat_x, flat_y = (of.reshape(*of.shape[:2], -1) for of in (of_x, of_y))
                result[in_w] += numpy.einsum("nkp,ncp->kc", flat_y, flat_x)
        return result

    def settings(self):
        return {
            "stride": self.stride,
            "padding": self.lower,
            "upper_padding": self.upper,
            "dilation": self.dilation,
            "groups": self.groups,
        }


CASES = [
    Case((2, 6, 9, 8), (5, 6, 3, 2), (1, 1), (1, 1)),
    Case((2, 6, 9, 8), (8, 3, 3, 3), (2, 3), (1, 0), (0, 2), (1, 2), 2),
    Case((1, 4, 7, 7), (4, 1, 3, 3), (1, 1), (1, 1), groups=4),
    Case((3, 5, 11), (7, 5, 4), (3,), (3,), (0,)),
    Case((1, 3, 5, 6, 4), (4, 3, 2, 3, 2), (1, 2, 1), (1, 1, 0), dilation=(2, 1, 1)),
    Case((2, 8, 5, 5), (6, 8, 1, 1), (1, 1), (0, 0)),
]


@pytest.fixture
def random():
    return numpy.random.default_rng()


def run_all(args):
    kernels = gemmery.get_kernels(args)
    assert kernels
    for kernel in kernels:
        args.out[...] = numpy.nan
        kernel.run(args)
        yield kernel


@pytest.mark.parametrize("kind", ["fprop", "dgrad", "wgrad"])
@pytest.mark.parametrize("case", CASES)
def test_kinds_are_what_a_loop_computes(random, case, kind):
    x, w, y = (channels_last(shape, random) for shape in (case.x_shape, case.w_shape, case.y_shape))
    expected = case.expected(kind, x, w, y)
    a, b, shape = {"fprop": (x, w, y.shape), "dgrad": (y, w, x.shape), "wgrad": (y, x, w.shape)}[kind]
    args = gemmery.ConvArguments(kind, a, b, channels_last(shape), **case.settings())
    assert isinstance(args, gemmery.GemmArguments)
    for kernel in run_all(args):
        numpy.testing.assert_array_equal(args.out, expected, err_msg=kernel.metadata.kernel_name)


def test_a_bias_a_residual_and_sums_of_channels(random):
    case = CASES[0]
    x, w, residual = (channels_last(shape, random) for shape in (case.x_shape, case.w_shape, case.y_shape))
    bias = random.integers(-3, 4, (5, 1, 1)).astype("f4")
    sums = numpy.zeros((5, 1, 1), "f4")
    epilogue = gemmery.EpilogueArguments(
        "D = relu(accum + bias + residual); sums = sum(D)", bias=bias, residual=residual, sums=sums
    )
    args = gemmery.ConvArguments("fprop", x, w, channels_last(case.y_shape), epilogue=epilogue, stride=1, padding=1)
    expected = numpy.maximum(case.expected("fprop", x, w, residual) + bias + residual, 0)
    for _ in run_all(args):
        numpy.testing.assert_array_equal(args.out, expected)
        numpy.testing.assert_array_equal(sums[:, 0, 0], expected.sum(axis=(0, 2, 3)))


def test_alpha_beta_and_c(random):
    case = CASES[1]
    dy, w, c = (channels_last(shape, random) for shape in (case.y_shape, case.w_shape, case.x_shape))
    args = gemmery.ConvArguments("dgrad", dy, w, channels_last(case.x_shape), C=c, alpha=2, beta=3, **case.settings())
    for _ in run_all(args):
        numpy.testing.assert_array_equal(args.out, 2 * case.expected("dgrad", c, w, dy) + 3 * c)


def test_padding_in_words(random):
    x, w = channels_last((1, 2, 6, 7), random), channels_last((3, 2, 4, 3), random)
    same = gemmery.ConvArguments("fprop", x, w, channels_last((1, 3, 6, 7)), padding="same", dilation=(1, 2))
    assert same.problem == "conv2d_fprop 1x6x7x2 k=3 r=4 s=3 pad=1:2,2 dilation=1,2 a=f32"
    valid = gemmery.ConvArguments("fprop", x, w, channels_last((1, 3, 3, 5)), padding="valid")
    assert valid.problem == "conv2d_fprop 1x6x7x2 k=3 r=4 s=3 a=f32"


def test_other_memory_of_the_same_problem(random):
    case = CASES[0]
    x, other, w = (channels_last(shape, random) for shape in (case.x_shape, case.x_shape, case.w_shape))
    args = gemmery.ConvArguments("fprop", x, w, channels_last(case.y_shape), padding=1)
    args.set_data("A", other)
    for _ in run_all(args):
        numpy.testing.assert_array_equal(args.out, case.expected("fprop", other, w, args.out))


def test_kernels_are_listed_and_told_apart(random):
    x, w = channels_last((1, 8, 4, 4), random), channels_last((8, 8, 1, 1), random)
    args = gemmery.ConvArguments("fprop", x, w, channels_last((1, 8, 4, 4)))
    assert args.problem == "conv2d_fprop 1x4x4x8 k=8 r=1 s=1 a=f32"
    padded = gemmery.ConvArguments("fprop", x, w, channels_last((1, 8, 6, 6)), padding=1)
    assert args._identity != padded._identity
    assert "a plain GEMM" in str(gemmery.explain(args))
    gc.collect()


class Refused:
    ROWS = [  # noqa: RUF012
        ({"kind": "transposed"}, "kind"),
        ({"mode": "flip"}, "mode"),
        ({"stride": "2"}, "stride"),
        ({"stride": (1, 2, 3)}, "stride"),
        ({"stride": 0}, "stride"),
        ({"padding": "full"}, "padding"),
        ({"padding": "same", "upper_padding": 1}, "upper_padding"),
        ({"padding": "same", "stride": 2}, "padding"),
        ({"dilation": 1.5}, "dilation"),
        ({"stride": b"\x01\x01"}, "stride: expected a whole number, or one for each spatial dimension, got bytes"),
        ({"padding": bytearray(2)}, "padding: expected a whole number, or one for each spatial dimension, got bytearray"),
        ({"dilation": {1: 1, 2: 1}}, "dilation: expected a whole number, or one for each spatial dimension, got dict"),
        ({"upper_padding": {0, 1}}, "upper_padding: expected a whole number, or one for each spatial dimension, got set"),
        ({"groups": 3}, "groups"),
        ({"A": numpy.zeros((1, 4, 6, 6), "f4")}, "A: expected adjacent channels"),
        ({"A": numpy.zeros((4, 6), "f4")}, "A: expected a tensor of rank 3"),
        ({"C": numpy.zeros((5,), "f4"), "beta": 1}, "C: expected a shape that broadcasts"),
    ]


@pytest.mark.parametrize(("given", "expected"), Refused.ROWS)
def test_refusals_name_the_operand(given, expected):
    operands = {
        "kind": "fprop",
        "A": channels_last((1, 4, 6, 6)),
        "B": channels_last((5, 4, 3, 3)),
        "out": channels_last((1, 5, 4, 4)),
    }
    with pytest.raises(ValueError, match=expected):
        gemmery.ConvArguments(**{**operands, **given})


def test_staging_is_refused():
    args = gemmery.ConvArguments("fprop", channels_last((1, 4, 6, 6)), channels_last((5, 4, 3, 3)), channels_last((1, 5, 4, 4)))
    with pytest.raises(gemmery.UnsupportedError, match="convolution"):
        args.to_device()
