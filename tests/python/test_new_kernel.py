# SPDX-License-Identifier: Apache-2.0
"""`gemmery new kernel`: its files pass their own test, and the test detects a wrong kernel."""

import os
import pathlib
import subprocess
import sys

import pytest

import gemmery

PACKAGES = pathlib.Path(gemmery.__file__).parent.parent
PROGRAM = PACKAGES.parent / "gemmery"  # of a build folder

pytestmark = pytest.mark.skipif(not PROGRAM.is_file(), reason="the command line was not built beside the package")


@pytest.fixture
def template(tmp_path):
    """The folder of a new kernel."""
    subprocess.run([PROGRAM, "new", "kernel", "swift"], cwd=tmp_path, check=True, capture_output=True)
    return tmp_path / "swift"


def run_tests(folder):
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PACKAGES)},
        capture_output=True,
        text=True,
    )
    if "UnavailableError" in ran.stdout:
        pytest.skip("no compiler of CUDA C++ here")
    return ran


def test_the_template_passes_as_written(template):
    ran = run_tests(template)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("    __syncthreads();  // all warps have read it\n", ""),
        ("if (r < m && c < n) out", "out"),
        ("alpha * sums[i][j][e]", "sums[i][j][e]"),
    ],
    ids=["race", "out of bounds", "wrong result"],
)
def test_its_test_finds_planted_faults(template, right, wrong):
    source = template / "swift.cu"
    text = source.read_text()
    assert text.count(right) == 1
    source.write_text(text.replace(right, wrong))
    ran = run_tests(template)
    assert ran.returncode == 1, ran.stdout
    assert "failed" in ran.stdout
