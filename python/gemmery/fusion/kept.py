# SPDX-License-Identifier: Apache-2.0
"""A cache of programs, keyed by everything that tracing a function or parsing a text depends on."""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from gemmery import _core

__all__ = ["key_of", "names_in", "program_of", "program_of_function"]

_programs: dict[Hashable, _core.Program] = {}
_most_programs = 1024


def program_of(key: Hashable, make: Callable[[], _core.Program]) -> _core.Program:
    """The program kept under an equal key, or a new one."""
    program = _programs.get(key)
    if program is None:
        program = make()
        if len(_programs) >= _most_programs:
            _programs.clear()
        _programs[key] = program
    return program


class _Seen(NamedTuple):
    """What a function read when it was traced: only constants and functions of the library."""

    bound: tuple[str, ...]
    code: types.CodeType
    globals: tuple[tuple[str, Any], ...]
    program: _core.Program


_seen: dict[Any, _Seen] = {}


def program_of_function(function: Any, bound: tuple[str, ...], make: Callable[[], _core.Program]) -> _core.Program:
    """The kept program of a function, if everything that the function reads is unchanged; else the result of `make`."""
    seen = _seen.get(function) if type(function) is types.FunctionType else None
    if seen is not None and seen.bound == bound and seen.code is function.__code__ and _reads_only_globals(function):
        own = function.__globals__
        for name, value in seen.globals:
            if own.get(name, _seen) is not value:
                break
        else:
            return seen.program
    key = key_of(function, bound)
    if key is None:
        return make()
    program = program_of(key, make)
    _remember(function, bound, program)
    return program


def _reads_only_globals(function: types.FunctionType) -> bool:
    return not (function.__closure__ or function.__defaults__ or function.__kwdefaults__)


def _remember(function: types.FunctionType, bound: tuple[str, ...], program: _core.Program) -> None:
    own = function.__globals__
    values = tuple((name, own.get(name, _seen)) for name in names_in(function.__code__))
    reads_others = any(type(value) is types.FunctionType and not _is_of(value.__module__) for _, value in values)
    if reads_others or not _reads_only_globals(function):
        return
    if len(_seen) >= _most_programs:
        _seen.clear()
    _seen[function] = _Seen(bound, function.__code__, values, program)


def key_of(function: Any, bound: tuple[str, ...]) -> Hashable | None:
    """Everything that tracing a function depends on: its code, defaults, closure and globals, and the names that are bound.

    None if that is not known: if it is not a plain function, or reads an object that may change (a list, an array, an
    instance). Such a function is traced at every call.
    """
    try:
        return (bound, _function_key(function, ()))
    except _Unknown:
        return None


class _Unknown(Exception):
    pass


_constant_types = frozenset((int, bool, str, type(None), _core.DType, types.BuiltinFunctionType))
_modules = frozenset(("gemmery", "torch", "numpy", "cupy", "jax", "math"))


def _function_key(function: Any, callers: tuple[Any, ...]) -> Hashable:
    if type(function) is not types.FunctionType or function in callers or "__wrapped__" in function.__dict__:
        raise _Unknown
    code = function.__code__
    callers = (*callers, function)
    own = function.__globals__
    names = names_in(code)
    parts: list[Any] = [code]
    for name in names:
        parts.append(_value_key(own[name], callers) if name in own else None)
    if function.__closure__:
        parts.extend(_cell_key(cell, callers) for cell in function.__closure__)
    if function.__defaults__:
        parts.extend(_value_key(value, callers) for value in function.__defaults__)
    if function.__kwdefaults__:
        parts.extend((name, _value_key(value, callers)) for name, value in function.__kwdefaults__.items())
    return tuple(parts)


def _cell_key(cell: types.CellType, callers: tuple[Any, ...]) -> Hashable:
    try:
        return _value_key(cell.cell_contents, callers)
    except ValueError:  # not bound yet
        raise _Unknown from None


def _value_key(value: Any, callers: tuple[Any, ...]) -> Hashable:
    """Equal for values that mean the same to a program. 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    kind = type(value)
    if kind is float:
        return value.hex()  # type: ignore[no-any-return]
    if kind in _constant_types:
        return (kind, value)
    if kind is types.FunctionType:
        return value if _is_of(value.__module__) else _function_key(value, callers)
    if kind is types.ModuleType and _is_of(value.__name__):
        return value.__name__  # type: ignore[no-any-return]
    if _is_of(kind.__module__) and kind.__name__ == "Function":
        return ("gemmery.fusion", value.__name__)
    raise _Unknown


def _is_of(module: str | None) -> bool:
    return (module or "").partition(".")[0] in _modules


@functools.lru_cache(maxsize=512)
def names_in(code: types.CodeType) -> frozenset[str]:
    """The global names that a function and its nested functions read."""
    names = {
        instruction.argval for instruction in dis.get_instructions(code) if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= names_in(constant)
    return frozenset(names)
