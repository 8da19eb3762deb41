# SPDX-License-Identifier: Apache-2.0
"""Epilogues: programs applied to the sums of a product, written as text or as Python functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gemmery import _core
from gemmery._core import Program
from gemmery.fusion.functions import define_op
from gemmery.fusion.tracing import trace
from gemmery.fusion.value import Reduced, Value

__all__ = ["EpilogueArguments", "Program", "accum", "define_op", "operand"]

# What a program may be given as.
ProgramLike = str | Program | Callable[..., Any] | Mapping[str, Value | Reduced | float]


def accum() -> Value:
    """The sums of the product, in the type that the epilogue computes in."""
    return Value(_core.accum())


def operand(name: str) -> Value:
    """A tensor or a number, by the name under which EpilogueArguments binds it."""
    return Value(_core.operand(name))


class EpilogueArguments(_core.EpilogueArguments):
    """A program with the tensors and numbers that it names.

        EpilogueArguments(lambda accum, bias: gelu(accum + bias), bias=bias)
        EpilogueArguments("D = gelu(accum + bias); amax = max(abs(D))", bias=bias, amax=amax)
        EpilogueArguments({"D": gelu(accum() + operand("bias"))}, bias=bias)

    Tensors that are read broadcast to (L, M, N) by NumPy's rule; numbers are passed with each launch. Results other than D
    are stored where a tensor is bound to their name: one of out's shape, or for a reduction one with an extent of 1, or
    without the dimension, along what it reduces. `D` may be bound, too: then it is written in place of `out`, which
    tells type and shape. The tensors are kept alive. A callable is traced as `gemmery.fusion.trace` says, each time:
    trace once and pass the Program where arguments are made often.

    ValueError for what a program cannot do (with the line of the function), for names that the program does not have,
    and for operands that nothing is bound to.
    """

    def __init__(self, epilogue_fn: ProgramLike, /, **tensors_and_scalars: Any) -> None:
        super().__init__(trace(epilogue_fn, tensors_and_scalars), tensors_and_scalars)
        self.epilogue_fn = epilogue_fn

    @property
    def tensors(self) -> dict[str, Any]:
        """The tensors as they were given, in this order."""
        return {name: value for name, value in self.operands.items() if not isinstance(value, (int, float))}

    @property
    def parameters(self) -> list[Any]:
        """What the program reads, in the order of its first use."""
        return [self.operands[name] for name in self.parameter_names]

    @property
    def parameter_names(self) -> list[str]:
        """The names of `parameters`."""
        return [name for name in self.program.inputs if name in self.operands]

    def __repr__(self) -> str:
        bound = ", ".join(f"{name}={_summary(value)}" for name, value in self.operands.items())
        return f"EpilogueArguments({self.program.text!r}{', ' if bound else ''}{bound})"


def _summary(value: Any) -> str:
    if isinstance(value, (int, float)):
        return repr(value)
    return f"<{'x'.join(map(str, value.shape))} {str(value.dtype).removeprefix('torch.')}>"
