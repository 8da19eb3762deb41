# SPDX-License-Identifier: Apache-2.0
"""A symbolic value of an epilogue while its function is traced: every operation on it becomes a node of the program."""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import numbers
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from gemmery import _core
from gemmery.errors import InvalidArgumentError


class TraceError(InvalidArgumentError):
    """A traced function uses something that no program can do; `trace` adds the line."""


@dataclasses.dataclass(frozen=True)
class Subject:
    """What is traced, in the words of errors: an epilogue, or a program of an operand."""

    name: str = "epilogue"
    element: str = "accum"  # the parameter of the element
    result: str = "D"


NO_REDUCTIONS = "programs of operands have no reductions: compute it before, and bind it by name"
_EPILOGUE = Subject()
_subject = contextvars.ContextVar("subject", default=_EPILOGUE)


@contextlib.contextmanager
def errors_about(subject: Subject) -> Iterator[None]:
    """What is refused meanwhile is refused in this subject's words."""
    before = _subject.set(subject)
    try:
        yield
    finally:
        _subject.reset(before)


def subject() -> Subject:
    return _subject.get()


@dataclasses.dataclass(frozen=True)
class ForeignFunctions:
    """Functions of torch and NumPy on values. `gemmery.fusion.foreign` supplies them, because it depends on `Value`."""

    is_function: Callable[[str], bool]
    apply: Callable[[str, Any, dict[str, Any]], Any]
    name_of: Callable[[Any], str]
    hints: Mapping[str, str]


_foreign: list[ForeignFunctions] = []


def use_foreign_functions(functions: ForeignFunctions) -> None:
    """Sets what methods of a `Value` and functions of torch and NumPy on it do."""
    _foreign[:] = [functions]


class _UnknownAttribute(TraceError, AttributeError):
    """Derives from AttributeError, too, so that `hasattr` on a value returns False instead of raising."""


def refuse(expected: str, got: str, hint: str = "") -> NoReturn:
    raise described(TraceError, expected, got, hint)


def described(kind: type[TraceError], expected: str, got: str, hint: str) -> TraceError:
    name = subject().name
    error = kind(f"invalid argument: {name}: expected {expected}, got {got}" + (f"; {hint}" if hint else ""))
    error.operand = name
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
    """Calls a function of the text form by its name."""
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
    """Python's True and False become truth values where a condition is expected, and 1 and 0 elsewhere."""
    if isinstance(operand, bool) or type(operand).__name__ == "bool_":
        one = _core.Expression(1.0)
        return _core.call("equal" if operand else "not_equal", [one, one])
    return expression_of(operand, role)


BinaryOperator = Callable[["Value", Any], "Value"]


def _operator(function: str) -> BinaryOperator:
    """The method of an operator: the function of self and the other operand."""

    def operate(self: Value, other: Any) -> Value:
        return call(function, self, other)

    return _described(operate, f"{function}(self, other)")


def _operators(function: str) -> tuple[BinaryOperator, BinaryOperator]:
    """The method and its reflected form, with the operands exchanged."""

    def reflected(self: Value, other: Any) -> Value:
        return call(function, other, self)

    return _operator(function), _described(reflected, f"{function}(other, self)")


def _described(operator: Any, meaning: str) -> BinaryOperator:
    """Sets the name and docstring that help() and tracebacks show."""
    operator.__name__ = operator.__qualname__ = meaning.partition("(")[0]
    operator.__doc__ = meaning
    described_operator: BinaryOperator = operator
    return described_operator


