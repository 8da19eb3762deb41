# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled code on disk. Where it is and how large it may grow: docs/environment.md."""

from __future__ import annotations

from typing import Any

from gemmery import _core

__all__ = ["clear", "entries", "prune", "report", "verify"]


def report() -> dict[str, Any]:
    """The folder of the cache, its contents, and what this process did with it. Never raises."""
    return _core.cache_report()


def entries() -> list[dict[str, Any]]:
    """The entries, the most recently used first."""
    return _core.list_cache()


def verify() -> tuple[int, list[str]]:
    """Reads every byte; returns the number of valid entries, and the faults of the others."""
    return _core.verify_cache()


def prune(most_bytes: int) -> tuple[int, int]:
    """Removes the least recently used entries until at most this many bytes remain; returns the removed entries and bytes."""
    return _core.prune_cache(most_bytes)


def clear() -> tuple[int, int]:
    """Removes everything; returns the removed entries and bytes."""
    return _core.clear_cache()
