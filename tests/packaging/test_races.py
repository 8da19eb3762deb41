# SPDX-License-Identifier: Apache-2.0
"""The records of tools/run_races.py for races that succeed, fail, or end the program; a script replaces the GPU's program."""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Announces each problem and prints its result; k=13 fails, k=14 ends the program at once.
PLAYER = """#!/bin/sh
echo "$@" >> calls
for word in "$@"; do
  case "$word" in
    gemm*13*) printf '{"begins": 0}\\n{"problem": "p", "error": "refused"}\\n' ;;
    gemm*14*) echo '{"begins": 0}'; kill -9 $$ ;;
    gemm*) printf '{"begins": 0}\\n{"problem": "p", "kernel": "one", "ours_us": 2, "theirs_us": 3, "ratio_median": 1.5}\\n' ;;
  esac
done
echo "a table that is not JSON"
"""
# Times two kernels of a grouped problem; groups=13 fails.
BENCH = """#!/bin/sh
echo "$@" >> calls
case "$2" in
  *groups=13*) echo "gemmery: unsupported: no kernel" >&2; exit 1 ;;
esac
for kernel in one two; do
  echo '{"problem": "p", "kernel_name": "'$kernel'", "device_name": "d", "samples": 5, "runs_per_sample": 3, "buffer_sets": 2,'\
    '"median_us": 4.0, "quartile_low_us": 3.5, "quartile_high_us": 4.5, "flops_per_second": 2e12}'
done
"""
PROBLEMS = """# two sets
small gemm 1x1x12 a=f32
small gemm 1x1x13 a=f32
small gemm 1x1x14 a=f32
small gemm 1x1x15 a=f32
other families gemm 1x1x16 a=f32
"""


@pytest.fixture
def build(tmp_path):
    program = tmp_path / "build/bench/peers/gemm_peers"
    program.parent.mkdir(parents=True)
    program.write_text(PLAYER.replace("calls", str(tmp_path / "calls")))
    program.chmod(0o755)
    bench = tmp_path / "build/gemmery"
    bench.write_text(BENCH.replace("calls", str(tmp_path / "timed")))
    bench.chmod(0o755)
    (tmp_path / "problems").write_text(PROBLEMS)
    return tmp_path / "build"


def race(build, *words):
    here = build.parent
    command = [
        sys.executable,
        ROOT / "tools/run_races.py",
        build,
        "--problems",
        here / "problems",
        "--out",
        here / "out",
        *words,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def records(build, name):
    return [json.loads(line) for line in (build.parent / f"out/{name}.jsonl").read_text().splitlines()]


def test_failures_and_crashes_cost_their_own_problem_alone(build):
    done = race(build)
    assert done.returncode == 1
    asked = [(record["asked"][-9:], record.get("error", record.get("kernel"))) for record in records(build, "small")]
    assert asked == [
        ("x12 a=f32", "one"),
        ("x13 a=f32", "refused"),
        ("x14 a=f32", "gemm_peers ended with status -9"),
        ("x15 a=f32", "one"),
    ]
    assert "3 raced, 2 failed, 0 not reached" in done.stdout.splitlines()[-1]


def test_kernels_of_all_families_take_turns_where_the_list_says_so(build):
    race(build, "--set", "other")
    assert [("--families" in call, "--rotate" in call) for call in (build.parent / "calls").read_text().splitlines()] == [
        (True, True)
    ]
    assert len(records(build, "other")) == 1
    assert not (build.parent / "out/small.jsonl").exists()


def test_a_second_run_continues_and_tries_failures_again(build):
    race(build, "--set", "small")
    (build.parent / "calls").unlink()
    race(build, "--set", "small")
    assert "1x1x12" not in (build.parent / "calls").read_text()
    assert "1x1x13" in (build.parent / "calls").read_text()


def test_convolutions_are_timed_alone(build):
    (build.parent / "problems").write_text("convolution conv2d_fprop 1x8x8x8 k=8 r=3 s=3 a=f32")
    assert race(build).returncode == 0
    first, second = records(build, "convolution")
    assert "timed alone" in first["peer_refusal"] and "timed alone" in second["peer_refusal"]


def test_grouped_problems_are_timed_alone(build):
    problems = ["grouped_gemm 64x64x64 groups=13 a=f32", "grouped_gemm 64x64x64 groups=4 a=f32", "gemm 1x1x12 a=f32"]
    lines = [f"groups {problem}" for problem in problems]
    (build.parent / "problems").write_text("\n".join(lines))
    done = race(build, "--pairs", "5")
    assert done.returncode == 1
    assert "2 raced, 1 failed, 0 not reached" in done.stdout.splitlines()[-1]
    failed, first, second, dense = records(build, "groups")
    assert failed["error"] == "gemmery bench: gemmery: unsupported: no kernel"
    assert [first["kernel"], second["kernel"], dense["kernel"]] == ["one", "two", "one"]
    assert (first["ours_us"], first["ours_us_quartiles"], first["ours_tflops"], first["pairs"]) == (4.0, [3.5, 4.5], 2.0, 5)
    assert "timed alone" in first["peer_refusal"]
    race(build)  # completed races are not repeated
    assert len((build.parent / "timed").read_text().splitlines()) == 3


def test_a_spent_budget_begins_no_race(build):
    done = race(build, "--budget-s", "0")
    assert done.returncode == 1
    assert "0 raced, 0 failed, 5 not reached" in done.stdout
    assert not (build.parent / "calls").exists()


def test_a_set_that_is_not_there_is_refused_by_name(build):
    done = race(build, "--set", "large")
    assert done.returncode != 0
    assert "no set large" in done.stderr
