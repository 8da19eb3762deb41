# SPDX-License-Identifier: Apache-2.0
"""Epilogues: elementwise functions of the accumulators, written as text or as Python functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias, cast

from gemmery import _core
from gemmery._core import Program
from gemmery.errors import InvalidArgumentError
from gemmery.fusion.functions import define_op
from gemmery.fusion.tracing import trace
from gemmery.fusion.value import Reduced, Value
from gemmery.utils import add_batch_mode, permuted

__all__ = ["EpilogueArguments", "Program", "accum", "define_op", "operand"]

# The forms in which a program may be given.
ProgramLike: TypeAlias = str | Program | Callable[..., Any] | Mapping[str, Value | Reduced | float]


def accum() -> Value:
    """The accumulators, in the epilogue's compute type."""
    return Value(_core.accum())


def operand(name: str) -> Value:
    """A tensor or a number, by the name under which EpilogueArguments binds it."""
    return Value(_core.operand(name))


class EpilogueArguments(_core.EpilogueArguments):
    """A program with its tensors and numbers.

        EpilogueArguments(lambda accum, bias: gelu(accum + bias), bias=bias)
        EpilogueArguments("D = gelu(accum + bias); amax = max(abs(D))", bias=bias, amax=amax)
        EpilogueArguments({"D": gelu(accum() + operand("bias"))}, bias=bias)

    Tensors that are read broadcast to (L, M, N) by NumPy's rule; numbers are passed with each launch. Results other than D are
    stored if a tensor is bound to their name: one of out's shape, or for a reduction one whose reduced dimensions have extent 1
    or are absent. `D` may be bound, too: then it is written instead of `out`, which gives only type and shape. The tensors are
    kept alive. A callable is traced as `gemmery.fusion.trace` says.

    A result of a function other than D needs a tensor. In text, an assignment without one is a local variable.

    ValueError for operations that a program does not support (with the line of the function), for results of a function without
    a tensor, for names that the program does not have, and for unbound operands.
    """

    # Tensors as `to_tensor_wrappers` and `add_batch_modes` left them.
    _shown: Mapping[str, Any] = MappingProxyType({})
    epilogue_fn: Any = None

    def __init__(self, epilogue_fn: ProgramLike, **tensors_and_scalars: Any) -> None:
        program = trace(epilogue_fn, tensors_and_scalars)
        if callable(epilogue_fn) and not isinstance(epilogue_fn, Program):
            _check_results_are_bound(program, tensors_and_scalars)
        super().__init__(program, tensors_and_scalars)
        self.epilogue_fn = epilogue_fn

    @property
    def tensors(self) -> dict[str, Any]:
        """The tensors, in the order in which they were given."""
        given = {name: value for name, value in self.operands.items() if not isinstance(value, (int, float))}
        return {name: self._shown.get(name, tensor) for name, tensor in given.items()}

    @property
    def parameters(self) -> list[Any]:
        """The tensors and numbers that `parameter_names` names."""
        return [self._shown.get(name, self.operands[name]) for name in self.parameter_names]

    @property
    def parameter_names(self) -> list[str]:
        """The names of the bound operands: first those that the program reads, in the order of first use, then its results."""
        names = [*self.program.inputs, *self.program.outputs]
        return [name for name in dict.fromkeys(names) if name in self.operands]

    def trace(self, accumulator_shape: Sequence[int], accumulator_type: Any) -> Program:
        """Returns the program, after a check of the bound operands against accumulators of a shape, (M, N) or (L, M, N), and a
        type.

        ValueError for operands that do not fit. GemmArguments does the same, so calling this is optional.
        """
        shape = tuple(accumulator_shape)
        if len(shape) not in (2, 3):
            raise InvalidArgumentError(f"invalid argument: accumulator_shape: expected (M, N) or (L, M, N), got {shape}")
        a, b, out = _operands_without_memory(shape, accumulator_type, self)
        _core.GemmArguments(a, b, out, accumulator_type, epilogue=self)
        return self.program

    def to_tensor_wrappers(self, permute: Sequence[int] | None = None) -> None:
        """Makes `tensors` and `parameters` return views of type gemmery.Tensor, whatever the framework; with `permute`, with
        their dimensions in that order. Launches still use the bound tensors."""
        self._shown = {name: _wrapped(name, tensor, permute) for name, tensor in self.tensors.items()}

    def add_batch_modes(self) -> None:
        """Makes `tensors` and `parameters` return a matrix as a batch of one, (1, M, N); vectors and batches stay as they are.
        Launches still use the bound tensors."""
        self._shown = {
            name: add_batch_mode(tensor) if len(tensor.shape) == 2 else tensor for name, tensor in self.tensors.items()
        }

    def __repr__(self) -> str:
        bound = ", ".join(f"{name}={_summary(value)}" for name, value in self.operands.items())
        return f"EpilogueArguments({self.program.text!r}{', ' if bound else ''}{bound})"


def _check_results_are_bound(program: Program, bound: Mapping[str, Any]) -> None:
    """Every result that a function returns is stored, so each one except D needs a tensor."""
    given = {"D", *bound, *(["accum_out"] if "accum" in bound else [])}
    missing = [name for name in program.outputs if name not in given]
    if missing:
        raise InvalidArgumentError(
            f"invalid argument: epilogue: expected a tensor for every returned result, got none for {', '.join(missing)}; "
            f"pass {missing[0]}= or do not return it"
        )


def _operands_without_memory(shape: tuple[int, ...], accumulator_type: Any, epilogue: EpilogueArguments) -> list[Any]:
    """Stand-ins for A, B and out of a GEMM with these accumulators. Their addresses belong to no memory and are never
    read."""
    *batch, rows, columns = shape
    views = [_core.as_tensor(tensor) for tensor in epilogue.tensors.values()]
    device = next((view.device for view in views), "cpu").replace("meta", "cuda:0")
    sums = _core.dtype(accumulator_type)
    factors = "int8" if sums == _core.dtype("int32") else sums
    out = _core.as_tensor(cast(Any, epilogue.operands["D"])).dtype if "D" in epilogue.operands else sums
    kinds = [((*batch, rows, 1), factors), ((*batch, 1, columns), factors), ((*batch, rows, columns), out)]
    return [_core.Tensor((at + 1) << 59, one, dtype, device=device) for at, (one, dtype) in enumerate(kinds)]


def _wrapped(name: str, tensor: Any, order: Sequence[int] | None) -> _core.Tensor:
    if order is None:
        return _core.as_tensor(tensor)
    if sorted(order) != list(range(len(tensor.shape))):
        raise InvalidArgumentError(
            f"invalid argument: permute: expected the dimensions of {name}, of rank {len(tensor.shape)}, in an order, "
            f"got {tuple(order)}"
        )
    return permuted(tensor, order)


def _summary(value: Any) -> str:
    if isinstance(value, (int, float)):
        return repr(value)
    return f"<{'x'.join(map(str, value.shape))} {str(value.dtype).removeprefix('torch.')}>"
