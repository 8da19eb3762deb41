# SPDX-License-Identifier: Apache-2.0
"""What dir() and completion show of the package's modules: their own names, not what they import from elsewhere."""

from __future__ import annotations

import functools
import sys
import types


def own_names(module: types.ModuleType) -> list[str]:
    """The public names of a module, without other packages' modules, classes and functions."""
    return sorted(name for name, value in vars(module).items() if not name.startswith("_") and not _is_foreign(name, value))


def _is_foreign(name: str, value: object) -> bool:
    if isinstance(value, types.ModuleType):
        return not value.__name__.startswith("gemmery")
    home = getattr(value, "__module__", None) or "gemmery"
    return not home.startswith("gemmery") and getattr(sys.modules.get(home), name, None) is value


def install(package: types.ModuleType) -> None:
    """Gives each public module of the package a __dir__, unless it has one."""
    for name, module in vars(package).items():
        is_part = isinstance(module, types.ModuleType) and module.__name__.startswith("gemmery.")
        if is_part and not name.startswith("_") and "__dir__" not in vars(module):
            vars(module)["__dir__"] = functools.partial(own_names, module)
