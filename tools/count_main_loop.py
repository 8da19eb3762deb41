#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of a cubin's main loop: the innermost loop with the most tensor core instructions.

usage: count_main_loop.py NVDISASM CUBIN...
"""

import collections
import pathlib
import re
import subprocess
import sys

LABEL = re.compile(r"\s*(\.L_x_\d+):")
INSTRUCTION = re.compile(r"\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?(.*?)\s*;")
BRANCH = re.compile(r"BRA.*?(\.L_x_\d+)")
# What a mnemonic begins with; the first that fits.
KINDS = {
    "mma": ("HMMA", "IMMA", "DMMA", "QMMA"),
    "ldmatrix": ("LDSM",),
    "cp.async": ("LDGSTS", "LDGDEPBAR", "DEPBAR"),
}


def read_instructions(nvdisasm, cubin):
    """Returns the instructions without predicates, and the labels' places among them."""
    text = subprocess.run([nvdisasm, "-c", cubin], check=True, capture_output=True, text=True).stdout
    instructions, labels = [], {}
    for line in text.splitlines():
        if label := LABEL.match(line):
            labels[label[1]] = len(instructions)
        elif instruction := INSTRUCTION.match(line):
            instructions.append(instruction[1])
    return instructions, labels


def find_loops(instructions, labels):
    """Returns the ranges between a label and a branch back to it."""
    for last, instruction in enumerate(instructions):
        branch = BRANCH.match(instruction)
        if branch and labels.get(branch[1], last + 1) <= last:
            yield range(labels[branch[1]], last + 1)


def kind_of(instruction):
    """Returns what column of the table an instruction is counted in."""
    for kind, beginnings in KINDS.items():
        if instruction.startswith(beginnings):
            return kind
    return "other"


def count_main_loop(nvdisasm, cubin):
    """Returns how often each kind occurs in the main loop."""
    instructions, labels = read_instructions(nvdisasm, cubin)
    loops = list(find_loops(instructions, labels))
    counts = {loop: collections.Counter(kind_of(instructions[at]) for at in loop) for loop in loops}
    with_mma = [loop for loop in loops if counts[loop]["mma"] > 0]
    innermost = [
        loop for loop in with_mma if not any(other != loop and other[0] in loop and other[-1] in loop for other in with_mma)
    ]
    return counts[max(innermost, key=lambda loop: counts[loop]["mma"])]


def main():
    """Prints a line for each cubin."""
    for cubin in sys.argv[2:]:
        counts = count_main_loop(sys.argv[1], cubin)
        kinds = ", ".join(f"{counts[kind]} {kind}" for kind in [*KINDS, "other"])
        share = counts["other"] / counts.total()
        print(f"{pathlib.Path(cubin).name}: {kinds}; other {share:.1%}")


if __name__ == "__main__":
    main()
