# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled code on disk. Where it is and how large it may grow: docs/environment.md."""

from __future__ import annotations

from typing import Any

from gemmery import _core

__all__ = ["clear", "entries", "prune", "report", "verify"]


def report() -> dict[str, Any]:
    """Where it is, what is in it, what this process did with it. Never fails."""
    return _core.cache_report()


def entries() -> list[dict[str, Any]]:
    """What is in it, the most recently used first."""
    return _core.list_cache()


def verify() -> tuple[int, list[str]]:
    """Reads every byte: how many entries are sound, and what is wrong with the others."""
    return _core.verify_cache()


def prune(most_bytes: int) -> tuple[int, int]:
    """Removes the least recently used until at most so many bytes remain; how many entries and bytes went."""
    return _core.prune_cache(most_bytes)


def clear() -> tuple[int, int]:
    """Removes everything; how many entries and bytes went."""
    return _core.clear_cache()
