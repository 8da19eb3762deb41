#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The long tests, part by part. A part that passed on the same tree is not run again, so an interrupted soak can be continued.

usage: run_soak.py [--jobs N] [PART…]        `list` prints the parts and their state

A part is a test program labelled `soak` under GEMMERY_SOAK=1 (full counts; `make soak-gpu` runs those that need a GPU), or
`asan/PROGRAM` / `tsan/PROGRAM`: a test program that needs no GPU in a build with that sanitizer, at its usual counts; `asan/python_test`:
the Python tests with the native module in such a build, the sanitizer's library preloaded. `asan` and `tsan` name all of their parts. `frameworks` installs torch and JAX into an environment of its own (tools/framework-requirements.txt, 5 GB on disk) and
runs the Python tests that use them, on the CPU; `nvrtc/VERSION` installs that version of NVRTC (tools/nvrtc-VERSION.txt, 150 MB on disk)
and runs every test that compiles with it, at its usual counts; `nvrtc` names all versions. These parts run only if they are named. A part
that is named by itself is run even if it passed.
Output goes to build/soak/*.log; the last line counts the cases of all parts that were asked for, those that passed before on this tree
included.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "soak"
RELEASE = "release"
SANITIZERS = ("asan", "tsan")
SANITIZED_PYTHON = ("asan", "python_test")
FRAMEWORKS = ("frameworks", "python_test")
NVRTC = "nvrtc"
# The time limit of one program of a part.
TIME_LIMIT_S = "14400"
SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$")
VERDICT = re.compile(r"^(?:passed|FAILED|skipped) +(\S+) +(\d+) passed +(\d+) failed +(\d+) skipped +([\d.]+) s$")


def build(preset, *targets):
    subprocess.run([ROOT / "tools" / "build.sh", preset, *targets], cwd=ROOT, check=True)


def list_tests():
    """The tests in tests.json. They are the same in all presets, so configuring one is enough."""
    build(RELEASE, "build.ninja")
    return json.loads((ROOT / "build" / RELEASE / "tests.json").read_text())


def list_parts(tests):
    """Every part as (preset, program)."""
    tests = [test for test in tests if {"cpu", "nvrtc"} & set(test["labels"])]
    parts = [(RELEASE, test["name"]) for test in tests if "soak" in test["labels"]]
    # Scripts test installed or linked files. For Python tests only the native module is instrumented.
    parts += [(preset, test["name"]) for preset in SANITIZERS for test in tests if test["kind"] == "gtest"]
    return parts + [SANITIZED_PYTHON]


def nvrtc_parts():
    """A part for each version of NVRTC that has a file of requirements."""
    return [(NVRTC, file.stem.removeprefix("nvrtc-")) for file in sorted((ROOT / "tools").glob("nvrtc-[0-9]*.txt"))]


def target_of(test):
    """The target to build for a test; for a script everything, since its dependencies are unknown."""
    return {"gtest": test["name"], "pytest": "gemmery_python_package"}.get(test["kind"], "all")


def name_of(part):
    preset, program = part
    if (preset, program) == FRAMEWORKS:
        return preset
    return program if preset == RELEASE else f"{preset}/{program}"


def tree_identity():
    """A digest that changes with every commit and every uncommitted change."""
    output = [subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=False).stdout
              for words in (["rev-parse", "HEAD"], ["diff", "HEAD"], ["status", "--porcelain"])]
    return hashlib.sha256(b"".join(output)).hexdigest()


class Stamps:
    """The parts that passed, for the current tree only."""

    def __init__(self):
        self.tree = tree_identity()

    def file_of(self, part):
        return FOLDER / f"{name_of(part)}.stamp"

    def counts(self, part):
        """(passed, failed, skipped), or None for a part that did not pass on this tree."""
        try:
            stamp = json.loads(self.file_of(part).read_text())
        except (OSError, ValueError):
            return None
        return tuple(stamp["counts"]) if stamp["tree"] == self.tree else None

    def write(self, part, counts, elapsed_s):
        self.file_of(part).parent.mkdir(parents=True, exist_ok=True)
        self.file_of(part).write_text(json.dumps({"tree": self.tree, "counts": counts, "elapsed_s": elapsed_s}))


def library_of_compiler(name):
    """The path of a library that belongs to the compiler, such as libasan.so."""
    command = [os.environ.get("CXX", "c++"), f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def make_plain_nvcc():
    """A folder with an nvcc that drops LD_PRELOAD, with which the real one crashes; empty if there is no nvcc."""
    folder = FOLDER / "plain"
    folder.mkdir(exist_ok=True)
    wrapper = folder / "nvcc"
    wrapper.unlink(missing_ok=True)
    if nvcc := shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin"):
        wrapper.write_text(f'#!/bin/sh\nunset LD_PRELOAD\nexec "{nvcc}" "$@"\n')
        wrapper.chmod(0o755)
    return folder


def sanitized_python_environment():
    """The environment for an instrumented module: the sanitizers' libraries are loaded first. Python's own leaks are not reported."""
    libraries = [library_of_compiler(name) for name in ("libasan.so", "libubsan.so", "libstdc++.so")]
    return {"LD_PRELOAD": " ".join(libraries), "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
            "UBSAN_OPTIONS": "print_stacktrace=1", "PATH": f'{make_plain_nvcc()}:{os.environ["PATH"]}'}


def run_parts(preset, tests, jobs, stamps):
    """Runs tests of one build, prints and keeps their output; returns the three counts of each that reported."""
    programs = [test["name"] for test in tests]
    build(preset, *{target_of(test) for test in tests})
    environment = {**os.environ, "GEMMERY_TEST_TIME_LIMIT": TIME_LIMIT_S}
    if preset == RELEASE:
        environment["GEMMERY_SOAK"] = "1"
    if (preset, programs[0]) == SANITIZED_PYTHON:
        environment |= sanitized_python_environment()
    command = [sys.executable, str(ROOT / "tools" / "run_tests.py"), f"build/{preset}", "--jobs", str(jobs)]
    command += [word for program in programs for word in ("--only", program)]
    counts = {}
    with (FOLDER / f"{preset if preset in SANITIZERS else programs[0]}.log").open("a") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for line in process.stdout:
            log.write(line)
            log.flush()
            print(line, end="", flush=True)
            if verdict := VERDICT.match(line):
                program, elapsed_s = verdict[1], float(verdict[5])
                counts[program] = tuple(map(int, verdict.group(2, 3, 4)))
                if counts[program][1] == 0:
                    stamps.write((preset, program), counts[program], elapsed_s)
        process.wait()
    return counts


def environment_of(folder, requirements):
    """The Python of an environment with the packages of requirements files; it is made anew when one of these has changed."""
    python = folder / "bin" / "python"
    wanted = "".join(file.read_text() for file in requirements)
    installed = folder / "requirements.txt"
    if installed.exists() and installed.read_text() == wanted:
        return python
    private = ROOT / ".venv" / "bin" / "python"
    subprocess.run([private if private.exists() else sys.executable, "-m", "venv", "--clear", folder], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--only-binary", ":all:",
               "--no-deps", "--require-hashes"]
    for file in requirements:
        subprocess.run([*install, "-r", file], check=True)
    installed.write_text(wanted)
    return python


def framework_python():
    """The Python of an environment with torch and JAX."""
    return environment_of(FOLDER / "frameworks",
                          [ROOT / "tools" / name for name in ("python-requirements.txt", "framework-requirements.txt")])


def nvrtc_library(version):
    """The library of a version of NVRTC."""
    folder = FOLDER / f"nvrtc-{version}"
    environment_of(folder, [ROOT / "tools" / f"nvrtc-{version}.txt"])
    return next(folder.glob("lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.13"))


def version_in_use(environment):
    """The version of NVRTC that programs load in this environment; empty if there is none."""
    done = subprocess.run([ROOT / "build" / RELEASE / "gemmery", "doctor"], cwd=ROOT, env=environment, text=True,
                          capture_output=True, check=False)
    found = re.search(r"^ *NVRTC +(\S+) at ", done.stdout, re.MULTILINE)
    return found[1] if found else ""


def counts_of_runner(counts, status):
    """The three counts; a runner that fails although no case failed (all were skipped, or it was interrupted) counts as a failure."""
    passed, failed, skipped = counts
    return (passed, failed or int(status != 0), skipped)


def run_nvrtc(part, jobs, stamps):
    """Runs every test that compiles with one version of NVRTC; returns the three counts."""
    version = part[1]
    build(RELEASE)
    environment = {**os.environ, "GEMMERY_NVRTC_LIBRARY": str(nvrtc_library(version)), "GEMMERY_TEST_TIME_LIMIT": TIME_LIMIT_S}
    if (used := version_in_use(environment)) != version:
        print(f"NVRTC: expected version {version}, got {used or 'none'}", flush=True)
        return 0, 1, 0
    command = [sys.executable, str(ROOT / "tools" / "run_tests.py"), f"build/{RELEASE}", "--label", NVRTC, "--not-label", "gpu",
               "--jobs", str(jobs)]
    start = time.monotonic()
    totals = (0, 1, 0)
    with (FOLDER / f"{NVRTC}-{version}.log").open("w") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for line in process.stdout:
            log.write(line)
            print(line, end="", flush=True)
            if summary := SUMMARY.match(line):
                totals = tuple(map(int, summary.groups()))
        process.wait()
    totals = counts_of_runner(totals, process.returncode)
    if totals[1] == 0:
        stamps.write(part, totals, time.monotonic() - start)
    return totals


def framework_tests():
    """The files of Python tests that use torch or JAX."""
    mentions = re.compile(r"\b(torch|jax)\b")
    files = sorted((ROOT / "tests" / "python").glob("test_*.py"))
    return [str(file.relative_to(ROOT)) for file in files if mentions.search(file.read_text())]


def run_frameworks(stamps):
    """Runs them; returns the three counts."""
    build(RELEASE, "gemmery_python_package")
    python = framework_python()
    report = FOLDER / "frameworks.xml"
    report.unlink(missing_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "build" / RELEASE / "python"), "GEMMERY_CACHE_MAX_BYTES": "0",
                   "CUDA_VISIBLE_DEVICES": ""}
    command = [python, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-m", "not gpu", f"--junitxml={report}"]
    start = time.monotonic()
    with (FOLDER / "frameworks.log").open("w") as log:
        process = subprocess.Popen([*command, *framework_tests()], cwd=ROOT, env=environment, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for line in process.stdout:
            log.write(line)
            print(line, end="", flush=True)
        process.wait()
    if not report.exists():
        return 0, 1, 0
    suite = xml.etree.ElementTree.parse(report).getroot().find("testsuite")
    failed, skipped = int(suite.get("failures")) + int(suite.get("errors")), int(suite.get("skipped"))
    counts = counts_of_runner((int(suite.get("tests")) - failed - skipped, failed, skipped), process.returncode)
    if counts[1] == 0:
        stamps.write(FRAMEWORKS, counts, time.monotonic() - start)
    return counts


def select_parts(known, words, parser):
    """The requested parts, and those of them that were named individually."""
    named = [part for part in known if name_of(part) in words]
    of_groups = [part for part in known if part[0] in words]
    unknown = set(words) - {name_of(part) for part in named} - {preset for preset, _ in known if preset != RELEASE}
    if unknown:
        parser.error(f'no such part: {", ".join(sorted(unknown))}; `list` prints them')
    # Parts with large downloads run only if they are named.
    of_all = [part for part in known if part[0] in (RELEASE, *SANITIZERS)]
    return (named + [part for part in of_groups if part not in named] if words else of_all), named


def groups(parts):
    """Groups of parts that run together: long tests run alone, those of a sanitizer in parallel."""
    for part in parts:
        if part[0] == RELEASE:
            yield RELEASE, [part[1]]
    for preset in SANITIZERS:
        if programs := [program for of, program in parts if of == preset and (of, program) != SANITIZED_PYTHON]:
            yield preset, programs
    if SANITIZED_PYTHON in parts:
        yield SANITIZED_PYTHON[0], [SANITIZED_PYTHON[1]]


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)

    FOLDER.mkdir(parents=True, exist_ok=True)
    tests = {test["name"]: test for test in list_tests()}
    known = [*list_parts(tests.values()), *nvrtc_parts(), FRAMEWORKS]
    stamps = Stamps()
    if options.parts == ["list"]:
        for part in known:
            print(f'{"to do" if stamps.counts(part) is None else "done":6} {name_of(part)}')
        return 0

    parts, named = select_parts(known, options.parts, parser)
    results = {part: stamps.counts(part) for part in parts if part not in named}
    if before := [part for part in parts if results.get(part) is not None]:
        print(f"{len(before)} of {len(parts)} parts passed before on this tree")
    for preset, programs in groups([part for part in parts if part not in before]):
        print(f"== {preset}: {', '.join(programs)}", flush=True)
        found = run_parts(preset, [tests[program] for program in programs], options.jobs, stamps)
        # The runner's exit status is not used: it is also nonzero if all cases were skipped.
        results |= {(preset, program): found.get(program, (0, 1, 0)) for program in programs}
    for part in [part for part in parts if part[0] == NVRTC and part not in before]:
        print(f"== {name_of(part)}: every test that compiles", flush=True)
        results[part] = run_nvrtc(part, options.jobs, stamps)
    if FRAMEWORKS in parts and FRAMEWORKS not in before:
        print("== frameworks: torch and JAX on the CPU", flush=True)
        results[FRAMEWORKS] = run_frameworks(stamps)
    totals = [sum(column) for column in zip(*results.values())]
    print("\n{} passed, {} failed, {} skipped".format(*totals))
    return 1 if totals[1] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
