# SPDX-License-Identifier: Apache-2.0
"""A function is traced again if and only if something that it reads has changed."""

import math

import numpy as np
import pytest

import gemmery
from gemmery.fusion import trace

FACTOR = 2.0


def _traces(monkeypatch):
    """The number of times that a function runs while a program is made from it."""
    from gemmery.fusion import tracing

    counted = []
    original = tracing._Tracing.program
    monkeypatch.setattr(tracing._Tracing, "program", lambda self: counted.append(1) or original(self))
    return counted


def test_an_unchanged_function_is_traced_once(monkeypatch):
    counted = _traces(monkeypatch)

    def epilogue(accum, bias):
        return relu(accum + bias) * math.pi  # noqa: F821

    programs = [trace(epilogue, ["bias"]) for _ in range(3)]
    assert len(counted) == 1 and programs[0] == programs[2]


def test_a_global_that_changed_is_seen(monkeypatch):
    def epilogue(accum):
        return accum * FACTOR

    before = trace(epilogue)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert trace(epilogue).text != before.text


@pytest.mark.parametrize("values", [(1, 2), (1.0, 2.0), (0.0, -0.0), (1, 1.5), (False, True)])
def test_what_it_closes_over_is_seen(values):
    texts = []
    for value in values:

        def epilogue(accum, value=value):
            return where(accum > value, accum, value)  # noqa: F821

        texts.append(trace(epilogue).text)

        def closing():
            return lambda accum: where(accum > value, accum, value)  # noqa: B023, F821

        assert trace(closing()).text == texts[-1]
    assert texts[0] != texts[1] or values == (0.0, -0.0)


def test_a_function_that_is_called_is_seen():
    texts = []
    for factor in (2.0, 4.0):

        def scale(x, factor=factor):
            return x * factor

        texts.append(trace(lambda accum: scale(accum)).text)
    assert texts[0] != texts[1]


def test_a_mutable_object_is_read_each_time():
    settings = {"factor": 2.0}

    def epilogue(accum):
        return accum * settings["factor"]

    before = trace(epilogue).text
    settings["factor"] = 5.0
    assert trace(epilogue).text != before


def test_an_instance_is_read_each_time():
    class Scaled:
        factor = 2.0

        def __call__(self, accum):
            return accum * self.factor

    scaled = Scaled()
    before = trace(scaled).text
    scaled.factor = 3.0
    assert trace(scaled).text != before


def test_other_names_are_other_programs():
    def epilogue(accum, bias=1.0):
        return accum + bias

    assert trace(epilogue).inputs != trace(epilogue, ["bias"]).inputs


def test_a_fault_is_told_each_time():
    for _ in range(2):
        with pytest.raises(ValueError, match="acumm"):
            gemmery.EpilogueArguments("D = acumm + 1")


def test_matmul_uses_the_operands_of_each_call(rng):
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((5, 7), (7, 9)))
    for _ in range(3):
        bias = rng.integers(-4, 5, (9,)).astype(np.float32)
        np.testing.assert_array_equal(gemmery.matmul(a, b, epilogue=lambda accum, bias: accum + bias, bias=bias), a @ b + bias)
        np.testing.assert_array_equal(gemmery.matmul(a, b, epilogue="D = accum + bias", bias=bias), a @ b + bias)
        column = rng.integers(-4, 5, (5, 1)).astype(np.float64)
        np.testing.assert_array_equal(gemmery.matmul(a, b, epilogue="D = accum + bias", bias=column), a @ b + column)


def test_new_code_of_a_function_is_seen():
    def epilogue(accum):
        return accum + 1

    def other(accum):
        return accum + 2

    before = trace(epilogue).text
    assert trace(epilogue).text == before
    epilogue.__code__ = other.__code__
    assert trace(epilogue).text == trace(other).text != before
