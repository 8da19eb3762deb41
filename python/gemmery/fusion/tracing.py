# SPDX-License-Identifier: Apache-2.0
"""Traces a Python callable to a program: it runs once on symbolic values, and the values that it returns are stored."""

from __future__ import annotations

import builtins
import functools
import inspect
import linecache
import os
import re
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn

from gemmery import _core
from gemmery.errors import Error
from gemmery.fusion import functions, kept
from gemmery.fusion.returned_names import returned_names
from gemmery.fusion.value import (
    NO_REDUCTIONS,
    Reduced,
    Subject,
    TraceError,
    Value,
    described,
    errors_about,
    expression_of,
    refuse,
    subject,
)

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_FRAMEWORKS = ("torch", "numpy", "cupy", "jax")


def trace(function: Callable[..., Any] | str | _core.Program | Mapping[str, Any], bound: Iterable[str] = ()) -> _core.Program:
    """The program of a callable, of a text, or of a mapping of result names to values.

    The callable has a parameter `accum` (the accumulators) and one for every operand. It is called once, and not again
    while its code, its defaults, its closure and the globals that it reads stay the same numbers, texts and functions; a
    callable that reads any other object is called each time. The returned values are stored. One value is D; several
    have the names of the variables in the `return` statement (D among them), the keys of a dict or the fields of a named
    tuple. If the source is not available (exec, a lambda that returns a tuple), several values are D and then the
    names of `bound` that are not parameters, in their order.

    Parameters that `bound` does not name keep their defaults. Names that the function does not define (`relu`, `where`,
    `bf16`, also Python's max, min, sum, abs, round and pow on values) are those of the text form: a copy of the function
    with further globals is called, and the function itself is not changed.

    Raises ValueError, with the line in the function, for anything that a program cannot do.
    """
    if isinstance(function, _core.Program):
        return function
    if isinstance(function, str):
        return kept.program_of(function, lambda: _core.Program(_without_dimensions(function)))
    if isinstance(function, Mapping):
        return _core.Program([_result(name, value) for name, value in function.items()])
    names = tuple(bound)
    return kept.program_of_function(function, names, lambda: _Tracing(function, list(names)).program())


def trace_operand(function: Callable[..., Any], bound: Iterable[str] = ()) -> tuple[_core.Program, str]:
    """The program of a callable of the element of an operand, the parameter `a` or `b`, which is also returned.

    It is traced as `trace` says, with the element in place of the accumulators. Its one value is the one that is multiplied.
    """
    with errors_about(Subject("operand program", "a")):
        parameters = _Tracing(function, []).parameters()
        elements = [name for name in ("a", "b") if name in parameters]
        if len(elements) != 1:
            refuse(
                "one of the parameters a and b, the element", f"({', '.join(parameters)})", "def A(a, gate): return a * gate"
            )
    names = tuple(bound)
    element = elements[0]
    key = (*names, f"element {element}")
    with errors_about(Subject(f"program_{element}", element, element.upper())):
        return kept.program_of_function(function, key, lambda: _OperandTracing(function, list(names)).program()), element


_DIMENSIONS = re.compile(r",\s*dim\s*=\s*[\[(][-\d,\s]*[\])]")


def _without_dimensions(text: str) -> str:
    """Removes the dimensions that a text may give for a reduction; the tensor bound to the result decides them."""
    return _DIMENSIONS.sub("", text) if text.lstrip().startswith("def ") else text


def trace_in_out(
    function: Callable[..., Any] | str | _core.Program | Mapping[str, Any], bound: Iterable[str] = ()
) -> tuple[list[str], list[str]]:
    """The names that a program reads besides `accum`, and those of its results: the keywords of EpilogueArguments.

    The names of a callable are in the order of its parameters, others in the order in which they are first read. A
    parameter with a default is an operand only if `bound` has its name (see `trace`).
    """
    program = trace(function, bound)
    inputs = list(program.inputs)
    if callable(function) and not isinstance(function, _core.Program):
        parameters = list(_signature(_of_module(function)).parameters)
        inputs.sort(key=parameters.index)
    return inputs, list(program.outputs)


