# SPDX-License-Identifier: Apache-2.0
"""Measured choices of kernels, and the file that keeps them. docs/tuning.md describes both."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, Literal

from gemmery import _core, _html

__all__ = ["Candidate", "Result", "StoredResult", "entries", "file", "forget", "forget_all", "tune"]


@dataclasses.dataclass(frozen=True)
class Candidate:
    """What became of a kernel that might have won. Times are in microseconds; time_us is 0 if it was not timed."""

    kernel: str
    predicted_us: float
    time_us: float
    outcome: str


@dataclasses.dataclass(frozen=True)
class StoredResult:
    """A stored result: the kernel that was the fastest for a problem, its median time in microseconds, and the conditions under
    which it holds. holds_here: they are those of this process."""

    problem: str
    device: str
    driver: str
    compiler: str
    gemmery: str
    kernel: str
    median_us: float
    rounds: int
    tuned_at: str
    holds_here: bool


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of `tune`. True if a winner is stored: `outcome` is "stored" or "stored_before"; otherwise it is "undecided"
    (the budget was spent too early) or "none_passed", and `kernel` is empty. `candidates` is empty for "stored_before"."""

    outcome: Literal["stored", "stored_before", "undecided", "none_passed"]
    problem: str
    device: str
    driver: str
    compiler: str
    gemmery: str
    kernel: str
    median_us: float
    rounds: int
    tuned_at: str
    candidates: list[Candidate]

    def __bool__(self) -> bool:
        return bool(self.kernel)

    def _repr_html_(self) -> str:
        if not self.candidates:
            return _html.table(
                [("outcome", self.outcome), ("kernel", self.kernel), ("time", f"{self.median_us:.4g} µs")], caption=self.problem
            )
        rows = [(c.kernel, f"{c.predicted_us:.4g}", f"{c.time_us:.4g}", c.outcome) for c in self.candidates]
        caption = f"{self.problem}: {self.outcome}" + (f", {self.kernel}, {self.median_us:.4g} µs" if self.kernel else "")
        return _html.table(rows, ("kernel", "predicted, µs", "timed, µs", "outcome"), caption)


def tune(
    problem: str | _core.GemmArguments,
    *,
    budget_s: float = 30.0,
    candidates: int = 12,
    force: bool = False,
    device: Any = None,
    providers: Iterable[Any] | None = None,
    progress: Callable[[str, str, float], object] | None = None,
) -> Result:
    """Times the kernels that the model ranks first, verifies them, and stores the fastest, which `get_kernels` then ranks first
    in every process, on this device with this driver and compiler.

    problem: a line of text, or arguments, whose problem is meant; their memory is neither read nor written.
    budget_s: seconds; a step that was begun is completed. candidates: at most so many kernels; 0: all.
    force: measure again where a result is stored.
    device: where to run; None: the arguments' device, or the CPU for a line of text.
    providers: names; only their kernels are candidates.
    progress: called as progress(stage, kernel, share of the budget) between steps; what it raises ends tuning, and nothing is
        stored.

    Kernels of Python classes are no candidates. Ctrl-C raises KeyboardInterrupt between two steps. UnsupportedError if no
    kernel fits, and for an emulated device; UnavailableError without a place for the file; Error if it cannot be written.
    """
    fields = _core.tune(
        problem,
        budget_s=budget_s,
        candidates=candidates,
        force=force,
        device=device,
        providers=None if providers is None else [*providers] if not isinstance(providers, str) else providers,
        progress=progress,
    )
    return Result(**{**fields, "candidates": [Candidate(**row) for row in fields["candidates"]]})


def file() -> str:
    """The path of the file of stored results, which need not exist. UnavailableError if there is no place for it."""
    return _core.tuning_file()


def entries() -> list[StoredResult]:
    """The stored results, in the order in which they were stored."""
    return [StoredResult(**row) for row in _core.list_tunings()]


def forget(*problems: str | _core.GemmArguments) -> int:
    """Removes the results of these problems, under any conditions; returns how many."""
    return _core.forget_tunings(list(problems))


def forget_all() -> int:
    """Removes all results; returns how many."""
    return _core.forget_all_tunings()
