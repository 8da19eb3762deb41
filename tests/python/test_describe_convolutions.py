# SPDX-License-Identifier: Apache-2.0
"""Described convolutions."""

import numpy
import pytest

import gemmery
from describing import DEVICE, operation, tile
from gemmery import describe
from gemmery.describe import MatrixCoord, StrideSupport, Tensor4DCoord, conv


@pytest.fixture(autouse=True)
def _on_device():
    describe.set_device(DEVICE)
    yield
    describe.set_device(None)


HALF = describe.TensorDescription(describe.float16, describe.TensorNHWC, 8)
SINGLE = describe.TensorDescription(describe.float32, describe.TensorNHWC, 4)
KINDS = list(conv.Operator)


def conv_operation(kind=conv.Operator.fprop, support=StrideSupport.Strided, functor=None, algorithm="optimized", **options):
    functor = functor or describe.LinearCombination(SINGLE.element, SINGLE.alignment)
    small = tile(shape=(32, 32, 32), stages=2, warps=(2, 1, 1))
    return describe.Conv2dOperation(kind, algorithm, 80, small, HALF, HALF, SINGLE, support, functor, **options)


def size_of(image=(2, 7, 6, 16), filters=(8, 3, 3, 16), pad=(1, 1, 1, 1), stride=(1, 1), dilation=(1, 1), *rest):
    mode = conv.Mode.cross_correlation
    return conv.Conv2dProblemSize(
        Tensor4DCoord(*image),
        Tensor4DCoord(*filters),
        Tensor4DCoord(*pad),
        MatrixCoord(*stride),
        MatrixCoord(*dilation),
        mode,
        *rest,
    )


class Problem:
    """Integers, NaN in D, and the definition in float64."""

    def __init__(self, rng, kind, size):
        self.size, self.kind = size, kind
        images, filters, outputs = size.activation_extent(), size.filter_extent(), size.output_extent()
        shapes = {"fprop": (images, filters, outputs), "dgrad": (outputs, filters, images), "wgrad": (outputs, images, filters)}
        a, b, d = shapes[kind.name]
        self.a = rng.integers(-4, 5, a).astype(numpy.float16)
        self.b = rng.integers(-4, 5, b).astype(numpy.float16)
        self.c = rng.integers(-4, 5, d).astype(numpy.float32)
        self.d = numpy.full(d, numpy.nan, numpy.float32)

    @property
    def sums(self):
        result = numpy.zeros(self.d.shape)
        size = self.size
        for r in range(size.R):
            for s in range(size.S):
                for p in range(size.P):
                    for q in range(size.Q):
                        h = p * size.stride[0] - size.padding[0] + r * size.dilation[0]
                        w = q * size.stride[1] - size.padding[2] + s * size.dilation[1]
                        if 0 <= h < size.H and 0 <= w < size.W:
                            self._add(result, (h, w), (r, s), (p, q))
        return result

    def _add(self, result, at, tap, out):
        a, b = self.a.astype(numpy.float64), self.b.astype(numpy.float64)
        image, filters, output = (slice(None), *at), (slice(None), *tap), (slice(None), *out)
        if self.kind == conv.Operator.fprop:
            result[output] += a[image] @ b[filters].T
        elif self.kind == conv.Operator.dgrad:
            result[image] += a[output] @ b[filters]
        else:
            result[filters] += a[output].T @ b[image]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_row_89_arguments_of_a_convolution(rng, kind):
    it = Problem(rng, kind, size_of(stride=(2, 1)))
    one = conv_operation(kind)
    assert isinstance(one, gemmery.Kernel) and gemmery.find_kernel(one.name).name == one.name
    describe.compiler.add_module([one])
    arguments = describe.Conv2dArguments(
        operation=one,
        problem_size=it.size,
        A=it.a,
        B=it.b,
        C=it.c,
        D=it.d,
        output_op=one.epilogue_type(1.0, 2.0),
        split_k_mode=conv.SplitKMode.Serial,
        split_k_slices=it.size.split_k_slices,
    )
    assert one.run(arguments) == 0
    arguments.sync()
    assert numpy.array_equal(it.d, it.sums + 2 * it.c)
    assert [kernel.name for kernel in arguments.kernels] == [one.name]
    in_order_of_torch = it.d.transpose(0, 3, 1, 2)  # channels last
    in_order_of_torch[...] = numpy.nan
    again = describe.Conv2dArguments(one, it.size, it.a.ravel(), it.b, None, in_order_of_torch)
    one.run(again)
    again.sync()
    assert numpy.array_equal(it.d, it.sums)


