#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reports the branches of the cache and of its keys that tests take: each condition of the source, true and false.

usage: report_coverage.py [--least PERCENT]      `make coverage`; needs clang++ with llvm-cov, and the release build

Only the sources of the cache are compiled with counters; the tests and the rest of the library are those of the build. The tests run with
GEMMERY_SOAK=1 if that adds branches. tests/faults/never_taken.txt lists conditions that no test can make true (or false), with the reason;
they are printed and not counted. All files are in build/coverage.
"""

import argparse
import collections
import concurrent.futures
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "coverage"
LIBRARY = "build/release/src/libgemmery_static.a"
FLAGS = ["-std=c++20", "-march=x86-64-v2", "-DFMT_HEADER_ONLY", "-DXXH_INLINE_ALL", "-DGEMMERY_STATIC", "-DGEMMERY_BUILDING_LIBRARY",
         "-Isrc", "-Iinclude", "-I.", "-Ibuild/release/generated", "-w"]
COUNTERS = ["-O0", "-fprofile-instr-generate", "-fcoverage-mapping"]
SOURCES = ["src/jit/build*.cpp", "src/jit/cache*.cpp", "src/jit/disk_cache.cpp", "src/jit/compiler_choice.cpp", "src/platform/environment.cpp",
           "src/platform/file_*.cpp", "src/platform/folder.cpp", "src/platform/trusted_folder.cpp"]
HEADERS = ["src/jit/once_map.hpp", "src/jit/cache*.hpp", "src/jit/build*.hpp", "src/jit/disk_cache.hpp", "src/platform/file_calls.hpp"]
# Tests that share a program, and whether a long run takes more branches.
PROGRAMS = {
    "cache": (["tests/jit/disk_cache_test.cpp", "tests/jit/cache_test.cpp", "tests/jit/build_test.cpp", "tests/jit/build_dump_test.cpp",
               "tests/faults/cache_mutation_test.cpp", "tests/faults/cache_security_test.cpp", "tests/faults/cache_crash_test.cpp",
               "tests/faults/cache_storm_test.cpp", "tests/faults/cache_fault_test.cpp", "tests/faults/cache_branches_test.cpp", 
               "tests/faults/cache_threads_test.cpp", "tests/faults/failing_calls.cpp", "tests/platform/file_test.cpp"], False),
    "key": (["tests/jit/cache_key_test.cpp"], False),
    "platform": (["tests/platform/platform_test.cpp"], False),
    "nvcc": (["tests/jit/nvcc_test.cpp"], False),
    "warm": (["tests/jit/warm_start_test.cpp"], False),
}


# Child processes of tests end by _exit, which does not write counts.
EXIT_HOOK = """#include <unistd.h>
#include <cstdio>
#include <cstdlib>
extern "C" int __llvm_profile_write_file(void);
extern "C" void __llvm_profile_set_filename(const char*);
extern "C" [[noreturn]] void __real__exit(int);
extern "C" [[noreturn]] void __wrap__exit(int code) {
  static char name[4096];
  std::snprintf(name, sizeof name, "%s/child-%d.profraw", std::getenv("COVERAGE_FOLDER"), getpid());
  __llvm_profile_set_filename(name);
  __llvm_profile_write_file();
  __real__exit(code);
}
"""


def find(patterns):
    return sorted(path for pattern in patterns for path in glob.glob(pattern, root_dir=ROOT))


def run(*words, **options):
    subprocess.run([str(word) for word in words], cwd=ROOT, check=True, **options)


def compile_one(source, flags):
    target = FOLDER / "obj" / (source + ".o")
    newest = max((ROOT / name).stat().st_mtime for name in [source, *find(HEADERS)])
    if not target.exists() or target.stat().st_mtime < newest:
        target.parent.mkdir(parents=True, exist_ok=True)
        run("clang++", *FLAGS, *flags, "-c", source, "-o", target)
    return target


def build(jobs):
    FOLDER.mkdir(parents=True, exist_ok=True)
    hook = FOLDER / "exit_hook.cpp"
    hook.write_text(EXIT_HOOK)
    run("clang++", "-std=c++20", "-c", hook, "-o", FOLDER / "exit_hook.o")
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        counted = list(pool.map(lambda source: compile_one(source, COUNTERS), find(SOURCES)))
        for name, (tests, _) in PROGRAMS.items():
            objects = list(pool.map(lambda source: compile_one(source, ["-O1"]), tests))
            run("clang++", "-fprofile-instr-generate", "-Wl,--wrap=_exit", *objects, *counted, FOLDER / "exit_hook.o", LIBRARY,
                "-lgtest", "-lgtest_main", "-ldl", "-lpthread", "-o", FOLDER / name)
    return counted


def run_tests():
    """Runs the tests. Child processes with other user ids write counts, too, to a folder that is writable for all."""
    profiles = pathlib.Path("/tmp") / f"gemmery-coverage-{os.getpid()}"
    profiles.mkdir()
    profiles.chmod(0o1777)
    try:
        for name, (_, is_long) in PROGRAMS.items():
            environment = {**os.environ, "LLVM_PROFILE_FILE": f"{profiles}/{name}-%p.profraw", "COVERAGE_FOLDER": str(profiles)}
            if is_long:
                environment["GEMMERY_SOAK"] = "1"
            done = subprocess.run([FOLDER / name, "--gtest_brief=1"], cwd=ROOT, env=environment, check=False)
            print(f"{name}: exit code {done.returncode}", flush=True)
        written = [str(path) for path in profiles.glob("*.profraw") if path.stat().st_size]
        (FOLDER / "profiles.txt").write_text("\n".join(written))
        run("llvm-profdata", "merge", "-sparse", "-failure-mode=all", "-f", FOLDER / "profiles.txt", "-o", FOLDER / "counts.profdata")
    finally:
        shutil.rmtree(profiles)


def read_never_taken():
    """(file, text of the line, which outcome) -> reason; lines are `FILE | CONDITION | true or false | REASON`."""
    rows = {}
    for line in (ROOT / "tests/faults/never_taken.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        file, text, outcome, reason = (part.strip() for part in line.split(" | "))
        rows[(file, text, outcome)] = reason
    return rows


def as_count(number):
    """Counts computed as differences can be negative if threads raced at the counters; llvm-cov then prints its largest
    number."""
    return 0 if number >= 2**63 - 1 else number


def branches(counted):
    """file -> (line, column, end column) -> counts of true and false, over all instances of templates."""
    export = subprocess.run(["llvm-cov", "export", "-instr-profile", FOLDER / "counts.profdata", counted[0],
                             *[word for one in counted[1:] for word in ("-object", one)]],
                            cwd=ROOT, check=True, capture_output=True).stdout
    files = collections.defaultdict(dict)
    for file in json.loads(export)["data"][0]["files"]:
        name = os.path.relpath(file["filename"], ROOT)
        if name not in find(SOURCES) + find(HEADERS):
            continue
        for line, column, end_line, end, true, false, *_ in file["branches"]:
            known = files[name].setdefault((line, column, end_line, end), [0, 0])
            known[0] += as_count(true)
            known[1] += as_count(false)
    return files


def report(counted):
    never = read_never_taken()
    used = set()
    taken_sum = all_sum = 0
    for name, found in sorted(branches(counted).items()):
        text = (ROOT / name).read_text().splitlines()
        taken = count = 0
        for (line, column, end_line, end), outcomes in sorted(found.items()):
            condition = text[line - 1][column - 1:end - 1] if line == end_line else text[line - 1][column - 1:]
            for outcome, number in zip(("true", "false"), outcomes):
                row = (name, condition, outcome)
                if number == 0 and row in never:
                    used.add(row)
                    continue
                count += 1
                taken += number > 0
                if number == 0:
                    print(f"  not taken: {name}:{line}: never {outcome}: {condition}")
        print(f"{name:<36} {taken:4} of {count:4}")
        taken_sum, all_sum = taken_sum + taken, all_sum + count
    print("\nnot counted (tests/faults/never_taken.txt):")
    for name, condition, outcome in sorted(used):
        print(f"  {name}: {condition}: never {outcome}: {never[(name, condition, outcome)]}")
    for row in sorted(set(never) - used):
        print(f"  listed, but taken or gone: {' | '.join(row)}")
    percent = 100 * taken_sum / all_sum
    print(f"\nbranches: {taken_sum} of {all_sum}, {percent:.1f} %; {len(used)} outcomes not counted")
    return percent


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--least", type=float, default=95.0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    counted = build(options.jobs)
    run_tests()
    return 0 if report(counted) >= options.least else 1


if __name__ == "__main__":
    sys.exit(main())
