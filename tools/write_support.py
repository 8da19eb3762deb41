#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: write_support.py PROGRAM [--check | --prove]

Writes the table of what is supported into README.md: for each kind of problem and device the family of the first kernel, as PROGRAM
(build/release/gemmery) lists it. --check writes nothing and fails where the table differs. --prove runs a kernel of each cell on its
emulated device and verifies the result; it needs NVRTC and no GPU.
"""

import argparse
import concurrent.futures
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PLACE = re.compile(r"(?<=<!-- tools/write_support.py -->\n).*?(?=<!-- end -->)", re.DOTALL)
DEVICES = {"a100": "sm_80 (A100)", "l40s": "sm_89 (L40S)", "h200": "sm_90a (H100, H200)", "b200": "sm_100 (B200)", "rtx5090": "sm_120 (RTX 5090)"}
SHOWN = {"h200": "boards, emulator"}
# What a row is called, the problem that is listed, and a small one of its kind that the emulator runs.
GEMM, SMALL = "gemm 4096x4096x4096", "gemm 136x72x80"
ROWS = [
    *((label, f"{GEMM} {words}", f"{SMALL} {words}") for label, words in [
        ("float16, bfloat16", "a=bf16"),
        ("e4m3, e5m2", "a=e4m3 out=bf16"),
        ("e4m3, e5m2, `math=fp8_fast`", "a=e4m3 out=f32 math=fp8_fast"),
        ("int8, uint8", "a=s8 out=s32"),
        ("float64", "a=f64"),
        ("float32", "a=f32"),
        ("float32, `math=tf32`, `tf32x3`, `bf16x3`", "a=f32 math=tf32x3"),
        ("float32, `math=bf16x6`, `bf16x9`", "a=f32 math=bf16x9"),
    ]),
    ("1 to 8 rows, bfloat16", "gemm 1x8192x8192 a=bf16 b=bf16:c", "gemm 1x264x520 a=bf16 b=bf16:c"),
    ("groups, bfloat16", "grouped_gemm 8192x4096x4096 groups=8 a=bf16", "grouped_gemm 136x72x80 groups=3 a=bf16"),
    ("convolution, bfloat16", "conv2d_fprop 32x28x28x128 k=128 r=3 s=3 pad=1 a=bf16", "conv2d_fprop 2x9x9x64 k=64 r=3 s=3 pad=1 a=bf16"),
]  # fmt: skip


def kernels(program: Path, problem: str, device: str) -> list[dict]:
    """What `gemmery list` says of each kernel, best first."""
    command = [program, "list", problem, "--device", device, "--limit", "0", "--json", "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def family(program: Path, problem: str, device: str) -> str:
    found = kernels(program, problem, device)
    return found[0]["kernel_class"] if found else "–"


def table(program: Path) -> str:
    lines = ["| A and B | CPU | " + " | ".join(DEVICES.values()) + " |", "|---|---|" + "---|" * len(DEVICES)]
    for label, problem, _ in ROWS:
        on_cpu = "yes" if kernels(program, problem, "cpu") else "–"
        lines.append(f"| {label} | {on_cpu} | " + " | ".join(family(program, problem, device) for device in DEVICES) + " |")
    lines.append("| **shown on** | CPUs | " + " | ".join(SHOWN.get(device, "emulator") for device in DEVICES) + " |")
    return "\n".join(lines) + "\n"


def prove(program: Path, label: str, listed: str, small: str, device: str) -> str:
    """What verifying a kernel of the cell's family on the emulated device says; "" if nothing is wrong."""
    expected = family(program, listed, device)
    if expected == "–":
        return ""
    kernel = next((one["kernel_name"] for one in kernels(program, small, device) if one["kernel_class"] == expected), None)
    if kernel is None:
        return f"{label} on {device}: no kernel of {expected} serves {small}"
    command = [program, "verify", small, "--device", f"emulated:{device}", "--kernel", kernel, "--quiet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(f"{label} on emulated:{device}: {kernel}: {'passed' if done.returncode == 0 else 'FAILED'}", flush=True)
    return "" if done.returncode == 0 else f"{label} on {device}: {' '.join(map(str, command))}\n{done.stdout}{done.stderr}"


def prove_all(program: Path) -> int:
    cells = [(*row, device) for row in ROWS for device in DEVICES]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        faults = [fault for fault in pool.map(lambda cell: prove(program, *cell), cells) if fault]
    print(*faults, f"{len(cells)} cells, {len(faults)} faults", sep="\n")
    return bool(faults)


def main() -> int:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--prove", action="store_true")
    options = parser.parse_args()
    program = options.program.resolve()
    if options.prove:
        return prove_all(program)
    text = README.read_text(encoding="utf-8")
    written = PLACE.sub(lambda _: table(program), text)
    if not options.check:
        README.write_text(written, encoding="utf-8")
    elif written != text or not PLACE.search(text):
        print(f"README.md: expected the table\n{table(program)}run tools/write_support.py {options.program}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