def test_row_89_operands_are_refused_by_name(rng):
    it = Problem(rng, conv.Operator.fprop, size_of())
    one = conv_operation()
    given = {"A": it.a, "B": it.b, "C": it.c, "D": it.d}
    for name, wrong in {
        "A": it.a[:1],
        "B": it.b.astype(numpy.float32),
        "C": numpy.zeros((2, 8, 7, 6), numpy.float32),  # NCHW
        "D": numpy.empty((*it.d.shape, 1), numpy.float32)[::2],
    }.items():
        with pytest.raises(gemmery.InvalidArgumentError, match=f"{name}: expected"):
            describe.Conv2dArguments(one, it.size, **(given | {name: wrong}))
    with pytest.raises(TypeError, match="problem_size: expected a Conv2dProblemSize, got tuple"):
        describe.Conv2dArguments(one, (1, 2, 3), **given)
    with pytest.raises(TypeError, match="operation: expected a Conv2dOperation"):
        describe.Conv2dArguments(operation(), it.size, **given)
    with pytest.raises(gemmery.InvalidArgumentError, match="split_k_slices: expected 3, that of the problem size, got 2"):
        describe.Conv2dArguments(
            one, size_of((2, 7, 6, 16), (8, 3, 3, 16), (1,) * 4, (1, 1), (1, 1), 3), **given, split_k_slices=2
        )
    with pytest.raises(TypeError, match="arguments: expected Conv2dArguments"):
        one.run(it)
    with pytest.raises(gemmery.InvalidArgumentError, match="arguments of this operation"):
        conv_operation(algorithm="analytic").run(describe.Conv2dArguments(one, it.size, **given))
    with pytest.raises(gemmery.InvalidArgumentError, match=r"problem_size.stride: expected 1 and 1 for a dgrad"):
        unity = conv_operation(conv.Operator.dgrad, StrideSupport.Unity)
        strided = Problem(rng, conv.Operator.dgrad, size_of(stride=(2, 2)))
        describe.Conv2dArguments(unity, strided.size, strided.a, strided.b, strided.c, strided.d)


def test_row_62_and_90_the_documents_program(rng):
    size = size_of((1, 9, 8, 16), (8, 3, 3, 16), (1, 1, 1, 1), (1, 1), (2, 2))
    assert size.output_extent() == (1, 7, 6, 8) and repr(size).startswith("Conv2dProblemSize((1, 9, 8, 16)")
    # Eighteen numbers set P and Q, here by PyCUTLASS's formula, (H + 2 * pad - R * dilation) / stride + 1.
    numbers = conv.Conv2dProblemSize(1, 9, 8, 16, 8, 3, 3, 6, 5, 1, 1, 1, 1, 2, 2, conv.Mode.cross_correlation, 1, 1)
    assert numbers.output_extent() == (1, 6, 5, 8) and numbers != size == size_of((1, 9, 8, 16), dilation=(2, 2))
    assert len({size, numbers, size_of((1, 9, 8, 16), dilation=(2, 2))}) == 2
    for one in (size, numbers):
        it = Problem(rng, conv.Operator.fprop, one)
        arguments = describe.Conv2dArguments(conv_operation(), one, it.a, it.b, None, it.d)
        conv_operation().run(arguments)
        arguments.sync()
        assert numpy.array_equal(it.d, it.sums)
    product = conv.implicit_gemm_problem_size(conv.Operator.wgrad, size)
    assert tuple(product) == (8, 144, 42)
    for wrong in (lambda: size_of(image=(1, 9, 8, 12)), lambda: size_of(pad=(1, 1)), lambda: size_of(stride=(1.5, 1))):
        with pytest.raises(gemmery.InvalidArgumentError):
            wrong()
    with pytest.raises(TypeError, match="expected N, H, W"):
        conv.Conv2dProblemSize(1, 9, 8, 16, 8, 3, 3, 6, 5)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_row_98_the_split_k_program_with_a_reduction(rng, kind):
    it = Problem(rng, kind, size_of((2, 5, 3, 96), (96, 3, 3, 96)))
    one = conv_operation(kind)
    arguments = describe.Conv2dArguments(one, it.size, it.a, it.b, it.c, it.d, conv.SplitKMode.Parallel, split_k_slices=2)
    product = conv.implicit_gemm_problem_size(kind, it.size)
    rows = describe.TensorDescription(describe.float32, describe.RowMajor, 4)
    reduction = describe.ReductionOperation(
        MatrixCoord(4, 128), rows, describe.float32, epilogue_functor=describe.LinearCombination(rows.element, 4), count=4
    )
    reduced = describe.ReductionArguments(
        reduction,
        problem_size=[product.m(), product.n()],
        partitions=2,
        workspace=arguments.ptr_D,
        destination=it.d.reshape(product.m(), product.n()),
        source=it.c.reshape(product.m(), product.n()),
        output_op=reduction.epilogue_type(0.5, 2.0),
    )
    one.run(arguments)
    reduction.run(reduced)
    reduced.sync()
    assert numpy.array_equal(it.d, 0.5 * it.sums + 2 * it.c)


def test_operations_print_and_compare_by_value():
    assert conv_operation() == conv_operation() != conv_operation("wgrad")
    assert len({conv_operation(), conv_operation(), conv_operation(algorithm="analytic")}) == 2
    assert "Conv2dOperation(fprop, optimized, 80" in repr(conv_operation())
    assert "__global__" in conv_operation().rt_module.emit()
    with pytest.raises(gemmery.InvalidArgumentError, match="conv_kind: expected one of fprop, dgrad, wgrad"):
        conv_operation("deconv")
    with pytest.raises(gemmery.UnsupportedError, match="A.layout: expected TensorNHWC"):
        row = describe.TensorDescription(describe.float16, describe.RowMajor, 8)
        functor = describe.LinearCombination(SINGLE.element, 4)
        describe.Conv2dOperation("fprop", "analytic", 80, tile(), row, HALF, SINGLE, "Strided", functor)
    with pytest.raises(gemmery.UnsupportedError, match="swizzling_functor"):
        conv_operation(swizzling_functor=describe.StridedDgradIdentitySwizzle1)
