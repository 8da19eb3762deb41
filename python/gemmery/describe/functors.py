# SPDX-License-Identifier: Apache-2.0
"""Epilogue functors, applied to the accumulators before they are stored. They are immutable and compare and hash by value."""

from __future__ import annotations

import dataclasses
from typing import Any

from gemmery import _core
from gemmery.describe.activations import ActivationFunctor
from gemmery.describe.coordinates import whole_number
from gemmery.describe.words import Element, to_element
from gemmery.errors import InvalidArgumentError

__all__ = [
    "EpilogueFunctor",
    "FastLinearCombinationClamp",
    "LinearCombination",
    "LinearCombinationClamp",
    "LinearCombinationGeneric",
]


class EpilogueFunctor:
    """The base class of functors."""

    is_visitor = False

    def _native(self) -> _core.EpilogueFunctor:
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class _Scaling(EpilogueFunctor):
    element_output: Element
    epilogue_vector_length: int
    element_accumulator: Element | None = None
    element_epilogue: Element | None = None

    def __post_init__(self) -> None:
        _convert_elements(self)

    def _fields(self) -> tuple[Element, int, Element | None, Element | None]:
        return self.element_output, self.epilogue_vector_length, self.element_accumulator, self.element_epilogue


def _convert_elements(functor: Any) -> None:
    for field in ("element_output", "element_accumulator", "element_epilogue"):
        given = getattr(functor, field, None)
        if given is not None:
            object.__setattr__(functor, field, to_element(given, field))
    length = whole_number(functor.epilogue_vector_length, "epilogue_vector_length")
    object.__setattr__(functor, "epilogue_vector_length", length)


class LinearCombination(_Scaling):
    """D = fma(alpha, accum, beta * C), rounded to nearest even; integers saturate. With beta = 0, C is not read.

    LinearCombination(element_output, epilogue_vector_length, element_accumulator=None, element_epilogue=None); the length
    is C's alignment. Without element_accumulator and element_epilogue: float32, or float64 for a float64 output, int32 and
    float32 for an integer one.
    """

    def _native(self) -> _core.EpilogueFunctor:
        return _core.linear_combination(*self._fields())


class LinearCombinationClamp(_Scaling):
    """LinearCombination, clamped to the output's range before it is rounded."""

    def _native(self) -> _core.EpilogueFunctor:
        return _core.linear_combination_clamp(*self._fields())


@dataclasses.dataclass(frozen=True)
class FastLinearCombinationClamp(EpilogueFunctor):
    """LinearCombinationClamp of int32 accumulators to 8-bit integers, computed in float32. Correct for every K."""

    element_output: Element
    epilogue_vector_length: int

    def __post_init__(self) -> None:
        _convert_elements(self)

    def _native(self) -> _core.EpilogueFunctor:
        return _core.fast_linear_combination_clamp(self.element_output, self.epilogue_vector_length)


@dataclasses.dataclass(frozen=True)
class LinearCombinationGeneric(EpilogueFunctor):
    """D = activation(fma(alpha, accum, beta * C)), the activation as `relu(element_compute)`."""

    activation_functor: ActivationFunctor
    element_output: Element
    epilogue_vector_length: int
    element_accumulator: Element | None = None
    element_epilogue: Element | None = None

    def __post_init__(self) -> None:
        activation = self.activation_functor
        if not isinstance(activation, ActivationFunctor):
            raise TypeError(f"activation_functor: expected an activation such as relu(float32), got {activation!r}")
        _convert_elements(self)
        if self.element_epilogue not in (None, activation.element_compute):
            raise InvalidArgumentError(
                f"invalid argument: activation_functor: expected an activation in element_epilogue, {self.element_epilogue}, "
                f"got one in {activation.element_compute}"
            )

    def _native(self) -> _core.EpilogueFunctor:
        elements = (self.element_accumulator, self.element_epilogue or self.activation_functor.element_compute)
        word = self.activation_functor.word
        return _core.linear_combination_generic(word, self.element_output, self.epilogue_vector_length, *elements)
