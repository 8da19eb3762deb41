# SPDX-License-Identifier: Apache-2.0
"""Misuse of descriptions: wrong operands, memory that is freed, runs without waiting."""

import gc

import numpy
import pytest

import gemmery
from describing import DEVICE, Problem, operation, tensors, tile
from gemmery import describe


@pytest.fixture(autouse=True)
def on_the_emulator():
    describe.set_device(DEVICE)
    yield
    describe.set_device(None)


@pytest.fixture
def it(rng):
    return Problem(rng)


@pytest.mark.parametrize("wrong", [1.5, True, -5, None, 2**64])
def test_row_79_what_is_no_address_is_refused(it, wrong):
    with pytest.raises(gemmery.InvalidArgumentError, match="A: expected an array, a tensor or an address, got"):
        describe.GemmArguments(operation(), it.size, wrong, it.b, None, it.d)
    with pytest.raises(TypeError, match="A: expected a tensor"):
        describe.GemmArguments(operation(), it.size, "A", it.b, None, it.d)


def test_row_79_a_read_only_destination_is_refused(it):
    it.d.flags.writeable = False
    with pytest.raises(gemmery.InvalidArgumentError, match="D: expected memory that may be written"):
        describe.GemmArguments(operation(), it.size, it.a, it.b, None, it.d)


def test_row_79_lists_say_their_device_too(it):
    describe.set_device(None)
    a = [gemmery.empty((72, 40), "float16", "emulated:h200") for _ in range(2)]
    d = [it.d, it.d.copy()]
    arguments = describe.GemmArguments(operation(), it.size, a, [it.b] * 2, None, d, "Array", batch=2)
    assert arguments.device == "emulated:h200"


class Interface:
    """An array with __cuda_array_interface__ and without DLPack."""

    def __init__(self, tensor, is_read_only=False):
        self.tensor = tensor
        self.__cuda_array_interface__ = {
            "shape": tensor.shape,
            "typestr": f"<f{tensor.dtype.bits // 8}",
            "data": (tensor.data_ptr, is_read_only),
            "version": 3,
        }


def test_row_81_arrays_by_their_interface(it):
    a = gemmery.empty((72, 40), "float16", DEVICE)
    a.copy_from(it.a)
    d = gemmery.empty((72, 56), "float32", DEVICE)
    one = operation()
    arguments = describe.GemmArguments(one, it.size, Interface(a, is_read_only=True), it.b, None, Interface(d))
    assert arguments.ptr_D == d.data_ptr
    one.run(arguments)
    arguments.sync()
    gemmery.as_tensor(it.d).copy_from(d)
    assert numpy.array_equal(it.d, it.product)
    with pytest.raises(gemmery.InvalidArgumentError, match="A: expected float16, got float32"):
        describe.GemmArguments(one, it.size, Interface(d), it.b, None, it.d)
    with pytest.raises(gemmery.InvalidArgumentError, match="D: expected memory that may be written"):
        describe.GemmArguments(one, it.size, a, it.b, None, Interface(d, is_read_only=True))


def test_row_80_sync_before_the_first_run_changes_nothing(it):
    arguments = describe.GemmArguments(operation(), it.size, it.a, it.b, None, it.d)
    arguments.sync()
    assert numpy.isnan(it.d).all()


def test_row_94_a_stream_by_position(it):
    one = operation()
    stream = gemmery.Stream(DEVICE)
    arguments = describe.GemmArguments(one, it.size, it.a, it.b, None, it.d)
    assert one.run(arguments, stream) == 0
    assert arguments._pending == [stream]
    arguments.sync()
    assert arguments._pending == [] and numpy.array_equal(it.d, it.product)
    with pytest.raises(TypeError, match="stream"):
        one.run(arguments, "a stream")
    with pytest.raises(TypeError, match="arguments: expected GemmArguments, got int"):
        one.run(5)


