# SPDX-License-Identifier: Apache-2.0
"""Everything public has a docstring: help() prints a text beyond the signature."""

import enum
import inspect
import re

import pytest

import gemmery

MODULES = [gemmery, *(value for name in gemmery.__all__ if inspect.ismodule(value := getattr(gemmery, name)))]
CALLABLES = {
    f"{module.__name__}.{name}": value
    for module in MODULES
    for name in getattr(module, "__all__", ())
    if callable(value := getattr(module, name)) and not isinstance(value, enum.Enum) and hasattr(value, "__name__")
}


def words_of(described, name: str) -> str:
    """The docstring without the signatures that the native module puts first."""
    text = inspect.cleandoc(getattr(described, "__doc__", None) or "")
    is_signature = re.compile(rf"(\d+\. ``)?({re.escape(name)})?\(self.*|{re.escape(name)}\(.*->.*|Overloaded function\.")
    return "\n".join(line for line in text.splitlines() if line and not is_signature.fullmatch(line))


def members_of(described):
    """Public methods and properties that a class of this package defines."""
    for owner in inspect.getmro(described):
        if owner.__module__.partition(".")[0] != "gemmery":
            continue
        for name, member in vars(owner).items():
            is_described = callable(member) or isinstance(member, (property, classmethod, staticmethod))
            if not name.startswith("_") and is_described and not isinstance(member, enum.Enum):
                yield name, member.__func__ if isinstance(member, (classmethod, staticmethod)) else member


def test_there_is_something_to_read():
    assert {"gemmery.GemmArguments", "gemmery.matmul", "gemmery.own_kernels.register_image"} <= CALLABLES.keys()
    assert "run" in dict(members_of(gemmery._core.Kernel))


@pytest.mark.parametrize("name", CALLABLES)
def test_public_names_have_docstrings(name):
    described = CALLABLES[name]
    assert words_of(described, described.__name__), f"{name} has no docstring"
    if not inspect.isclass(described):
        return
    owners = [described, gemmery._core.Kernel] if described is gemmery.Kernel else [described]
    members = [(member, value) for owner in owners for member, value in members_of(owner)]
    heard = {member for member, value in members if words_of(value, member)}  # the docstring of a base class's method counts
    assert sorted({member for member, _ in members} - heard) == []


def test_native_and_written_docstrings_are_the_same_text():
    assert "batch" in words_of(gemmery.GemmArguments, "GemmArguments")
    assert "Ctrl-C" in words_of(gemmery._core.Kernel.compile, "compile")
    assert words_of(gemmery.VerifyReport.seed, "seed") == "The seed of the random operands."
