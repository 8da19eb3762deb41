#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints sizes, without limits: lines per room, the longest files and the longest functions of C++, CUDA and Python.

usage: report_sizes.py [COUNT]        COUNT: how many of the longest to show (default 12)
"""

import ast
import collections
import pathlib
import re
import statistics
import subprocess
import sys

import check_layers

ROOT = pathlib.Path(__file__).resolve().parent.parent
CURLY_SUFFIXES = {".hpp", ".cpp", ".h", ".cuh", ".cu", ".def"}
LITERAL = re.compile(
    r'R"(?P<tag>[^()\\\s]{0,16})\(.*?\)(?P=tag)"|//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)\'|^[ \t]*#(?:[^\n\\]|\\.)*',
    re.DOTALL | re.MULTILINE,
)
NOT_A_FUNCTION = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b(?!.*\))", re.DOTALL)
# The name before the first parenthesis that is not part of an attribute or of noexcept(…).
FUNCTION_NAME = re.compile(r"(?<![\w:~])((?:[A-Za-z_~][\w~]*(?:<[^<>()]*>)?::)*(?:operator\s*\S{1,3}|[A-Za-z_~]\w*))\s*\(")
NO_NAMES = {"__launch_bounds__", "__align__", "alignas", "decltype", "requires", "noexcept", "__attribute__", "explicit", "sizeof"}


def tracked_files():
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return [name for name in names if pathlib.Path(name).suffix in CURLY_SUFFIXES | {".py"} and (ROOT / name).is_file()]


def functions_of(name, text):
    """(length in lines, function, first line) for each function of a file."""
    return functions_of_python(text) if name.endswith(".py") else functions_of_curly(text)


def functions_of_python(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.end_lineno - node.lineno + 1, node.name, node.lineno


def functions_of_curly(text):
    """Outermost braces that follow a parameter list, outside of any function."""
    code = LITERAL.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    stack, start_of_head = [], 0  # stack: (name, line) of a function, or None for other braces
    for match in re.finditer(r"[{};]", code):
        at = match.start()
        is_inside_function = any(stack)
        if match.group() == "{":
            stack.append(None if is_inside_function else function_of_head(code, start_of_head, at))
        elif match.group() == "}" and stack:
            opened = stack.pop()
            if opened:
                yield code.count("\n", 0, at) + 1 - opened[1] + 1, *opened
        if not is_inside_function or not any(stack):
            start_of_head = at + 1


def function_of_head(code, start, end):
    head = code[start:end]
    if ")" not in head or NOT_A_FUNCTION.search(head) or head.rstrip().endswith(("=", ",", "(")):
        return None
    for match in FUNCTION_NAME.finditer(head):
        if match.group(1) not in NO_NAMES and not match.group(1).startswith("GEMMERY_"):
            return match.group(1), code.count("\n", 0, start + match.start(1)) + 1
    return None


def room_of(layers, name):
    if name.startswith("src/"):
        return layers.room_of(name.removeprefix("src/")) or "src"
    return name.split("/")[0] if "/" in name else "(top)"


def print_table(title, rows):
    print(f"\n{title}")
    for row in rows:
        print("  " + "  ".join(f"{cell:>6}" if isinstance(cell, int) else str(cell) for cell in row))


def main(arguments):
    count = int(arguments[0]) if arguments else 12
    checker = check_layers.Checker(ROOT)
    checker.read_map()
    lines, files, functions = collections.Counter(), [], []
    for name in tracked_files():
        text = (ROOT / name).read_text(encoding="utf-8")
        length = text.count("\n")
        lines[room_of(checker.map, name)] += length
        files.append((length, name))
        functions += [(size, f"{function}  {name}:{line}") for size, function, line in functions_of(name, text)]
    print_table("Lines per room", [(length, room) for room, length in lines.most_common()] + [(sum(lines.values()), "all")])
    print_table("Longest files", sorted(files, reverse=True)[:count])
    print_table("Longest functions", sorted(functions, reverse=True)[:count])
    print(f"\n{len(functions)} functions, median {statistics.median(size for size, _ in functions):.0f} lines,"
          f" {sum(size > 100 for size, _ in functions)} over 100")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
