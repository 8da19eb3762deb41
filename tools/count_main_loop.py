#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of a cubin's mainloop: the innermost loop with the most tensor core instructions.

usage: count_main_loop.py NVDISASM [--rounds N] CUBIN...

For a loop with wgmma (the family sm90) the instructions of one warp in one block of k are counted by kind. If operands are
transposed in shared memory, this loop contains a loop without wgmma, which a warp executes N times per block of k: the parts of
all transposed atoms (8 for an atom of 8-bit elements, 1 for 32-bit ones) divided by the warps that multiply the tile.
"""

import collections
import pathlib
import re
import subprocess
import sys

LABEL = re.compile(r"\s*(\.L_x_\d+):")
INSTRUCTION = re.compile(r"\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?(.*?)\s*;")
BRANCH = re.compile(r"BRA.*?(\.L_x_\d+)")
# Prefixes of mnemonics; the first match counts.
KINDS = {
    "mma": ("HMMA", "IMMA", "DMMA", "QMMA"),
    "ldmatrix": ("LDSM",),
    "cp.async": ("LDGSTS", "LDGDEPBAR", "DEPBAR"),
}
# The kinds for a loop with wgmma.
WGMMA_KINDS = {
    "wgmma": ("HGMMA", "IGMMA", "QGMMA"),
    "LDSM": ("LDSM",),
    "LDS": ("LDS",),
    "STS": ("STS",),
    "PRMT": ("PRMT",),
    "FADD": ("FADD",),
    "barrier, fence, wait": ("BAR", "WARPSYNC", "WARPGROUP", "SYNCS", "FENCE", "DEPBAR", "NANOSLEEP", "MEMBAR", "BSYNC", "BSSY"),
    "uniform": ("U", "R2UR", "S2UR"),
    "branch": ("BRA",),
    "other": ("",),
}


def read_instructions(nvdisasm, cubin):
    """Returns the instructions without predicates, and the positions of the labels among them."""
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


def kind_of(instruction, kinds):
    """Returns the column of the table for an instruction."""
    for kind, beginnings in kinds.items():
        if instruction.startswith(beginnings):
            return kind
    return "other"


def find_main_loop(instructions, loops, beginnings):
    """Returns the innermost loop with the most instructions with this prefix."""
    with_mma = {loop: sum(instructions[at].startswith(beginnings) for at in loop) for loop in loops}
    with_mma = {loop: count for loop, count in with_mma.items() if count > 0}
    innermost = [loop for loop in with_mma if not any(is_within(other, loop) for other in with_mma)]
    return max(innermost, key=with_mma.get) if innermost else None


def is_within(inner, outer):
    """Returns True if a loop lies within another one."""
    return inner != outer and inner[0] in outer and inner[-1] in outer


def count_main_loop(nvdisasm, cubin, rounds):
    """Returns the number of instructions of each kind in the main loop, and the kinds."""
    instructions, labels = read_instructions(nvdisasm, cubin)
    loops = list(find_loops(instructions, labels))
    main = find_main_loop(instructions, loops, WGMMA_KINDS["wgmma"])
    kinds = WGMMA_KINDS if main else KINDS
    if not main:
        main = find_main_loop(instructions, loops, KINDS["mma"])
    counts = collections.Counter(kind_of(instructions[at], kinds) for at in main)
    for inner in loops:
        if is_within(inner, main):
            for at in inner:
                counts[kind_of(instructions[at], kinds)] += rounds - 1
    return counts, kinds


def main():
    """Prints a line for each cubin."""
    nvdisasm, *cubins = sys.argv[1:]
    rounds = 1
    if cubins[:1] == ["--rounds"]:
        rounds, cubins = int(cubins[1]), cubins[2:]
    for cubin in cubins:
        counts, kinds = count_main_loop(nvdisasm, cubin, rounds)
        line = ", ".join(f"{counts[kind]} {kind}" for kind in dict.fromkeys([*kinds, "other"]))
        first = next(iter(kinds))
        share = counts["other"] / counts.total()
        beside = counts.total() - counts[first]
        tail = f"; other {share:.1%}" if kinds is KINDS else f"; beside wgmma {beside}"
        print(f"{pathlib.Path(cubin).name}: {line}{tail}")


if __name__ == "__main__":
    main()
