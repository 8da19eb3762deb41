# SPDX-License-Identifier: Apache-2.0
"""mypy --strict on programs that use the package."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest

import gemmery

pytestmark = pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="no mypy here (pip install .[dev])")

PROGRAM = """\
import gemmery

a = gemmery.empty((8, 8), "float32")
args = gemmery.GemmArguments(a, a, gemmery.empty((8, 8), "float32"), performance=gemmery.PerformanceControls(max_sms=4))
kernels = gemmery.get_kernels(args)
k = kernels[0]
k.run(args, k.compile(args), verify=True)
k.runn(args)  # expected: attr-defined
gemmery.matmul(a, a)
gemmery.matmul(1, 2)  # expected: arg-type arg-type
gemmery.GemmArguments(a, a, 3)  # expected: arg-type
gemmery.get_kernels(args, metadata_filter=lambda m: m.design.tile_shape[1] >= 64, cc=90)
gemmery.get_kernels(args, metadata_filter=lambda m: getattr(m.design, "schedule", "") == "persistent")
gemmery.get_kernels(args, lambda m: m.operands.A.alignment == 16 and m.epilogue is None)
gemmery.get_kernels(args, lambda m: m.designn is None)  # expected: attr-defined
gemmery.get_kernels(args, limit="4")  # expected: arg-type
report: gemmery.VerifyReport = gemmery.verify(k, args)
print(report.passed, gemmery.measure(k, "gemm 8x8x8 a=f32")["median_us"] + 1.0)


def first(of: gemmery.GemmArguments) -> gemmery.Kernel:
    return gemmery.get_kernels(of)[0]
"""


def test_mypy_finds_misspelled_names_and_wrong_types_and_nothing_else(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    package = pathlib.Path(gemmery.__file__).parent.parent
    ran = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path / 'cache'}", "program.py"],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(package), "PYTHONPATH": ""},
        capture_output=True,
        text=True,
    )
    found = [
        (int(line), code) for line, code in re.findall(r"^program\.py:(\d+): error: .*\[([\w-]+)\]$", ran.stdout, re.MULTILINE)
    ]
    expected = [
        (number, code)
        for number, line in enumerate(PROGRAM.splitlines(), 1)
        if "# expected: " in line
        for code in line.partition("# expected: ")[2].split()
    ]
    assert found == expected, ran.stdout + ran.stderr