def test_row_95_sync_waits_for_the_streams_of_the_runs(it, monkeypatch):
    one = operation()
    streams = [gemmery.Stream(DEVICE) for _ in range(2)]
    arguments = describe.GemmArguments(one, it.size, it.a, it.b, None, it.d)
    for stream in streams:
        one.run(arguments, stream=stream)
    waited = []
    monkeypatch.setattr("gemmery._core.synchronize", lambda stream, device: waited.append(stream))
    arguments.sync()
    assert waited == streams


def test_row_95_what_was_let_go_says_so(it):
    one = operation()
    arguments = describe.GemmArguments(one, it.size, it.a, it.b, None, it.d)
    arguments.free()
    arguments.free()
    for use in (lambda: one.run(arguments), arguments.sync, lambda: arguments.ptr_D, lambda: arguments.kernels):
        with pytest.raises(gemmery.InvalidArgumentError, match=r"after free\(\)"):
            use()


def reduction():
    c = tensors()[2]
    functor = describe.LinearCombination(c.element, c.alignment)
    return describe.ReductionOperation(describe.MatrixCoord(4, 128), c, describe.float32, None, None, functor, c.alignment)


def test_row_97_partial_sums_outlive_their_arguments(it):
    one, second = operation(), reduction()
    assert describe.compiler.add_module([one, second])  # as in PyCUTLASS's example
    arguments = describe.GemmArguments(one, it.size, it.a, it.b, None, it.d, "GemmSplitKParallel", split_k_slices=2)
    added = describe.ReductionArguments(second, [72, 56], 2, arguments.ptr_D, it.d, None)
    one.run(arguments)
    arguments.sync()
    assert numpy.isnan(it.d).all()  # the reduction writes D
    del arguments
    gc.collect()
    gemmery.empty((300_000,), "float32", DEVICE)
    second.run(added)
    added.sync()
    assert numpy.array_equal(it.d, it.product)
    with pytest.raises(TypeError, match="workspace: expected ptr_D"):
        describe.ReductionArguments(second, [72, 56], 2, "partial sums", it.d, None)
    with pytest.raises(TypeError, match="operation: expected a ReductionOperation"):
        describe.ReductionArguments(one, [72, 56], 2, 4096, it.d, None)


def test_row_93_alpha_is_given_once():
    with pytest.raises(TypeError, match="alpha once"):
        operation().epilogue_type(1.0, alpha=2.0)


class Sums(describe.EpilogueVisitTree):
    def __call__(self, accum: "tensor", c: "tensor", bias: "row"):  # noqa: F821
        Z = accum + c + bias
        R = describe.reduction_op(Z, "row", "Add", 64)
        return Z, R


def visitor():
    a, b, c = tensors()
    tree = Sums(None, tile(), describe.float32, c.alignment, describe.float32, c.element)
    return describe.GemmOperationUniversal(80, tile(), a, b, c, tree, visitor=True)


def test_row_96_one_output_op_of_two_arguments(rng, it):
    one = visitor()
    bias = rng.integers(-4, 5, 56).astype(numpy.float32)
    r = numpy.full(72, numpy.nan, numpy.float32)
    op = one.epilogue_type(c=it.c, bias=bias, Z=it.d, R=r, problem_size=[72, 56])
    several = [describe.GemmArguments(one, it.size, it.a, it.b, None, None, output_op=op) for _ in range(2)]
    for arguments in several:
        one.run(arguments)
    op.sync()
    exact = it.product + it.c + bias
    assert numpy.array_equal(it.d, exact) and numpy.array_equal(r, exact.sum(1))
    with pytest.raises(gemmery.InvalidArgumentError, match="output_op: expected one of this operation's visitor"):
        describe.GemmArguments(operation(), it.size, it.a, it.b, None, None, output_op=op)


class Columns(describe.EpilogueVisitTree):
    def __call__(self, accum: "tensor", column: "column", row: "row"):  # noqa: F821
        T = accum * column + row
        D = T * 2
        R = describe.reduction_op(T, "column", "Add", 64)
        return T, D, R


