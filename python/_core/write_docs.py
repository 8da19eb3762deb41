# SPDX-License-Identifier: Apache-2.0
"""usage: write_docs.py _core.pyi docstrings.inc    writes the docstrings of a stub as rows of C++."""

import ast
import inspect
import json
import pathlib
import sys
from collections.abc import Iterator


def docstrings_of(body: list[ast.stmt], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Names with their docstrings: those of classes and functions, and texts that follow an attribute."""
    for node, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and (text := ast.get_docstring(node)):
            yield prefix + node.name, text
        if isinstance(node, ast.ClassDef):
            yield from docstrings_of(node.body, f"{node.name}.")
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and (text := text_of(following)):
            yield prefix + node.target.id, text


def text_of(node: ast.stmt | None) -> str:
    """The text of a statement that is a string alone."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return inspect.cleandoc(node.value.value) if is_text else ""


def main(stub: str, table: str) -> None:
    rows = dict(docstrings_of(ast.parse(pathlib.Path(stub).read_text(encoding="utf-8")).body))
    # JSON's escapes of the characters that occur are C++'s, too.
    lines = [f'{{"{name}", {json.dumps(text.strip(), ensure_ascii=False)}}},\n' for name, text in rows.items()]
    written = pathlib.Path(table)
    if not written.exists() or written.read_text(encoding="utf-8") != "".join(lines):  # else nothing is compiled again
        written.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
