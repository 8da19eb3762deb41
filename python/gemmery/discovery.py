# SPDX-License-Identifier: Apache-2.0
"""Discovery: which kernels run these arguments, best first, and why the others do not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gemmery import _core
from gemmery._core import Explanation, explain, find_kernel
from gemmery.metadata import KernelMetadata

__all__ = ["Explanation", "explain", "find_kernel", "get_kernels"]


def get_kernels(
    args: Any = None,
    metadata_filter: Callable[[KernelMetadata], bool] | None = None,
    cc: int | str | None = None,
    providers: Iterable[Any] | None = None,
) -> list[Any]:
    """Kernels that run these arguments where their memory is, best first.

    metadata_filter: keeps those whose metadata it is true of; called in the order of the result.
    cc: 90, "sm_90a" or "h200" asks about a device that need not be here. None: the device of the operands.
    providers: names; an unknown one is a ValueError that lists the known.

    Without args every kernel of every family, for all targets or those of `cc`. An empty list comes with reasons from
    `explain(args)`. On a GPU the list ends with simt, on the CPU with the reference. UnavailableError where the device
    is not there.
    """
    return _core.get_kernels(args, metadata_filter, cc, providers)
