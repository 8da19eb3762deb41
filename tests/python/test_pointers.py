# SPDX-License-Identifier: Apache-2.0
"""Batches by pointers: from matrices or from an array of addresses; runs, errors, lifetimes."""

import gc

import numpy
import pytest

import gemmery

EMULATED = "emulated:a100"


def matrices(seed=1, batches=3):
    random = numpy.random.default_rng(seed)

    def some(rows, columns):
        return [random.integers(-4, 5, (rows, columns)).astype("f4") for _ in range(batches)]

    return some(20, 12), some(12, 28), [numpy.full((20, 28), numpy.nan, "f4") for _ in range(batches)]


def addresses(arrays):
    return numpy.array([array.ctypes.data for array in arrays], numpy.int64)


def expect_products(a, b, out):
    for one, two, result in zip(a, b, out, strict=True):
        numpy.testing.assert_array_equal(result, one @ two)


def test_a_list_of_matrices_is_a_batch():
    a, b, out = matrices()
    batch = gemmery.pointer_array(a)
    assert batch.shape == (3, 20, 12) and batch.strides == (12, 1) and batch.has_pointers
    args = gemmery.GemmArguments(batch, gemmery.pointer_array(b), gemmery.pointer_array(out))
    assert args.problem.startswith("gemm 20x28x12x3 a=f32/pointers") and "out=f32/pointers" in args.problem
    for kernel in gemmery.get_kernels(args):
        for result in out:
            result.fill(numpy.nan)
        kernel.run(args)
        expect_products(a, b, out)


def test_an_array_of_addresses_is_read_when_work_runs():
    a, b, out = matrices()
    table = addresses(out)
    results = gemmery.pointer_array(table, (3, 20, 28), "float32", alignment=4)
    args = gemmery.GemmArguments(gemmery.pointer_array(a), b[0], results)
    assert "out=f32/pointers/align=4" in args.problem
    kernel = gemmery.get_kernels(args)[0]
    table[:] = table[::-1].copy()
    kernel.run(args)
    expect_products(a, [b[0]] * 3, out[::-1])


def test_operands_of_an_epilogue_may_be_pointers():
    a, b, out = matrices()
    residual = [numpy.full((20, 28), 2.0, "f4") for _ in range(3)]
    program = gemmery.EpilogueArguments("D = accum * r", r=gemmery.pointer_array(residual))
    operands = [gemmery.pointer_array(given) for given in (a, b, out)]
    args = gemmery.GemmArguments(*operands, epilogue=program)
    gemmery.get_kernels(args)[0].run(args)
    expect_products([2 * one for one in a], b, out)


def test_matrices_are_kept_alive():
    a, b, out = matrices()
    batch = gemmery.pointer_array([one.copy() for one in a])
    gc.collect()
    args = gemmery.GemmArguments(batch, b[0], gemmery.pointer_array(out))
    del batch
    gc.collect()
    gemmery.get_kernels(args)[0].run(args)
    expect_products(a, [b[0]] * 3, out)


@pytest.mark.parametrize("given", [[], "differ", "rank", "short"])
def test_what_makes_no_batch_is_refused_by_name(given):
    a, _, _ = matrices()
    if given == "short":
        with pytest.raises(gemmery.InvalidArgumentError, match="pointers: expected 3 addresses"):
            gemmery.pointer_array(addresses(a)[:2].copy(), (3, 20, 12), "float32")
        return
    if given == "differ":
        given, expected = [a[0], a[1].T.copy()], r"matrices\[1\]: expected a matrix like the first"
    elif given == "rank":
        given, expected = [a[0], a[1][None]], r"matrices\[1\]: expected a matrix"
    else:
        expected = "matrices: expected a matrix at least"
    with pytest.raises(gemmery.InvalidArgumentError, match=expected):
        gemmery.pointer_array(given)


def test_broken_promises_are_refused():
    a, b, out = matrices()
    with pytest.raises(gemmery.InvalidArgumentError, match="aligned to a power of two"):
        gemmery.pointer_array(a, alignment=2)
    table = addresses(a)
    batch = gemmery.pointer_array(table, (3, 20, 12), "float32", alignment=4)
    args = gemmery.GemmArguments(batch, b[0], gemmery.pointer_array(out))
    kernel = gemmery.get_kernels(args)[0]
    table[1] = 0
    with pytest.raises(gemmery.InvalidArgumentError, match=r"A\[1\]: expected memory, got a null pointer"):
        kernel.run(args)
    table[1] = a[1].ctypes.data + 2
    with pytest.raises(gemmery.InvalidArgumentError, match=r"A\[1\]: expected an address that is a multiple of 4 bytes"):
        kernel.run(args)


def test_other_libraries_get_no_batch_by_pointers():
    batch = gemmery.pointer_array(matrices()[0])
    with pytest.raises(BufferError, match="batch by pointers"):
        numpy.from_dlpack(batch)
    with pytest.raises(gemmery.UnsupportedError, match="batch by pointers"):
        gemmery.empty((3, 20, 12), "float32").copy_from(batch)


def test_shapes_are_those_of_the_matrices():
    with pytest.raises(TypeError, match="expected none of shape, dtype and strides beside a list"):
        gemmery.pointer_array(matrices()[0], dtype="float32")
    with pytest.raises(TypeError, match="needs shape and dtype"):
        gemmery.pointer_array(addresses(matrices()[0]))


def test_pointers_on_a_device():
    a, b, out = matrices()

    def there(arrays):
        copies = [gemmery.empty(array.shape, "float32", EMULATED) for array in arrays]
        for copy, array in zip(copies, arrays, strict=True):
            copy.copy_from(array)
        return copies

    on_device = there(out)
    args = gemmery.GemmArguments(*(gemmery.pointer_array(given) for given in (there(a), there(b), on_device)))
    kernel = gemmery.get_kernels(args)[0]
    kernel.run(args)
    gemmery.synchronize(device=EMULATED)
    for copy, result in zip(on_device, out, strict=True):
        gemmery.as_tensor(result).copy_from(copy)
    expect_products(a, b, out)
