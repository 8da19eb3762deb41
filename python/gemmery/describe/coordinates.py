# SPDX-License-Identifier: Apache-2.0
"""Sizes of problems."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from typing import Any

from gemmery.errors import InvalidArgumentError

__all__ = ["GemmCoord", "MatrixCoord", "Tensor4DCoord"]


class _Coord:
    """A tuple of whole numbers with names; compares and hashes by value."""

    _names: tuple[str, ...] = ()
    __slots__ = ("_numbers",)

    def __init__(self, *numbers: int) -> None:
        if len(numbers) != len(self._names):
            raise InvalidArgumentError(
                f"invalid argument: {type(self).__name__}: expected ({', '.join(self._names)}), got {len(numbers)} numbers"
            )
        self._numbers = tuple(whole_number(one, name, SIZES) for one, name in zip(numbers, self._names, strict=True))
        for name, number in zip(self._names, self._numbers, strict=True):
            if number < 0:
                raise InvalidArgumentError(f"invalid argument: {name}: expected a size from 0 on, got {number}")

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._numbers == getattr(other, "_numbers", None)

    def __hash__(self) -> int:
        return hash((type(self), self._numbers))

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._numbers}"


class GemmCoord(_Coord):
    """The size of a GEMM: GemmCoord(M, N, K) with m(), n() and k()."""

    _names = ("m", "n", "k")
    __slots__ = ()

    def m(self) -> int:
        return self._numbers[0]

    def n(self) -> int:
        return self._numbers[1]

    def k(self) -> int:
        return self._numbers[2]


class MatrixCoord(_Coord):
    """Rows and columns: MatrixCoord(row, column)."""

    _names = ("row", "column")
    __slots__ = ()

    def row(self) -> int:
        return self._numbers[0]

    def column(self) -> int:
        return self._numbers[1]


class Tensor4DCoord(_Coord):
    """Four extents, such as those of an image: Tensor4DCoord(n, h, w, c)."""

    _names = ("n", "h", "w", "c")
    __slots__ = ()


def to_gemm_coord(given: Any) -> GemmCoord:
    """A GemmCoord, or three numbers."""
    return given if isinstance(given, GemmCoord) else GemmCoord(*whole_numbers(given, 3, "problem_size", SIZES))


# What the native module takes: counts and extents of a description, and sizes of memory.
COUNTS = range(-(2**31), 2**31)
SIZES = range(-(2**63), 2**63)


def whole_number(given: Any, field: str, among: range = COUNTS) -> int:
    """Converts to a whole number. Raises InvalidArgumentError naming the field if the value is not one or is too large."""
    try:
        number = operator.index(given)
    except TypeError:
        raise InvalidArgumentError(f"invalid argument: {field}: expected a whole number, got {given!r}") from None
    if number not in among:
        raise InvalidArgumentError(f"invalid argument: {field}: expected from {among[0]} to {among[-1]}, got {number}")
    return number


def whole_numbers(given: Any, count: int, field: str, among: range = COUNTS) -> tuple[int, ...]:
    """Converts to `count` whole numbers. Raises InvalidArgumentError naming the field."""
    several = tuple(given) if isinstance(given, Iterable) and not isinstance(given, (str, bytes)) else ()
    if len(several) != count:
        raise InvalidArgumentError(f"invalid argument: {field}: expected {count} whole numbers, got {given!r}")
    return tuple(whole_number(number, field, among) for number in several)


def real_number(given: Any, field: str) -> float:
    """Converts a number, or an array of one element, to a float. Raises TypeError naming the field."""
    try:
        if not isinstance(given, (str, bytes, bytearray)):
            return float(given)
    except (TypeError, ValueError):
        pass
    raise TypeError(f"{field}: expected a number, got {type(given).__name__}")
