# SPDX-License-Identifier: Apache-2.0
"""The parts of a kernel's description: instruction, tile, tensors. They are immutable and compare and hash by value."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from gemmery import _core
from gemmery.describe.coordinates import whole_number, whole_numbers
from gemmery.describe.words import Element, Layout, MathOperation, OpcodeClass, to_element, to_word
from gemmery.errors import UnsupportedError

__all__ = ["MathInstruction", "TensorDescription", "TileDescription"]


class _Value:
    """A frozen dataclass whose fields are converted when it is made."""

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)


@dataclasses.dataclass(frozen=True)
class MathInstruction(_Value):
    """The multiply-add instruction of the kernel.

    element_a and element_b are the instruction's types. They differ from the tensors' types if float32 tensors are
    multiplied as tfloat32, float16 or bfloat16.
    """

    instruction_shape: Sequence[int]
    element_a: Element
    element_b: Element
    element_accumulator: Element
    opcode_class: OpcodeClass = OpcodeClass.Simt
    math_operation: MathOperation = MathOperation.multiply_add

    def __post_init__(self) -> None:
        self._set(
            instruction_shape=whole_numbers(self.instruction_shape, 3, "instruction_shape"),
            element_a=to_element(self.element_a, "element_a"),
            element_b=to_element(self.element_b, "element_b"),
            element_accumulator=to_element(self.element_accumulator, "element_accumulator"),
            opcode_class=to_word(OpcodeClass, self.opcode_class, "opcode_class"),
            math_operation=to_word(MathOperation, self.math_operation, "math_operation"),
        )

    def _native(self) -> _core.MathInstruction:
        elements = (self.element_a, self.element_b, self.element_accumulator)
        return _core.MathInstruction(self.instruction_shape, *elements, self.opcode_class, self.math_operation)


@dataclasses.dataclass(frozen=True)
class TileDescription(_Value):
    """The tile of D that a block of threads computes, its pipeline stages and its warps."""

    threadblock_shape: Sequence[int]
    stages: int
    warp_count: Sequence[int]
    math_instruction: MathInstruction
    cluster_shape: Sequence[int] = (1, 1, 1)
    persistent: bool = False

    def __post_init__(self) -> None:
        if self.stages is None:
            raise UnsupportedError(
                "unsupported: stages: expected a whole number, got None; say how many blocks of k are loaded ahead"
            )
        if self.persistent:
            raise UnsupportedError(
                "unsupported: persistent: expected False, got True; persistent kernels are found by gemmery.get_kernels"
            )
        if not isinstance(self.math_instruction, MathInstruction):
            raise TypeError(f"math_instruction: expected a MathInstruction, got {type(self.math_instruction).__name__}")
        self._set(
            threadblock_shape=whole_numbers(self.threadblock_shape, 3, "threadblock_shape"),
            stages=whole_number(self.stages, "stages"),
            warp_count=whole_numbers(self.warp_count, 3, "warp_count"),
            cluster_shape=whole_numbers(self.cluster_shape, 3, "cluster_shape"),
        )

    @property
    def num_threads(self) -> int:
        """Threads of a block."""
        m, n, k = self.warp_count
        return 32 * m * n * k

    def _native(self) -> _core.TileDescription:
        math = self.math_instruction._native()
        return _core.TileDescription(self.threadblock_shape, self.stages, self.warp_count, math, self.cluster_shape)


@dataclasses.dataclass(frozen=True)
class TensorDescription(_Value):
    """Type, packed layout and alignment (in elements; at most 16 bytes) of an operand."""

    element: Element
    layout: Layout
    alignment: int = 1

    def __post_init__(self) -> None:
        self._set(
            element=to_element(self.element, "element"),
            layout=to_word(Layout, self.layout, "layout"),
            alignment=whole_number(self.alignment, "alignment"),
        )

    def _native(self) -> _core.TensorDescription:
        return _core.TensorDescription(self.element, self.layout, self.alignment)