def test_row_50_a_visitor_in_an_array(rng):
    it = Problem(rng, batch=3)
    a, b, c = tensors()
    tree = Columns(None, tile(), describe.float32, c.alignment, describe.float32, c.element)
    one = describe.GemmOperationUniversal(80, tile(), a, b, c, tree, visitor=True)
    column = rng.integers(-4, 5, (3, 72)).astype(numpy.float32)
    row = rng.integers(-4, 5, (3, 56)).astype(numpy.float32)
    t = numpy.full_like(it.d, numpy.nan)
    r = numpy.full((3, 56), numpy.nan, numpy.float32)
    op = one.epilogue_type(column=column, row=row, T=t, D=it.d, R=r, problem_size=[72, 56])
    arguments = describe.GemmArguments(one, it.size, list(it.a), list(it.b), None, None, "Array", op, batch=3)
    one.run(arguments)
    op.sync()
    exact = it.product * column[:, :, None] + row[:, None, :]
    assert numpy.array_equal(t, exact) and numpy.array_equal(it.d, 2 * exact)
    assert numpy.array_equal(r, exact.sum(1))


def test_devices_are_names():
    with pytest.raises(TypeError, match="device: expected a name"):
        describe.set_device(0)


def test_row_54_operands_of_a_visitor_by_address(rng, it):
    one = visitor()
    c, d = (gemmery.empty((72, 56), "float32", DEVICE) for _ in range(2))
    c.copy_from(it.c)
    bias = numpy.zeros(56, numpy.float32)
    r = numpy.full(72, numpy.nan, numpy.float32)
    op = one.epilogue_type(c=c.data_ptr, bias=bias, Z=d.data_ptr, R=r)
    arguments = describe.GemmArguments(one, it.size, it.a, it.b, None, None, output_op=op)
    one.run(arguments)
    op.sync()
    assert numpy.array_equal(r, (it.product + it.c).sum(1))
    with pytest.raises(gemmery.InvalidArgumentError, match="c: expected float32, got float16"):
        wrong = one.epilogue_type(c=it.c.astype(numpy.float16), bias=bias, Z=it.d, R=r)
        describe.GemmArguments(one, it.size, it.a, it.b, None, None, output_op=wrong)


def run_of(one, it, d):
    op = one.epilogue_type(c=it.c, bias=numpy.zeros(56, numpy.float32), Z=d, R=numpy.empty(72, numpy.float32))
    arguments = describe.GemmArguments(one, it.size, it.a, it.b, None, None, output_op=op)
    one.run(arguments)
    return arguments, op


@pytest.mark.parametrize("is_freed", [False, True])
def test_row_96_results_outlive_the_arguments(it, is_freed):
    """Otherwise results would be unchanged, without an error, if the arguments were deleted before sync()."""
    arguments, op = run_of(visitor(), it, it.d)
    if is_freed:
        arguments.free()
    del arguments
    gc.collect()
    op.sync()
    assert numpy.array_equal(it.d, it.product + it.c)
    del op
    gc.collect()
    assert describe.get_allocated_size() == 0


def test_row_96_the_last_run_is_what_comes_back(it):
    one = visitor()
    first, op = run_of(one, it, it.d)
    other = describe.GemmArguments(one, it.size, numpy.zeros_like(it.a), it.b, None, None, output_op=op)
    one.run(other)
    one.run(first)
    op.sync()
    assert numpy.array_equal(it.d, it.product + it.c)


