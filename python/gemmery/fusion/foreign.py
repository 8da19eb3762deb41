# SPDX-License-Identifier: Apache-2.0
"""Functions of torch and NumPy on traced values, with the names and arguments of those packages."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

from gemmery.fusion.functions import find
from gemmery.fusion.value import (
    ForeignFunctions,
    Reduced,
    Value,
    call,
    cast,
    expression_of,
    refuse,
    use_foreign_functions,
)

# What torch and NumPy call a row of ops.def or one of its other spellings.
_OTHER_NAMES = {
    "mul": "multiply",
    "sub": "subtract",
    "div": "divide",
    "true_divide": "divide",
    "negative": "negate",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
    "power": "pow",
    "float_power": "pow",
    "special_expit": "sigmoid",
    "expit": "sigmoid",
    "special_erf": "erf",
    "bitwise_and": "logical_and",
    "bitwise_or": "logical_or",
    "bitwise_not": "logical_not",
    "invert": "logical_not",
    "rint": "round",
}

# Words of Python, torch and NumPy that have no meaning in programs, each with a replacement or the reason.
HINTS = {
    "permute": "layouts belong to tensors: give the tensor other strides",
    "reshape": "layouts belong to tensors: give the tensor another shape",
    "view": "layouts belong to tensors: give the tensor another shape",
    "transpose": "layouts belong to tensors: give the tensor other strides",
    "unsqueeze": "tensors broadcast to out by NumPy's rule: give the tensor an extent of 1",
    "squeeze": "tensors broadcast to out by NumPy's rule",
    "expand": "tensors broadcast to out by NumPy's rule",
    "T": "layouts belong to tensors: give the tensor other strides",
    "mT": "layouts belong to tensors: give the tensor other strides",
    "shape": "a program says what happens to one element; sizes are known when it is bound",
    "size": "a program says what happens to one element; sizes are known when it is bound",
    "ndim": "a program says what happens to one element",
    "dtype": "values are of the type that the epilogue computes in; cast(x, type) rounds",
    "device": "a program says what happens to one element",
    "mean": "sum(x) reduces; divide by the count afterwards",
    "item": "values are known when the kernel runs",
    "numpy": "values are known when the kernel runs",
    "remainder": "x - y * floor(x / y)",
    "mod": "x - y * floor(x / y)",
    "floor_divide": "floor(x / y)",
    "matmul": "the product is accum",
    "fmax": "max(x, y) keeps NaN, fmax drops it",
    "fmin": "min(x, y) keeps NaN, fmin drops it",
}


def is_function(name: str) -> bool:
    """True if programs support the method or function of torch or NumPy of this name."""
    return name in _SPECIAL or find(_OTHER_NAMES.get(name, name)) is not None


def apply(name: str, args: Any, kwargs: dict[str, Any]) -> Value | Reduced:
    """Applies a function of torch or NumPy by its name, if programs support it."""
    kwargs = {key: value for key, value in kwargs.items() if value is not None and key != "inplace"}
    special = _SPECIAL.get(name)
    if special is not None:
        try:
            return special(*args, **kwargs)
        except TypeError as error:
            refuse(f"other arguments of {name}", str(error).replace("_special_", ""))
    name = _OTHER_NAMES.get(name, name)
    if kwargs:
        refuse(f"operands of {name} without keywords", ", ".join(kwargs))
    if name in HINTS:
        refuse("a function of the grammar", f"'{name}'", HINTS[name])
    return call(name, *args)


def name_of(function: Any) -> str:
    name: str = getattr(function, "__name__", str(function))
    if name.startswith("__") and name.endswith("__"):  # Tensor.__radd__ and its like
        name = name.strip("_")
        name = name[1:] if name in ("radd", "rmul", "rsub", "rdiv", "rpow", "rtruediv") else name
        name = {"truediv": "divide"}.get(name, name)
    return name


# --- functions whose arguments are more than operands --------------------------------------------


def _reduce(kind: str, x: Any) -> Reduced:
    return Reduced(kind, x if isinstance(x, Value) else Value(expression_of(x)))


def _no_dimension(kind: str, dim: Any, keepdim: Any) -> None:
    if dim is not None or keepdim:
        refuse(
            f"{kind}(x) without dimensions",
            f"dim={dim}",
            "the tensor that receives it says what it is reduced over: (M, 1) takes one value for every row; "
            "clamp(x, min=0) compares with a number",
        )


def _torch_max(x: Any, other: Any = None, dim: Any = None, keepdim: Any = False, axis: Any = None) -> Value | Reduced:
    """A number as torch's second argument is a dimension and must not become an operand here."""
    if isinstance(other, numbers.Number):
        dim, other = other, None
    _no_dimension("max", dim if dim is not None else axis, keepdim)
    return _reduce("max", x) if other is None else call("max", x, other)


