# SPDX-License-Identifier: Apache-2.0
"""A list of kernels, found by several queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gemmery.discovery import get_kernels
from gemmery.metadata import KernelMetadata

__all__ = ["Manifest"]


class Manifest:
    """Kernels found by one or more queries, in that order."""

    def __init__(self) -> None:
        self.kernels: list[Any] = []

    get_kernels = staticmethod(get_kernels)

    def add_kernels(
        self,
        args: Any = None,
        metadata_filter: Callable[[KernelMetadata], bool] | None = None,
        cc: int | str | None = None,
        providers: Iterable[Any] | None = None,
        heuristic: Any = None,
        limit: int | None = None,
    ) -> list[Any]:
        """Appends the kernels that get_kernels finds, and returns them."""
        found = self.get_kernels(args, metadata_filter, cc, providers, heuristic, limit)
        self.kernels.extend(found)
        return found
