#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: make_wheel.py [--out FOLDER] [--use WHEEL]

Builds the wheel of the Python package for the Python that runs this into FOLDER (build/wheel), says how far the build is and how long it
took, installs the wheel into an empty environment and multiplies there, with no index and no compiler. --use builds nothing and tests WHEEL.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Needs nothing but the package: no NumPy, no compiler.
PROGRAM = """
import pathlib, sys, gemmery
assert pathlib.Path(gemmery.__file__).is_relative_to(sys.prefix), gemmery.__file__
assert pathlib.Path(gemmery.get_include(), "device/abi/dtype.hpp").is_file()
A, B, D = (gemmery.empty(shape, "f32") for shape in ((33, 65), (65, 17), (33, 17)))
kernel = gemmery.get_kernels(gemmery.GemmArguments(A, B, D))[0]
assert gemmery.verify(kernel, "gemm 33x17x65 a=f32").passed
print(f"wheel: {kernel.metadata.kernel_name} is right in an empty environment")
"""


def show_progress(line: str) -> None:
    """Of the build's words the count of its steps, on one line of a terminal; every tenth of them elsewhere."""
    if step := re.match(r"\s*\[(\d+)/(\d+)\]", line):
        done, total = int(step[1]), int(step[2])
        if sys.stdout.isatty():
            print(f"\rwheel: step {done} of {total} ", end="\n" if done == total else "", flush=True)
        elif done * 10 // total != (done - 1) * 10 // total:
            print(f"wheel: step {done} of {total}", flush=True)


def build(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-m", "venv", scratch], check=True)
        command = [f"{scratch}/bin/python", "-m", "pip", "wheel", "--verbose", "--no-deps", "--wheel-dir", folder, ROOT]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
            said = []
            for line in running.stdout:
                said.append(line)
                show_progress(line)
        if running.returncode != 0:
            sys.exit("".join(said[-60:]) + "wheel: the build failed")
    (wheel,) = folder.glob("*.whl")
    return wheel


def test(wheel: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-m", "venv", scratch], check=True)
        python = f"{scratch}/bin/python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel.resolve()], check=True)
        subprocess.run([python, "-c", PROGRAM], cwd=scratch, env={"PATH": f"{scratch}/bin"}, check=True)
        command = [f"{scratch}/bin/gemmery", "verify", "gemm", "33x17x65", "a=f32", "--device", "cpu", "--quiet"]
        subprocess.run(command, cwd=scratch, env={"PATH": f"{scratch}/bin"}, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build/wheel")
    parser.add_argument("--use", type=Path)
    options = parser.parse_args()
    begin = time.monotonic()
    wheel = options.use or build(options.out.resolve())
    test(wheel)
    print(f"wheel: {wheel}, {wheel.stat().st_size / 1e6:.1f} MB, after {time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
