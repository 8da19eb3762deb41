#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/grouped-rows.md lists the promises of grouped GEMM and the tests that are named after them.

usage: grouped_rows_test.py [--write]     checks the page against the tests, or writes it from them
"""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "grouped-rows.md"
SOURCES = ["grouped_test.cpp", "indexed_groups_test.cpp", "grouped_device_test.cpp", "grouped_rows_device_test.cpp"]
TEST = re.compile(r"^TEST(?:_[FP])?\(\s*(\w+),\s*(rows?_\w+)\)", re.MULTILINE)

# The properties of the rows, in short.
PROMISES = {
    1: "no groups: nothing is read or written",
    2: "only empty groups, a group of one row, an empty group after the last row",
    3: "257 groups of one row",
    4: "groups of 0 to 13 rows; B in both layouts; float16, bfloat16, float32",
    5: "groups of about a tile's rows",
    6: "groups that differ by 30 %",
    7: "skewed groups: one has eight times as many rows as another",
    8: "one of 64 groups has all rows",
    9: "rows after the last group, which are NaN in A, keep their bits in out; also without such rows",
    10: "odd extents and leading dimensions",
    11: "operands at any address: the result is right, or the problem is refused",
    12: "ends that decrease: refused if the host can read them; the emulator reports a race",
    13: "prefix, counts, ends of 32 and 64 bits",
    14: "1025 groups",
    15: "elements that are more than 2^31 elements apart",
    16: "K = 0: the epilogue of zero",
    17: "operands of an epilogue for each group and for each row; reductions of each group",
    18: "groups of columns",
    19: "groups of k, some with K = 0: beta C, or zeros",
    20: "groups of k of any size, in both layouts; 8-bit floats if the family has them",
    21: "groups of k that accumulate in place",
    22: "masked groups of 0, 1 and all rows, of 1 to 192",
    23: "32 masked groups of about 20 rows",
    24: "an expected size that is wrong changes no result",
    25: "labels: aligned to tiles with padding, in any order on the CPU; others are refused",
    26: "a list of problems with extents, strides, alpha and beta of their own",
    27: "64 problems that share operands",
    28: "rows gathered by index: several from one, in any order, none",
    29: "rows scattered by index, with weights; a row with index -1 is not stored",
    30: "sizes that change between launches of one graph",
    31: "the bits of a row do not depend on other groups",
    58: "every form, with random extents near powers of two",
}

# Failures reported by users of other libraries, and the rows that test for them.
REPORTS = {
    "pytorch#172439, cutlass#2674": ("the weight gradient of a group with K = 0 is garbage", [19]),
    "pytorch#192497": ("a total K of 0 is refused by its strides", [16]),
    "cutlass#1593": ("a group with K = 0 is read out of bounds", [19, 20]),
    "cutlass#3195": ("a group with K = 0 shifts the tiles after it", [19]),
    "pytorch#154557, torchtitan#1237": ("rows of no group become NaN later", [9]),
    "sglang#33106, vllm#39645": ("garbage in rows of no group reaches others", [9, 22, 25]),
    "DeepGEMM#450": ("the label of a tile's first row wins", [5, 25]),
    "DeepGEMM#268": ("masked groups with fewer rows than a tile write into the next group", [22]),
    "DeepGEMM#103, #178": ("padding alone, or a single row, hangs", [2, 25]),
    "DeepGEMM#226, #331, vllm#39213, #48398, #45884, sglang#4727": ("row times stride in 32 bits", [15]),
    "torchtitan#1651, ao#2678, #4045": ("weight gradients of groups whose size is not a multiple of 16", [20]),
    "vllm#35161": ("filler blocks belong to group 0", [25, 29]),
    "Megatron-LM#1598, unsloth-zoo#1248, pytorch#146328": ("the host waits for sizes, so no graph can be captured", [30]),
    "vllm#36488, pytorch#186365": ("a row's bits depend on the load, or on the run", [31]),
    "TransformerEngine#2911": ("rows of no group enter a maximum", [17]),
    "cutlass#519, #1884": ("M = 36 or 1638 is misaligned", [10]),
    "unsloth-zoo#849": ("the layout of a square weight is guessed", [4]),
}


def rows_of(name):
    """The rows in a test's name: row_04_…, rows_07_and_08_…, rows_22_to_24_…"""
    kind, *words = name.split("_")
    rows, through = [], False
    for word in words:
        if word == "to":
            through = True
        elif re.fullmatch(r"\d\d", word) and (kind == "rows" or not rows):
            rows += range(rows[-1] + 1, int(word) + 1) if through else [int(word)]
            through = False
        elif word != "and":
            break
    return rows


def tests_by_row():
    found = {row: [] for row in PROMISES}
    for source in SOURCES:
        for suite, name in TEST.findall((ROOT / "tests" / "api" / source).read_text(encoding="utf-8")):
            for row in rows_of(name):
                found.setdefault(row, []).append(f"`{suite}.{name}`")
    return found


def page():
    lines = [
        "# The promises of grouped GEMM",
        "",
        "Each row is a promise about [grouped GEMM](grouped.md), and the tests whose names have its number. They run in `make test` without a GPU: `GroupedRows`,",
        "`GroupedColumns`, `GroupedDepth`, `GroupedStacks`, `GroupedLists` and `IndexedRows` on the CPU; `GroupedRowsOf` and `GroupedListsOf` on the CPU and on emulated",
        "devices, for each family that supports groups, with each of its schedules, with sizes on the device and in host memory; `GroupedEmulated` on emulated devices.",
        "Elements of A and B in no group are NaN, out is filled with a pattern, and what must not be written keeps its bits. `tests/api/grouped_rows_test.py --write`",
        "writes this page from the tests.",
        "",
        "| row | promise | tests |",
        "|---|---|---|",
    ]
    lines += [f"| {row:02} | {PROMISES[row]} | {'<br>'.join(tests)} |" for row, tests in sorted(tests_by_row().items())]
    lines += [
        "",
        "## What broke elsewhere",
        "",
        "Failures that users of other libraries reported, and the rows that test for them here.",
        "",
        "| report | failure | rows |",
        "|---|---|---|",
    ]
    lines += [f"| {thread} | {what} | {', '.join(f'{row:02}' for row in rows)} |" for thread, (what, rows) in REPORTS.items()]
    lines += ["| pytorch#157922 | a wrong number of ends raises a TypeError that does not say so | `test_torch_grouped::test_what_does_not_fit_is_refused_by_name` |"]
    return "\n".join(lines) + "\n"


class RowsOfPage:
    """The tests of a page of promises; `module` has PAGE, PROMISES, REPORTS, tests_by_row and page."""

    module = None

    def test_every_promise_has_a_test(self):
        self.assertEqual([row for row, tests in self.module.tests_by_row().items() if not tests], [])

    def test_reports_have_rows(self):
        self.assertLessEqual({row for _, rows in self.module.REPORTS.values() for row in rows}, set(self.module.PROMISES))

    def test_the_page_is_what_the_tests_say(self):
        self.assertEqual(self.module.PAGE.read_text(encoding="utf-8"), self.module.page())


def check_or_write(module):
    """Runs the tests of the page, or writes the page with --write."""
    if sys.argv[1:] == ["--write"]:
        module.PAGE.write_text(module.page(), encoding="utf-8")
    else:
        unittest.main()


class Rows(RowsOfPage, unittest.TestCase):
    module = sys.modules[__name__]


if __name__ == "__main__":
    check_or_write(sys.modules[__name__])
