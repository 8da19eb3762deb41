#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the constants of src/model/warp_specialized_gemm.hpp to measurements of bench/calibrate.

    tools/fit_sm90.py CSV --program PATH [--device h200] [--only NAME,NAME] [--generations 300] [--reach 0] [--seed 1] [--write]

With --only the other constants keep their values. CSV was written by tools/keep_calibration.py, or is
tests/model/designs_h100.csv; PATH is the built tests/model/fit_objective: predictions are the library's own, with other
constants. Over all sets but "heldout" the search minimises the regret of the choice (its measured time over the best one's),
the spread of the errors of good designs, and a share of the error in time, plus a small penalty for constants away from the
middle of their range. The search is differential evolution, then steps along single constants; with --reach, random steps for
this many seconds, which also require every listed problem's choice to be near its best, even for slightly different constants,
as the facts of boards differ. Prints the constants, the regret of every problem, and the mean and worst regret of each set;
--write writes the constants to the header. It needs only Python.
"""

import argparse
import math
import pathlib
import random
import re
import subprocess
import sys
import time

HEADER = pathlib.Path(__file__).resolve().parent.parent / "src/model/warp_specialized_gemm.hpp"
STRUCT = re.compile(r"(?<=\nstruct WarpSpecializedConstants \{\n).*?(?=\n\};)", re.DOTALL)
CONSTANT = re.compile(r"^  double (\w+) = ([-+.e\d]+);$", re.MULTILINE)
JUDGED_BY = "heldout"

# The largest regret of the choice on a listed problem, and factors of constants for which it must also hold.
REACH = 0.04
VARIED = (
    {},
    {"memory_share": 1.03},
    {"memory_share": 0.97, "cluster_load_ns": 1.2},
    {"l2_share": 1.2},
    {"cluster_clocks": 1.15},
    {"queue_share": 0.9},
)

# The range of each constant, outside of which it would lose its meaning.
RANGES = {
    "fill_clocks": (500, 6000),
    "cluster_clocks": (50, 3000),
    "shared_write_share": (0.05, 1),
    "tall_share": (0.003, 0.1),
    "load_ns": (400, 2500),
    "cluster_load_ns": (20, 800),
    "load_bytes_per_ns": (40, 600),
    "queue_share": (0.03, 3),
    "split_sector_share": (0.1, 4),
    "split_line_share": (0.1, 6),
    "split_store_share": (0.05, 3),
    "staging_clocks": (20, 900),
    "store_bytes_per_clock": (10, 128),
    "store_interference": (0.02, 0.6),
    "exchange_clocks": (100, 3000),
    "exchange_bytes_per_clock": (3, 60),
    "short_wave_gain": (0.05, 0.9),
    "memory_share": (0.6, 0.97),
    "write_weight": (0.7, 2),
    "sharer_share": (0.01, 1),
    "l2_share": (0.3, 1.5),
    "full_load_ghz": (1.2, 1.6),
    "promotion_clocks": (20, 500),
    "promotion_clocks_per_sum": (0.5, 6),
    "transposition_clocks": (50, 1500),
    "byte_transposition_clocks_per_kib": (5, 300),
    "word_transposition_clocks_per_kib": (2, 200),
    "register_operand_clocks": (5, 400),
    "part_latency_us": (1, 6),
    "part_bytes_per_clock": (10, 128),
    "stream_bytes_per_ns": (2000, 10000),
}


def rounded(value):
    return float(f"{value:.3g}")


class Model:
    """The built program, which answers queries line by line."""

    def __init__(self, program, csv, device):
        self.process = subprocess.Popen([program, csv, device], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, verb, values):
        self.process.stdin.write(f"{verb} : {' '.join(f'{value:.9g}' for value in values)}\n")
        self.process.stdin.flush()

    def objective(self, values):
        self.ask(f"objective {JUDGED_BY}", values)
        return float(self.process.stdout.readline())

    def report(self, values):
        self.ask("report", values)
        rows = []
        while line := self.process.stdout.readline().strip():
            rows.append(line.split(","))
        return rows


class Search:
    """Constants as points of the unit cube, on logarithmic scales. Constants that are not `free` keep their values."""

    def __init__(self, model, names, values, free, seed):
        self.model = model
        self.names = names
        self.written = values
        self.free = [at for at, name in enumerate(names) if name in free]
        self.ranges = [RANGES[name] for name in names]
        self.random = random.Random(seed)
        self.evaluations = 0

    def values(self, point):
        values = list(self.written)
        for at, x in zip(self.free, point):
            low, high = self.ranges[at]
            values[at] = low * (high / low) ** x
        return values

    def point(self, values):
        def place(value, low, high):
            return min(max(math.log(value / low) / math.log(high / low), 0), 1)

        return [place(values[at], *self.ranges[at]) for at in self.free]

    def cost(self, point):
        self.evaluations += 1
        pull = sum((2 * x - 1) ** 4 for x in point) / len(point)
        return self.model.objective(self.values(point)) + 0.02 * pull

    def evolve(self, start, generations):
        size = 3 * len(start)
        crowd = [start] + [
            [min(max(x + self.random.gauss(0, 0.15), 0), 1) for x in start] for _ in range(size // 2)
        ]
        crowd += [[self.random.random() for _ in start] for _ in range(size - len(crowd))]
        costs = [self.cost(point) for point in crowd]
        for generation in range(generations):
            best = crowd[min(range(size), key=costs.__getitem__)]
            for at in range(size):
                trial = self.mutant(crowd, at, best)
                cost = self.cost(trial)
                if cost <= costs[at]:
                    crowd[at], costs[at] = trial, cost
            if sys.stderr.isatty():
                print(f"\r\033[Kgeneration {generation + 1}/{generations}: {min(costs):.4f}", end="", file=sys.stderr)
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
        return crowd[min(range(size), key=costs.__getitem__)]

    def mutant(self, crowd, at, best):
        first, second = self.random.sample(crowd, 2)
        weight = self.random.uniform(0.3, 0.9)
        crossing = self.random.choice((0.2, 0.9))
        forced = self.random.randrange(len(best))
        trial = []
        for i, x in enumerate(crowd[at]):
            if i == forced or self.random.random() < crossing:
                x += weight * (best[i] - x) + weight * (first[i] - second[i])
            trial.append(min(max(x, 0), 1))
        return trial

    def polish(self, point):
        cost = self.cost(point)
        step = 0.05
        while step > 0.002:
            improved = False
            for i in range(len(point)):
                for sign in (-1, 1):
                    trial = list(point)
                    trial[i] = min(max(trial[i] + sign * step, 0), 1)
                    if (trial_cost := self.cost(trial)) < cost:
                        point, cost, improved = trial, trial_cost, True
            if not improved:
                step /= 2
        return point


    def beyond_reach(self, values):
        excess = 0
        for factors in VARIED:
            varied = [value * factors.get(name, 1) for name, value in zip(self.names, values)]
            worst = max(float(row[4]) for row in self.model.report(varied) if row[0] == "listed")
            excess += max(worst - REACH, 0)
        return excess

    def come_within_reach(self, values, seconds):
        def cost(trial):
            self.evaluations += 1
            return self.model.objective(trial) + 8 * self.beyond_reach(trial)

        end = time.monotonic() + seconds
        least = cost(values)
        while time.monotonic() < end:
            trial = list(values)
            for i in self.random.sample(self.free, min(self.random.choice((1, 2, 3, 5, len(trial))), len(self.free))):
                low, high = self.ranges[i]
                step = self.random.gauss(0, 0.12 * self.random.choice((0.2, 1, 3)))
                trial[i] = rounded(min(max(trial[i] * math.exp(step), low), high))
            if (trial_cost := cost(trial)) < least:
                values, least = trial, trial_cost
        return values


def print_report(rows):
    for name in dict.fromkeys(row[0] for row in rows):
        mine = [row for row in rows if row[0] == name]
        for _, problem, choice, best, regret, error, predicted, best_us in sorted(mine, key=lambda row: -float(row[4])):
            print(f"{name:8} {float(regret):7.1%} off {float(error):6.1%}  {float(predicted):9.1f} us for {choice:32}"
                  f" best {float(best_us):9.1f} {best:32} {problem}")
    for name in dict.fromkeys(row[0] for row in rows):
        regrets = [float(row[4]) for row in rows if row[0] == name]
        print(f"{name}: {len(regrets)} problems, regret mean {sum(regrets) / len(regrets):.2%}, worst {max(regrets):.2%},"
              f" above 5 %: {sum(regret > 0.05 for regret in regrets)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("csv")
    parser.add_argument("--program", required=True)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--only", metavar="NAME,NAME", help="the constants that are fitted; default: all")
    parser.add_argument("--generations", type=int, default=300)
    parser.add_argument("--reach", type=float, default=0, metavar="SECONDS")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()

    header = HEADER.read_text()
    written = CONSTANT.findall(STRUCT.search(header)[0])
    names = [name for name, _ in written]
    values = [float(value) for _, value in written]
    model = Model(options.program, options.csv, options.device)
    free = options.only.split(",") if options.only else names
    if unknown := set(free) - set(names):
        parser.error(f"--only: no constant is called {', '.join(sorted(unknown))}")
    search = Search(model, names, values, free, options.seed)
    if options.generations > 0:
        found = search.polish(search.evolve(search.point(values), options.generations))
        values = [rounded(value) for value in search.values(found)]
    if options.reach > 0:
        values = search.come_within_reach(values, options.reach)
    if search.evaluations > 0:
        print(f"{search.evaluations} evaluations, seed {options.seed}")
    for name, value in zip(names, values):
        print(f"{name} = {value:.6g}")
    print(f"objective {model.objective(values):.4f}")
    print_report(model.report(values))
    if options.write:
        new = dict(zip(names, values))
        replace = lambda struct: CONSTANT.sub(lambda found: f"  double {found[1]} = {new[found[1]]:.6g};", struct[0])
        HEADER.write_text(STRUCT.sub(replace, header))


if __name__ == "__main__":
    main()
