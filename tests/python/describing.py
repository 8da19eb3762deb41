# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of descriptions: a device, a small kernel of each kind, operands of integers."""

from __future__ import annotations

import numpy

from gemmery import describe

DEVICE = "emulated:a100"
HALF = describe.MathInstruction([16, 8, 16], describe.float16, describe.float16, describe.float32, describe.OpClass.TensorOp)


def tile(math=HALF, shape=(64, 64, 32), stages=3, warps=(2, 2, 1)):
    return describe.TileDescription(list(shape), stages, list(warps), math)


def tensors(cd=describe.float32, b_layout=describe.ColumnMajor):
    alignment = 4 if cd == describe.float32 else 8
    return (
        describe.TensorDescription(describe.float16, describe.RowMajor, 8),
        describe.TensorDescription(describe.float16, b_layout, 8),
        describe.TensorDescription(cd, describe.RowMajor, alignment),
    )


def operation(functor=None, cd=describe.float32, **options):
    a, b, c = tensors(cd)
    functor = functor or describe.LinearCombination(c.element, c.alignment)
    return describe.GemmOperationUniversal(80, tile(**options), a, b, c, functor)


class Problem:
    """Integers from -4 to 4, poison in D, and the product in float64."""

    def __init__(self, rng, m=72, n=56, k=40, batch=1, dtype=numpy.float32):
        self.size = describe.GemmCoord(m, n, k)
        self.a = rng.integers(-4, 5, (batch, m, k)).astype(numpy.float16)
        self.b = rng.integers(-4, 5, (batch, n, k)).astype(numpy.float16)  # column major
        self.c = rng.integers(-4, 5, (batch, m, n)).astype(dtype)
        self.d = numpy.full((batch, m, n), numpy.nan, dtype)
        if batch == 1:
            self.a, self.b, self.c, self.d = self.a[0], self.b[0], self.c[0], self.d[0]

    @property
    def product(self):
        return self.a.astype(numpy.float64) @ self.b.astype(numpy.float64).swapaxes(-1, -2)
