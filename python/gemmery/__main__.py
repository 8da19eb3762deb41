# SPDX-License-Identifier: Apache-2.0
"""The command `gemmery`, also as `python -m gemmery`: the program of docs/cli.md, in this process."""

from __future__ import annotations

import os
import shutil
import signal
import sys

from gemmery import _core, _nvrtc
from gemmery.errors import UnavailableError


def main() -> int:
    """Obeys the command line and returns the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C is the program's
    if _nvrtc.find_library():
        _core.doctor()  # uses NVRTC's wheel where there is no toolkit
    if shutil.which("nvdisasm") is None and (disassembler := _nvrtc.find_disassembler()):
        os.environ.setdefault("GEMMERY_NVDISASM", disassembler)
    try:
        return _core.run_program(["gemmery", *sys.argv[1:]])
    except UnavailableError as error:
        print(f"gemmery: {error}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
