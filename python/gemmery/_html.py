# SPDX-License-Identifier: Apache-2.0
"""Results as notebooks show them. Plain tables without colours, which follow the notebook's theme."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from gemmery import _core


def table(rows: Iterable[Sequence[object]], header: Sequence[str] = (), caption: str = "") -> str:
    """A table of texts; without a header the first cell of each row is its title."""
    above = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    titles = f"<thead>{_row(header, 'th', 'th')}</thead>" if header else ""
    body = "".join(_row(row, "td" if header else "th", "td") for row in rows)
    return f"<table>{above}{titles}<tbody>{body}</tbody></table>"


def _row(cells: Sequence[object], first: str, others: str) -> str:
    kinds = (first, *[others] * (len(cells) - 1))
    inside = (
        f'<{kind} style="text-align: left">{html.escape(str(cell))}</{kind}>' for kind, cell in zip(kinds, cells, strict=True)
    )
    return f"<tr>{''.join(inside)}</tr>"


def text(of: object) -> str:
    """Text as it is, in columns."""
    return f'<pre style="white-space: pre-wrap; font-family: monospace">{html.escape(str(of))}</pre>'


def of_kernel(kernel: Any) -> str:
    """A kernel: what its metadata says, and its time if discovery gave one."""
    return of_metadata(kernel.metadata, [("time", time_of(kernel))] if kernel.predicted_us is not None else [])


def of_metadata(metadata: Any, more: Sequence[tuple[str, object]] = ()) -> str:
    """Metadata: a row for each field that has a value."""
    rows: list[tuple[str, object]] = [("family", metadata.kernel_class), ("provider", metadata.provider)]
    rows += [("targets", ", ".join(metadata.supported_targets)), *_operand_rows(metadata.operands)]
    rows += [(f"design: {name}", value) for name, value in getattr(metadata.design, "fields", {}).items()]
    epilogue = metadata.epilogue.text if metadata.epilogue is not None else "D = alpha * accum + beta * C"
    rows += [("epilogue", epilogue), ("deterministic", "yes" if metadata.deterministic else "no"), *more]
    return table([row for row in rows if str(row[1])], caption=metadata.kernel_name)


def _operand_rows(operands: Any) -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = []
    for name in ("A", "B", "C", "out"):
        rule = getattr(operands, name, None)
        if rule is not None:
            dtype = getattr(rule.dtype, "name", rule.dtype)
            rows.append((name, f"{dtype}, {rule.layout} layout, aligned to {rule.alignment} bytes"))
    accumulator = getattr(operands, "accumulator_type", None)
    return [*rows, ("accumulator", getattr(accumulator, "name", ""))]


def time_of(kernel: Any) -> str:
    """The time by which discovery ranked a kernel, and where it comes from."""
    if kernel.predicted_us is None:
        return ""
    return f"{kernel.predicted_us:.4g} µs ({'measured' if kernel.is_measured else 'predicted'})"


def _first_of_designs(kernels: Sequence[Any], shown: int) -> Iterator[tuple[int, Any]]:
    """The first kernels of different designs, with their places: those that differ only in alignment say little."""
    designs: set[tuple[str, str]] = set()
    for place, kernel in enumerate(kernels):
        design = (kernel.family, repr(kernel.metadata.design))
        if design not in designs:
            designs.add(design)
            yield place, kernel
        if len(designs) == shown:
            return


def of_list(kernels: Sequence[Any], shown: int = 10) -> str:
    """Kernels in their order, of which the first of different designs are shown."""
    rows = [(place, time_of(kernel), kernel.provider, kernel.name) for place, kernel in _first_of_designs(kernels, shown)]
    more = len(kernels) - len(rows)
    caption = f"{len(kernels)} kernel{'' if len(kernels) == 1 else 's'}" + (f", {more} more" if more else "")
    return table(rows, ("", "time", "provider", "name"), caption)


def of_verification(report: Any) -> str:
    """A report of verification, its outcome first."""
    rows: list[tuple[str, object]] = [
        ("outcome", "passed" if report.passed else "failed"),
        ("worst error", f"{report.worst_ratio:.2g} of what is allowed"),
        ("elements", f"{report.elements}, of which {report.mismatches} are outside their bounds"),
        ("method", report.method),
        ("seed", report.seed),
        ("first failure", report.first_failure),
    ]
    return table([row for row in rows if str(row[1])])


def install() -> None:
    """Gives the classes of the native module their `_repr_html_`."""
    native: Any = _core
    native.Kernel._repr_html_ = of_kernel
    native.VerifyReport._repr_html_ = of_verification
    native.EmulationReport._repr_html_ = text
    native.EmulationFinding._repr_html_ = text
