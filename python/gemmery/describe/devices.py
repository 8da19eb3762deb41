# SPDX-License-Identifier: Apache-2.0
"""The device of described operations whose operands do not determine it."""

from __future__ import annotations

from gemmery import _core
from gemmery.errors import InvalidArgumentError, UnavailableError

__all__ = ["device", "set_device"]

_chosen: str | None = None


def set_device(name: str | None) -> None:
    """Sets the device of operands that have none, such as NumPy arrays: "cuda:1", "emulated:a100"; None: the first GPU."""
    if name is not None and not isinstance(name, str):
        raise TypeError(f"device: expected a name, got {type(name).__name__}")
    if name is not None and not name.startswith(("cuda", "emulated:")):
        raise InvalidArgumentError(f'invalid argument: device: expected "cuda:0" or "emulated:a100", got {name!r}')
    if name is not None:
        _core.device_info(name)
    global _chosen
    _chosen = name


def device() -> str:
    """The device given to `set_device`, else the first GPU. Raises UnavailableError if there is none."""
    if _chosen is not None:
        return _chosen
    found = _core.devices()
    if not found:
        raise UnavailableError(
            'unavailable: device: expected a GPU, got none; describe.set_device("emulated:a100") runs kernels on the CPU'
        )
    return found[0]
