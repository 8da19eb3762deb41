# SPDX-License-Identifier: Apache-2.0
"""The names of the variables that a function returns, read from its source."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import types
from typing import Any


def returned_names(function: Any, count: int) -> list[str] | None:
    """The names in `return D, aux`; None if there is no source, if a returned value is not a variable, or if return
    statements with as many values differ."""
    code = getattr(function, "__code__", None)
    if code is None:
        return None
    fitting = {names for names in _all_returned_names(code) if len(names) == count}
    return list(fitting.pop()) if len(fitting) == 1 else None


@functools.lru_cache(maxsize=512)  # reading and parsing a source takes a millisecond
def _all_returned_names(code: types.CodeType) -> frozenset[tuple[str, ...]]:
    body = _definition(code)
    if body is None:
        return frozenset()
    return frozenset(tuple(names) for names in map(_names, _returns(body)) if names is not None)


def _definition(code: types.CodeType) -> ast.FunctionDef | ast.Lambda | None:
    try:
        source = textwrap.dedent(inspect.getsource(code))
        tree = ast.parse(source)
    except (OSError, TypeError, SyntaxError):  # none, or a lambda in the middle of an expression
        return None
    parameters = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    fitting = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.Lambda)) and _is_of(node, code.co_name, parameters)
    ]
    return fitting[0] if len(fitting) == 1 else None


def _is_of(node: ast.FunctionDef | ast.Lambda, name: str, parameters: list[str]) -> bool:
    """The source may have changed since it was imported, and a line may hold two lambdas."""
    arguments = node.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return names == parameters and (name == "<lambda>" if isinstance(node, ast.Lambda) else name == node.name)


def _returns(definition: ast.FunctionDef | ast.Lambda) -> list[ast.expr]:
    if isinstance(definition, ast.Lambda):
        return [definition.body]
    found: list[ast.expr] = []
    rest: list[ast.AST] = list(definition.body)
    while rest:
        node = rest.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue  # returns of their own
        if isinstance(node, ast.Return) and node.value is not None:
            found.append(node.value)
        rest.extend(ast.iter_child_nodes(node))
    return found


def _names(value: ast.expr) -> list[str] | None:
    elements = value.elts if isinstance(value, (ast.Tuple, ast.List)) else [value]
    names = [element.id for element in elements if isinstance(element, ast.Name)]
    return names if len(names) == len(elements) else None
