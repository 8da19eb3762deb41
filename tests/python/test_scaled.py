# SPDX-License-Identifier: Apache-2.0
"""Operands with scales: modes by all names, shapes, lifetimes and what the result is."""

import enum

import numpy as np
import pytest

import gemmery


@pytest.fixture
def rng():
    return np.random.default_rng()


def integers(rng, *shape):
    return rng.integers(-4, 5, shape).astype(np.int8)


def powers(rng, *shape):
    return (2.0 ** rng.integers(-3, 4, shape)).astype(np.float32)


def run_all(args, out, exact):
    for kernel in gemmery.get_kernels(args):
        out[...] = np.nan
        kernel.run(args)
        assert (out == exact).all(), kernel


def test_scales_of_rows_and_blocks_multiply_elements(rng):
    a, b = integers(rng, 9, 256), integers(rng, 256, 12)
    scale_a, scale_b = powers(rng, 9, 2), powers(rng, 1, 12)
    out = np.empty((9, 12), np.float32)
    A = gemmery.ScaledOperand(a, scale_a, "1x128")
    B = gemmery.ScaledOperand(b, scale_b, gemmery.ScaleMode.RowWise)
    args = gemmery.GemmArguments(A, B, out)
    assert "scale_a=f32[1x128]" in args.problem and "scale_b=f32[row]" in args.problem
    run_all(args, out, (a * np.repeat(scale_a, 128, 1)) @ (b * scale_b))


class BlockWise(enum.Enum):
    BlockWise1x128 = 1


@pytest.mark.parametrize(
    "mode", ["1x128", "BlockWise1x128", (1, 128), (1, 1, 128), BlockWise.BlockWise1x128, gemmery.ScaleMode.Blockwise1x128]
)
def test_modes_have_several_names(mode):
    assert gemmery.ScaledOperand.numel_scale((6, 200), mode) == 12


def test_zero_points_and_two_scales(rng):
    q = rng.integers(0, 16, (64, 8)).astype(np.uint8)
    zero = rng.integers(0, 16, (2, 8)).astype(np.uint8)
    fine, whole = powers(rng, 2, 8), powers(rng, 1, 1)
    a = integers(rng, 5, 64).astype(np.float32)
    out = np.empty((5, 8), np.float32)
    B = gemmery.ScaledOperand(q, [fine, whole], [(1, 32), "tensor"], "strided", zero_point=zero)
    exact = a @ ((q.astype(np.float32) - np.repeat(zero, 32, 0)) * np.repeat(fine, 32, 0) * whole)
    run_all(gemmery.GemmArguments(a, B, out), out, exact)


def test_groups_take_scales_of_rows(rng):
    a, b = integers(rng, 7, 32), integers(rng, 2, 32, 8)
    scale_a, scale_b = powers(rng, 7, 1), powers(rng, 2, 1, 8)
    out = np.empty((7, 8), np.float32)
    args = gemmery.GroupedGemmArguments(
        gemmery.ScaledOperand(a, scale_a, "row"),
        gemmery.ScaledOperand(b, scale_b, "row"),
        out,
        None,
        np.array([3, 7], np.int32),
    )
    parts = [(a[:3].astype(np.float32) @ b[0]) * scale_b[0], (a[3:].astype(np.float32) @ b[1]) * scale_b[1]]
    run_all(args, out, np.concatenate(parts) * scale_a)


def test_swizzled_scales_must_be_said_and_are_converted(rng):
    with pytest.raises(ValueError, match="swizzle"):
        gemmery.ScaledOperand(integers(rng, 4, 64), powers(rng, 4, 2), "1x32")
    scales = rng.integers(120, 130, (130, 5)).astype(np.uint8)
    tiles = np.empty(gemmery.ScaledOperand.numel_scale((130, 160), "1x32", gemmery.ScaleSwizzleMode.Swizzle32x4x4), np.uint8)
    assert gemmery.swizzle_scales(scales, tiles) is tiles
    again = np.zeros_like(scales)
    gemmery.unswizzle_scales(np.from_dlpack(gemmery.swizzle_scales(scales)), again)
    assert (again == scales).all()


def test_bad_scales_are_refused_by_name(rng):
    a, b, out = integers(rng, 4, 64), integers(rng, 64, 4), np.empty((4, 4), np.float32)
    with pytest.raises(ValueError, match=r"scale_a.*\(4, 2\)"):
        gemmery.GemmArguments(gemmery.ScaledOperand(a, powers(rng, 4, 3), (1, 32), "strided"), b, out)
    with pytest.raises(ValueError, match="mode"):
        gemmery.ScaledOperand(a, powers(rng, 4, 1), "rowish")


