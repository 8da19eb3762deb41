# SPDX-License-Identifier: Apache-2.0
"""Epilogue visitor trees. Tests are named after the rows of docs/describe-rows.md."""

import numpy
import pytest

import gemmery
from describing import DEVICE, Problem, operation, tensors, tile
from gemmery import describe
from gemmery.describe import gelu, hardswish, leaky_relu, reduction_op, relu, sigmoid, silu, tanh


@pytest.fixture(autouse=True)
def on_the_emulator():
    describe.set_device(DEVICE)
    yield
    describe.set_device(None)


def made(tree):
    """Makes an operation with a tree."""
    a, b, c = tensors()
    visitor = tree(None, tile(), describe.float32, c.alignment, describe.float32, c.element)
    visitor.initialize()
    return describe.GemmOperationUniversal(80, tile(), a, b, c, visitor, visitor=True)


def run(one, it, batch=1, **operands):
    m, n, _ = it.size
    op = one.epilogue_type(**operands, problem_size=[m, n])
    mode = "Batched" if batch > 1 else "Gemm"
    arguments = describe.GemmArguments(one, it.size, it.a, it.b, None, None, mode, op, batch=batch)
    assert one.run(arguments) == 0
    op.sync()


class Unary(describe.EpilogueVisitTree):
    def __call__(self, accum: "tensor", c: "tensor", alpha: "scalar", beta: "scalar"):  # noqa: F821
        Z = alpha * leaky_relu.numpy(accum, 0.25) + beta * c
        return Z


def test_row_48_and_49_unary(rng):
    it = Problem(rng)
    run(made(Unary), it, c=it.c, alpha=2.0, beta=3.0, Z=it.d)
    assert numpy.array_equal(it.d, 2 * numpy.where(it.product > 0, it.product, it.product * 0.25) + 3 * it.c)


class EveryActivation(describe.EpilogueVisitTree):
    def __call__(self, accum: "tensor"):  # noqa: F821
        x = accum / 8
        A = relu.numpy(x)
        B = tanh.numpy(x)
        E = sigmoid.numpy(x)
        F = silu.numpy(x)
        G = gelu.numpy(x)
        H = hardswish.numpy(x)
        return A, B, E, F, G, H


def test_row_49_every_activation(rng):
    it = Problem(rng)
    stored = {name: numpy.full_like(it.d, numpy.nan) for name in "ABEFGH"}
    one = made(EveryActivation)
    run(one, it, **stored)
    reference = one.epilogue_functor(it.product.astype(numpy.float32))
    for name, expected in zip("ABEFGH", reference, strict=True):
        numpy.testing.assert_allclose(stored[name], expected, rtol=2e-6, atol=1e-6)


class Broadcast(describe.EpilogueVisitTree):
    def __call__(self, accum: "tensor", c: "tensor", alpha: "scalar", row: "row", column: "column"):  # noqa: F821
        T = accum + row + column
        Z = relu.numpy(alpha * T) + c
        return Z, T


@pytest.mark.parametrize("batch", [1, 3])
def test_row_50_rows_and_columns_are_broadcast_and_two_results_stored(rng, batch):
    it = Problem(rng, batch=batch)
    row = rng.integers(-4, 5, (batch, 56)).astype(numpy.float32)
    column = rng.integers(-4, 5, (batch, 72)).astype(numpy.float32)
    t = numpy.full_like(it.d, numpy.nan)
    run(made(Broadcast), it, batch, c=it.c, alpha=2.0, row=row, column=column, Z=it.d, T=t)
    expected = it.product + row.reshape(batch, 1, 56) + column.reshape(batch, 72, 1)
    expected = expected.reshape(it.d.shape)
    assert numpy.array_equal(t, expected)
    assert numpy.array_equal(it.d, numpy.maximum(2 * expected, 0) + it.c)


class Reduce(describe.EpilogueVisitTree):
    def __call__(self, accum: "tensor", c: "tensor"):  # noqa: F821
        D = accum + c
        R = reduction_op(D, "row", "Add", 128)
        S = reduction_op(accum, "column", "Add", 128)
        return D, R, S


def test_row_51_and_52_reductions_of_rows_and_columns(rng):
    it = Problem(rng, 136, 120, 40)
    one = made(Reduce)
    bits = []
    for _ in range(3):
        r = numpy.full(136, numpy.nan, numpy.float32)
        s = numpy.full(120, numpy.nan, numpy.float32)
        run(one, it, c=it.c, D=it.d, R=r, S=s)
        assert numpy.array_equal(r, (it.product + it.c).sum(1)) and numpy.array_equal(s, it.product.sum(0))
        bits.append((r.tobytes(), s.tobytes()))
    assert len(set(bits)) == 1


def test_row_52_reductions_in_a_batch(rng):
    it = Problem(rng, batch=2)
    r = numpy.full((2, 72), numpy.nan, numpy.float32)
    s = numpy.full((2, 56), numpy.nan, numpy.float32)
    run(made(Reduce), it, 2, c=it.c, D=it.d, R=r, S=s)
    assert numpy.array_equal(r, (it.product + it.c).sum(2)) and numpy.array_equal(s, it.product.sum(1))


class OfAnExpression(describe.EpilogueVisitTree):
    def __call__(self, accum: "tensor"):  # noqa: F821
        D = accum
        R = reduction_op(accum * 2, "row", "Add", 128)
        return D, R


class UseOfAResult(describe.EpilogueVisitTree):
    def __call__(self, accum: "tensor"):  # noqa: F821
        R = reduction_op(accum, "row", "Add", 128)
        D = accum - R
        return D, R


