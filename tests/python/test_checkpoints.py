# SPDX-License-Identifier: Apache-2.0
"""Weights of checkpoints in Python. What each layout is, the tests of C++ say; docs/checkpoints.md runs an example of each."""

import numpy as np
import pytest

import gemmery

NIBBLES = 4 * np.arange(8, dtype=np.uint32)


def pack_rows(values):
    return np.bitwise_or.reduce(values.reshape(-1, 8, values.shape[1]) << NIBBLES[None, :, None], 1).view(np.int32)


def run_all(args, out, expected):
    kernels = gemmery.get_kernels(args)
    assert kernels
    for kernel in kernels:
        out[...] = np.nan
        kernel.run(args)
        np.testing.assert_array_equal(out, expected)


def test_a_symmetric_weight_without_zero_points(rng):
    codes = rng.integers(0, 16, (64, 8)).astype(np.uint32)
    scales = (2.0 ** rng.integers(-3, 3, (2, 8))).astype(np.float16)
    weight, order = gemmery.checkpoints.gptq(pack_rows(codes), scales, group_size=32)
    assert order is None and weight.zero_point is None and weight.quantized.dtype == gemmery.int4
    x = rng.integers(-3, 4, (4, 64)).astype(np.float32)
    out = np.empty((4, 8), np.float32)
    run_all(gemmery.GemmArguments(x, weight, out), out, x @ ((codes.astype(np.float32) - 8) * np.repeat(scales, 32, 0)))


def test_activation_order_that_is_none_is_not_reported(rng):
    codes = rng.integers(0, 16, (64, 8)).astype(np.uint32)
    scales = np.ones((2, 8), np.float16)
    g_idx = (np.arange(64) // 32).astype(np.int32)
    assert gemmery.checkpoints.gptq(pack_rows(codes), scales, g_idx=g_idx, group_size=32).order is None
    order = gemmery.checkpoints.gptq(pack_rows(codes), scales, g_idx=g_idx[::-1].copy(), group_size=32).order
    np.testing.assert_array_equal(np.from_dlpack(order), np.r_[32:64, 0:32])


def test_nested_maxima_and_a_table_of_ones_own(rng):
    n, k, block = 6, 96, 64
    codes = rng.integers(0, 16, n * k).astype(np.uint8)
    table = rng.integers(-8, 8, 16).astype(np.float32)
    inner = rng.integers(0, 256, n * k // block).astype(np.uint8)
    code = rng.integers(0, 8, 256).astype(np.float32)
    weight = gemmery.checkpoints.bitsandbytes(
        codes[0::2] << 4 | codes[1::2],
        inner,
        (n, k),
        table=table,
        nested_code=code,
        nested_absmax=np.array([0.5, 2, 4], np.float32),
        nested_blocksize=4,
        offset=0.25,
    )
    absmax = code[inner] * np.repeat(np.array([0.5, 2, 4], np.float32), 4)[: len(inner)] + 0.25
    values = (table[codes] * np.repeat(absmax, block)).reshape(n, k)
    x = rng.integers(-3, 4, (4, k)).astype(np.float32)
    out = np.empty((4, n), np.float32)
    run_all(gemmery.GemmArguments(x, weight, out), out, x @ values.T)


def test_bad_weights_are_refused_by_name(rng):
    codes, scales = rng.integers(0, 16, (64, 8)).astype(np.uint32), np.ones((2, 8), np.float16)
    with pytest.raises(ValueError, match="group_size"):
        gemmery.checkpoints.gptq(pack_rows(codes), scales, group_size=0)
    with pytest.raises(ValueError, match="N: expected a multiple of 64"):
        gemmery.checkpoints.marlin(pack_rows(codes), scales, group_size=128)
    with pytest.raises(ValueError, match="qweight"):
        gemmery.checkpoints.gptq(pack_rows(codes).astype(np.float32), scales, group_size=32)
    with pytest.raises(ValueError, match="g_idx"):
        gemmery.checkpoints.gptq(pack_rows(codes), scales, g_idx=np.zeros(64, np.int32), group_size=32)
    with pytest.raises(ValueError, match="table"):
        gemmery.ScaledOperand(codes.astype(np.uint8), [], [], table="nf5")
    with pytest.raises(ValueError, match="table.*15"):
        gemmery.ScaledOperand(codes.astype(np.uint8), [], [], table=range(15))
    with pytest.raises(ValueError, match="table_b.*uint4"):
        weight = gemmery.ScaledOperand(codes.astype(np.uint8), [], [], table="nf4")
        gemmery.GemmArguments(np.ones((2, 64), np.float32), weight, np.empty((2, 8), np.float32))


def packed_codes(rng, k, n):
    """(K, N) of uint4 and their numbers."""
    packed = rng.integers(0, 256, (n, k // 2)).astype(np.uint8)
    codes = gemmery.Tensor(packed.ctypes.data, (k, n), "uint4", (1, k), device="cpu", owner=packed)
    return codes, np.stack([packed & 15, packed >> 4], -1).reshape(n, k).T


@pytest.mark.parametrize("table", [None, list(range(-8, 8))])
def test_prepared_weights_are_operands_of_their_own(rng, table):
    codes, numbers = packed_codes(rng, 64, 32)
    scale = (2.0 ** rng.integers(-2, 3, (2, 32))).astype(np.float32)
    weight = gemmery.ScaledOperand(codes, scale, (1, 32), "strided", table=table)
    prepared = gemmery.prepare_operand(weight)
    assert prepared.is_prepared and not weight.is_prepared
    x = rng.integers(-3, 4, (4, 64)).astype(np.float32)
    out = np.empty((4, 32), np.float32)
    args, before = gemmery.GemmArguments(x, prepared, out), gemmery.GemmArguments(x, weight, out)
    assert "order_b=fragments" in args.problem
    values = numbers.astype(np.float32) if table is None else np.array(table, np.float32)[numbers]
    run_all(args, out, x @ (values * np.repeat(scale, 32, 0)))
    kernel, other = gemmery.get_kernels(args)[0], gemmery.get_kernels(before)[0]
    assert "prepared" in str(other.supports(args).error) and "prepare_operand" in str(kernel.supports(before).error)
    assert gemmery.prepare_operand(weight, kernel).is_prepared
    with pytest.raises(ValueError, match="takes a prepared B"):
        gemmery.prepare_operand(weight, other)
    with pytest.raises(ValueError, match="a prepared operand"):
        gemmery.prepare_operand(prepared)
    with pytest.raises(gemmery.UnsupportedError, match="multiple of 32"):
        gemmery.prepare_operand(packed_codes(rng, 48, 32)[0])


def test_operands_are_copied_to_devices_with_all_that_belongs_to_them(rng):
    codes, numbers = packed_codes(rng, 64, 32)
    scale = np.ones((2, 32), np.float32)
    weight = gemmery.prepare_operand(gemmery.ScaledOperand(codes, [scale], [(1, 32)], "strided", table="nf4.f16"))
    copy = weight.to_device("cpu")
    assert copy.is_prepared and copy.table == "nf4.f16" and copy.quantized.strides == (1, 64)
    out = np.empty((1, 32), np.float32)
    args = gemmery.GemmArguments(np.ones((1, 64), np.float32), copy, out)
    gemmery.get_kernels(args)[0].run(args)
    np.testing.assert_allclose(out[0], np.array(gemmery.code_table("nf4.f16"))[numbers].sum(0), rtol=1e-5, atol=1e-5)
