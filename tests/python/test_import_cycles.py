# SPDX-License-Identifier: Apache-2.0
"""No module of the package imports itself through others; imports inside functions count."""

import ast
import graphlib
import pathlib

import pytest

import gemmery

PACKAGE = pathlib.Path(gemmery.__file__).parent


def modules_of(package: pathlib.Path) -> dict[str, pathlib.Path]:
    """Every module of a package by its full name; native ones have stubs."""
    found = {}
    for path in [*package.rglob("*.pyi"), *package.rglob("*.py")]:
        parts = [package.name, *path.relative_to(package).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(path: pathlib.Path, name: str, known: set[str]) -> set[str]:
    """The modules among `known` that a module imports, anywhere in its text. A name that `from` imports from a package
    is that module if there is one."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative import"
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inside & known if inside & known else {node.module}
    return (found & known) - {name}


def cycle_of(package: pathlib.Path) -> list[str]:
    """The modules of one import cycle; empty if there is no cycle."""
    modules = modules_of(package)
    sources = {name: path for name, path in modules.items() if path.suffix == ".py"}
    graph = {name: imports_of(path, name, set(modules)) for name, path in sources.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_imports_itself_by_way_of_others():
    assert cycle_of(PACKAGE) == []


@pytest.mark.parametrize("second", ["from pkg import a", "def f():\n    from pkg.a import x", "import pkg.a"])
def test_a_cycle_is_found(tmp_path, second):
    package = tmp_path / "pkg"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("from pkg import b")
    (package / "b.py").write_text(second)
    assert set(cycle_of(package)) == {"pkg.a", "pkg.b"}
