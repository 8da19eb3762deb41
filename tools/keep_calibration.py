#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Extracts the data for tests and fits from a file of bench/calibrate, about a quarter of it.

    tools/keep_calibration.py MEASURED KEPT

Keeps the set, problem, kernel, pass and one time of each row: the median, or the lower quartile for passes with few samples, in
which a single launch of a large problem while the clock falls would show (4096x16384x6656: 1260 to 1600 us for one kernel). A
row is left out if a later pass of its problem measured the same kernel again, unless it is the fastest of its pass, which is
the reference for that pass. A row with an empty set and problem belongs to those above it; its kernel's name shares theirs up
to `_acc-`.
"""

import csv
import itertools
import sys

FEW_SAMPLES = 3
COLUMNS = "set,problem,kernel,pass,microseconds"
SHARED_UP_TO = "_acc-"


def microseconds(row):
    return row["quartile_low_us"] if int(row["samples"]) <= FEW_SAMPLES else row["median_us"]


def kept_rows(rows):
    """For one problem: the last row of each kernel, and the fastest of each pass."""
    last = {row["kernel"]: row for row in rows}
    fastest = {number: min(of_pass, key=lambda row: float(microseconds(row)))
               for number, of_pass in ((key, list(group)) for key, group in itertools.groupby(rows, lambda row: row["pass"]))}
    return [row for row in rows if last[row["kernel"]] is row or fastest[row["pass"]] is row]


def write_problem(rows, file):
    shared = rows[0]["kernel"].split(SHARED_UP_TO)[0] + SHARED_UP_TO
    for place, row in enumerate(rows):
        if not row["kernel"].startswith(shared):
            raise ValueError(f"{row['problem']}: {row['kernel']} has other operands than {rows[0]['kernel']}")
        of_problem = (row["set"], row["problem"], row["kernel"]) if place == 0 else ("", "", row["kernel"].removeprefix(shared))
        file.write(",".join((*of_problem, row["pass"], microseconds(row))) + "\n")


def main(measured, kept):
    with open(measured) as file:
        lines = file.readlines()
    notes = [line for line in lines if line.startswith("#")]
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    with open(kept, "w") as file:
        file.writelines([*notes, COLUMNS + "\n"])
        for _, group in itertools.groupby(rows, lambda row: row["problem"]):
            write_problem(kept_rows(list(group)), file)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
