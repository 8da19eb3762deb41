#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Repeats tuning of problems on the CPU to see whether its choices agree.

usage: tune_repeats.py PROGRAM [--repeats 20] [--budget 10s] [--problem LINE]... [-o RECORD.md]

For each problem: tunes it so many times, each time with an empty file. Where choices differ, both kernels are timed again in
turn by `gemmery bench`, and a choice agrees if it is within 2 percent of the most frequent one. The problems of one repeat
follow one another, so that repeats of a problem lie far apart in time.
"""

import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

PROBLEMS = [
    "gemm 512x512x512 a=f32",
    "gemm 512x512x512 a=bf16",
    "gemm 64x64x64 a=int8 out=int32",
    "gemm 96x96x96 a=f32",
    "gemm 8x1024x1024 a=f32",
    "conv2d_fprop 4x28x28x32 k=32 r=3 s=3 pad=1 a=f32",
    "gemm 256x256x8 a=f32",
    "grouped_gemm 512x64x128 groups=16 a=bf16",
    "gemm 24x24x24x64 a=f32",
    "gemm 64x64x64 a=e4m3 out=f32",
]
ALLOWED = 1.02


def run(program: str, *words: str, **environment: str) -> list[dict]:
    ran = subprocess.run([program, *words], capture_output=True, text=True, check=True, env={**os.environ, **environment})
    return [json.loads(line) for line in ran.stdout.splitlines()]


def tune(program: str, line: str, budget: str) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder, "tuning.toml"))
        return run(program, "tune", *line.split(), "--device", "cpu", "--budget", budget, "--json", GEMMERY_TUNING_FILE=path)[0]


def ratio(program: str, line: str, kernel: str, usual: str) -> float:
    """The time of a kernel over that of the usual choice, timed in turn."""
    rows = run(
        program,
        "bench",
        *line.split(),
        "--device",
        "cpu",
        "--kernel",
        kernel,
        "--kernel",
        usual,
        "--samples",
        "301",
        "--sample-ms",
        "2",
        "--json",
        GEMMERY_TUNING="0",
    )
    return rows[0]["median_us"] / rows[1]["median_us"]


def judge(program: str, line: str, results: list[dict]) -> tuple[int, str]:
    """How many choices agree, and a row of the record."""
    choices = collections.Counter(result["kernel_name"] for result in results)
    usual, agreeing = choices.most_common(1)[0]
    others = []
    for kernel, count in choices.items():
        if kernel == usual:
            continue
        slowness = ratio(program, line, kernel, usual)
        print(
            line, *(result["candidates"] for result in results if result["kernel_name"] == kernel), sep="\n  ", file=sys.stderr
        )
        agreeing += count if 1 / ALLOWED <= slowness <= ALLOWED else 0
        others.append(f"{kernel} {count} times, at {slowness:.3f} of its time")
    times = [result["median_us"] for result in results]
    rounds = statistics.median(result["rounds"] for result in results)
    return agreeing, (
        f"| `{line}` | {agreeing} of {len(results)} | {usual} | {'; '.join(others) or 'none'} | "
        f"{min(times):.4g} to {max(times):.4g} | {rounds:.0f} |"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--budget", default="10s")
    parser.add_argument("--problem", action="append")
    parser.add_argument("-o", "--output")
    wishes = parser.parse_args()
    problems = wishes.problem or PROBLEMS
    results: dict[str, list[dict]] = {line: [] for line in problems}
    for repeat in range(wishes.repeats):
        for line in problems:
            results[line].append(tune(wishes.program, line, wishes.budget))
        print(f"repeat {repeat + 1} of {wishes.repeats}", file=sys.stderr)
    judged = [judge(wishes.program, line, results[line]) for line in problems]
    first = results[problems[0]][0]
    record = "\n".join(
        [
            f"Device: {first['device_name']}; {first['driver']}; {first['compiler']}; gemmery {first['gemmery_version']}.",
            "",
            "| problem | agree | usual choice | other choices | median, µs | rounds |",
            "|---|---|---|---|---|---|",
            *(row for _, row in judged),
            "",
        ]
    )
    print(record)
    if wishes.output:
        pathlib.Path(wishes.output).write_text(record, encoding="utf-8")
    return 0 if all(agreeing >= 0.9 * wishes.repeats for agreeing, _ in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
