# SPDX-License-Identifier: Apache-2.0
"""Messages of the library as records of logging.getLogger("gemmery")."""

from __future__ import annotations

import atexit
import logging

from gemmery import _core

LOGGER = logging.getLogger("gemmery")
# In the order of the library's levels.
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)


def _receive(level: int, text: str) -> None:
    LOGGER.log(_LEVELS[level], text)


def forward(level: int = logging.WARNING) -> None:
    """Sends messages of `level` and above to the logger "gemmery" from now on."""
    _core.forward_logs(_receive, level)


def install() -> None:
    """Called on import: warnings go to the logger, which prints nothing unless the program configures logging."""
    LOGGER.addHandler(logging.NullHandler())
    forward()
    atexit.register(_core.forward_logs, None)
