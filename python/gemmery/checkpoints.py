# SPDX-License-Identifier: Apache-2.0
"""Weights of 4 bits from checkpoints of other libraries, as operands with scales.

Every function takes the tensors of one linear layer, in CPU memory and in the layout in which they are stored, and returns B
(K, N), K inputs and N outputs. Codes are repacked, scales of GPTQ and AWQ are used as they are, and values stay exactly those
of the format's formula. `ScaledOperand.to_device` copies the result to a GPU.

    weight, order = gemmery.checkpoints.gptq(qweight, scales, qzeros, group_size=128)
    args = gemmery.GemmArguments(x, weight, out)
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gemmery import _core
from gemmery.errors import InvalidArgumentError
from gemmery.scales import ScaledOperand

__all__ = ["GptqImport", "awq", "bitsandbytes", "gptq", "marlin"]


class GptqImport(NamedTuple):
    """A weight and the order of its inputs.

    weight: the operand B.
    order: int32 (K), if the weight has activation order: row i of B is input order[i], so A's columns must be taken in this
        order, A[:, order], by the layer before or by an indexed copy. None: the inputs are in their own order.
    """

    weight: ScaledOperand
    order: Any | None


def _group_of(group_size: int) -> int:
    """Checkpoints say -1 for one group."""
    if group_size == 0 or group_size < -1:
        raise InvalidArgumentError(f"invalid argument: group_size: expected at least 1, or -1 for all of K, got {group_size}")
    return max(group_size, 0)


def gptq(
    qweight: Any, scales: Any, qzeros: Any | None = None, g_idx: Any | None = None, *, group_size: int, version: int = 1
) -> GptqImport:
    """A GPTQ weight: (code - zero) * scale.

    qweight: int32 (K / 8, N), eight consecutive inputs in a word. scales: (K / group_size, N).
    qzeros: int32 (K / group_size, N / 8); None: symmetric, all zero points are 8.
    g_idx: int32 (K), the group of each input (desc_act); each group must have group_size of them.
    group_size: inputs that share a scale; -1: all.
    version: 1 if zero points are stored minus one ("gptq"), 2 if as they are ("gptq_v2").

    InvalidArgumentError names a tensor whose shape or type is another.
    """
    group = _group_of(group_size)
    codes, zeros, order = _core.import_gptq(qweight, qzeros, g_idx, group, version)
    return GptqImport(ScaledOperand(codes, scales, (1, group), "strided", zero_point=zeros), order)


def awq(qweight: Any, scales: Any, qzeros: Any, *, group_size: int) -> ScaledOperand:
    """An AWQ weight: (code - zero) * scale.

    qweight: int32 (K, N / 8), eight outputs in a word in AWQ's order. scales: (K / group_size, N). qzeros: int32 (K /
    group_size, N / 8), packed like the codes. group_size: inputs that share a scale; -1: all. InvalidArgumentError as above.
    """
    group = _group_of(group_size)
    codes, zeros = _core.import_awq(qweight, qzeros, group)
    return ScaledOperand(codes, scales, (1, group), "strided", zero_point=zeros)


def marlin(qweight: Any, scales: Any, *, group_size: int) -> ScaledOperand:
    """A weight in Marlin's layout: (code - 8) * scale.

    qweight: int32 (K / 16, 2 N), in tiles for Marlin's kernel; N is a multiple of 64. scales: (K / group_size, N), permuted for
        it.
    group_size: inputs that share a scale, of several groups; -1: all. InvalidArgumentError as above.
    """
    group = _group_of(group_size)
    codes, plain = _core.import_marlin(qweight, scales, group)
    return ScaledOperand(codes, plain, (1, group), "strided")


def bitsandbytes(
    codes: Any,
    absmax: Any,
    shape: tuple[int, int],
    *,
    blocksize: int = 64,
    table: Any = "nf4",
    nested_code: Any | None = None,
    nested_absmax: Any | None = None,
    nested_blocksize: int = 256,
    offset: float = 0.0,
) -> ScaledOperand:
    """A weight of bitsandbytes in 4 bits: table[code] * absmax.

    codes: uint8, two codes in a byte, the high nibble first. absmax: float32, one for each `blocksize` elements of the
    flattened weight. shape: (N, K) of the weight; K is even. table: as of ScaledOperand; "nf4.bf16" and "nf4.f16" are rounded
    to the type in which tensor cores multiply. A doubly quantised absmax is uint8 and comes with nested_code, float32 (256),
    nested_absmax, float32 for each `nested_blocksize` of it, and offset: nested_code[absmax] * nested_absmax + offset.
    InvalidArgumentError as above.

    Blocks may begin within a row of the weight. Scales of the result are those of the largest part that no block divides.
    """
    n, k = (int(extent) for extent in shape)
    plain, scale, group = _core.import_blockwise(
        codes, absmax, n, k, blocksize, nested_code, nested_absmax, nested_blocksize, offset
    )
    return ScaledOperand(plain, scale, (1, group), "strided", table=table)
