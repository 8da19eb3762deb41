#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: draw_speed.py [--check]

Draws docs/images/speed.svg from one recorded race, all of whose rows come from one host of H200s, one commit and one command
(bench/results/h200-races.jsonl): the first kernel of `get_kernels` and cuBLASLt's, in turn. With --check it writes nothing and fails
where the picture is not what the record gives.
"""

import argparse
import json
import sys
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
RECORD = ROOT / "bench/results/h200-races.jsonl"
PICTURE = ROOT / "docs/images/speed.svg"
SET = "types"
# Problem of the record, and what it is called; B's columns are contiguous, as weights lie.
ROWS = [
    ("gemm 8192x8192x8192 a=bf16 b=bf16:c", "bfloat16, 8192³"),
    ("gemm 4096x4096x4096 a=bf16 b=bf16:c", "bfloat16, 4096³"),
    ("gemm 8192x8192x8192 a=e4m3 b=e4m3:c out=bf16", "e4m3 to bfloat16, 8192³"),
    ("gemm 4096x4096x4096 a=e4m3 b=e4m3:c out=bf16", "e4m3 to bfloat16, 4096³"),
    ("gemm 8192x8192x8192 a=s8 b=s8:c out=s32", "int8 to int32, 8192³"),
    ("gemm 4096x4096x4096 a=s8 b=s8:c out=s32", "int8 to int32, 4096³"),
    ("gemm 4096x4096x4096 a=f64 b=f64:c", "float64, 4096³"),
    ("gemm 4096x4096x4096 a=f32 b=f32:c", "float32, 4096³"),
    ("gemm 4096x4096x4096 a=f32 b=f32:c math=tf32", "float32 by TF32, 4096³"),
    ("gemm 4096x4096x4096 a=f32 b=f32:c math=tf32x3", "float32 by 3 products of TF32"),
    ("gemm 4096x4096x4096 a=f32 b=f32:c math=bf16x3", "float32 by 3 products of bfloat16"),
    ("gemm 4096x4096x4096 a=f32 b=f32:c math=bf16x6", "float32 by 6 products of bfloat16"),
    ("gemm 4096x4096x4096 a=f32 b=f32:c math=bf16x9", "float32 by 9 products of bfloat16"),
]
LEFT, TOP, STEP, BAR = 300, 96, 30, 18
UNIT = 180  # pixels of a ratio of 1
COLUMNS = (860, 925, 1010)
FASTER, SLOWER = "#2f6f8f", "#b7791f"


def races() -> dict[str, dict]:
    """Problem -> its row of the race."""
    rows = map(json.loads, RECORD.read_text().splitlines())
    return {row["problem"]: row for row in rows if row["set"] == SET and "problem" in row}


def tflops(problem: str, microseconds: float) -> float:
    m, n, k = map(int, problem.split()[1].split("x"))
    return 2 * m * n * k / microseconds / 1e6


def text(x: float, y: float, words: str, size: float = 12, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="#1f2d3d"{more}>{escape(words)}</text>'


def row_of(index: int, problem: str, label: str, race: dict) -> list[str]:
    y = TOP + index * STEP
    middle = y + BAR / 2
    ratio = race["ratio_median"]
    low, high = race["ratio_range"]
    ours, theirs = (tflops(problem, race[key]) for key in ("ours_us", "theirs_us"))
    return [
        text(LEFT - 10, middle + 4, label, 12, ' text-anchor="end"'),
        f'<rect x="{LEFT}" y="{y}" width="{ratio * UNIT:.1f}" height="{BAR}" rx="2" fill="{FASTER if ratio >= 1 else SLOWER}"/>',
        f'<path d="M{LEFT + low * UNIT:.1f},{middle:g} H{LEFT + high * UNIT:.1f}" stroke="#1f2d3d" stroke-width="1.4"/>',
        *(text(x, middle + 4, words, 12, f' text-anchor="end"{more}')
          for x, words, more in zip(COLUMNS, (f"{ratio:.2f}", f"{ours:.0f}", f"{theirs:.0f}"), (' font-weight="bold"', "", ""), strict=True)),
    ]


def picture() -> str:
    record = races()
    bottom = TOP + len(ROWS) * STEP
    one = LEFT + UNIT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1040 {bottom + 40}" font-family="DejaVu Sans, Helvetica, Arial, sans-serif" '
        'role="img" aria-label="Speed of first kernels relative to cuBLASLt on an H200">',
        "<!-- SPDX-License-Identifier: Apache-2.0: drawn by tools/draw_speed.py -->",
        f'<rect width="1040" height="{bottom + 40}" fill="#ffffff"/>',
        text(24, 36, "First kernels against cuBLASLt on an H200", 19, ' font-weight="bold"'),
        text(24, 60, "cuBLASLt's time over ours: to the right of 1 we are faster. Bars are medians of five rounds in turn, lines their range."),
        f'<path d="M{one},{TOP - 14} V{bottom}" stroke="#94a3b8" stroke-width="1.4" stroke-dasharray="4 3"/>',
        text(one, TOP - 18, "1", 12, ' text-anchor="middle"'),
        *(text(x, TOP - 18, words, 11, ' text-anchor="end"') for x, words in zip(COLUMNS, ("ratio", "ours", "cuBLASLt"), strict=True)),
    ]
    for index, (problem, label) in enumerate(ROWS):
        parts += row_of(index, problem, label, record[problem])
    note = "Right: TFLOP/s, of int8 TOP/s. Products of float32 in parts race with cuBLASLt's float32, TF32 with its TF32."
    parts += [text(24, bottom + 22, note, 11.5), "</svg>", ""]
    return "\n".join(parts)


def slower() -> str:
    """The rows below 1, worst first, as the README says them."""
    record = races()
    missed = sorted((record[problem]["ratio_median"], label) for problem, label in ROWS if record[problem]["ratio_median"] < 1)
    return "; ".join(f"{label} {ratio:.2f}" for ratio, label in missed)


def main() -> int:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        PICTURE.write_text(picture(), encoding="utf-8")
        print(slower())
        return 0
    if PICTURE.read_text(encoding="utf-8") == picture():
        return 0
    print(f"{PICTURE.relative_to(ROOT)} is not what {RECORD.relative_to(ROOT)} gives: run tools/draw_speed.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
