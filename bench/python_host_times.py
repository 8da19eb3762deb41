#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Host time of calls of the Python package: microseconds, medians of interleaved batches.

usage: python_host_times.py [DEVICE]       DEVICE: cpu (with numpy) or cuda:0 (with torch, beside the driver's own launch)

Each row is the median over 100 batches of 100 calls, minus an empty loop. Rows take turns batch by batch, so that drifts
of the clock affect all of them. On a GPU each batch ends with a synchronisation outside the timed part.
"""

from __future__ import annotations

import ctypes
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import gemmery

BATCHES = 100
CALLS = 100


def seconds_of(call: Callable[[], object]) -> float:
    numbers = range(CALLS)
    begin = time.perf_counter()
    for _ in numbers:
        call()
    return time.perf_counter() - begin


def nothing() -> None:
    pass


def measure(rows: dict[str, Callable[[], float]], settle: Callable[[], None]) -> dict[str, float]:
    """Microseconds per call for each row; a row times its own batches."""
    times: dict[str, list[float]] = {name: [] for name in rows}
    for batch in range(BATCHES + 5):
        for name, time_batch in rows.items():
            elapsed = time_batch()
            settle()
            if batch >= 5:
                times[name].append(elapsed / CALLS * 1e6)
    return {name: statistics.median(values) for name, values in times.items()}


def calls(**named: Callable[[], object]) -> dict[str, Callable[[], float]]:
    return {name: lambda call=call: seconds_of(call) - seconds_of(nothing) for name, call in named.items()}


def on_cpu() -> tuple[dict[str, Callable[[], float]], Callable[[], None]]:
    import numpy

    one = [numpy.ones((1, 1), "f") for _ in range(3)]
    return rows_of(one, numpy.float32), nothing


def rows_of(operands: list, accumulator: object) -> dict[str, Callable[[], float]]:
    args = gemmery.GemmArguments(*operands, accumulator)
    kernel = gemmery.get_kernels(args)[0]
    artifact = kernel.compile(args)
    launch = artifact.bind(args)
    return calls(
        GemmArguments=lambda: gemmery.GemmArguments(*operands, accumulator),
        get_kernels=lambda: gemmery.get_kernels(args),
        supports=lambda: kernel.supports(args),
        run=lambda: kernel.run(args),
        run_artifact=lambda: kernel.run(args, artifact),
        run_assume_supported=lambda: kernel.run(args, artifact, None, None, True),
        prepared=launch,
    )


def build_raw_launch() -> ctypes.CDLL:
    source = pathlib.Path(__file__).with_name("raw_launch.c")
    library = pathlib.Path(tempfile.mkdtemp(), "raw_launch.so")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", str(source), "-o", str(library), "-ldl"], check=True)
    raw = ctypes.CDLL(str(library))
    raw.raw_seconds.restype = ctypes.c_double
    raw.raw_seconds.argtypes = [ctypes.c_void_p, ctypes.c_int]
    if raw.raw_prepare() != 0:
        raise RuntimeError("the driver does not load the empty kernel")
    return raw


def on_gpu(device: str) -> tuple[dict[str, Callable[[], float]], Callable[[], None]]:
    import torch

    def settle() -> None:
        torch.cuda.synchronize(device)

    a = torch.randn(128, 128, device=device, dtype=torch.bfloat16)
    operands = [a, torch.randn_like(a), torch.empty_like(a)]
    rows = rows_of(operands, torch.float32)
    raw = build_raw_launch()
    stream = torch.cuda.current_stream(device).cuda_stream
    rows["raw driver launch"] = lambda: raw.raw_seconds(stream, CALLS)
    rows |= calls(torch_mm_out=lambda: torch.mm(operands[0], operands[1], out=operands[2]))
    rows |= calls(arguments_and_discovery=lambda: gemmery.get_kernels(gemmery.GemmArguments(*operands, torch.float32)))
    return rows, settle


def main() -> None:
    device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    rows, settle = on_cpu() if device == "cpu" else on_gpu(device)
    results = measure(rows, settle)
    raw = results.get("raw driver launch")
    for name, microseconds in results.items():
        beyond = "" if raw is None else f"   {microseconds - raw:+8.3f} beyond the driver's"
        print(f"{name:24} {microseconds:8.3f} us{beyond}")


if __name__ == "__main__":
    main()
