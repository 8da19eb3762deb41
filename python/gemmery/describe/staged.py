# SPDX-License-Identifier: Apache-2.0
"""Arguments that own memory which kernels use, and how long it must stay alive."""

from __future__ import annotations

import contextlib
from typing import Any

from gemmery import _core
from gemmery.errors import InvalidArgumentError

__all__ = ["StagedWork", "wait_for"]


def wait_for(pending: list[Any], stream: Any, device: str) -> None:
    """Waits for the streams and forgets them. If there are none, waits for `stream`, so that a fault is raised again."""
    several = list(pending) or [stream]
    pending.clear()
    for one in several:
        _core.synchronize(one, device)


class StagedWork:
    """Remembers the streams of its runs, so that memory is read back and freed only after they have finished."""

    device: str
    stream: Any
    _native: Any

    def __init__(self) -> None:
        self._native = None
        self._operands: dict[str, Any] = {}
        self._bound: Any = None  # operands of a visitor
        self._has_run = False
        self._pending: list[Any] = []  # streams that were not waited for; a visitor's results share it

    def _start(self, stream: Any) -> Any:
        """The stream of a run: the given one, else that of the arguments. It is remembered until it has been waited for."""
        self._require_memory()
        on = self.stream if stream is None else stream
        if all(on is not one and on != one for one in self._pending):
            self._pending.append(on)
        return on

    def _wait(self) -> bool:
        """Waits for the runs; False if there were none."""
        self._require_memory()
        if self._has_run:
            wait_for(self._pending, self.stream, self.device)
        return self._has_run

    def _require_memory(self) -> None:
        if self._native is None:
            raise InvalidArgumentError("invalid argument: arguments: expected arguments with memory, got some after free()")

    def free(self) -> None:
        """Waits for the runs and frees the staged memory; the arguments cannot be used afterwards."""
        try:
            if self._native is not None:
                self._wait()
        finally:
            self._native = None
            self._operands, self._bound = {}, None

    def __del__(self) -> None:
        # The pool reuses freed memory in the order of its own stream and does not wait for other streams.
        if getattr(self, "_pending", None):
            with contextlib.suppress(Exception):
                self.free()
