# SPDX-License-Identifier: Apache-2.0
"""Elementwise programs without a product, on the CPU and on an emulated GPU."""

import numpy
import pytest

import gemmery


@pytest.fixture
def pair(rng):
    return tuple(rng.standard_normal((24, 40)).astype("f") for _ in range(2))


@pytest.mark.parametrize("device", ["cpu", "emulated:h200", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def test_two_tensors_are_added(pair, device):
    a, b = pair
    out = numpy.zeros_like(a)
    args = gemmery.ElementwiseArguments(a, b, out)
    assert isinstance(args, gemmery.RuntimeArguments) and args.A is a and args.B is b
    placed = args.to_device(device)
    kernel = gemmery.get_kernels(placed)[0]
    kernel.run(placed, kernel.compile(placed))
    placed.sync()
    assert (out == a + b).all()


@pytest.mark.parametrize("device", ["cpu", "emulated:h200", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def test_a_program_takes_the_place_of_the_sum(pair, device):
    a, b = pair
    out, peak = numpy.zeros_like(a), numpy.zeros(1, "f")
    epilogue = gemmery.EpilogueArguments("D = relu(A) * B * s; peak = amax(D)", A=a, B=b, s=0.5, peak=peak)
    args = gemmery.ElementwiseArguments(a, b, out, epilogue=epilogue).to_device(device)
    gemmery.get_kernels(args)[0].run(args)
    args.sync()
    expected = numpy.maximum(a, 0) * b * numpy.float32(0.5)
    numpy.testing.assert_allclose(out, expected, rtol=1e-6)
    numpy.testing.assert_allclose(peak, abs(expected).max(), rtol=1e-6)


def test_new_memory_takes_the_place_of_an_operand(pair):
    a, b = pair
    out = numpy.zeros_like(a)
    args = gemmery.ElementwiseArguments(a, b, out)
    kernel = gemmery.get_kernels(args)[0]
    launch = kernel.compile(args).bind(args)
    other = a * 2
    launch.set_data("A", other)
    launch()
    assert (out == other + b).all()
    args.set_data("B", other)
    kernel.run(args)
    assert (out == a + other).all()


def test_shapes_must_broadcast(pair):
    a, b = pair
    with pytest.raises(ValueError, match="B"):
        gemmery.ElementwiseArguments(a, b[:, 1:], numpy.zeros_like(a))


def test_a_and_b_are_the_tensors_that_the_program_reads(pair):
    a, b = pair
    out = numpy.zeros_like(a)
    with pytest.raises(gemmery.InvalidArgumentError, match="one that it does not read") as raised:
        gemmery.ElementwiseArguments(a, b, out, epilogue=gemmery.EpilogueArguments("D = 2 * A", A=a))
    assert raised.value.operand == "B" and "for A and for B" in raised.value.hint
    with pytest.raises(gemmery.InvalidArgumentError, match="one that it does not read") as raised:
        gemmery.ElementwiseArguments(a, b, out, epilogue=gemmery.EpilogueArguments("D = 2 * B", B=b))
    assert raised.value.operand == "A"
    with pytest.raises(gemmery.InvalidArgumentError, match="got another one") as raised:
        gemmery.ElementwiseArguments(a, b, out, epilogue=gemmery.EpilogueArguments("D = A * B", A=a, B=a))
    assert raised.value.operand == "B"


def test_one_tensor_may_stand_for_both(pair):
    a, _ = pair
    for name in ("A", "B"):
        out = numpy.zeros_like(a)
        epilogue = gemmery.EpilogueArguments(f"D = 2 * {name}", **{name: a})
        args = gemmery.ElementwiseArguments(a, a[:], out, epilogue=epilogue)
        gemmery.get_kernels(args)[0].run(args)
        assert (out == 2 * a).all()
