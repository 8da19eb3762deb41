# SPDX-License-Identifier: Apache-2.0
"""The output of tools/run_tests.py for a failed program."""

import importlib.util
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OUTPUT = """\
[==========] Running 3 tests from 1 test suite.
[ RUN      ] Sums.pass
GEMMERY_TEST_SEED=3
said by what passed
[       OK ] Sums.pass (2 ms)
[ RUN      ] Sums.fail
sums_test.cpp:3: Failure
[  FAILED  ] Sums.fail (1 ms)
[----------] 3 tests from Sums

[ RUN      ] Sums.end
said before the end
"""


@pytest.fixture
def runner():
    spec = importlib.util.spec_from_file_location("run_tests", ROOT / "tools/run_tests.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_failed_is_shown_with_the_seed_and_nothing_else(runner):
    shown = runner.output_of_failures(OUTPUT).splitlines()
    assert "GEMMERY_TEST_SEED=3" in shown
    assert "sums_test.cpp:3: Failure" in shown
    assert shown[-1] == "said before the end"
    assert "said by what passed" not in shown


def test_output_of_other_programs_is_shown_whole(runner):
    output = "Traceback:\n\n[-----] one\ntwo\n"
    assert runner.output_of_failures(output) == output


def test_a_failure_is_shown_whose_last_line_had_no_end(runner):
    shown = runner.output_of_failures(
        "[ RUN      ] S.a\nx: Failure\n50 %[  FAILED  ] S.a\n[ RUN      ] S.b\n[       OK ] S.b\n"
    )
    assert "x: Failure" in shown and "S.b" not in shown


def test_a_case_that_starts_another_test_program_is_shown(runner):
    shown = runner.output_of_failures(
        "[ RUN      ] S.a\nGEMMERY_TEST_SEED=3\n[ RUN      ] T.a\n[       OK ] T.a\n[  FAILED  ] S.a\n"
    )
    assert "GEMMERY_TEST_SEED=3" in shown and "[  FAILED  ] S.a" in shown


def test_the_summary_begins_with_what_each_failure_says(runner, capsys):
    message = "\n".join(["sums_test.cpp:3", "x" * 9999] + [f"line {line}" for line in range(40)])
    outcome = runner.Outcome("sums_test", passed=1, failures=["Sums.fail"], messages={"Sums.fail": message})
    assert runner.print_summary([outcome]) == (1, 1)
    shown = capsys.readouterr().out
    assert "sums_test: Sums.fail\n    sums_test.cpp:3\n" in shown
    assert "line 9\n" in shown and "line 10" not in shown and "(30 more lines)" in shown
    assert max(len(line) for line in shown.splitlines()) < 500
