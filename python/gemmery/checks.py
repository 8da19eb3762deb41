# SPDX-License-Identifier: Apache-2.0
"""Verification, measurement and the report on this machine, as they are shown in notebooks."""

from __future__ import annotations

from typing import Any

from gemmery import _core, _html
from gemmery._core import VerifyReport, check_result, verify

__all__ = ["DoctorReport", "Measurement", "VerifyReport", "check_result", "doctor", "measure", "verify"]


class Measurement(dict[str, float]):
    """Times of a kernel by the keys of `measure`: a dict that notebooks show as a table."""

    def _repr_html_(self) -> str:
        return _html.table([(name, f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}") for name, value in self.items()])


class DoctorReport(str):
    """The text of `doctor`; print() it, or let a notebook show it."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return _html.text(str(self))


def measure(
    kernel: Any,
    problem: str | _core.GemmArguments,
    *,
    device: Any = None,
    samples: int = 11,
    sample_ms: float = 5.0,
) -> Measurement:
    """Times of a kernel on random data, in buffers that rotate and are larger than the cache; microseconds.

    problem: a line of text, or arguments, of which only the problem is used; their memory is neither read nor written.
    device: where to run; None: the arguments' device, or the CPU for a line of text.
    samples: the number of timed batches; sample_ms: the minimum duration of a batch in milliseconds.
    Keys: median_us, minimum_us, maximum_us, quartile_low_us, quartile_high_us, flops_per_second, roofline_us (the minimum
    time by the device's peaks), roofline_share (roofline_us / median_us).
    """
    return Measurement(_core.measure(kernel, problem, device=device, samples=samples, sample_ms=sample_ms))


def doctor() -> DoctorReport:
    """The libraries, devices and cache of this machine, as text."""
    return DoctorReport(_core.doctor())
