# SPDX-License-Identifier: Apache-2.0
"""A value of an epilogue while its function is traced: every operation on it becomes one of the program's graph."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any, NoReturn

from gemmery import _core
from gemmery.errors import InvalidArgumentError


class TraceError(InvalidArgumentError):
    """What a traced function asks for and no program can do; `trace` adds the line that asked."""


class _UnknownAttribute(TraceError, AttributeError):
    """So that `hasattr` on a value answers instead of raising."""


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

# Python, torch and NumPy words that programs have no meaning for, with what serves instead.
_HINTS = {
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


def refuse(expected: str, got: str, hint: str = "") -> NoReturn:
    raise described(TraceError, expected, got, hint)


def described(kind: type[TraceError], expected: str, got: str, hint: str) -> TraceError:
    error = kind(f"invalid argument: epilogue: expected {expected}, got {got}" + (f"; {hint}" if hint else ""))
    error.kind, error.operand = "invalid argument", "epilogue"
    error.expected, error.got, error.hint = expected, got, hint
    return error


def expression_of(operand: Any, role: str = "operand") -> _core.Expression:
    """A value's expression, or a number as a constant."""
    if isinstance(operand, Value):
        return operand._expression
    if isinstance(operand, Reduced):
        operand._refuse_use()
    number = _number(operand)
    if number is not None:
        return _core.Expression(number)
    if hasattr(operand, "__dlpack__") or hasattr(operand, "__array__"):
        refuse(
            f"values and numbers as {role}",
            f"a {type(operand).__name__}",
            "tensors are operands: make it a parameter of the function and bind it by name",
        )
    refuse(f"values and numbers as {role}", f"{type(operand).__name__} {operand!r}"[:120])


def _number(operand: Any) -> float | None:
    if isinstance(operand, numbers.Real):  # bool, int, float, NumPy's scalars
        try:
            return float(operand)
        except OverflowError:
            refuse("constants that float64 holds", f"{operand}"[:40] + "...")
    if type(operand).__module__ == "numpy" and getattr(operand, "ndim", None) == 0:
        return _number(operand.item())
    if isinstance(operand, numbers.Complex):
        refuse("real numbers", f"{operand!r}")
    return None


def call(function: str, *operands: Any) -> Value:
    """A function of the text form, by its name."""
    role = f"operands of {function}"
    conditions = _CONDITIONS.get(function, 0)
    return Value(
        _core.call(
            function,
            [_condition_of(x, role) if at < conditions else expression_of(x, role) for at, x in enumerate(operands)],
        )
    )


# How many of the first operands are truth values.
_CONDITIONS = {"logical_and": 2, "logical_or": 2, "logical_not": 1, "where": 1}


def _condition_of(operand: Any, role: str) -> _core.Expression:
    """Python's True and False are truth values where one is wanted, and 1 and 0 elsewhere."""
    if isinstance(operand, bool) or type(operand).__name__ == "bool_":
        one = _core.Expression(1.0)
        return _core.call("equal" if operand else "not_equal", [one, one])
    return expression_of(operand, role)


