# SPDX-License-Identifier: Apache-2.0
"""Tuning from Python, each test in a process of its own, since a process reads the place of the file once."""

import os
import subprocess
import sys

import pytest

LINE = "gemm 40x48x56 a=f32"


def run(code: str, tmp_path, **environment: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "GEMMERY_TUNING_FILE": str(tmp_path / "tuning.toml"), **environment},
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_the_winner_is_first_here_and_in_other_processes(tmp_path):
    ask = """
import numpy, gemmery
A, B, out = (numpy.ones(shape, "f4") for shape in ((40, 56), (56, 48), (40, 48)))
args = gemmery.GemmArguments(A, B, out)
def first():
    kernel = gemmery.get_kernels(args)[0]
    return kernel.metadata.kernel_name if kernel.is_measured else None
"""
    told = run(
        ask
        + f"""
assert first() is None
stages = set()
result = gemmery.tune({LINE!r}, budget_s=60, progress=lambda stage, kernel, share: stages.add(stage))
assert result and result.outcome == "stored" and result.rounds >= 10, result
assert "winner" in [candidate.outcome for candidate in result.candidates]
assert {{"screening", "verifying"}} <= stages <= {{"waiting", "screening", "verifying", "timing"}}, stages
assert first() == result.kernel
assert gemmery.tune(args).outcome == "stored_before"
assert gemmery.tuning.entries()[0].kernel == result.kernel and gemmery.tuning.entries()[0].holds_here
assert "<table>" in result._repr_html_()
print(result.kernel)
""",
        tmp_path,
    )
    again = run(ask + "print(first()); print(gemmery.explain(args))", tmp_path)
    assert again.startswith(told)
    assert "tuned: first: " + told.strip() in again
    assert run(ask + "print(first())", tmp_path, GEMMERY_TUNING="0") == "None\n"


def test_results_are_forgotten(tmp_path):
    run(
        f"""
import gemmery
assert gemmery.tune({LINE!r}, budget_s=60)
assert gemmery.tuning.file().endswith("tuning.toml")
assert gemmery.tuning.forget("gemm 1x1x1 a=f32") == 0
assert gemmery.tuning.forget({LINE!r}) == 1
assert gemmery.tuning.entries() == []
assert gemmery.tune({LINE!r}, budget_s=60) and gemmery.tuning.forget_all() == 1
""",
        tmp_path,
    )


def test_what_progress_raises_ends_it_and_stores_nothing(tmp_path):
    run(
        f"""
import gemmery
class Enough(Exception): pass
def progress(stage, kernel, share):
    if stage == "verifying": raise Enough
try:
    gemmery.tune({LINE!r}, progress=progress)
    raise SystemExit("it went on")
except Enough:
    pass
assert gemmery.tuning.entries() == []
""",
        tmp_path,
    )


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (f"gemmery.tune({LINE!r}, budget_s=0)", "InvalidArgumentError"),
        (f"gemmery.tune({LINE!r}, providers='host')", "TypeError"),
        (f"gemmery.tune({LINE!r}, providers=['hosts'])", "InvalidArgumentError"),
        (f"gemmery.tune({LINE!r}, device='emulated:h200')", "UnsupportedError"),
    ],
)
def test_what_cannot_be_tuned_is_refused(tmp_path, call, error):
    assert run(f"import gemmery\ntry: {call}\nexcept Exception as e: print(type(e).__name__)", tmp_path) == error + "\n"
