# SPDX-License-Identifier: Apache-2.0
"""Warnings about options of other libraries that have no effect here, each once per process."""

import warnings

_told: set[str] = set()


def warn(option: str, reason: str) -> None:
    """Warns once per option that it has no effect."""
    warn_once(f"{option} has no effect: {reason}")


def warn_once(text: str) -> None:
    """A RuntimeWarning, once per text."""
    if text not in _told:
        _told.add(text)
        warnings.warn(text, RuntimeWarning, stacklevel=4)
