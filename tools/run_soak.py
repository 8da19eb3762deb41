#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The long tests, part by part. A part that passed on this very tree is not run again, so an interrupted soak goes on where it stopped.

usage: run_soak.py [--jobs N] [PART…]        `list` prints the parts and how they stand

A part is a test program labelled `soak` under GEMMERY_SOAK=1 (full counts; `make soak-gpu` runs those that need a GPU), or
`asan` / `tsan`: every cpu test in a build with that sanitizer. Output goes to build/soak/PART.log; the last line counts the
cases of the parts run now.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "soak"
SANITIZERS = ("asan", "tsan")
# Longest that one program of one part may take.
TIME_LIMIT_S = "14400"


def build(preset, *targets):
    subprocess.run([ROOT / "tools" / "build.sh", preset, *targets], cwd=ROOT, check=True)


def tests_of(preset):
    return json.loads((ROOT / "build" / preset / "tests.json").read_text())


def list_parts():
    def is_part(labels):
        return "soak" in labels and bool({"cpu", "nvrtc"} & set(labels))

    return [test["name"] for test in tests_of("release") if is_part(test["labels"])] + list(SANITIZERS)


def tree_identity():
    """Changes with every commit and every uncommitted change."""
    output = [subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=False).stdout
              for words in (["rev-parse", "HEAD"], ["diff", "HEAD"], ["status", "--porcelain"])]
    return hashlib.sha256(b"".join(output)).hexdigest()


def command_of(part, jobs):
    runner = [sys.executable, str(ROOT / "tools" / "run_tests.py")]
    if part in SANITIZERS:
        build(part, "all")
        return [*runner, f"build/{part}", "--label", "cpu", "--no-scripts", "--jobs", str(jobs)]
    return [*runner, "build/release", "--only", part, "--jobs", "1"]


def run_part(part, jobs):
    """Runs it, showing and keeping what it prints; returns its three counts."""
    environment = {**os.environ, "GEMMERY_TEST_TIME_LIMIT": TIME_LIMIT_S}
    if part not in SANITIZERS:
        environment["GEMMERY_SOAK"] = "1"
    print(f"== {part}", flush=True)
    log = FOLDER / f"{part}.log"
    with log.open("w") as file:
        process = subprocess.Popen(command_of(part, jobs), cwd=ROOT, env=environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for line in process.stdout:
            file.write(line)
            print(line, end="", flush=True)
        process.wait()
    counted = re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", log.read_text(), re.MULTILINE)
    # The runner's own status is no help here: it also says no when all cases were skipped.
    return tuple(map(int, counted[-1])) if counted else (0, 1, 0)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)

    FOLDER.mkdir(parents=True, exist_ok=True)
    build("release", "all")
    identity = tree_identity()
    is_done = lambda part: (FOLDER / f"{part}.stamp").is_file() and (FOLDER / f"{part}.stamp").read_text() == identity  # noqa: E731
    known = list_parts()
    if options.parts == ["list"]:
        for part in known:
            print(f'{"done" if is_done(part) else "to do":6} {part}')
        return 0
    unknown = set(options.parts) - set(known)
    if unknown:
        parser.error(f'no such part: {", ".join(sorted(unknown))}; there are {", ".join(known)}')

    totals = [0, 0, 0]
    for part in options.parts or known:
        if is_done(part) and not options.parts:
            print(f"== {part}: passed before on this tree (build/soak/{part}.log)")
            continue
        counts = run_part(part, options.jobs)
        totals = [total + count for total, count in zip(totals, counts)]
        if counts[1] == 0:
            (FOLDER / f"{part}.stamp").write_text(identity)
    print("\n{} passed, {} failed, {} skipped".format(*totals))
    return 1 if totals[1] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