def test_row_86_a_batch_of_column_major_operands_as_numpy_transposes_it(rng):
    """(batch, K, N) over memory of N x K."""
    it = Problem(rng, batch=3)
    one = operation()
    arguments = describe.GemmArguments(one, it.size, it.a, it.b.swapaxes(1, 2), None, it.d, "Batched", batch=3)
    one.run(arguments)
    arguments.sync()
    assert numpy.array_equal(it.d, it.product)
    with pytest.raises(gemmery.InvalidArgumentError, match="B: expected contiguous memory"):
        describe.GemmArguments(one, it.size, it.a, it.b[:, ::-1], None, it.d, "Batched", batch=3)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: describe.TensorDescription(describe.float16, describe.RowMajor, 2**40), "alignment: expected from"),
        (lambda: tile(shape=(2**40, 64, 32)), "threadblock_shape: expected from"),
        (lambda: tile(stages="3"), "stages: expected a whole number, got '3'"),
        (lambda: describe.LinearCombination(describe.float32, 4.0), "epilogue_vector_length: expected a whole number"),
        (lambda: describe.FastLinearCombinationClamp(describe.int8, None), "epilogue_vector_length: expected a whole number"),
        (lambda: describe.GemmCoord(1, 2, 2**70), "k: expected from"),
        (lambda: describe.get_memory_pool(-1), "init_pool_size: expected from 0"),
        (lambda: describe.get_memory_pool(0, 1e9), "max_pool_size: expected a whole number"),
    ],
)
def test_row_22_numbers_are_refused_by_their_field(make, word):
    with pytest.raises(gemmery.InvalidArgumentError, match=word):
        make()


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"problem_size": (72, 56)}, "problem_size: expected 3 whole numbers"),
        ({"problem_size": 72}, "problem_size: expected 3 whole numbers"),
        ({"problem_size": (72, 56, 40.0)}, "problem_size: expected a whole number"),
        ({"split_k_slices": 2**40}, "split_k_slices: expected from"),
        ({"batch": 1.5}, "batch: expected a whole number"),
        ({"A": numpy.zeros((72, 40), ">f2")}, "A: expected elements of a type that gemmery knows"),
        ({"B": numpy.ma.zeros((56, 40), numpy.float16)}, "B: expected an array without a mask"),
    ],
)
def test_row_82_fields_are_refused_by_their_name(it, changed, word):
    fields = {"operation": operation(), "problem_size": it.size, "A": it.a, "B": it.b, "C": None, "D": it.d} | changed
    with pytest.raises(gemmery.Error, match=word):
        describe.GemmArguments(**fields)


@pytest.mark.parametrize("wrong", [None, "1", numpy.ones(2)])
def test_row_93_alpha_is_a_number(wrong):
    with pytest.raises(TypeError, match="alpha: expected a number, got"):
        operation().epilogue_type(wrong, 0.0)


def test_row_97_reductions_are_values_and_refuse_by_name(it):
    one = reduction()
    assert one == reduction() and hash(one) == hash(reduction())
    c = tensors()[2]
    functor = describe.LinearCombination(c.element, c.alignment)
    assert one != describe.ReductionOperation([4, 64], c, describe.float32, None, None, functor, c.alignment)
    with pytest.raises(TypeError, match="C: expected a TensorDescription"):
        describe.ReductionOperation([4, 128], describe.float32, describe.float32, None, None, functor, 4)
    memory = gemmery.empty((2, 72, 56), "float32", DEVICE)
    for changed, word in (
        ({"problem_size": (72, 56, 40)}, "problem_size: expected 2"),
        ({"problem_size": (-72, 56)}, "row: expected a size from 0 on, got -72"),
        ({"partitions": "2"}, "partitions: expected a whole number"),
        ({"workspace": True}, "workspace: expected"),
        ({"workspace": -1}, "workspace: expected"),
    ):
        fields = {"problem_size": (72, 56), "partitions": 2, "workspace": memory.data_ptr, "destination": it.d} | changed
        with pytest.raises(gemmery.InvalidArgumentError, match=word):
            describe.ReductionArguments(one, **fields)
    with pytest.raises(TypeError, match="output_op: expected what"):
        describe.ReductionArguments(one, (72, 56), 2, memory.data_ptr, it.d, output_op=5)


def test_row_54_problem_size_and_output_op_of_a_visitor(it):
    one = visitor()
    operands = {"c": it.c, "bias": numpy.zeros(56, numpy.float32), "Z": it.d, "R": numpy.empty(72, numpy.float32)}
    for wrong in (72, [72, 56, 40]):
        with pytest.raises(gemmery.InvalidArgumentError, match="problem_size: expected 2 whole numbers"):
            one.epilogue_type(**operands, problem_size=wrong)
    with pytest.raises(TypeError, match="output_op: expected what operation.epilogue_type"):
        describe.GemmArguments(one, it.size, it.a, it.b, None, it.d)
