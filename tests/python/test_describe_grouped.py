# SPDX-License-Identifier: Apache-2.0
"""Described GEMMs of problems of different sizes."""

import numpy
import pytest

import gemmery
from describing import DEVICE, Problem, operation, tensors, tile
from gemmery import describe


@pytest.fixture(autouse=True)
def _on_device():
    describe.set_device(DEVICE)
    yield
    describe.set_device(None)


SIZES = [(72, 56, 40), (8, 16, 24), (0, 8, 8), (72, 56, 40), (40, 8, 16)]


def grouped(mode=describe.SchedulerMode.Device, functor=None):
    a, b, c = tensors()
    functor = functor or describe.LinearCombination(c.element, c.alignment)
    return describe.GemmOperationGrouped(80, tile(), a, b, c, functor, precompute_mode=mode)


def arguments_of(one, problems, **options):
    lists = ([getattr(it, name) for it in problems] for name in "abcd")
    return describe.GemmGroupedArguments(one, [it.size for it in problems], *lists, **options)


@pytest.mark.parametrize("count", [24, 27, 5, 1, 0])
def test_row_60_a_list_of_problems(rng, count):
    problems = [Problem(rng, *(8 * int(extent) for extent in rng.integers(1, 6, 3))) for _ in range(count)]
    one = grouped(describe.SchedulerMode.Host)
    arguments = arguments_of(one, problems, output_op=one.epilogue_type(1.0, 2.0))
    assert one.run(arguments) == 0
    arguments.sync()
    for it in problems:
        assert numpy.array_equal(it.d, it.product + 2 * it.c)


def test_row_61_both_modes_give_the_same_bits(rng):
    problems = [Problem(rng, *size) for size in SIZES]
    results = []
    for mode in ("Host", describe.SchedulerMode.Device):
        one = grouped(mode)
        arguments = arguments_of(one, problems)
        one.run(arguments, stream=None)
        arguments.sync()
        results.append([it.d.copy() for it in problems])
    assert all(map(numpy.array_equal, *results))
    assert grouped("Host") != grouped("Device") and grouped("Host") == grouped("Host") != operation()


def test_row_88_arguments_of_problems(rng):
    problems = [Problem(rng, *size) for size in SIZES]
    one = grouped()
    assert isinstance(one, gemmery.Kernel) and gemmery.find_kernel(one.name).name == one.name == operation().name
    arguments = arguments_of(one, problems)
    assert len(arguments.kernels) == 4  # two problems have equal sizes
    assert [tuple(size) for size in arguments.problem_sizes] == SIZES
    describe.compiler.add_module([one])
    a, b, c, d = ([getattr(it, name) for it in problems] for name in "abcd")
    for name, lists in {
        "A": (a[:4], b, c, d),
        "B": (a, b[1:], c, d),
        "C": (a, b, c[:0], d),
        "D": (a, b, c, d * 2),
    }.items():
        with pytest.raises(gemmery.InvalidArgumentError, match=f"{name}: expected 5 operands, one for each problem"):
            describe.GemmGroupedArguments(one, SIZES, *lists)
    with pytest.raises(gemmery.InvalidArgumentError, match=r"B\[1\]"):
        describe.GemmGroupedArguments(one, SIZES, a, [b[0], *b[:1], *b[2:]], c, d)
    with pytest.raises(gemmery.InvalidArgumentError, match=r"problem_sizes\[1\]|A\[1\]"):
        wrong = [Problem(rng, 8, 8, 8), Problem(rng, 8, 8, 12)]
        arguments_of(one, wrong)
    with pytest.raises(gemmery.InvalidArgumentError, match=r"C\[0\]: expected memory, since beta is not 0"):
        describe.GemmGroupedArguments(one, SIZES, a, b, None, d, output_op=one.epilogue_type(1.0, 1.0))
    with pytest.raises(TypeError, match="A: expected a list of 5 operands"):
        describe.GemmGroupedArguments(one, SIZES, a[0], b, c, d)
    with pytest.raises(TypeError, match="expected GemmGroupedArguments"):
        one.run(describe.GemmArguments(operation(), SIZES[0], a[0], b[0], c[0], d[0]))
    with pytest.raises(TypeError, match="expected GemmArguments"):
        operation().run(arguments)
    with pytest.raises(gemmery.InvalidArgumentError, match="arguments of this operation"):
        grouped("Host").run(arguments)
    with pytest.raises(gemmery.InvalidArgumentError, match="precompute_mode: expected one of Device, Host"):
        grouped("device")
    arguments.free()
    with pytest.raises(gemmery.InvalidArgumentError, match="after free"):
        one.run(arguments)
