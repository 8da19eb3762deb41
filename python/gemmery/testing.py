# SPDX-License-Identifier: Apache-2.0
"""Tests of CUDA kernels with no GPU: a decorator, and a plugin of pytest.

    from gemmery.testing import emulated

    @emulated("h200", seeds=8)
    def test_sum(launch):
        sums = np.zeros(4, np.float32)
        launch(SOURCE, grid=4, block=256, args=[numbers, sums])
        assert np.array_equal(sums, numbers.reshape(4, 256).sum(axis=1))

`launch` is `gemmery.emulate` with the decorator's device and seeds. If a wrong result is possible, it fails the test, with the
emulator's report as the whole message. As a plugin (`pytest -p gemmery.testing`, or `pytest_plugins =
["gemmery.testing"]` in conftest.py) it has the option `--emulated-seeds`, and a line at the end that says what was launched.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gemmery.emulation import EmulationReport, emulate

__all__ = ["EmulationFailure", "Launches", "emulated"]


class EmulationFailure(AssertionError):
    """A kernel has findings that make a wrong result possible, or it timed out. `report` has all of them."""

    def __init__(self, report: EmulationReport) -> None:
        super().__init__(f"\n{report}")
        self.report = report


@dataclass
class Launches:
    """What the tests of this process have launched."""

    launches: int = 0
    schedules: int = 0
    failed: int = 0
    seeds: int | None = None  # of every launch, in place of the decorators'

    def __str__(self) -> str:
        return f"emulated: {self.launches} launches under {self.schedules} schedules, {self.failed} with findings"


_launches = Launches()


def emulated(device: str = "h200", *, seeds: int = 8, **defaults: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator for tests. The test gets an argument `launch`, which is `gemmery.emulate` with this device, these seeds and
    these other defaults (`options`, `rules`, `timeout`, ...), returns the report and raises EmulationFailure unless it has
    passed. Other arguments, such as fixtures and parameters of pytest, are the test's own."""

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(test)
        if "launch" not in signature.parameters:
            raise TypeError(f"{test.__qualname__}: expected an argument `launch`, which emulated() passes")

        def launch(*args: Any, **options: Any) -> EmulationReport:
            __tracebackhide__ = True
            return _launch(*args, **{"device": device, "seeds": seeds, **defaults, **options})

        @functools.wraps(test)
        def run(*args: Any, **fixtures: Any) -> Any:
            __tracebackhide__ = True
            return test(*args, launch=launch, **fixtures)

        others = [parameter for name, parameter in signature.parameters.items() if name != "launch"]
        run.__signature__ = signature.replace(parameters=others)  # type: ignore[attr-defined]
        return run

    return decorate


def _launch(*args: Any, **options: Any) -> EmulationReport:
    __tracebackhide__ = True
    if _launches.seeds is not None:
        options["seeds"] = _launches.seeds
    report = emulate(*args, **options)
    _launches.launches += 1
    _launches.schedules += report.schedules
    if not report:
        _launches.failed += 1
        raise EmulationFailure(report)
    return report


# --- the plugin ----------------------------------------------------------------------------------


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("gemmery", "kernels on emulated devices")
    group.addoption(
        "--emulated-seeds", type=int, metavar="N", help="schedules of every emulated launch, in place of the tests' own"
    )


def pytest_configure(config: Any) -> None:
    _launches.seeds = config.getoption("--emulated-seeds")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if _launches.launches:
        terminalreporter.write_line(str(_launches))
