# SPDX-License-Identifier: Apache-2.0
"""Discovery: the kernels that run these arguments, best first, and the reasons why others do not."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from gemmery import _core, _html
from gemmery._core import find_kernel
from gemmery._filters import SkippingFilter
from gemmery.errors import InvalidArgumentError
from gemmery.metadata import KernelMetadata
from gemmery.providers import search
from gemmery.utils import device_cc

__all__ = ["Explanation", "KernelList", "explain", "find_kernel", "get_kernels"]


class KernelList(list[_core.Kernel]):
    """The result of `get_kernels`: a list, the best kernel first, that notebooks show as a table.

    Kernels of Python classes are in it, too: instances of `gemmery.Kernel`, without what only the library's have (`design`).
    """

    def _repr_html_(self) -> str:
        return _html.of_list(self)


def get_kernels(
    args: _core.GemmArguments | None = None,
    metadata_filter: Callable[[KernelMetadata], bool] | None = None,
    cc: int | str | None = None,
    providers: Iterable[Any] | None = None,
    heuristic: Any = None,
    limit: int | None = None,
) -> KernelList:
    """Kernels that run these arguments on the device of their memory, best first.

    metadata_filter: keeps kernels for whose metadata it returns true. A kernel that lacks a field that it reads (a design of
        the CPU has no tile_shape) is left out. AttributeError for an undocumented field that none of them has; other
        exceptions pass through.
    cc: 90, "sm_90a" or "h200" asks about a device that this machine need not have. None: the device of the operands.
    providers: names, or classes of Python providers; ValueError for an unknown one lists the known ones.
    heuristic: orders or narrows the list: an object with `rank(args, kernels, *, target_sm, limit)`. None: by prediction.
    limit: the largest number of kernels, applied after ranking. ValueError below 1.

    Without args it returns every kernel of every family, for all targets or those of `cc`. If the list is empty,
    `explain(args)` has the reasons. On a GPU the last kernels are those of simt, on the CPU the reference. UnavailableError if
    the device is missing.
    """
    if metadata_filter is not None and not callable(metadata_filter):
        raise TypeError(f"metadata_filter: expected a function of a KernelMetadata, got {type(metadata_filter).__name__}")
    if heuristic is not None or limit is not None:
        return KernelList(_ranked(get_kernels(args, metadata_filter, cc, providers), args, cc, heuristic, limit))
    if metadata_filter is None:
        return KernelList(_found(args, None, cc, providers))
    skipping = SkippingFilter(metadata_filter)
    kernels = _found(args, skipping, cc, providers)
    skipping.refuse_unknown_fields()
    return KernelList(kernels)


def _found(
    args: Any, metadata_filter: SkippingFilter | None, cc: int | str | None, providers: Iterable[Any] | None
) -> list[Any]:
    """The kernels of the library and of Python classes, merged by predicted time."""
    if providers is None and not search.has_kernel_classes():
        return _core.get_kernels(args, metadata_filter, cc, None)
    native, ours = search.split_names(providers)
    kernels = [] if native == [] else _core.get_kernels(args, metadata_filter, cc, native)
    return search.merged(kernels, search.find_python_kernels(args, metadata_filter, _cc_of(args, cc), ours))


def _ranked(kernels: list[Any], args: Any, cc: int | str | None, heuristic: Any, limit: int | None) -> list[Any]:
    if limit is not None and limit < 1:
        raise InvalidArgumentError(f"invalid argument: limit: expected at least 1, got {limit}")
    if heuristic is None:
        return kernels[:limit]
    ranked = list(heuristic.rank(args, list(kernels), target_sm=cc, limit=limit))
    strange = collections.Counter(map(id, ranked)) - collections.Counter(map(id, kernels))
    if strange:
        raise InvalidArgumentError(
            f"invalid argument: heuristic: expected kernels that it was given, each once, got "
            f"{next(kernel for kernel in ranked if id(kernel) in strange)!r}"
        )
    return ranked[:limit]


@dataclasses.dataclass(frozen=True)
class Explanation:
    """For every family and class of kernels: the first constraint that failed, or the number of kernels that fit."""

    problem: str
    device: str
    reasons: list[Any]
    text: str = dataclasses.field(repr=False)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        rows = [
            (f"{reason.provider}/{reason.family}", reason.design_class, reason.failed or f"{reason.fitting} fit")
            for reason in self.reasons
        ]
        return _html.table(rows, ("family", "class", "kernels, or the first constraint that failed"), self.problem)


def explain(args: _core.GemmArguments, cc: int | str | None = None) -> Explanation:
    """How many kernels of each family support these arguments on a device, or why none does; also for classes of Python
    kernels, with the exceptions that they raised."""
    native = _core.explain(args, cc)
    ours: list[search.Reason] = []
    if search.has_kernel_classes():
        _, known = search.split_names(None)
        search.find_python_kernels(args, None, _cc_of(args, cc), known, ours)
    lines = [str(native).rstrip("\n"), *(f"{reason!r}"[len("Reason(") : -1] for reason in ours)]
    return Explanation(native.problem, native.device, [*native.reasons, *ours], "\n".join(lines) + "\n")


def _cc_of(args: Any, cc: int | str | None) -> int | None:
    """The compute capability of the query; None for the CPU and for a query about all targets."""
    if isinstance(cc, int):
        return cc
    if cc is not None:
        target = _core.device_info(cc).target if cc in _core.known_device_names() else _core.parse_target(cc)
        digits = "".join(filter(str.isdigit, target))
        return int(digits) if digits else None
    if args is None or not str(args.device).startswith("cuda"):
        return None
    return device_cc(str(args.device))
