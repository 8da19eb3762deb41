# SPDX-License-Identifier: Apache-2.0
"""Options of the whole process. The library's own options are environment variables: docs/environment.md."""

from __future__ import annotations

import logging
from typing import Any

from gemmery import _ignored, _log
from gemmery.errors import InvalidArgumentError

__all__ = ["GlobalOptions"]


class GlobalOptions:
    """One object per process.

    log_level: the lowest level of messages that go to `logging.getLogger("gemmery")`: "debug", "info", "warning" (the
        default) or "error". The program's logging handles them.
    use_tvm_ffi: accepted with one warning, and always False: tensors are exchanged by DLPack's C functions.
    """

    _instance: GlobalOptions | None = None
    _log_level: str

    def __new__(cls) -> GlobalOptions:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
            cls._instance._log_level = "warning"
        return cls._instance

    @property
    def log_level(self) -> str:
        """The lowest level of messages that reach the program's logging."""
        return self._log_level

    @log_level.setter
    def log_level(self, level: str) -> None:
        if level not in ("debug", "info", "warning", "error"):
            raise InvalidArgumentError(f'log_level: expected "debug", "info", "warning" or "error", got {level!r}')
        _log.forward(logging.getLevelNamesMapping()[level.upper()])
        self._log_level = level

    @property
    def use_tvm_ffi(self) -> bool:
        """Always False."""
        return False

    @use_tvm_ffi.setter
    def use_tvm_ffi(self, value: bool) -> None:
        if value:
            _ignored.warn("use_tvm_ffi", "tensors are exchanged by DLPack's C functions, which are as fast")

    def save(self) -> dict[str, Any]:
        """The options, for `restore`."""
        return {"log_level": self.log_level}

    def restore(self, saved: dict[str, Any]) -> None:
        """Sets the options as `save` gave them."""
        self.log_level = saved["log_level"]