class NothingFull(describe.EpilogueVisitTree):
    def __call__(self, accum: "tensor"):  # noqa: F821
        R = reduction_op(accum, "row", "Add", 128)
        return R


class WithoutAnnotation(describe.EpilogueVisitTree):
    def __call__(self, accum: "tensor", c):  # noqa: F821
        D = accum + c
        return D


class ReservedWord(describe.EpilogueVisitTree):
    def __call__(self, accum: "tensor", exp: "tensor", D: "tensor"):  # noqa: F821
        Z = accum + exp + D
        return Z


class ReadAndAssigned(describe.EpilogueVisitTree):
    def __call__(self, accum: "tensor", c: "tensor"):  # noqa: F821
        D = accum + c
        c = D * 2
        return D, c


class SizeAsOperand(describe.EpilogueVisitTree):
    def __call__(self, accum: "tensor", problem_size: "scalar"):  # noqa: F821
        D = accum * problem_size
        return D


class Largest(describe.EpilogueVisitTree):
    def __call__(self, accum: "tensor"):  # noqa: F821
        D = accum
        R = reduction_op(accum, "row", "Max", 128)
        return D, R


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        (ReservedWord, 'got "D"; this word has a meaning of its own'),
        (ReadAndAssigned, 'expected names that are either read or assigned, got "c"'),
        (SizeAsOperand, "no other use for, got problem_size"),
        (Largest, "reduction_op: expected \"Add\", got 'Max'"),
        (OfAnExpression, "expected a name as what reduction_op reads"),
        (UseOfAResult, "expected a reduction as a whole result"),
        (NothingFull, "expected a tensor of D's size"),
        (WithoutAnnotation, "expected c annotated as one of"),
    ],
)
def test_row_53_what_no_program_can_do_is_refused_with_its_line(tree, reason):
    with pytest.raises(gemmery.Error, match=reason) as caught:
        made(tree)
    assert "test_describe_visitors.py:" in str(caught.value)


def test_row_53_other_reductions_are_refused():
    with pytest.raises(gemmery.UnsupportedError, match="Add"):
        reduction_op(numpy.ones((2, 2)), "row", "Mul")
    with pytest.raises(gemmery.InvalidArgumentError, match="direction|row"):
        reduction_op(numpy.ones((2, 2)), "diagonal")


def test_row_54_keywords_are_checked_by_name(rng):
    it = Problem(rng)
    one = made(Unary)
    with pytest.raises(gemmery.InvalidArgumentError, match="expected beta="):
        one.epilogue_type(c=it.c, alpha=1.0, Z=it.d, problem_size=[72, 56])
    with pytest.raises(gemmery.InvalidArgumentError, match="got gamma="):
        one.epilogue_type(c=it.c, alpha=1.0, beta=1.0, gamma=1.0, Z=it.d)
    with pytest.raises(TypeError, match="by keyword"):
        one.epilogue_type(1.0, 0.0)
    op = one.epilogue_type(c=it.c, alpha=1.0, beta=1.0, Z=it.d, problem_size=[56, 72])
    with pytest.raises(gemmery.InvalidArgumentError, match="problem_size"):
        describe.GemmArguments(one, it.size, it.a, it.b, None, None, output_op=op)
    op = one.epilogue_type(c=it.c.astype(numpy.float64), alpha=1.0, beta=1.0, Z=it.d)
    with pytest.raises(gemmery.InvalidArgumentError, match="c: expected .*float32"):
        describe.GemmArguments(one, it.size, it.a, it.b, None, None, output_op=op)


def test_row_55_an_operation_of_the_users_own(rng):
    gemmery.define_op("describe_test_cube", "x * x * x")
    with pytest.raises(gemmery.Error, match="unknown_operation"):
        gemmery.define_op("describe_test_broken", "unknown_operation(x)")

    class Cubes(describe.EpilogueVisitTree):
        def __call__(self, accum: "tensor"):  # noqa: F821
            D = gemmery.fusion.describe_test_cube(accum / 8)
            return D

    it = Problem(rng)
    run(made(Cubes), it, D=it.d)
    third = (it.product / 8).astype(numpy.float32)
    assert numpy.array_equal(it.d, third * third * third)


def test_row_59_the_visitor_flag():
    a, b, c = tensors()
    visitor = Unary(None, tile(), describe.float32, c.alignment, describe.float32, c.element)
    with pytest.raises(gemmery.Error, match="visitor: expected true"):
        describe.GemmOperationUniversal(80, tile(), a, b, c, visitor)
    with pytest.raises(gemmery.Error, match="visitor: expected false"):
        describe.GemmOperationUniversal(80, tile(), a, b, c, describe.LinearCombination(c.element, 4), visitor=True)
    assert operation() != made(Unary) and made(Unary) == made(Unary)


def test_row_96_sync_of_the_op_copies_every_result_back(rng):
    it = Problem(rng)
    one = made(Broadcast)
    t = numpy.full_like(it.d, numpy.nan)
    zeros = numpy.zeros(72, numpy.float32)
    op = one.epilogue_type(c=it.c, alpha=1.0, row=zeros[:56], column=zeros, Z=it.d, T=t, problem_size=[72, 56])
    arguments = describe.GemmArguments(one, it.size, it.a, it.b, it.c, it.d, output_op=op)
    one.run(arguments)
    assert numpy.isnan(t).all() and numpy.isnan(it.d).all()
    op.sync()
    assert numpy.array_equal(t, it.product) and numpy.array_equal(it.d, numpy.maximum(it.product, 0) + it.c)
