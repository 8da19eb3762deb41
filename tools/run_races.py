#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares first kernels with the vendor's library on this machine's GPU, problem by problem, and prints a table at the end.

usage: run_races.py BUILD [--out FOLDER] [--set NAME]… [--problems FILE] [--pairs N] [--sample-ms MS] [--budget-s S] [--dry-run DEVICE]

BUILD holds bench/peers/gemm_peers, and gemmery for grouped problems and convolutions; nothing is built here and nothing but Python's standard library is needed. Each set of the
problem list (bench/problems/races.txt) gets a file FOLDER/SET.jsonl with one JSON object per line (bench/results/README.md lists the
fields). A line is written when its race has ended, so that an interrupted run, or one that ends at its budget, loses nothing: the next
one continues after the problems that FOLDER has already, and repeats those that failed. Exit status: 0 when every problem was raced, 1 when one failed or
was not reached.

--dry-run h200 needs no GPU: it prints each problem with the kernel that discovery returns first for that device and its predicted time.
"""

import argparse
import dataclasses
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Kernels of a problem that are timed without a vendor's library: with fewer, one schedule might be missing.
KERNELS_ALONE = 4
# Problems for one process of gemm_peers: its start is amortised, and a crash affects few others.
PROBLEMS_A_PROCESS = 12


@dataclasses.dataclass(frozen=True)
class Race:
    """One line of the problem list."""

    set_name: str
    by_family: bool
    problem: str

    @property
    def is_alone(self):
        """True if the vendor's library lacks the product; then Gemmery's kernels are timed alone, by gemmery bench."""
        return self.problem.startswith(("grouped_gemm ", "conv"))


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/races"), help="where the .jsonl files lie")
    parser.add_argument("--set", action="append", default=[], dest="sets", help="this set alone; may be given several times")
    parser.add_argument("--problems", type=pathlib.Path, default=ROOT / "bench/problems/races.txt")
    parser.add_argument("--pairs", type=int, default=5, help="interleaved pairs of batches")
    parser.add_argument("--sample-ms", type=float, default=10, help="the length of a batch")
    parser.add_argument("--budget-s", type=float, default=float("inf"), help="begin no further race after so many seconds")
    parser.add_argument("--dry-run", metavar="DEVICE", help="no GPU: the first kernel and its predicted time, for a device by name")
    return parser.parse_args(arguments)


def read_races(path, wanted_sets):
    races = []
    for line in path.read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        set_name, rest = line.split(maxsplit=1)
        by_family = rest.startswith("families ")
        races.append(Race(set_name, by_family, rest.removeprefix("families ")))
    unknown = set(wanted_sets) - {race.set_name for race in races}
    if unknown:
        raise SystemExit(f"run_races: no set {', '.join(sorted(unknown))} in {path}; it has {', '.join(sets_of(races))}")
    return [race for race in races if not wanted_sets or race.set_name in wanted_sets]


def sets_of(races):
    return list(dict.fromkeys(race.set_name for race in races))


def list_first_kernels(races, options):
    """Prints the output of `gemmery list` for each problem, without a GPU."""
    failures = 0
    for race in races:
        command = [options.build / "gemmery", "list", race.problem, "--device", options.dry_run, "--limit", "1", "--json"]
        answer = subprocess.run(command, capture_output=True, text=True)
        if answer.returncode != 0:
            failures += 1
            print(f"{race.set_name:10} {race.problem:60} {(answer.stderr.strip().splitlines() or ['no answer'])[-1]}")
            continue
        first = json.loads(answer.stdout.splitlines()[0])
        turn = "families" if race.by_family else ""
        print(f"{race.set_name:10} {race.problem:60} {first['predicted_us']:9.1f} us  {turn:8} {first['kernel_name']}", flush=True)
    print(f"\n{len(races)} problems in {len(sets_of(races))} sets, {failures} without a kernel")
    return 1 if failures else 0


def is_raced(records):
    return any("error" not in record for record in records)


def file_of(set_name, options):
    return options.out / f"{set_name}.jsonl"


def read_records(races, options):
    """Set -> problem as in the list -> its records, of this run and earlier ones."""
    found = {}
    for set_name in sets_of(races):
        path = file_of(set_name, options)
        lines = path.read_text().splitlines() if path.exists() else []
        records = found.setdefault(set_name, {})
        for line in lines:
            record = json.loads(line)
            of_problem = records.setdefault(record["asked"], [])
            of_problem[:] = [earlier for earlier in of_problem if "error" not in earlier]  # it was repeated
            of_problem.append(record)
    return found


def kind_of(race):
    return race.set_name, race.by_family, race.is_alone


def chunks_of(races):
    """Lists of races of one set and of one kind, each for one process."""
    chunk = []
    for race in races:
        is_full = len(chunk) == PROBLEMS_A_PROCESS
        if chunk and (is_full or kind_of(race) != kind_of(chunk[0])):
            yield chunk
            chunk = []
        chunk.append(race)
    if chunk:
        yield chunk


def run_chunk(chunk, options, deadline):
    """Runs the races in order. A problem that fails may leave the GPU's context unusable, so the following ones get a new
    process."""
    if chunk[0].is_alone:
        return time_alone(chunk, options, deadline)
    waiting = list(chunk)
    while waiting and time.monotonic() < deadline:
        waiting = waiting[run_process(waiting, options, deadline):]


def time_alone(races, options, deadline):
    for race in races:
        if time.monotonic() >= deadline:
            return
        command = [
            options.build / "gemmery", "bench", race.problem, "--device", "0", "--top", str(KERNELS_ALONE), "--json",
            "--samples", str(options.pairs), "--sample-ms", str(options.sample_ms),
        ]
        answer = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
        if answer.returncode != 0:
            last = (answer.stderr.strip().splitlines() or ["no answer"])[-1]
            write_record(race, {"problem": race.problem, "error": f"gemmery bench: {last}"}, options)
            continue
        for line in answer.stdout.splitlines():
            write_record(race, record_of_bench(json.loads(line)), options)


def record_of_bench(timed):
    """A line of gemmery bench with the field names of gemm_peers."""
    return {
        "problem": timed["problem"],
        "kernel": timed["kernel_name"],
        "device": timed["device_name"],
        "peer_refusal": "timed alone: cuBLASLt has no such product",
        "pairs": timed["samples"],
        "ours_runs_per_batch": timed["runs_per_sample"],
        "operand_sets": timed["buffer_sets"],
        "ours_us": timed["median_us"],
        "ours_us_quartiles": [timed["quartile_low_us"], timed["quartile_high_us"]],
        "ours_tflops": timed["flops_per_second"] * 1e-12,
    }


def run_process(races, options, deadline):
    """Returns the number of finished races, the last of which may have failed."""
    command = [
        options.build / "bench/peers/gemm_peers", "--announce", "--pairs", str(options.pairs), "--sample-ms", str(options.sample_ms),
        *(["--families", "--rotate"] if races[0].by_family else []), *(race.problem for race in races),
    ]
    begun = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        for line in filter(lambda line: line.startswith("{"), process.stdout):
            record = json.loads(line)
            if "begins" not in record:
                write_record(races[begun - 1], record, options)
                if "error" not in record:
                    continue
            elif time.monotonic() < deadline:
                begun += 1
                continue
            process.kill()
            return begun
    if begun == 0:
        raise SystemExit("run_races: gemm_peers could not begin (see above)")
    if process.returncode != 0:
        write_record(races[begun - 1], {"problem": races[begun - 1].problem, "error": f"gemm_peers ended with status {process.returncode}"}, options)
    return begun


def write_record(race, record, options):
    with file_of(race.set_name, options).open("a") as file:
        file.write(json.dumps({"set": race.set_name, "asked": race.problem, **record}) + "\n")
    print(row_of(race, record), flush=True)


def row_of(race, record):
    problem = f"{race.set_name:10} {race.problem:60}"
    if "error" in record:
        return f"{problem} failed: {record['error']}"

    def number(name, form):
        return format(record[name], form) if record.get(name) is not None else "-"

    spread = record.get("ratio_range")
    return (
        f"{problem} {number('ours_us', '.1f'):>9} {number('predicted_us', '.1f'):>9} {number('theirs_us', '.1f'):>9}"
        f" {number('ours_tflops', '.1f'):>7} {number('ratio_median', '.3f'):>7}"
        f" {'[{:.3f}, {:.3f}]'.format(*spread) if spread else '':16} {number('relative_difference', '.1e'):>8}  {record['kernel']}"
    )


def print_table(races, options):
    """Prints the table of all records in the folder; returns how many problems failed or were not reached."""
    records = read_records(races, options)
    print(f"\n{'set':10} {'problem':60} {'ours us':>9} {'predicted':>9} {'theirs us':>9} {'ours TF':>7} {'ratio':>7} {'range':16} {'differs':>8}  kernel")
    failed = missing = 0
    for race in races:
        found = records[race.set_name].get(race.problem, [])
        missing += not found
        failed += bool(found) and not is_raced(found)
        for record in found:
            print(row_of(race, record))
    for set_name, of_set in records.items():
        ratios = [best for found in of_set.values() if (best := first_ratio(found)) is not None]
        if ratios:
            print(f"{set_name}: first kernels, median ratio {statistics.median(ratios):.3f} over {len(ratios)} problems, least {min(ratios):.3f}")
    print(f"{len(races) - failed - missing} raced, {failed} failed, {missing} not reached; records in {options.out}")
    return failed + missing


def first_ratio(found):
    """The ratio for the kernel that discovery returns first."""
    return next((record["ratio_median"] for record in found if "ratio_median" in record), None)


def main(arguments):
    options = parse_arguments(arguments)
    races = read_races(options.problems, options.sets)
    if options.dry_run:
        return list_first_kernels(races, options)
    options.build = options.build.resolve()
    if not (options.build / "bench/peers/gemm_peers").exists():
        raise SystemExit(f"run_races: no bench/peers/gemm_peers in {options.build}; it is built where cublasLt.h is (tools/build.sh release gemm_peers)")
    options.out.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + options.budget_s
    known = read_records(races, options)
    waiting = [race for race in races if not is_raced(known[race.set_name].get(race.problem, []))]
    for chunk in chunks_of(waiting):
        if time.monotonic() >= deadline:
            break
        run_chunk(chunk, options, deadline)
    return 1 if print_table(races, options) else 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # if the reader closes the pipe, the program ends quietly
    sys.exit(main(sys.argv[1:]))