class Value:
    """One element, as the traced function sees it: `accum`, an operand, or what was computed of them.

    Operators, methods and functions of `gemmery.fusion`, torch and NumPy on it build the program. What needs the
    number itself (`if x > 0`, `float(x)`, `x[0]`) is refused with the line that asked.
    """

    __slots__ = ("_expression",)
    __array_priority__ = 1000

    def __init__(self, expression: _core.Expression) -> None:
        self._expression = expression

    def __repr__(self) -> str:
        return f"Value({_core.Program([('D', self._expression)]).text.removeprefix('D = ')})"

    # --- operators ---

    def __add__(self, other: Any) -> Value:
        return _binary("add", self, other)

    def __radd__(self, other: Any) -> Value:
        return _binary("add", other, self)

    def __sub__(self, other: Any) -> Value:
        return _binary("subtract", self, other)

    def __rsub__(self, other: Any) -> Value:
        return _binary("subtract", other, self)

    def __mul__(self, other: Any) -> Value:
        return _binary("multiply", self, other)

    def __rmul__(self, other: Any) -> Value:
        return _binary("multiply", other, self)

    def __truediv__(self, other: Any) -> Value:
        return _binary("divide", self, other)

    def __rtruediv__(self, other: Any) -> Value:
        return _binary("divide", other, self)

    def __pow__(self, other: Any, modulo: Any = None) -> Value:
        if modulo is not None:
            refuse("pow of two operands", "three")
        return _binary("pow", self, other)

    def __rpow__(self, other: Any) -> Value:
        return _binary("pow", other, self)

    def __neg__(self) -> Value:
        return call("negate", self)

    def __pos__(self) -> Value:
        return self

    def __abs__(self) -> Value:
        return call("abs", self)

    def __floor__(self) -> Value:
        return call("floor", self)

    def __round__(self, digits: Any = None) -> Value:
        if digits is not None:
            refuse("round to whole numbers", f"round to {digits} digits", "round(x * 100) / 100")
        return call("round", self)

    def __lt__(self, other: Any) -> Value:
        return _binary("less", self, other)

    def __le__(self, other: Any) -> Value:
        return _binary("less_equal", self, other)

    def __gt__(self, other: Any) -> Value:
        return _binary("greater", self, other)

    def __ge__(self, other: Any) -> Value:
        return _binary("greater_equal", self, other)

    def __eq__(self, other: Any) -> Value:  # type: ignore[override]
        return _binary("equal", self, other)

    def __ne__(self, other: Any) -> Value:  # type: ignore[override]
        return _binary("not_equal", self, other)

    __hash__ = object.__hash__

    def __and__(self, other: Any) -> Value:
        return _binary("logical_and", self, other)

    def __rand__(self, other: Any) -> Value:
        return _binary("logical_and", other, self)

    def __or__(self, other: Any) -> Value:
        return _binary("logical_or", self, other)

    def __ror__(self, other: Any) -> Value:
        return _binary("logical_or", other, self)

    def __invert__(self) -> Value:
        return call("logical_not", self)

    # --- what needs the number ---

    def __bool__(self) -> bool:
        refuse(
            "a function whose course does not depend on traced values",
            "the truth of one (by if, while, and, or, not, in, a chained comparison, max or min of Python)",
            "where(condition, x, y) chooses; & | ~ combine conditions: (0 < x) & (x < 6)",
        )

    def __float__(self) -> float:
        refuse("values that stay symbols", "float() of one", "use the function of the same name without its module: exp(x)")

    __int__ = __index__ = __complex__ = __float__  # type: ignore[assignment]

    def __getitem__(self, index: Any) -> NoReturn:
        refuse("programs of one element", "an index", "bind a view of the tensor")

    def __iter__(self) -> NoReturn:
        refuse("programs of one element", "a loop over a value")

    def __len__(self) -> int:
        refuse("programs of one element", "len() of a value")

    def _refuse_operator(self, sign: str, hint: str) -> NoReturn:
        refuse("an operator of programs", f"'{sign}'", hint)

    def __floordiv__(self, other: Any) -> NoReturn:
        self._refuse_operator("//", "floor(x / y)")

    __rfloordiv__ = __floordiv__

    def __mod__(self, other: Any) -> NoReturn:
        self._refuse_operator("%", "x - y * floor(x / y)")

    __rmod__ = __mod__

    def __matmul__(self, other: Any) -> NoReturn:
        self._refuse_operator("@", "the epilogue works element by element; the product is accum")

    __rmatmul__ = __matmul__

    def __xor__(self, other: Any) -> NoReturn:
        self._refuse_operator("^", "(a & ~b) | (~a & b)")

    __rxor__ = __xor__

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        refuse("programs of one element", "an assignment to an index")

    # --- methods ---

    def to(self, dtype: Any, *others: Any, **options: Any) -> Value:
        """Rounded to a type as torch rounds: to nearest even; to integers toward zero."""
        if others or options:
            refuse("to(type)", "more arguments")
        return cast(self, dtype, *(("toward_zero",) if _is_integer(dtype) else ()))

    astype = type = to

    def float(self) -> Value:
        return self.to("float32")

    def half(self) -> Value:
        return self.to("float16")

    def bfloat16(self) -> Value:
        return self.to("bfloat16")

    def where(self, condition: Any, other: Any) -> Value:
        """torch's order: this value where the condition holds, else the other."""
        return call("where", condition, self, other)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if is_function(name):
            return lambda *operands, **options: apply(name, (self, *operands), options)
        raise described(_UnknownAttribute, "a function of the grammar", f"'{name}' of a traced value", _HINTS.get(name, ""))

    # --- functions of torch and NumPy ---

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return apply(_name_of(function), args, kwargs or {})

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__":
            refuse("an operation of one element", f"{function.__name__}.{method}")
        return apply(_name_of(function), inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return apply(_name_of(function), args, kwargs)


class Reduced:
    """A reduction of a value, which a result may be and nothing reads: max(abs(D))."""

    __slots__ = ("kind", "value")

    def __init__(self, kind: str, value: Value) -> None:
        self.kind = kind
        self.value = value

    def __repr__(self) -> str:
        return f"Reduced({self.kind} of {self.value!r})"

    def _refuse_use(self, *_: Any, **__: Any) -> NoReturn:
        refuse(
            "a reduction as a whole result",
            f"the {self.kind} of a value in a further operation",
            "it is complete when the kernel has ended: return it, and go on from there",
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse_use
    __pow__ = __rpow__ = __neg__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _refuse_use
    __float__ = __int__ = __round__ = __and__ = __or__ = __invert__ = __torch_function__ = _refuse_use
    __array_ufunc__ = __array_function__ = _refuse_use

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse_use()


def _binary(function: str, x: Any, y: Any) -> Value:
    return call(function, x, y)


def is_function(name: str) -> bool:
    """Whether a method or a function of torch or NumPy of this name has a meaning in programs."""
    from gemmery.fusion.functions import find

    return name in _SPECIAL or find(_OTHER_NAMES.get(name, name)) is not None


def apply(name: str, args: Any, kwargs: dict[str, Any]) -> Value | Reduced:
    """A function of torch or NumPy by its name, as far as programs have it."""
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
    if name in _HINTS:
        refuse("a function of the grammar", f"'{name}'", _HINTS[name])
    return call(name, *args)


def cast(x: Any, dtype: Any, *words: str) -> Value:
    """x rounded to a type; words: "nearest_even" or "toward_zero", "natural" or "saturate"."""
    options: dict[str, Any] = {}
    for word in words:
        options["rounding" if word in ("nearest_even", "toward_zero") else "overflow"] = word
    return Value(_core.cast(expression_of(x), dtype, **options))


def _is_integer(dtype: Any) -> bool:
    return not _core.dtype(dtype).is_floating


def _name_of(function: Any) -> str:
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
    """A number in second place is a dimension to torch, which must not become an operand here."""
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