def reference(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with names that it does not define bound to the text form's functions, so that it can be called on torch
    tensors or NumPy arrays. A function that imports everything it uses is its own reference."""
    if not callable(function):
        refuse("a function", repr(function), "a text or a Program has no reference to be called")
    return functools.wraps(function)(_with_our_names(function))


class _Tracing:
    def __init__(self, function: Callable[..., Any], bound: list[str]) -> None:
        self.function = _of_module(function)
        self.bound = bound
        self.element = subject().element
        self.values: dict[str, Value] = {}

    def program(self) -> _core.Program:
        args, kwargs = self._arguments()
        callee = _with_our_names(self.function)
        try:
            with functions.while_tracing():
                returned = callee(*args, **kwargs)
            results = [_result(name, value) for name, value in self._named(returned)]
            program = _core.Program(results)
        except NameError as error:
            self._refuse_name(error)
        except (TraceError, ValueError, TypeError, Error) as error:
            self._add_place(error)
        self._check_parameters(program)
        return program

    def parameters(self) -> list[str]:
        return list(self._signature().parameters)

    # --- what it is called with ---

    def _arguments(self) -> tuple[list[Any], dict[str, Any]]:
        parameters = self._signature().parameters
        if self.element not in parameters:
            refuse(
                "accum among the parameters",
                f"({', '.join(parameters)})",
                f"accum is the product: def f(accum, ...){self._place()}",
            )
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for parameter in parameters.values():
            value = self._argument(parameter)
            if value is inspect.Parameter.empty:
                continue
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                kwargs[parameter.name] = value
            else:
                args.append(value)
        return args, kwargs

    def _argument(self, parameter: inspect.Parameter) -> Any:
        name = parameter.name
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            refuse("a parameter for every operand", f"*{name}", f"def f({self.element}, bias){self._place()}")
        if name == self.element:
            return Value(_core.accum())
        if name not in self.bound and parameter.default is not inspect.Parameter.empty:
            return parameter.default
        value = Value(_core.operand(name))
        self.values[name] = value
        return value

    def _signature(self) -> inspect.Signature:
        try:
            return _signature(self.function)
        except (TypeError, ValueError) as error:
            about = subject()
            kinds = "a function, a text or a Program" if about.element == "accum" else "a function or a text"
            raise TypeError(
                f"{about.name}: expected {kinds}, got {self.function!r}; wrap it: lambda {about.element}: ..."
            ) from error

    def _check_parameters(self, program: _core.Program) -> None:
        unread = [name for name in self.values if name not in program.inputs]
        if unread:
            refuse(
                "parameters that what is stored reads",
                f"'{unread[0]}', which it does not",
                f"leave it out, or return what reads it{self._place()}",
            )

    # --- what it returns ---

    def _named(self, returned: Any) -> list[tuple[str, Any]]:
        if isinstance(returned, Mapping):
            return list(returned.items())
        if isinstance(returned, tuple) and hasattr(returned, "_fields"):
            return list(zip(returned._fields, returned, strict=True))
        if not isinstance(returned, (tuple, list)):
            return [(self._single_name(), returned)]
        names = self._names_in_source(len(returned)) or self._names_in_order(len(returned))
        return list(zip(names, returned, strict=True))

    def _single_name(self) -> str:
        """A single value is D, unless its variable has the name of something that is bound."""
        if all(name in self.values for name in self.bound):
            return "D"
        names = self._names_in_source(1)
        if names and names[0] != "D" and names[0] in self.bound:
            refuse("D among the returned names", names[0], f"D is what out receives: return D, {names[0]}")
        return "D"

    def _names_in_source(self, count: int) -> list[str] | None:
        return returned_names(_plain_function(self.function), count)

    def _names_in_order(self, count: int) -> list[str]:
        results = [name for name in self.bound if name not in self.values and name != "accum"]
        names = results if "D" in results else ["D", *results]
        if len(names) != count:
            refuse(
                f"{len(names)} returned values, for {', '.join(names)}",
                f"{count}",
                "the names of what is returned are not in reach of this function's source: return a dict, "
                '{"D": ..., "aux": ...}',
            )
        return names

    # --- errors ---

    def _refuse_name(self, error: NameError) -> NoReturn:
        """Refuses an unknown name, with the library's suggestion of the nearest one."""
        name = error.name or str(error)
        if isinstance(error, UnboundLocalError):
            raise error
        hint = _suggestion(name)
        if not hint:
            known = ", ".join([self.element, *self.values])
            hint = f"values from outside are parameters, bound by name; it has {known}"
        hint += place_of(error)
        raise described(TraceError, "a parameter, a variable or a function", f"'{name}'", hint) from error

    def _add_place(self, error: Exception) -> NoReturn:
        """Leaves errors of the user's function unchanged and adds to ours the line in that function."""
        if not isinstance(error, Error) and not _is_ours(error):
            raise error
        text = str(error) + (place_of(error) or self._place())
        kind = type(error) if isinstance(error, Error) else TraceError
        placed = kind(text)
        placed.__dict__.update(error.__dict__)
        raise placed from error

    def _place(self) -> str:
        code = getattr(_plain_function(self.function), "__code__", None)
        return "" if code is None else place_at(code.co_filename, code.co_firstlineno)


class _OperandTracing(_Tracing):
    """Of a program of an operand, whose one value is multiplied."""

    def _named(self, returned: Any) -> list[tuple[str, Any]]:
        letter = subject().result
        if isinstance(returned, Mapping) and list(returned) == [letter]:
            returned = returned[letter]
        if isinstance(returned, (Mapping, tuple, list)):
            got = f"the names {', '.join(map(str, returned))}" if isinstance(returned, Mapping) else f"{len(returned)} values"
            refuse(f"one value, {letter}", got, f"the element that is multiplied: return {subject().element}")
        if isinstance(returned, Reduced):
            refuse(f"{letter} element by element", f"a reduction ({returned.kind})", NO_REDUCTIONS)
        return [("D", returned)]  # as programs call it


def _signature(function: Any) -> inspect.Signature:
    """Cached for plain functions, whose code and defaults determine it."""
    if type(function) is not types.FunctionType or hasattr(function, "__wrapped__") or function.__defaults__:
        return inspect.signature(function)
    if function.__kwdefaults__:
        return inspect.signature(function)
    return _signature_of_code(function.__code__)


@functools.lru_cache(maxsize=512)
def _signature_of_code(code: types.CodeType) -> inspect.Signature:
    return inspect.signature(types.FunctionType(code, {}, None, None, tuple(types.CellType() for _ in code.co_freevars)))


def _suggestion(name: str) -> str:
    """The library's suggestion, such as "did you mean gelu?"."""
    try:
        _core.call(name, [])
    except Error as error:
        return error.hint
    return ""


def _of_module(function: Any) -> Any:
    """The function that a torch module computes."""
    is_module = not isinstance(function, (types.FunctionType, type)) and hasattr(type(function), "forward")
    return function.forward if is_module else function


def _result(name: str, value: Any) -> tuple[str, _core.Expression, str]:
    if not isinstance(name, str):
        refuse("results that are named by strings", repr(name), 'return {"D": ..., "aux": ...}')
    name = "accum_out" if name == "accum" else name
    if isinstance(value, Reduced):
        return name, expression_of(value.value), value.kind
    if value is None:
        refuse(f"a value for {_spoken(name)}", "None", f"the function ends with: return {_spoken('D')}")
    return name, expression_of(value, f"result {_spoken(name)}"), "none"


def _spoken(result: str) -> str:
    """A result's name in errors: the value of an operand's program is its operand."""
    return subject().result if result == "D" else result


# --- the function with further globals -----------------------------------------------------------


def _with_our_names(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy of the function whose globals also have the text form's names: those that the function does not define, and those
    of builtins that do not accept values (max, sum, …)."""
    if isinstance(function, functools.partial):
        return functools.partial(_with_our_names(function.func), *function.args, **function.keywords)
    if isinstance(function, types.MethodType):
        return types.MethodType(_with_our_names(function.__func__), function.__self__)
    if not isinstance(function, types.FunctionType):
        call = inspect.getattr_static(type(function), "__call__", None)
        return types.MethodType(_with_our_names(call), function) if isinstance(call, types.FunctionType) else function
    ours = _missing_names(function)
    if not ours:
        return function
    copy = types.FunctionType(
        function.__code__, {**function.__globals__, **ours}, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _missing_names(function: types.FunctionType) -> dict[str, Any]:
    own = function.__globals__
    missing = {}
    for name in kept.names_in(function.__code__):
        if name in own:
            continue
        if hasattr(builtins, name) and name not in _BUILTINS_OF_OURS:
            continue
        value = functions.find(name)
        if value is None:
            value = _words().get(name)
        if value is not None:
            missing[name] = value
    return missing


_BUILTINS_OF_OURS = frozenset(("abs", "max", "min", "pow", "round", "sum"))


@functools.cache
def _words() -> dict[str, Any]:
    """The words of the text form that are not functions."""
    words: dict[str, Any] = {"inf": float("inf"), "nan": float("nan")}
    words.update({word: word for word in ("nearest_even", "toward_zero", "natural", "saturate", "rceil")})
    for dtype in _core.DType:
        words[dtype.name] = dtype
        words[dtype.alias] = dtype
    return words


def _plain_function(function: Any) -> Any:
    """The Python function behind a partial, a method or an object that can be called."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, types.MethodType):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif not isinstance(function, types.FunctionType) and isinstance(
            inspect.getattr_static(type(function), "__call__", None), types.FunctionType
        ):
            function = type(function).__call__
        else:
            return function


# --- places --------------------------------------------------------------------------------------


def place_at(filename: str, line: int) -> str:
    """The end of an error message that names a line."""
    source = linecache.getline(filename, line).strip()
    return f"\n  at {filename}:{line}" + (f": {source}" if source else "")


def place_of(error: BaseException) -> str:
    """The innermost line of the traceback that is in the user's code."""
    place = ""
    traceback = error.__traceback__
    while traceback is not None:
        frame = traceback.tb_frame
        if not _is_library(frame):
            place = place_at(frame.f_code.co_filename, traceback.tb_lineno)
        traceback = traceback.tb_next
    return place


def _is_library(frame: types.FrameType) -> bool:
    module = frame.f_globals.get("__name__", "")
    return os.path.abspath(frame.f_code.co_filename).startswith(_PACKAGE + os.sep) or module.partition(".")[0] in _FRAMEWORKS


def _is_ours(error: BaseException) -> bool:
    """True if this package raised it, or the native module when this package called it."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback is not None and os.path.abspath(traceback.tb_frame.f_code.co_filename).startswith(_PACKAGE + os.sep)
