# SPDX-License-Identifier: Apache-2.0
"""tools/run_tests.py: the output of failed programs, and what runs on which GPU."""

import importlib.util
import json
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


def make_program(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_each_gpu_runs_one_program_at_a_time_that_sees_it_first(runner, tmp_path, monkeypatch, capsys):
    make_program(tmp_path / "nvidia-smi", "echo 'GPU 0: H (UUID: a)'; echo 'GPU 1: H (UUID: b)'")
    told = tmp_path / "told"
    made = '<testsuites><testsuite><testcase classname="S" name="t" status="run"/></testsuite></testsuites>'
    tell = f'echo "$CUDA_VISIBLE_DEVICES $GTEST_SHARD_INDEX/$GTEST_TOTAL_SHARDS" >> {told}'
    both = f"for _ in $(seq 300); do [ $(grep -c /2 {told}) = 2 ] && break; sleep 0.1; done"
    make_program(tmp_path / "sums_test", f"{tell}; echo '{made}' > \"${{GTEST_OUTPUT#xml:}}\"; {both}")
    make_program(tmp_path / "script", tell)
    (tmp_path / "tests.json").write_text(
        json.dumps(
            [
                {"name": "sums_test", "kind": "gtest", "labels": ["gpu"], "command": ["sums_test"]},
                {"name": "script", "kind": "script", "labels": ["gpu"], "command": [str(tmp_path / "script")]},
            ]
        )
    )
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert runner.main([str(tmp_path), "--label", "gpu", "--each-gpu", "--logs", str(tmp_path / "logs")]) == 0
    lines = told.read_text().splitlines()
    assert len(lines) == 3
    assert {line.split()[0] for line in lines if line.endswith("/2")} == {"0,1", "1,0"}
    assert {line.split()[1] for line in lines} == {"0/2", "1/2", "/"}
    assert "sums_test 2/2" in capsys.readouterr().out
    assert sorted(log.name for log in (tmp_path / "logs").iterdir()) == ["script.log", "sums_test_1_2.log", "sums_test_2_2.log"]


def test_with_no_gpu_each_program_runs_once(runner, tmp_path, monkeypatch):
    make_program(tmp_path / "nvidia-smi", "exit 9")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    places = runner.Places(runner.parse_arguments([str(tmp_path), "--each-gpu", "--jobs", "8"]))
    assert places.count == 1
