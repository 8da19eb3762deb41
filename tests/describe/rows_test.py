#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/describe-rows.md lists the promises of the explicit description and the tests that are named after them.

usage: rows_test.py [--write]     checks the page against the tests, or writes it from them
"""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "describe-rows.md"
CPP_TEST = re.compile(r"TEST(?:_[FP])?\(\s*(\w+),\s*(row_(\d\d)(?:_and_(\d\d))?_\w+)\)")
PYTHON_TEST = re.compile(r"^\s*def (test_row_(\d\d)(?:_and_(\d\d))?_\w+)\(", re.MULTILINE)

# The properties of the rows, in short.
PROMISES = {
    1: "one program does all six duties: memory, description, compilation, arguments, launch, synchronisation",
    2: "a memory pool with a beginning and a limit",
    3: "the pool serves device memory without asking the driver",
    4: "the bytes that are allocated",
    5: "descriptions print and compare by value; equal ones give equal text and equal keys",
    6: "MathInstruction, positional and by keyword",
    7: "TensorOp float64 8x8x4",
    8: "TensorOp 16x8x8, float32 by TF32",
    9: "the same with tfloat32 named",
    10: "TensorOp 16x8x8 float16",
    11: "TensorOp 16x8x8 bfloat16",
    12: "multiply_add_fast_f32 is as accurate as Simt",
    13: "multiply_add_fast_f16 rounds to float16",
    14: "multiply_add_fast_bf16 rounds to bfloat16",
    15: "float16 accumulators",
    16: "float16 with float32 accumulators",
    17: "bfloat16 with float32 accumulators",
    18: "int8 saturates, or wraps",
    19: "Simt float64",
    20: "Simt float32",
    21: "TensorOp uses tensor cores, Simt does not",
    22: "the table of valid combinations: all of it compiles, the rest is refused by field",
    23: "the kernel computes with the described tile",
    24: "stages",
    25: "warps, and the rule that they divide the tile",
    26: "D is like C; alignments beyond 16 bytes are refused",
    27: "what an alignment asks of sizes and pointers",
    28: "float64, float32, float16 and bfloat16 in all layouts",
    29: "problems of different sizes: float64, float32, float16 and bfloat16 in all layouts",
    30: "int8 in all layouts",
    31: "interleaved int8",
    32: "problems of different sizes: int8, interleaved, too",
    33: "operands of the caller stay as they are; the table of reordered columns",
    34: "convolutions of float64, float32, float16 and bfloat16, NHWC: fprop, dgrad and wgrad",
    35: "fprop of int8, NHWC, to int8 and int32",
    36: "fprop of interleaved int8; int8 gradients are refused by name",
    37: "LinearCombination",
    38: "LinearCombinationClamp",
    39: "FastLinearCombinationClamp, for any K",
    40: "relu",
    41: "leaky_relu",
    42: "tanh",
    43: "sigmoid",
    44: "silu",
    45: "hardswish",
    46: "gelu by erf",
    47: "the four functors are made as documented; count is C's alignment",
    48: "visitor trees compile and compute",
    49: "visitor: unary operations",
    50: "visitor: rows and columns are broadcast",
    51: "visitor: reductions of rows",
    52: "visitor: reductions of columns",
    53: "visitor: what a reduction may read and where its result may go",
    54: "visitor: keyword arguments",
    55: "visitor: operations of the user's own",
    56: "a compute capability beyond the device's",
    57: "swizzles: order and equal bits",
    58: "batches, more than a grid has",
    59: "the visitor flag",
    60: "precompute_mode Host: any number of problems",
    61: "precompute_mode Device: the same bits",
    62: "Conv2dOperation fprop",
    63: "Conv2dOperation dgrad; pixels that no tap reaches",
    64: "Conv2dOperation wgrad",
    65: "analytic: every problem",
    66: "optimized: filters of up to 32 taps along a dimension, more are refused by name",
    67: "fixed_channels: as many channels as A's alignment",
    68: "few_channels: channels in multiples of A's alignment",
    69: "StrideSupport Strided: strides of every kind, and the swizzles of a strided dgrad",
    70: "StrideSupport Unity: a dgrad without strides",
    71: "many operations in one call",
    72: "... in less time",
    73: "nvcc of CUDA_INSTALL_PATH",
    74: "NVRTC alone",
    75: "an equal description is not compiled again in a process",
    76: "... nor in the next one",
    77: "the cache on disk",
    78: "deleting it costs time only",
    79: "torch tensors",
    80: "NumPy arrays",
    81: "CuPy arrays",
    82: "the fields of GemmArguments",
    83: "extents of 0 and 1, and too many",
    84: "serial split k",
    85: "parallel split k rounds once",
    86: "batched; a bias is said, not guessed",
    87: "arrays of pointers",
    88: "arguments of problems of different sizes: lengths, and each problem by name",
    89: "arguments of a convolution",
    90: "Conv2dProblemSize: both forms, torch's extents and PyCUTLASS's, padding of two sides, groups",
    91: "modes cross_correlation and convolution",
    92: "SplitKMode Serial and Parallel",
    93: "numbers of a functor are counted",
    94: "running",
    95: "sync of arguments",
    96: "sync of visitors' results",
    97: "the reduction of a parallel split k",
    98: "the reduction of a parallel split k of a convolution",
    99: "examples",
}
# Tested by something else than a test with this name.
SHOWN_ELSEWHERE = {
    72: "needs 4 cores",
    99: "`example_20_described_gemm_test`, `example_21_described_split_k_test`",
}


def tests_by_row():
    """Tests by row; a name may have two: row_51_and_52_…"""
    found = {row: [] for row in PROMISES}

    def add(text, *rows):
        for row in rows:
            if row:
                found.setdefault(int(row), []).append(text)

    for path in sorted((ROOT / "tests" / "describe").glob("*.cpp")):
        for suite, name, *rows in CPP_TEST.findall(path.read_text(encoding="utf-8")):
            add(f"`{suite}.{name}`", *rows)
    for path in sorted((ROOT / "tests" / "python").glob("test_describe*.py")):
        for name, *rows in PYTHON_TEST.findall(path.read_text(encoding="utf-8")):
            add(f"`{path.stem}::{name}`", *rows)
    return found


def page():
    lines = [
        "# The promises of the explicit description",
        "",
        "Each row is a promise about [described kernels](describe.md), and the tests that carry its number. They run in",
        "`make test` without a GPU: on emulated devices, by NVRTC, or on the CPU. What only a GPU can show is skipped there,",
        "with the reason. Rows of convolutions run PyCUTLASS's sizes, a sample of them in a short run and all with GEMMERY_SOAK=1.",
        "`tests/describe/rows_test.py --write` writes this page from the tests.",
        "",
        "| row | promise | tests |",
        "| --- | --- | --- |",
    ]
    for row, tests in sorted(tests_by_row().items()):
        shown = tests + ([SHOWN_ELSEWHERE[row]] if row in SHOWN_ELSEWHERE else [])
        lines.append(f"| {row:02} | {PROMISES[row]} | {'<br>'.join(shown)} |")
    return "\n".join(lines) + "\n"


class Rows(unittest.TestCase):
    def test_every_promise_has_a_test(self):
        without = [row for row, tests in tests_by_row().items() if not tests and row not in SHOWN_ELSEWHERE]
        self.assertEqual(without, [])

    def test_the_page_is_what_the_tests_say(self):
        self.assertEqual(PAGE.read_text(encoding="utf-8"), page())


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        unittest.main()
