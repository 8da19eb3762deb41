# SPDX-License-Identifier: Apache-2.0
"""Sizes of convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gemmery import _core
from gemmery.describe.coordinates import GemmCoord, Tensor4DCoord, whole_number, whole_numbers
from gemmery.describe.words import to_word
from gemmery.errors import InvalidArgumentError

__all__ = ["Conv2dProblemSize", "implicit_gemm_problem_size"]

_NUMBERS = (
    *("N", "H", "W", "C", "K", "R", "S", "P", "Q", "pad_h", "pad_w"),
    *("stride_h", "stride_w", "dilation_h", "dilation_w"),
)


class Conv2dProblemSize:
    """The extents of a convolution; compares and hashes by value.

        Conv2dProblemSize(Tensor4DCoord(N, H, W, C), Tensor4DCoord(K, R, S, C), Tensor4DCoord(top, bottom, left, right),
                          MatrixCoord(stride_h, stride_w), MatrixCoord(dilation_h, dilation_w), mode, split_k_slices, groups)
        Conv2dProblemSize(N, H, W, C, K, R, S, P, Q, pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w, mode,
                          split_k_slices, groups)

    C of the filter is that of one group. In the first form P and Q follow as in torch,
    P = (H + top + bottom - dilation_h * (R - 1) - 1) // stride_h + 1, and paddings of two sides may differ. In the second
    form they are given, and images are zero beyond their last pixel. Raises InvalidArgumentError naming the field.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        is_in_numbers = len(given) > 8 or bool(named.keys() & set(_NUMBERS))
        self._read_numbers(*given, **named) if is_in_numbers else self._read_coordinates(*given, **named)
        if self.split_k_slices < 1:
            raise InvalidArgumentError(f"invalid argument: split_k_slices: expected from 1 on, got {self.split_k_slices}")
        sizes = (self.N, self.H, self.W, self.C, self.K, self.R, self.S, *self.padding, *self.stride, *self.dilation)
        self._native = _core.Conv2dSize((*sizes, self.groups), self.mode, self._output)

    def _read_coordinates(
        self,
        input_size: Tensor4DCoord | Sequence[int],
        filter_size: Tensor4DCoord | Sequence[int],
        padding: Tensor4DCoord | Sequence[int] = (0, 0, 0, 0),
        stride: Sequence[int] = (1, 1),
        dilation: Sequence[int] = (1, 1),
        mode: _core.ConvMode | str = _core.ConvMode.cross_correlation,
        split_k_slices: int = 1,
        groups: int = 1,
    ) -> None:
        self.N, self.H, self.W, self.C = whole_numbers(input_size, 4, "input_size")
        self.K, self.R, self.S, channels = whole_numbers(filter_size, 4, "filter_size")
        self.padding = whole_numbers(padding, 4, "padding")
        self.stride = whole_numbers(stride, 2, "stride")
        self.dilation = whole_numbers(dilation, 2, "dilation")
        self._read_rest(mode, split_k_slices, groups)
        self._output: tuple[int, int] | None = None
        if channels * self.groups != self.C:
            raise InvalidArgumentError(
                f"invalid argument: filter_size: expected {self.C} channels in {self.groups} groups, got filters of {channels}"
            )

    def _read_numbers(
        self,
        *given: Any,
        mode: _core.ConvMode | str = _core.ConvMode.cross_correlation,
        split_k_slices: int = 1,
        groups: int = 1,
        **named: Any,
    ) -> None:
        positional, rest = given[: len(_NUMBERS)], given[len(_NUMBERS) :]
        numbers = dict(zip(_NUMBERS, positional, strict=False)) | named
        if numbers.keys() != set(_NUMBERS) or len(rest) > 3 or named.keys() & set(_NUMBERS[: len(positional)]):
            raise TypeError(f"Conv2dProblemSize: expected {', '.join(_NUMBERS)}, mode, split_k_slices and groups")
        read = {field: whole_number(number, field) for field, number in numbers.items()}
        self.N, self.H, self.W, self.C, self.K, self.R, self.S = (read[field] for field in _NUMBERS[:7])
        self.padding = (read["pad_h"], read["pad_h"], read["pad_w"], read["pad_w"])
        self.stride = (read["stride_h"], read["stride_w"])
        self.dilation = (read["dilation_h"], read["dilation_w"])
        self._output = (read["P"], read["Q"])
        words = [mode, split_k_slices, groups]
        words[: len(rest)] = rest
        self._read_rest(*words)

    def _read_rest(self, mode: Any, split_k_slices: Any, groups: Any) -> None:
        self.mode: _core.ConvMode = to_word(_core.ConvMode, mode, "mode")
        self.split_k_slices = whole_number(split_k_slices, "split_k_slices")
        self.groups = whole_number(groups, "groups")
        if self.groups < 1:
            raise InvalidArgumentError(f"invalid argument: groups: expected from 1 on, got {self.groups}")

    @property
    def P(self) -> int:
        """Rows of the output; 0 if the filter reaches over more than the padded image."""
        return self._native.output[0]

    @property
    def Q(self) -> int:
        """Columns of the output."""
        return self._native.output[1]

    def activation_extent(self) -> tuple[int, int, int, int]:
        """(N, H, W, C)."""
        return self.N, self.H, self.W, self.C

    def filter_extent(self) -> tuple[int, int, int, int]:
        """(K, R, S, C / groups)."""
        return self.K, self.R, self.S, self.C // self.groups

    def output_extent(self) -> tuple[int, int, int, int]:
        """(N, P, Q, K)."""
        return self.N, self.P, self.Q, self.K

    def _key(self) -> tuple[Any, ...]:
        extents = (self.activation_extent(), self.filter_extent(), self.output_extent())
        return (*extents, self.padding, self.stride, self.dilation, self.mode, self.split_k_slices, self.groups)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Conv2dProblemSize) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        extents = (self.activation_extent(), self.filter_extent(), self.padding, self.stride, self.dilation)
        text = ", ".join(str(one) for one in extents)
        return f"Conv2dProblemSize({text}, {self.mode}, {self.split_k_slices}, {self.groups})"


def implicit_gemm_problem_size(kind: _core.ConvOperator | str, problem_size: Conv2dProblemSize) -> GemmCoord:
    """(M, N, K) of the product: (NPQ, K, RSC / groups), (NHW, C, RSK) or (K, RSC / groups, NPQ)."""
    if not isinstance(problem_size, Conv2dProblemSize):
        raise TypeError(f"problem_size: expected a Conv2dProblemSize, got {type(problem_size).__name__}")
    return GemmCoord(*problem_size._native.gemm(to_word(_core.ConvOperator, kind, "kind")))
