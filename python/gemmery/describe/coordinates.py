# SPDX-License-Identifier: Apache-2.0
"""Sizes of problems."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

from gemmery.errors import InvalidArgumentError

__all__ = ["GemmCoord", "MatrixCoord"]


class _Coord:
    """A tuple of whole numbers with names; compares and hashes by value."""

    _names: tuple[str, ...] = ()
    __slots__ = ("_numbers",)

    def __init__(self, *numbers: int) -> None:
        if len(numbers) != len(self._names):
            raise InvalidArgumentError(
                f"invalid argument: {type(self).__name__}: expected ({', '.join(self._names)}), got {len(numbers)} numbers"
            )
        self._numbers = tuple(operator.index(number) for number in numbers)
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


def to_gemm_coord(given: Any) -> GemmCoord:
    """A GemmCoord, or three numbers."""
    return given if isinstance(given, GemmCoord) else GemmCoord(*given)


def whole_numbers(given: Sequence[int], count: int, field: str) -> tuple[int, ...]:
    """So many whole numbers. InvalidArgumentError that names the field."""
    try:
        numbers = tuple(operator.index(number) for number in given)
    except TypeError:
        numbers = ()
    if len(numbers) != count:
        raise InvalidArgumentError(f"invalid argument: {field}: expected {count} whole numbers, got {given!r}")
    return numbers
