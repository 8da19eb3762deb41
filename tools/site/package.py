# SPDX-License-Identifier: Apache-2.0
"""Pages from the Python package: signatures and docstrings of what its modules export, read without importing it."""

import pathlib
import textwrap

import griffe
from markdown import escaped, fenced

# Of each module what its __all__ names; a name that `gemmery` exports, too, is described there alone.
MODULES = [
    "gemmery", "gemmery.own_kernels", "gemmery.fusion", "gemmery.describe", "gemmery.metadata", "gemmery.providers", "gemmery.emulation",
    "gemmery.testing", "gemmery.torch_ops", "gemmery.cache", "gemmery.config", "gemmery.artifact", "gemmery.arguments", "gemmery.manifest",
    "gemmery.kernel", "gemmery.status", "gemmery.typing", "gemmery.utils",
]  # fmt: skip


def _resolved(thing: griffe.Object | griffe.Alias) -> griffe.Object:
    return thing.final_target if isinstance(thing, griffe.Alias) else thing


def _member(module: griffe.Module, name: str) -> griffe.Object | None:
    """What a module exports by this name; a function that is imported over the module of its name comes first."""
    if name not in module.members:
        return None
    try:
        found = _resolved(module.members[name])
    except griffe.AliasResolutionError:
        return None
    if isinstance(found, griffe.Module):
        return _member(found, name)
    return found


def _docstring(thing: griffe.Object) -> str:
    return escaped(thing.docstring.value) if thing.docstring else ""


def _signature(function: griffe.Function, prefix: str = "") -> str:
    text = f"{prefix}{function.signature()}"
    if len(text) <= 100:
        return text
    head, _, rest = text.partition("(")
    inside, _, returned = rest.rpartition(")")
    parameters = [piece.strip() for piece in _split_parameters(inside)]
    return f"{head}(\n" + "".join(f"    {parameter},\n" for parameter in parameters) + f"){returned}"


def _split_parameters(text: str) -> list[str]:
    pieces, depth = [""], 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += character
    return pieces


def _function(function: griffe.Function, heading: str) -> list[str]:
    overloads = function.overloads or []
    signatures = [_signature(one) for one in overloads] if isinstance(overloads, list) and overloads else [_signature(function)]
    return [heading, fenced("\n".join(signatures), "python"), _docstring(function)]


def _attribute(attribute: griffe.Attribute, heading: str) -> list[str]:
    declared = attribute.name + (f": {attribute.annotation}" if attribute.annotation else "")
    if not attribute.annotation and attribute.value is not None:  # a name for another object
        declared += f" = {attribute.value}"
    return [heading, *([fenced(declared, "python")] if declared != attribute.name else []), _docstring(attribute)]


def _described_members(thing: griffe.Class) -> list[griffe.Object]:
    found = []
    for name, member in thing.members.items():
        if (name.startswith("_") and name != "__init__") or member.is_alias:
            continue
        if isinstance(member, griffe.Function | griffe.Attribute):
            found.append(member)
    return found


def _class(thing: griffe.Class, name: str) -> list[str]:
    bases = ", ".join(str(base) for base in thing.bases)
    pieces = [f"## `{name}`", fenced(f"class {name}({bases})" if bases else f"class {name}", "python"), _docstring(thing)]
    for member in _described_members(thing):
        heading = f"### `{name}.{member.name}`" if member.name != "__init__" else f"### `{name}(…)`"
        if isinstance(member, griffe.Function):
            pieces += _function(member, heading)
        else:
            pieces += _attribute(member, heading)
    return pieces


def _page(module: griffe.Module, elsewhere: dict[str, str]) -> str:
    pieces = [f"# `{module.path}`", _docstring(module)]
    for name in sorted(module.exports or [], key=str.lower):
        member = _member(module, str(name))
        if member is None:
            continue
        if member.path in elsewhere:
            pieces.append(f"`{name}`: in [`{elsewhere[member.path]}`]({elsewhere[member.path]}.md).")
            continue
        elsewhere[member.path] = module.path
        if isinstance(member, griffe.Class):
            pieces += _class(member, str(name))
        elif isinstance(member, griffe.Function):
            pieces += _function(member, f"## `{name}`")
        elif isinstance(member, griffe.Attribute):
            pieces += _attribute(member, f"## `{name}`")
    return "\n\n".join(piece for piece in pieces if piece) + "\n"


def pages_of_package(sources: pathlib.Path) -> dict[str, str]:
    """Module name -> page, for the modules that a user imports."""
    package = griffe.load("gemmery", search_paths=[sources], allow_inspection=False)
    elsewhere: dict[str, str] = {}
    pages = {}
    for path in MODULES:
        module = package if path == "gemmery" else _resolved(package.members[path.partition(".")[2]])
        pages[path] = _page(module, elsewhere)
    return pages


def summary_of_module(page: str) -> str:
    """The first sentence of a page's text."""
    text = textwrap.shorten(page.split("\n\n")[1].replace("\n", " "), 500)
    return text.split(". ")[0].rstrip(".") + "."