def test_arguments_keep_scales_alive_and_take_others(rng):
    a, b, out = integers(rng, 4, 64), integers(rng, 64, 4), np.empty((4, 4), np.float32)
    args = gemmery.GemmArguments(gemmery.ScaledOperand(a, powers(rng, 4, 1), "row"), b, out)
    other = np.full((4, 1), 2, np.float32)
    args.set_data("scale_a", other)
    run_all(args, out, 2 * (a.astype(np.float32) @ b))


@pytest.mark.parametrize("mode", [(1.5, 2), ("1", "2"), (2**31, 1), (-1, 4), (1,), (2, 3, 4), ()])
def test_blocks_of_other_than_whole_numbers_are_refused(mode):
    with pytest.raises(ValueError, match="mode: expected"):
        gemmery.ScaledOperand(None, None, mode)


@pytest.mark.parametrize("shape", [(4,), (), (-1, 4), (2**62, 2**62)])
def test_a_shape_that_no_operand_has_is_refused(shape):
    with pytest.raises(ValueError, match="shape: expected"):
        gemmery.ScaledOperand.numel_scale(shape, "1x128")


def test_scales_are_not_converted_into_themselves_nor_into_what_may_not_be_written():
    memory = np.zeros(2048, np.uint8)
    with pytest.raises(ValueError, match="overlapping memory"):
        gemmery.swizzle_scales(memory[:512].reshape(64, 8), memory[100:1124])
    with pytest.raises(ValueError, match="overlapping memory"):
        gemmery.unswizzle_scales(memory[:1024], memory[1000:1512].reshape(64, 8))
    for tiles in (memory[1023::-1], memory[::2], memory[:1025]):
        with pytest.raises(ValueError, match="1024 packed values"):
            gemmery.swizzle_scales(np.ones((64, 8), np.uint8), tiles)
    assert not memory.any()
    tiles = np.zeros(1024, np.uint8)
    tiles.setflags(write=False)
    with pytest.raises(ValueError, match="may be written"):
        gemmery.swizzle_scales(np.ones((64, 8), np.uint8), tiles)
    assert not tiles.any()
    with pytest.raises(ValueError, match="may be written"):
        gemmery.unswizzle_scales(np.ones(1024, np.uint8), tiles[:512].reshape(64, 8))


def test_matmul_takes_operands_with_scales(rng):
    a, q = integers(rng, 6, 64).astype(np.float32), integers(rng, 64, 10)
    row, fine = powers(rng, 1, 10), powers(rng, 2, 10)
    by_row = gemmery.matmul(a, gemmery.ScaledOperand(q, row, "row"))
    assert by_row.dtype == np.float32 and (by_row == a @ (q * row)).all()
    by_block = gemmery.matmul(a, gemmery.ScaledOperand(q, fine, (1, 32), "strided"), epilogue="D = max(accum, 0)")
    assert (by_block == np.maximum(a @ (q * np.repeat(fine, 32, 0)), 0)).all()
    both = (gemmery.ScaledOperand(q.T.copy(), row.T.copy(), "row"), gemmery.ScaledOperand(q, row, "row"))
    with pytest.raises(TypeError, match="out_dtype"):
        gemmery.matmul(*both)
    assert (gemmery.matmul(*both, out_dtype="float32") == (q.T * row.T).astype(np.float32) @ (q * row)).all()


def test_weights_of_groups_are_prepared_together(rng):
    x, q, scale = integers(rng, 9, 64), integers(rng, 3, 64, 32), powers(rng, 3, 2, 32)
    ends = np.array([4, 4, 9], np.int32)
    x = x.astype(np.float32)
    B = gemmery.ScaledOperand(q, scale, (1, 32), swizzle="strided")
    prepared = gemmery.prepare_operand(B)
    assert prepared.is_prepared and not B.is_prepared
    out = np.empty((9, 32), np.float32)
    args = gemmery.GroupedGemmArguments(x, prepared, out, offsets=ends)
    assert "order_b=fragments" in args.problem
    weights = q * np.repeat(scale, 32, 1)
    exact = np.concatenate([x[:4] @ weights[0], x[4:] @ weights[2]])
    run_all(args, out, exact)
