# SPDX-License-Identifier: Apache-2.0
"""Activations: relu(element_compute) for LinearCombinationGeneric, relu.numpy(x) in visitor trees and on NumPy arrays."""

from __future__ import annotations

from typing import Any, ClassVar

from gemmery import fusion
from gemmery._core import Activation
from gemmery.describe.words import Element, float32, to_element

__all__ = ["ActivationFunctor", "gelu", "hardswish", "identity", "leaky_relu", "relu", "sigmoid", "silu", "tanh"]


class ActivationFunctor:
    """An activation, computed in `element_compute`. Compares by value."""

    word: ClassVar[Activation]

    @classmethod
    def numpy(cls, x: Any) -> Any:
        """Applies the activation to an array, or to a value in a visitor tree."""
        return getattr(fusion, cls.__name__)(x)

    def __init__(self, element_compute: Any = float32) -> None:
        self.element_compute: Element = to_element(element_compute, "element_compute")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.element_compute == getattr(other, "element_compute", None)

    def __hash__(self) -> int:
        return hash((type(self), self.element_compute))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.element_compute!r})"


class identity(ActivationFunctor):
    """x"""

    word = Activation.identity

    @staticmethod
    def numpy(x: Any) -> Any:
        return x


class relu(ActivationFunctor):
    """max(x, 0); NaN stays NaN."""

    word = Activation.relu

    @staticmethod
    def numpy(x: Any, threshold: Any = 0) -> Any:
        """max(x, threshold)"""
        is_plain = isinstance(threshold, (int, float)) and threshold == 0
        return fusion.relu(x) if is_plain else fusion.max(x, threshold)


class leaky_relu(ActivationFunctor):
    """x > 0 ? x : x * leaky_alpha. A functor takes leaky_alpha as its first activation argument; the default is 0.2."""

    word = Activation.leaky_relu

    @staticmethod
    def numpy(x: Any, leaky_alpha: Any = 0.2) -> Any:
        return fusion.leaky_relu(x, leaky_alpha)


class tanh(ActivationFunctor):
    """tanh(x)"""

    word = Activation.tanh


class sigmoid(ActivationFunctor):
    """1 / (1 + exp(-x))"""

    word = Activation.sigmoid


class silu(ActivationFunctor):
    """x * sigmoid(x)"""

    word = Activation.silu


class hardswish(ActivationFunctor):
    """x * min(max(x + 3, 0), 6) / 6"""

    word = Activation.hardswish


class gelu(ActivationFunctor):
    """x / 2 * (1 + erf(x / sqrt(2)))"""

    word = Activation.gelu
