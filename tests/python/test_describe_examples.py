# SPDX-License-Identifier: Apache-2.0
"""Row 99: the examples of descriptions run on an emulated device."""

import os
import pathlib
import subprocess
import sys

import pytest

import gemmery

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python" / "describe"
HALF = "-i 16 8 16 -ta float16 -tb float16 -tc float16 -te float32 -b 64 64 32 -s 3 -w 2 2 1 -lb ColumnMajor -aa 8 -ab 8 -ac 8"
PROGRAMS = {
    "basic": "basic.py --print_cuda",
    "three_tf32": "three_tf32.py",
    "simt": "gemm.py -p 130 70 40 -alpha 2 -beta 1 -bias",
    "int8": "gemm.py -i 16 8 32 -ta int8 -tb int8 -tc int8 -tacc int32 -b 64 64 64 -s 3 -w 2 2 1 -lb ColumnMajor -aa 16 -ab 16 "
    "-ac 16 -ep FastLinearCombinationClamp -m multiply_add_saturate -p 72 80 96",
    "activation": f"gemm.py {HALF} -p 72 136 64 -activ gelu -alpha 0.25 -beta 1",
    "serial": f"gemm.py {HALF} -p 72 136 256 -k 3 -beta 2",
    "reduction": f"gemm.py {HALF} -p 72 136 256 -gm GemmSplitKParallel -k 3 -activ leaky_relu -activ_arg 0.25 -beta 1",
    "batched": f"gemm.py {HALF} -p 72 136 64 -gm Batched -batch 3 -beta 1",
    "array": f"gemm.py {HALF} -p 72 136 64 -gm Array -batch 3 -beta 1",
    "column_major": f"gemm.py {HALF} -lc ColumnMajor -p 72 136 64 -beta 1 -sw IdentitySwizzle4",
}


def run_example(words):
    package = str(pathlib.Path(gemmery.__file__).parents[1])
    name, *rest = words.split()
    return subprocess.run(
        [sys.executable, str(EXAMPLES / name), *rest, "--device", "emulated:a100"],
        env=os.environ | {"PYTHONPATH": package},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize("words", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_row_99_an_example_runs(words):
    done = run_example(words)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "" and "passed" in done.stdout


def test_row_99_every_example_is_run():
    assert {path.name for path in EXAMPLES.glob("*.py")} == {words.split()[0] for words in PROGRAMS.values()}
