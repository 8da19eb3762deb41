# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a call that nanobind refused, in the words of this package's errors. The native module asks."""

from __future__ import annotations

import ast
import collections.abc
import difflib
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

# What a parameter of these annotations takes; for float and int, whatever converts to one.
_NUMBERS = {"int": "__index__", "float": "__float__"}
_PLAIN = {"str": str, "bool": bool, "bytes": bytes, "list": list, "tuple": tuple, "dict": dict, "set": set}


def _class_of(annotation: str) -> type | None:
    """The class that a dotted name means; None if it is unknown."""
    module, _, name = annotation.rpartition(".")
    if module == "collections.abc":
        return getattr(collections.abc, name, None)
    found: Any = sys.modules.get(module)
    if found is None and "." in module:  # a class within a class
        found = _class_of(module)
    found = getattr(found, name, None)
    return found if isinstance(found, type) else None


def _accepts(annotation: ast.expr, value: object) -> bool:
    """False if a value is certainly none of the annotation's. Only an annotation with None takes None."""
    if isinstance(annotation, ast.BinOp):
        return _accepts(annotation.left, value) or _accepts(annotation.right, value)
    if value is None or isinstance(annotation, ast.Constant):
        return value is None and isinstance(annotation, ast.Constant)
    if isinstance(annotation, ast.Subscript):
        return _accepts(annotation.value, value) and _accepts_elements(annotation.slice, value)
    text = ast.unparse(annotation)
    if text in _NUMBERS:
        return hasattr(value, _NUMBERS[text]) or hasattr(value, "__index__")
    kind = _PLAIN.get(text) or _class_of(text)
    return kind is None or isinstance(value, kind)


def _accepts_elements(annotation: ast.expr, value: object) -> bool:
    if isinstance(annotation, ast.Tuple) or isinstance(value, str) or not isinstance(value, (list, tuple)):
        return True
    return all(_accepts(annotation, element) for element in value)


def _text_of(annotation: ast.expr) -> str:
    """ "GemmArguments or None" """
    text = re.sub(r"\b(gemmery\._core|collections\.abc)\.", "", ast.unparse(annotation))
    return re.sub(r"\bobject\b", "a value", text).replace(" | ", " or ")


def _kind_of(value: object) -> str:
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{name} of {', '.join(sorted({_kind_of(one) for one in value}))}" if type(value) is list and value else name


def suggestion(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _parse(signature: str) -> ast.arguments:
    r"""The parameters of "def run(self, args: …, stream: object | None = \1) -> None"."""
    text = re.sub(r"= \\\d+", "= None", signature)
    (function,) = ast.parse(f"{text}: ...").body
    assert isinstance(function, ast.FunctionDef)
    return function.args


class _Call:
    """A call compared with one signature."""

    def __init__(self, parameters: ast.arguments, positional: Sequence[object], named: Mapping[str, object]) -> None:
        by_place = [*parameters.posonlyargs, *parameters.args]
        if by_place and by_place[0].arg == "self":
            by_place, positional = by_place[1:], positional[1:]
        self.by_place = by_place
        self.all = [*by_place, *parameters.kwonlyargs]
        self.names = [one.arg for one in self.all]
        first = len(by_place) - len(parameters.defaults)
        by_name = zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
        optional = [*by_place[max(first, 0) :], *(one for one, default in by_name if default is not None)]
        self.required = [one.arg for one in self.all if one not in optional]
        self.takes_more = parameters.vararg is not None
        self.takes_any_name = parameters.kwarg is not None
        self.positional = positional
        self.named = named

    def complaint(self) -> tuple[int, str]:
        """The first thing that is wrong, and how far the call got."""
        by_place = dict(zip(self.names, self.positional[: len(self.by_place)], strict=False))
        given = {**by_place, **self.named}
        twice = next((name for name in self.named if name in by_place), "")
        lacking = next((name for name in self.required if name not in given), "")
        found = [
            self._unknown_name(),
            self._too_many(),
            twice and f"{twice}: expected once, got by place and by name",
            lacking and f"{lacking}: expected a value, got none",
            self._wrong_type(given),
            self._any_value(),
        ]
        return next((place, text) for place, text in enumerate(found) if text)

    def _unknown_name(self) -> str:
        unknown = next((name for name in self.named if name not in self.names), None)
        if unknown is None or self.takes_any_name:
            return ""
        known = f"argument{'' if len(self.names) == 1 else 's'} named {', '.join(self.names)}" if self.names else "no arguments"
        return f"expected {'an ' if len(self.names) == 1 else ''}{known}, got {unknown}{suggestion(unknown, self.names)}"

    def _too_many(self) -> str:
        most, got = len(self.by_place), len(self.positional)
        if got <= most or self.takes_more:
            return ""
        return f"expected {f'at most {most}' if most else 'no'} argument{'' if most == 1 else 's'} by place, got {got}"

    def _wrong_type(self, values: Mapping[str, object]) -> str:
        for one in self.all:
            if one.arg in values and one.annotation is not None and not _accepts(one.annotation, values[one.arg]):
                return f"{one.arg}: expected {_text_of(one.annotation)}, got {_kind_of(values[one.arg])}"
        return ""

    def _any_value(self) -> str:
        """Of values of the right types, such as a number beyond the range of its type."""
        shapes = [f"{one.arg}: {_text_of(one.annotation)}" if one.annotation is not None else one.arg for one in self.all]
        got = [*map(_kind_of, self.positional), *(f"{name}={_kind_of(value)}" for name, value in self.named.items())]
        return f"expected ({', '.join(shapes)}), each within its range, got ({', '.join(got)})"


def describe_call(function: Any, positional: tuple[object, ...], named: dict[str, object]) -> str:
    """The message: "find_kernel: name: expected str, got int". Of several overloads, the one that fits best has the word."""
    name = str(function.__qualname__).removesuffix(".__init__")
    complaints = [_Call(_parse(overload[0]), positional, named).complaint() for overload in function.__nb_signature__]
    return f"{name}: {max(complaints, key=lambda one: one[0])[1]}"
