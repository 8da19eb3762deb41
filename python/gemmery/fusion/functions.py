# SPDX-License-Identifier: Apache-2.0
"""The functions of programs. They can be called on values while a function is traced, and on tensors and numbers otherwise."""

from __future__ import annotations

import builtins
import contextlib
import numbers
import threading
from collections.abc import Callable, Iterator
from typing import Any

from gemmery import _core
from gemmery.fusion import reference
from gemmery.fusion.value import Reduced, Value, call, cast, expression_of, refuse

_REDUCTIONS = ("sum", "max", "min", "amax")


class Function:
    """A function of the text form. On traced values it extends the program; on torch tensors, NumPy arrays and
    numbers it computes what the program would, so that a traced function is its own reference."""

    __slots__ = ("__name__",)

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __repr__(self) -> str:
        return f"<gemmery.fusion.{self.__name__}>"

    def __call__(self, *operands: Any, dim: Any = None) -> Any:
        """`dim`, a list of dimensions of (M, N), is allowed for reductions and has no effect: the extents of the tensor that
        receives the result determine what is reduced."""
        name = self.__name__
        if dim is not None:
            _check_dimensions(name, operands, dim)
        if len(operands) == 1 and name in _REDUCTIONS:
            return _reduction(name, operands[0])
        if not any(isinstance(x, (Value, Reduced)) for x in operands) and not _is_constant(name, operands):
            return _without_values(name, operands)
        if name in ("max", "min") and len(operands) > 2:
            return self(self(*operands[:2]), *operands[2:])
        if name == "leaky_relu" and len(operands) == 1:
            operands = (*operands, 0.01)
        return call(name, *operands)


def _check_dimensions(name: str, operands: tuple[Any, ...], dim: Any) -> None:
    is_list = isinstance(dim, (list, tuple)) and all(d in (0, 1, -1, -2) for d in dim)
    if name not in _REDUCTIONS or len(operands) != 1 or not is_list:
        refuse(
            "dim=[0], dim=[1] or dim=[0, 1] of a reduction",
            f"{name} of {len(operands)} operands with dim={dim!r}",
            "the tensor that receives it says what it is reduced over: (M, 1) takes one value for every row",
        )


def _reduction(name: str, operand: Any) -> Any:
    if isinstance(operand, Value):
        return Reduced(name, operand)
    if isinstance(operand, Reduced):
        expression_of(operand)  # refuses
    if name != "amax" and not hasattr(operand, "dtype"):
        return getattr(builtins, name)(operand)  # of Python's own sequences
    return reference.reduce(name, operand)


_tracing = threading.local()


@contextlib.contextmanager
def while_tracing() -> Iterator[None]:
    """A scope in which functions of numbers become constants of the program, which the library folds as it does in a text."""
    before = getattr(_tracing, "is_on", False)
    _tracing.is_on = True
    try:
        yield
    finally:
        _tracing.is_on = before


def _is_constant(name: str, operands: tuple[Any, ...]) -> bool:
    """Python's own functions keep their meaning on Python's numbers."""
    if not getattr(_tracing, "is_on", False) or hasattr(builtins, name):
        return False
    return all(isinstance(x, numbers.Real) for x in operands)


def _without_values(name: str, operands: tuple[Any, ...]) -> Any:
    """abs, max, … keep Python's meaning on Python's numbers and sequences."""
    if hasattr(builtins, name) and not any(hasattr(x, "dtype") for x in operands):
        return getattr(builtins, name)(*operands)
    return reference.evaluate(name, operands)


_functions: dict[str, Callable[..., Any]] = {}


def find(name: str) -> Callable[..., Any] | None:
    """The function of this name; None if the text form has no such function."""
    if not _functions:
        _read_names()
    return _functions.get(name)


def _read_names() -> None:
    for name in _core.function_names():
        _functions.setdefault(name, _WITH_WORDS.get(name) or Function(name))


def define_op(name: str, expression: str) -> None:
    """Names an expression of x (and y, z), which then is a function of programs, in text and in traced functions:
    define_op("quick_gelu", "x * sigmoid(1.702 * x)"). Raises ValueError if it does not parse or the name is taken."""
    _core.define_op(name, expression)
    _read_names()


def cast_any(x: Any, dtype: Any, *words: str) -> Any:
    """Rounds x to a type; the program continues in the type that x had."""
    if isinstance(x, (Value, Reduced)) or _is_constant("cast", (x,)):
        return cast(x, dtype, *words)
    return reference.cast(x, dtype, *words)


# The largest numbers of types that have scales of blocks.
_LARGEST = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0, "float6_e2m3fn": 7.5, "float6_e3m2fn": 28.0, "float4_e2m1fn": 6.0}


def mx_scale(x: Any, dtype: Any, rule: Any) -> Any:
    """The power of two by which a block with the largest magnitude x is divided before it is rounded to `dtype`.

    `rule`: "floor" (that below x by that below dtype's largest number, as OCP says) or "rceil" (the least that keeps x
    within dtype's numbers)."""
    word = getattr(rule, "__name__", rule)
    largest = _LARGEST.get(_core.dtype(dtype).name)
    if largest is None or word not in ("floor", "rceil"):
        refuse(
            'e4m3, e5m2, e2m3, e3m2 or e2m1, and "floor" or "rceil"',
            f"{dtype!r}, {rule!r}",
            "mx_scale(block_amax(x, 1, 32), e4m3, rceil)",
        )
    find(f"mx_{word}")
    return _functions[f"mx_{word}"](x, largest)


_WITH_WORDS: dict[str, Callable[..., Any]] = {"cast": cast_any, "mx_scale": mx_scale}
