# SPDX-License-Identifier: Apache-2.0
"""Invalid calls of the whole package in a separate process: each returns or raises; none ends the process."""

import os
import pathlib
import subprocess
import sys

from conftest import SEED

COUNT = 20_000 if os.environ.get("GEMMERY_SOAK") == "1" else 300


def test_hostile_calls_return_or_raise():
    script = pathlib.Path(__file__).with_name("hostile_calls.py")
    done = subprocess.run([sys.executable, script, str(SEED), str(COUNT)], capture_output=True, text=True, timeout=3600)
    assert done.returncode == 0, done.stderr[-4000:]
    assert f"{COUNT} calls" in done.stdout
