# SPDX-License-Identifier: Apache-2.0
"""What `make wheel` shows of a build; the build itself is a soak (test_wheels.py) or done by hand."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import make_wheel


def test_every_tenth_of_the_steps_is_shown_where_there_is_no_terminal(capsys):
    for step in range(1, 201):
        make_wheel.show_progress(f"  [{step}/200] Building CXX object")
    make_wheel.show_progress("  a warning [of something]")
    assert capsys.readouterr().out.splitlines() == [f"wheel: step {step} of 200" for step in range(20, 201, 20)]