def _torch_min(x: Any, other: Any = None, dim: Any = None, keepdim: Any = False, axis: Any = None) -> Value | Reduced:
    if isinstance(other, numbers.Number):
        dim, other = other, None
    _no_dimension("min", dim if dim is not None else axis, keepdim)
    return _reduce("min", x) if other is None else call("min", x, other)


def _special_sum(x: Any, dim: Any = None, keepdim: Any = False, axis: Any = None) -> Reduced:
    _no_dimension("sum", dim if dim is not None else axis, keepdim)
    return _reduce("sum", x)


def _torch_amax(x: Any, dim: Any = None, keepdim: Any = False, axis: Any = None) -> Reduced:
    """torch's and NumPy's amax is the largest value; the grammar's amax(x) the largest absolute one."""
    dim = None if dim == () else dim
    _no_dimension("amax", dim if dim is not None else axis, keepdim)
    return _reduce("max", x)


def _torch_amin(x: Any, dim: Any = None, keepdim: Any = False, axis: Any = None) -> Reduced:
    dim = None if dim == () else dim
    _no_dimension("amin", dim if dim is not None else axis, keepdim)
    return _reduce("min", x)


def _special_clamp(
    x: Any, min: Any = None, max: Any = None, a_min: Any = None, a_max: Any = None
) -> Value:  # the keywords of torch and of NumPy
    low = min if min is not None else a_min
    high = max if max is not None else a_max
    if low is None and high is None:
        refuse("clamp with a bound", "none")
    if high is None:
        return call("max", x, low)
    if low is None:
        return call("min", x, high)
    return call("clamp", x, low, high)


def _special_gelu(x: Any, approximate: str = "none") -> Value:
    if approximate not in ("none", "tanh"):
        refuse('approximate="none" or "tanh"', repr(approximate))
    return call("gelu" if approximate == "none" else "gelu_tanh", x)


def _special_leaky_relu(x: Any, negative_slope: Any = 0.01) -> Value:
    return call("leaky_relu", x, negative_slope)


def _special_softplus(x: Any, beta: Any = 1, threshold: Any = 20) -> Value:
    if beta != 1 or threshold != 20:
        refuse("softplus(x)", f"beta={beta}, threshold={threshold}", "softplus(beta * x) / beta")
    return call("softplus", x)


def _special_add(x: Any, y: Any, alpha: Any = 1) -> Value:
    return call("add", x, y if alpha == 1 else call("multiply", alpha, y))


def _special_subtract(x: Any, y: Any, alpha: Any = 1) -> Value:
    return call("subtract", x, y if alpha == 1 else call("multiply", alpha, y))


def _special_rsub(x: Any, y: Any, alpha: Any = 1) -> Value:
    return _special_subtract(y, x, alpha)


def _special_hardtanh(x: Any, min_val: Any = -1.0, max_val: Any = 1.0) -> Value:
    return call("clamp", x, min_val, max_val)


def _special_divide(x: Any, y: Any, rounding_mode: Any = None) -> Value:
    if rounding_mode is not None:
        refuse("a division without rounding_mode", repr(rounding_mode), "floor(x / y)")
    return call("divide", x, y)


def _special_round(x: Any, decimals: Any = 0) -> Value:
    return Value(expression_of(x)).__round__(decimals or None)


def _special_where(condition: Any, x: Any, y: Any) -> Value:
    return call("where", condition, x, y)


_SPECIAL: dict[str, Callable[..., Value | Reduced]] = {
    "max": _torch_max,
    "min": _torch_min,
    "sum": _special_sum,
    "amax": _torch_amax,
    "amin": _torch_amin,
    "clamp": _special_clamp,
    "clip": _special_clamp,
    "gelu": _special_gelu,
    "leaky_relu": _special_leaky_relu,
    "softplus": _special_softplus,
    "add": _special_add,
    "sub": _special_subtract,
    "subtract": _special_subtract,
    "div": _special_divide,
    "divide": _special_divide,
    "true_divide": _special_divide,
    "rsub": _special_rsub,
    "hardtanh": _special_hardtanh,
    "round": _special_round,
    "where": _special_where,
    "cast": cast,
}


use_foreign_functions(ForeignFunctions(is_function, apply, name_of, HINTS))
