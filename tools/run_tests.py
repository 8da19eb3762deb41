#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of a build folder and counts their cases one by one.

usage: run_tests.py BUILD [--label L]… [--not-label L]… [--only NAME]… [--jobs N] [--gtest-filter F] [--no-scripts] [--each-gpu] [--logs FOLDER]

BUILD holds tests.json (cmake/GemmeryTest.cmake writes it) and the test programs; nothing is built here and nothing but Python's
standard library is needed, so a build folder can be run on a machine that has no compiler. The last line printed reads
`N passed, N failed, N skipped`, counting cases of GoogleTest, pytest and unittest; above it are the reasons of skipped and failed cases.
A program that crashes, hangs or reports no case counts as one failure. Exit status: 0 if nothing failed and something passed.

With --each-gpu every GPU runs one program at a time, which sees it as its first, and programs of GoogleTest are run in as many shards
as there are GPUs. --logs keeps the whole output of every program, passed ones too: seeds, counts, tables.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import dataclasses
import json
import os
import pathlib
import queue
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKIPPED_STATUS = 77
MOST_LINES, LONGEST_LINE = 12, 400  # of a failure's message in the summary
TIME_LIMIT_S = float(os.environ.get("GEMMERY_TEST_TIME_LIMIT", "1200"))


@dataclasses.dataclass
class Outcome:
    """The outcome of one test program."""

    name: str
    passed: int = 0
    failures: list = dataclasses.field(default_factory=list)
    messages: dict = dataclasses.field(default_factory=dict)  # of failed cases
    skips: list = dataclasses.field(default_factory=list)  # (case, reason)
    output: str = ""
    elapsed_s: float = 0.0


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--label", action="append", default=[], help="run tests that bear one of these labels")
    parser.add_argument("--not-label", action="append", default=[], help="leave out tests that bear one of these labels")
    parser.add_argument("--only", action="append", default=[], help="run the tests of these names")
    parser.add_argument("--gtest-filter", default="", help="passed to GoogleTest programs")
    parser.add_argument("--no-scripts", action="store_true", help="leave out tests that are scripts (they may build something)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="programs at a time")
    parser.add_argument("--each-gpu", action="store_true", help="as many programs at a time as there are GPUs, one on each")
    parser.add_argument("--logs", type=pathlib.Path, help="folder for the output of every program")
    return parser.parse_args(arguments)


def select_tests(tests, options):
    def is_selected(test):
        labels = set(test["labels"])
        return (
            (not options.label or labels & set(options.label))
            and not labels & set(options.not_label)
            and (not options.only or test["name"] in options.only)
            and not (options.no_scripts and test["kind"] == "script")
        )

    return [test for test in tests if is_selected(test)]


class Places:
    """Environments of programs that run at the same time: with --each-gpu one for each GPU, else as many empty ones as jobs."""

    def __init__(self, options):
        gpus = list_gpus() if options.each_gpu else []
        self.count = max(1, len(gpus) if options.each_gpu else options.jobs)
        self._free = queue.SimpleQueue()
        for at in range(self.count):
            order = gpus[at:] + gpus[:at]
            self._free.put({"CUDA_VISIBLE_DEVICES": ",".join(order)} if order else {})

    @contextlib.contextmanager
    def take(self):
        place = self._free.get()
        try:
            yield place
        finally:
            self._free.put(place)


def list_gpus():
    """What CUDA_VISIBLE_DEVICES may name."""
    if visible := os.environ.get("CUDA_VISIBLE_DEVICES"):
        return visible.split(",")
    try:
        listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=False).stdout
    except OSError:
        return []
    return re.findall(r"^GPU (\d+):", listed, re.MULTILINE)


def split_into_shards(tests, count):
    for test in tests:
        of = count if test["kind"] == "gtest" else 1
        for index in range(of):
            name = f'{test["name"]} {index + 1}/{of}' if of > 1 else test["name"]
            shard = {"GTEST_TOTAL_SHARDS": str(of), "GTEST_SHARD_INDEX": str(index)} if of > 1 else {}
            yield {**test, "name": name, "environment": shard}


