# SPDX-License-Identifier: Apache-2.0
"""Operand programs: elementwise functions of the elements of A or B, applied before they are multiplied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gemmery import _core
from gemmery.errors import InvalidArgumentError
from gemmery.fusion.tracing import trace_operand
from gemmery.scales import ScaledOperand

__all__ = ["OperandProgram"]


class OperandProgram(ScaledOperand):
    """An operand with an elementwise program, in place of A or B.

        gemmery.matmul(gemmery.OperandProgram(lambda a, gate: silu(gate) * a, x, gate=gate), w)
        gemmery.GemmArguments(gemmery.OperandProgram("A = relu(a) * gate", x, gate=gate), w, out)
        gemmery.GemmArguments(x, gemmery.OperandProgram("B = (b - 8) * scale", codes, scale=scale), out)

    program: text that assigns A (or B) from a (or b), the element, or a callable with the parameter `a` (or `b`) and one for
        each tensor and number. It is a program of the language of epilogues, traced as gemmery.fusion.trace says, without
        reductions and with one value.
    operand: the tensor of elements, or a ScaledOperand, whose elements are decoded and scaled first.
    tensors_and_scalars: what the program names. Tensors broadcast to A's (L, M, K), or B's (L, K, N), by NumPy's rule; numbers
        are passed with each launch.

    The program computes in float32 (float64 with float64 accumulators). Its value is rounded once, to nearest even, to the
    type that is multiplied: that of an outermost cast to a float type; else the operand's own type if it is a float of 8 bits
    or more; else the other operand's if that is one; else float32. Nothing is copied: arguments keep the tensors alive.
    ValueError for what a program cannot do and, by the arguments, for names that are not bound and shapes that do not fit.
    """

    def __init__(self, program: str | Callable[..., Any], operand: Any, **tensors_and_scalars: Any) -> None:
        is_scaled = isinstance(operand, ScaledOperand)
        if is_scaled and operand._program is not None:
            raise InvalidArgumentError(
                "invalid argument: operand: expected an operand without a program, got one with a program"
            )
        if is_scaled:
            super().__init__(operand.quantized, operand.scale, operand.mode, operand.swizzle, operand.zero_point, operand.table)
            self._is_prepared = operand._is_prepared
        else:
            super().__init__(operand, [], [])
        traced, letter = (
            _core.parse_operand_program(program) if isinstance(program, str) else trace_operand(program, tensors_and_scalars)
        )
        self.program = program
        self.operands = dict(tensors_and_scalars)
        self._program = (traced, self.operands, letter)

    @property
    def text(self) -> str:
        """The program as text: "A = gate * relu(a)"."""
        assert self._program is not None
        program, _, letter = self._program
        return _core.operand_program_text(program, letter or "a")

    def to_device(self, device: Any) -> OperandProgram:
        """The same operand with copies of its tensors, which are packed, on a device ("cuda:0")."""
        operand = super().to_device(device)
        copies = {
            name: value if isinstance(value, (int, float)) else _core.copy_to_device(value, device)
            for name, value in self.operands.items()
        }
        return OperandProgram(self.program, operand, **copies)

    def __repr__(self) -> str:
        return f"OperandProgram({self.text!r})"
