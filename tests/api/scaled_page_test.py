#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/scaled-rows.md lists the promises of operands with scales and the tests that are named after them.

usage: scaled_page_test.py [--write]     checks the page against the tests, or writes it from them
"""

import sys
import unittest

from grouped_rows_test import ROOT, TEST, RowsOfPage, check_or_write, rows_of

PAGE = ROOT / "docs" / "scaled-rows.md"
SOURCES = ["operation/checkpoints_test.cpp", "api/scaled_test.cpp", "api/scaled_rows_test.cpp", "api/scaled_groups_test.cpp", "api/quantised_test.cpp", "providers/templates/sm80/mixed_emulated_test.cpp", "providers/templates/sm90/mixed_emulated_test.cpp"]

# The properties of the rows, in short.
PROMISES = {
    32: "one scale for a tensor, of A and of B, negative or 0; 8-bit floats of both kinds",
    33: "a scale of the result and amax, which is taken before it",
    34: "scales of rows and columns; of groups along M and K, and masked ones",
    35: "one row, one column; integers",
    36: "1x128 times 128x128, values of rows or of k adjacent; K is no multiple of 128",
    37: "128x128 times 1x128, 1x128 times 1x128",
    38: "groups of rows with 1x128 times 128x128: scales follow the rows of A",
    39: "masked groups: scales beyond the used rows are not used",
    40: "groups along K, whose blocks of 1x128 groups may divide",
    41: "blocks of any shape, batches that share scales, K = 0",
    42: "MXFP8, linear and swizzled",
    43: "MX scales of 2^-127, 2^127 and NaN",
    44: "MXFP4",
    45: "NVFP4 with scales of both levels",
    46: "MXFP8 times MXFP4, also grouped",
    47: "results quantised to MXFP8: amax at 448 * 2^k, its neighbours, 0, subnormal, infinite, NaN; floor and rceil, by rows and by columns, linear and swizzled; of groups, empty ones and those of odd rows among them",
    48: "results quantised to NVFP4 with a global scale: ties of e2m1, NaN, infinity",
    49: "sums of positive 8-bit floats over 16384 and 65536 k, fast and promoted, in every tile of sm90",
    50: "integers of 4 bits in groups of k, with and without zero points",
    51: "integers of 8 bits with a scale for each channel, and zero points",
    52: "every code of 8-bit floats times 16-bit floats; NaN stays NaN",
    53: "every code of e2m1; MXFP4 and NVFP4 weights",
    54: "integers of 4 bits in groups of 128 times 8-bit floats with a scale for each row",
    55: "NF4, and other tables of sixteen numbers; blocks that begin within rows",
    56: "weights of GPTQ (both versions, activation order), AWQ and Marlin are imported exactly",
    57: "grouped weights of int4 and MXFP4 times 16-bit floats",
}

# Failures reported by users of other libraries, and the rows that test for them.
REPORTS = {
    "FBGEMM#6159": ("the last block's scale along k is dropped", [36, 37]),
    "TIRx-kernels#5": ("a wrong slice of scales passes a cosine test: here results of distinct powers of two are compared exactly", [34, 43]),
    "TileOPs#2040": ("strides of scales are ignored", [36, 41]),
    "ao#4929, pytorch#190290, cudnn-frontend#221": ("the layout of scales is guessed from sizes", [42]),
    "vllm#56290, QuACK": ("scales of padding are read", [42]),
}


def tests_by_row():
    found = {row: [] for row in PROMISES}
    for source in SOURCES:
        for suite, name in TEST.findall((ROOT / "tests" / source).read_text(encoding="utf-8")):
            for row in rows_of(name):
                if row in found:
                    found[row].append(f"`{suite}.{name}`")
    return found


def page():
    lines = [
        "# The promises of operands with scales",
        "",
        "Each row is a promise about [operands with scales](scaled.md), and the tests whose names have its number. `Checkpoints` imports weights that it packed; `ScaledGemm` compares with the formula exactly, on the CPU;",
        "`ScaledRows` verifies every kernel of the CPU and, of the types that it takes, one of `simt` or `sm90` on an emulated H200 (a short run emulates a part; GEMMERY_SOAK=1 all);",
        "`ScaledGroups` compares groups with the formula exactly, on the CPU and by `simt` and `sm90` on an emulated H200; `Sm80Mixed`, `Sm80Scaled`, `Sm90Mixed` and `Sm90Scaled` are on emulated devices. `MxRows` and `QuantisedGemm` compare quantised results with their definition, on the CPU; `QuantisedGroups` and `QuantisedRows` do so for groups, and verify random problems, on an emulated H200, too. `tests/api/scaled_page_test.py --write` writes this page from the tests.",
        "",
        "| row | promise | tests |",
        "|---|---|---|",
    ]
    lines += [f"| {row} | {PROMISES[row]} | {'<br>'.join(tests)} |" for row, tests in sorted(tests_by_row().items())]
    lines += ["", "Failures that users of other libraries reported, and the rows that test for them here:", "", "| report | failure | rows |", "|---|---|---|"]
    lines += [f"| {thread} | {what} | {', '.join(map(str, rows))} |" for thread, (what, rows) in REPORTS.items()]
    return "\n".join(lines) + "\n"


class Rows(RowsOfPage, unittest.TestCase):
    module = sys.modules[__name__]


if __name__ == "__main__":
    check_or_write(sys.modules[__name__])