def run_all(tests, options):
    places = Places(options)
    if options.each_gpu:  # programs that no shards share begin first: the last of them would be waited for
        tests = sorted(tests, key=lambda test: test["kind"] == "gtest")
    shards = split_into_shards(tests, places.count) if options.each_gpu else tests
    with concurrent.futures.ThreadPoolExecutor(places.count) as pool:
        running = [pool.submit(run_one, test, options, places) for test in shards]
        for done in concurrent.futures.as_completed(running):
            outcome = done.result()
            print_outcome(outcome)
            if options.logs:
                keep_log(outcome, options.logs)
            yield outcome


def run_one(test, options, places):
    with tempfile.TemporaryDirectory() as folder, places.take() as place:
        start = time.monotonic()
        report = pathlib.Path(folder) / "report.xml"
        more = {**place, **test.get("environment", {})}
        status, output = run_program(command_of(test, options, report), report, options.build, more)
        outcome = Outcome(test["name"], output=output, elapsed_s=time.monotonic() - start)
        if test["kind"] == "gtest":
            read_gtest_report(outcome, report, status)
        elif test["kind"] == "pytest":
            read_pytest_report(outcome, report, status)
        else:
            read_script(outcome, status)
    return outcome


def command_of(test, options, report):
    program, *rest = test["command"]
    if test["kind"] == "pytest":
        return [python_with_packages(), "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", program, *rest]
    if test["kind"] == "gtest":
        program = str((options.build / program).resolve())
        if options.gtest_filter:
            rest.append(f"--gtest_filter={options.gtest_filter}")
    return [program, *rest]


def python_with_packages():
    """The Python that the user names (one with torch, say), the one that tools/setup.sh made, or this one."""
    private = ROOT / ".venv/bin/python"
    return os.environ.get("GEMMERY_TEST_PYTHON") or (str(private) if private.exists() else sys.executable)


