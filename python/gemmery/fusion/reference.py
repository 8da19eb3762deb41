# SPDX-License-Identifier: Apache-2.0
"""What the functions of programs compute on torch tensors, NumPy arrays and numbers, so that a traced function is its own
reference. Kernels never use this."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from gemmery import _core


def evaluate(name: str, operands: tuple[Any, ...]) -> Any:
    """Evaluates a function on torch tensors, NumPy arrays or numbers."""
    if name in _SPELLINGS:
        return _SPELLINGS[name](*operands)
    library = _Torch() if any(_is_torch(x) for x in operands) else _NumPy()
    function = getattr(library, name + "_", None) or _FORMULAS.get(name)
    if function is None:
        raise NotImplementedError(
            f"{name} has no reference on tensors: it was defined by define_op; call it while a function is traced"
        )
    if name in _FORMULAS and function is _FORMULAS[name]:
        return function(library, *operands)
    return function(*operands)


def reduce(name: str, operand: Any) -> Any:
    """Reduces over all elements. The dimensions that a program reduces over are known only when its result is bound."""
    if name == "amax":
        return abs(operand).max()
    return getattr(operand, name)()


def cast(x: Any, dtype: Any, *words: str) -> Any:
    """Rounds torch tensors to a type and converts them back."""
    if words and set(words) != {"nearest_even"} and set(words) != {"natural"}:
        raise NotImplementedError("a cast with words has no reference on tensors")
    if _is_torch(x):
        import torch

        return x.to(getattr(torch, _core.dtype(dtype).name)).to(x.dtype)
    import numpy

    array = numpy.asarray(x)
    return array.astype(_numpy_type(_core.dtype(dtype).name)).astype(array.dtype)


def _numpy_type(name: str) -> Any:
    """NumPy itself has no bfloat16 and no 8-bit floats."""
    import numpy

    if hasattr(numpy, name):
        return getattr(numpy, name)
    import ml_dtypes

    return getattr(ml_dtypes, name)


def _is_torch(x: Any) -> bool:
    return type(x).__module__.partition(".")[0] == "torch"


class _Torch:
    """The elementary functions on torch tensors, numbers beside them."""

    def __init__(self) -> None:
        import torch

        self.torch = torch

    def __getattr__(self, name: str) -> Any:
        if not name.endswith("_"):
            raise AttributeError(name)
        function = getattr(self.torch, {"min_": "minimum", "max_": "maximum"}.get(name, name.removesuffix("_")), None)
        if function is None or name not in _ELEMENTARY:
            raise AttributeError(name)
        return lambda *operands: function(*self._tensors(operands))

    def where_(self, condition: Any, x: Any, y: Any) -> Any:
        return self.torch.where(condition, x, y)

    def pow_(self, x: Any, y: Any) -> Any:
        return self.torch.pow(x, y)

    def _tensors(self, operands: tuple[Any, ...]) -> list[Any]:
        like = next(x for x in operands if _is_torch(x))
        return [x if _is_torch(x) else self.torch.tensor(x, dtype=like.dtype, device=like.device) for x in operands]


class _NumPy:
    """The elementary functions on NumPy arrays and numbers."""

    def __init__(self) -> None:
        import numpy

        self.numpy = numpy

    def __getattr__(self, name: str) -> Any:
        if name not in _ELEMENTARY:
            raise AttributeError(name)
        other = {"min_": "minimum", "max_": "maximum", "round_": "rint", "pow_": "power", "abs_": "absolute"}
        function = getattr(self.numpy, other.get(name, name.removesuffix("_")), None)
        if function is None:
            raise AttributeError(name)
        return function

    def rsqrt_(self, x: Any) -> Any:
        return 1 / self.numpy.sqrt(x)

    def erf_(self, x: Any) -> Any:
        x = self.numpy.asarray(x)
        return self.numpy.vectorize(math.erf, otypes=[x.dtype if x.dtype.kind == "f" else float])(x)


_ELEMENTARY = frozenset(
    f"{name}_"
    for name in [
        "abs",
        "min",
        "max",
        "exp",
        "exp2",
        "log",
        "sqrt",
        "rsqrt",
        "pow",
        "erf",
        "tanh",
        "floor",
        "round",
        "where",
        "frexp",
        "logical_and",
        "logical_or",
        "logical_not",
    ]
)


def _mx_scale(o: Any, x: Any, y: Any, is_ceiling: bool) -> Any:
    """The scale of a block whose largest magnitude is x, of a type whose largest number is y."""
    significand, exponent = o.frexp_(abs(x))
    of_y, exponent_of_y = math.frexp(abs(float(y)))
    steps = (exponent - exponent_of_y + (significand > of_y if is_ceiling else 0)) * 1.0
    scale = o.exp2_(o.min_(o.max_(steps, -127.0), 127.0))
    scale = o.where_(abs(x) == math.inf, 2.0**127, o.where_(x == 0, 2.0**-127, scale))
    return o.where_(x != x, x, scale)


# What is not elementary, of what is; `o` has the elementary functions.
_FORMULAS: dict[str, Callable[..., Any]] = {
    "add": lambda o, x, y: x + y,
    "subtract": lambda o, x, y: x - y,
    "multiply": lambda o, x, y: x * y,
    "divide": lambda o, x, y: x / y,
    "negate": lambda o, x: -x,
    "clamp": lambda o, x, low, high: o.min_(o.max_(x, low), high),
    "fma": lambda o, x, y, z: x * y + z,
    "mx_floor": lambda o, x, y: _mx_scale(o, x, y, False),
    "mx_rceil": lambda o, x, y: _mx_scale(o, x, y, True),
    "less": lambda o, x, y: x < y,
    "less_equal": lambda o, x, y: x <= y,
    "greater": lambda o, x, y: x > y,
    "greater_equal": lambda o, x, y: x >= y,
    "equal": lambda o, x, y: x == y,
    "not_equal": lambda o, x, y: x != y,
    "sigmoid": lambda o, x: 1 / (1 + o.exp_(-x)),
    "relu": lambda o, x: o.max_(x, 0),
    "leaky_relu": lambda o, x, slope=0.01: o.where_(x > 0, x, x * slope),
    "silu": lambda o, x: x / (1 + o.exp_(-x)),
    "gelu": lambda o, x: 0.5 * x * (1 + o.erf_(x * math.sqrt(0.5))),
    "gelu_tanh": lambda o, x: 0.5 * x * (1 + o.tanh_(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))),
    "hardswish": lambda o, x: x * o.min_(o.max_(x + 3, 0), 6) / 6,
    "softplus": lambda o, x: o.max_(x, 0) + o.log_(1 + o.exp_(-o.abs_(x))),
}

# The library's other spellings, as it defines them.
_SPELLINGS: dict[str, Callable[..., Any]] = {
    "absolute": lambda x: evaluate("abs", (x,)),
    "fabs": lambda x: evaluate("abs", (x,)),
    "clip": lambda x, y, z: evaluate("clamp", (x, y, z)),
    "gelu_erf": lambda x: evaluate("gelu", (x,)),
    "hard_swish": lambda x: evaluate("hardswish", (x,)),
    "identity": lambda x: x,
    "logistic": lambda x: evaluate("sigmoid", (x,)),
    "maximum": lambda x, y: evaluate("max", (x, y)),
    "minimum": lambda x, y: evaluate("min", (x, y)),
    "multiply_add": lambda x, y, z: evaluate("fma", (x, y, z)),
    "neg": lambda x: -x,
    "reciprocal": lambda x: 1 / x,
    "relu6": lambda x: evaluate("clamp", (x, 0, 6)),
    "square": lambda x: x * x,
    "swish": lambda x: evaluate("silu", (x,)),
}