class Value:
    """One element, as the traced function sees it: `accum`, an operand, or a result computed from them.

    Operators, methods and functions of `gemmery.fusion`, torch and NumPy on it build the program. Operations that need
    the number itself (`if x > 0`, `float(x)`, `x[0]`) are refused with their line.
    """

    __slots__ = ("_expression",)
    __array_priority__ = 1000

    def __init__(self, expression: _core.Expression) -> None:
        self._expression = expression

    def __repr__(self) -> str:
        return f"Value({_core.Program([('D', self._expression)]).text.removeprefix('D = ')})"

    # --- operators ---

    __add__, __radd__ = _operators("add")
    __sub__, __rsub__ = _operators("subtract")
    __mul__, __rmul__ = _operators("multiply")
    __truediv__, __rtruediv__ = _operators("divide")
    __and__, __rand__ = _operators("logical_and")
    __or__, __ror__ = _operators("logical_or")
    __lt__ = _operator("less")
    __le__ = _operator("less_equal")
    __gt__ = _operator("greater")
    __ge__ = _operator("greater_equal")
    __eq__ = _operator("equal")  # type: ignore[assignment]
    __ne__ = _operator("not_equal")  # type: ignore[assignment]
    __hash__ = object.__hash__

    def __pow__(self, other: Any, modulo: Any = None) -> Value:
        if modulo is not None:
            refuse("pow of two operands", "three")
        return call("pow", self, other)

    def __rpow__(self, other: Any) -> Value:
        return call("pow", other, self)

    def __neg__(self) -> Value:
        return call("negate", self)

    def __pos__(self) -> Value:
        return self

    def __abs__(self) -> Value:
        return call("abs", self)

    def __invert__(self) -> Value:
        return call("logical_not", self)

    def __floor__(self) -> Value:
        return call("floor", self)

    def __round__(self, digits: Any = None) -> Value:
        if digits is not None:
            refuse("round to whole numbers", f"round to {digits} digits", "round(x * 100) / 100")
        return call("round", self)

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
        product = "; the product is accum" if subject().element == "accum" else ""
        self._refuse_operator("@", f"programs work element by element{product}")

    __rmatmul__ = __matmul__

    def __xor__(self, other: Any) -> NoReturn:
        self._refuse_operator("^", "(a & ~b) | (~a & b)")

    __rxor__ = __xor__

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        refuse("programs of one element", "an assignment to an index")

    # --- methods ---

    def to(self, dtype: Any, *others: Any, **options: Any) -> Value:
        """Rounds to a type as torch does: to nearest even; to integers toward zero."""
        if others or options:
            refuse("to(type)", "more arguments")
        return cast(self, dtype, *(("toward_zero",) if _is_integer(dtype) else ()))

    astype = type = to

    def float(self) -> Value:
        """The value rounded to float32."""
        return self.to("float32")

    def half(self) -> Value:
        """The value rounded to float16."""
        return self.to("float16")

    def bfloat16(self) -> Value:
        """The value rounded to bfloat16."""
        return self.to("bfloat16")

    def where(self, condition: Any, other: Any) -> Value:
        """Arguments in torch's order: this value where the condition holds, else the other."""
        return call("where", condition, self, other)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        foreign = _foreign[0]
        if foreign.is_function(name):
            return lambda *operands, **options: foreign.apply(name, (self, *operands), options)
        hint = foreign.hints.get(name, "")
        raise described(_UnknownAttribute, "a function of the grammar", f"'{name}' of a traced value", hint)

    # --- functions of torch and NumPy ---

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _apply(function, args, kwargs)

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method != "__call__":
            refuse("an operation of one element", f"{function.__name__}.{method}")
        return _apply(function, inputs, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _apply(function, args, kwargs)


class Reduced:
    """A reduction of a value, such as max(abs(D)). It can be a result, but no operation can read it."""

    __slots__ = ("kind", "value")

    def __init__(self, kind: str, value: Value) -> None:
        self.kind = kind
        self.value = value

    def __repr__(self) -> str:
        return f"Reduced({self.kind} of {self.value!r})"

    def _refuse_use(self, *_: Any, **__: Any) -> NoReturn:
        is_epilogue = subject().element == "accum"
        refuse(
            "a reduction as a whole result" if is_epilogue else "operations of one element",
            f"the {self.kind} of a value" + (" in a further operation" if is_epilogue else ""),
            "it is complete when the kernel has ended: return it, and go on from there" if is_epilogue else NO_REDUCTIONS,
        )

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse_use
    __pow__ = __rpow__ = __neg__ = __abs__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _refuse_use
    __float__ = __int__ = __round__ = __and__ = __or__ = __invert__ = __torch_function__ = _refuse_use
    __array_ufunc__ = __array_function__ = _refuse_use

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse_use()


def _apply(function: Any, args: Any, kwargs: dict[str, Any] | None) -> Any:
    """Applies a function object of torch or NumPy."""
    foreign = _foreign[0]
    return foreign.apply(foreign.name_of(function), args, kwargs or {})


def cast(x: Any, dtype: Any, *words: str) -> Value:
    """Rounds x to a type. Words: "nearest_even" or "toward_zero", "natural" or "saturate"."""
    options: dict[str, Any] = {}
    for word in words:
        options["rounding" if word in ("nearest_even", "toward_zero") else "overflow"] = word
    return Value(_core.cast(expression_of(x), dtype, **options))


def _is_integer(dtype: Any) -> bool:
    return not _core.dtype(dtype).is_floating