def run_program(command, report, build, more):
    # Tests compile the kernels that they test; tests of the cache make their own caches.
    environment = {
        **os.environ, "GTEST_OUTPUT": f"xml:{report}", "GTEST_COLOR": "no", "GEMMERY_CACHE_MAX_BYTES": "0",
        "PYTHONPATH": os.pathsep.join(filter(None, [str((build / "python").resolve()), os.environ.get("PYTHONPATH")])),
        **more,
    }
    try:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, text=True, errors="replace",
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )
    except OSError as error:
        return 127, f"{command[0]}: {error}"
    try:
        output, _ = process.communicate(timeout=TIME_LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return 124, output + f"\nstopped after {TIME_LIMIT_S:.0f} s"
    return process.returncode, output


def read_gtest_report(outcome, report, status):
    try:
        cases = xml.etree.ElementTree.parse(report).getroot().iter("testcase")
    except (OSError, xml.etree.ElementTree.ParseError):
        outcome.failures.append(f"{outcome.name}: ended with status {status} before it reported")
        return
    for case in cases:
        name = f'{case.get("classname")}.{case.get("name")}'
        skip = case.find("skipped")
        if case.get("status") == "notrun":
            outcome.skips.append((name, "disabled in the source"))
        elif case.find("failure") is not None:
            outcome.failures.append(name)
            outcome.messages[name] = "\n".join(failure.get("message") or "" for failure in case.iter("failure"))
        elif skip is not None:
            outcome.skips.append((name, skip_reason(skip.get("message") or skip.text or "")))
        else:
            outcome.passed += 1
    if status != 0 and not outcome.failures:
        outcome.failures.append(f"{outcome.name}: every case passed but the program ended with status {status}")


def read_pytest_report(outcome, report, status):
    if "No module named pytest" in outcome.output:
        outcome.skips.append((outcome.name, "pytest is not here (tools/setup.sh gets it)"))
        return
    try:
        cases = list(xml.etree.ElementTree.parse(report).getroot().iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        outcome.failures.append(f"{outcome.name}: ended with status {status} before it reported")
        return
    for case in cases:
        name = f'{case.get("classname")}.{case.get("name")}'
        skip = case.find("skipped")
        faults = [*case.iter("failure"), *case.iter("error")]
        if faults:
            outcome.failures.append(name)
            outcome.messages[name] = "\n".join(fault.get("message") or "" for fault in faults)
        elif skip is not None:
            outcome.skips.append((name, skip.get("message") or "no reason given"))
        else:
            outcome.passed += 1
    # 5: nothing was collected, which is correct if a filter selects nothing.
    if status not in (0, 1, 5) and not outcome.failures:
        outcome.failures.append(f"{outcome.name}: ended with status {status}")


def skip_reason(message):
    """GoogleTest writes `file:line`, then the reason."""
    lines = [line.strip() for line in message.strip().splitlines() if line.strip()]
    if len(lines) > 1 and re.match(r"\S+:\d+$", lines[0]):
        lines = lines[1:]
    return lines[0] if lines else "no reason given"


def read_script(outcome, status):
    counted = re.search(r"^Ran (\d+) tests? in", outcome.output, re.MULTILINE)
    if status == SKIPPED_STATUS:
        last_line = outcome.output.strip().splitlines()[-1:] or ["no reason given"]
        outcome.skips.append((outcome.name, last_line[0]))
    elif status != 0:
        outcome.failures.append(f"{outcome.name}: ended with status {status}")
    else:
        outcome.passed += int(counted.group(1)) if counted else 1


def print_outcome(outcome):
    verdict = "FAILED" if outcome.failures else "passed" if outcome.passed else "skipped"
    print(
        f"{verdict:8} {outcome.name:40} {outcome.passed:6} passed {len(outcome.failures):4} failed"
        f" {len(outcome.skips):4} skipped {outcome.elapsed_s:8.1f} s",
        flush=True,
    )
    if outcome.failures:
        print(indented(output_of_failures(outcome.output)[-20000:]), flush=True)


def keep_log(outcome, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / (re.sub(r"\W+", "_", outcome.name) + ".log")).write_text(outcome.output)


def output_of_failures(output):
    """The output of a failed program; for GoogleTest without the output of cases that passed, except the seed."""
    if "[ RUN      ]" not in output:
        return output
    kept, case = [], []
    for line in output.splitlines():
        if line.startswith("[ RUN      ]"):
            kept += case  # output within a case: of a program that it started
            case = [line]
        elif not case:
            if line and not line.startswith("[-----"):
                kept.append(line)
        else:
            case.append(line)
            if end := re.search(r"\[ +(OK|SKIPPED|FAILED) +\]", line):
                kept += [said for said in case if end[1] == "FAILED" or said.startswith("GEMMERY_TEST_SEED=")]
                case = []
    return "\n".join(kept + case)  # the rest: the output of a program that ended within a case


def beginning_of(message):
    """What fits below a summary: who sees only the end of the output learns what failed."""
    lines = message.strip().splitlines()
    shown = [line[:LONGEST_LINE] for line in lines[:MOST_LINES]]
    return "\n".join(shown + [f"({len(lines) - MOST_LINES} more lines)"] * (len(lines) > MOST_LINES))


def indented(text):
    return "\n".join("    " + line for line in text.splitlines())


def print_summary(outcomes):
    reasons = collections.Counter(reason for outcome in outcomes for _, reason in outcome.skips)
    failures = [(outcome.name, failure, outcome.messages.get(failure, "")) for outcome in outcomes for failure in outcome.failures]
    if reasons:
        print("\nSkipped:")
        for reason, count in reasons.most_common():
            print(f"  {count:6} × {reason}")
    if failures:
        print("\nFailed:")
        for name, failure, message in failures:
            print(f"  {name}: {failure}")
            if message:
                print(indented(beginning_of(message)))
    passed = sum(outcome.passed for outcome in outcomes)
    print(f"\n{passed} passed, {len(failures)} failed, {sum(reasons.values())} skipped")
    return passed, len(failures)


def main(arguments):
    options = parse_arguments(arguments)
    tests = json.loads((options.build / "tests.json").read_text())
    outcomes = list(run_all(select_tests(tests, options), options))
    passed, failed = print_summary(outcomes)
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
