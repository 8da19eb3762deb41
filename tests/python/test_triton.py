# SPDX-License-Identifier: Apache-2.0
"""gemmery.triton.emulate: Triton kernels on emulated devices; skipped where Triton is not installed."""

import pathlib

import numpy as np
import pytest

import gemmery
import gemmery.triton
from gemmery.emulation import Unwritten

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + column, mask=column < columns, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + column, powers / tl.sum(powers, 0), mask=column < columns)


@triton.jit
def matmul(a, b, c, m, n, k, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    depth = tl.arange(0, DEPTH)
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for at in range(0, k, DEPTH):
        inner = at + depth
        left = tl.load(a + rows * k + inner[None, :], mask=(rows < m) & (inner[None, :] < k), other=0.0)
        right = tl.load(b + inner[:, None] * n + columns, mask=(inner[:, None] < k) & (columns < n), other=0.0)
        sums = tl.dot(left, right, sums)
    tl.store(c + rows * n + columns, sums, mask=(rows < m) & (columns < n))


@triton.jit
def add_one(x, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + at, tl.load(x + at, mask=at < count) + 1, mask=at <= count)


def line_of(text: str) -> int:
    return 1 + next(at for at, line in enumerate(pathlib.Path(__file__).read_text().splitlines()) if text in line)


def test_softmax_is_right(rng):
    x = rng.normal(size=(3, 100)).astype(np.float32)
    out = np.empty_like(x)
    report = gemmery.triton.emulate(softmax[(3,)], x, Unwritten(out), 100, BLOCK=128, num_warps=4)
    assert report and not report.findings, report
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    # The quotient of two sums of at most 128 terms in float32, and exp within 2 ulp.
    assert np.allclose(out, powers / powers.sum(axis=1, keepdims=True), rtol=2 * 132 * 2.0**-24, atol=0)


@pytest.mark.parametrize("device", ["h200", "a100"])
def test_matmul_on_tensor_cores_is_exact_for_small_numbers(device, rng):
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((70, 90), (90, 65)))
    c = np.empty((70, 65), np.float32)
    grid = lambda values: (triton.cdiv(values["m"], values["BLOCK"]), triton.cdiv(values["n"], values["BLOCK"]))  # noqa: E731
    report = gemmery.triton.emulate(
        matmul[grid], a, b, Unwritten(c), 70, 65, 90, BLOCK=64, DEPTH=32, num_warps=4, device=device, seeds=2
    )
    assert report and not report.findings, report
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_findings_name_the_line_of_the_python_source():
    x = np.zeros(100, np.float32)
    report = gemmery.triton.emulate(add_one[(1,)], x, len(x), BLOCK=128, seeds=2)
    assert not report
    assert {finding.kind for finding in report.findings} >= {"out of bounds"}
    place = next(finding.place for finding in report.findings if finding.kind == "out of bounds")
    assert place.file.endswith("test_triton.py")
    assert place.line == line_of("mask=at <= count")


def test_refusals_say_what_is_expected():
    x = np.zeros(4, np.float32)
    with pytest.raises(TypeError, match=r"expected kernel\[grid\] of a kernel with triton.jit, got function"):
        gemmery.triton.emulate(line_of, x)
    with pytest.raises(TypeError, match="num_wraps: expected an argument of the kernel or an option"):
        gemmery.triton.emulate(add_one[(1,)], x, 4, BLOCK=4, num_wraps=4)
    with pytest.raises(TypeError, match="x: expected an array of numbers that Triton knows, or a number, got str"):
        gemmery.triton.emulate(add_one[(1,)], "four", 4, BLOCK=4)
