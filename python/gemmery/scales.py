# SPDX-License-Identifier: Apache-2.0
"""Operands with scales and zero points, and the layouts of scales."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any, SupportsIndex

from gemmery import _core
from gemmery.errors import InvalidArgumentError

__all__ = [
    "ScaleMode",
    "ScaleSwizzleMode",
    "ScaledOperand",
    "code_table",
    "prepare_operand",
    "swizzle_scales",
    "unswizzle_scales",
]


class ScaleMode(enum.Enum):
    """The elements that share one scale: so many rows of A (columns of B) by so many elements of k; 0 means all."""

    TensorWise = (0, 0)
    RowWise = (1, 0)
    Blockwise1x16 = (1, 16)
    Blockwise1x32 = (1, 32)
    Blockwise1x128 = (1, 128)
    Blockwise128x1 = (128, 1)
    Blockwise128x128 = (128, 128)


class ScaleSwizzleMode(enum.Enum):
    """Where scales lie: in a tensor of any strides, or in packed tiles of 128 rows and 4 blocks of k."""

    SwizzleNone = "strided"
    Swizzle32x4x4 = "swizzled_128x4"


_SWIZZLES = {
    "strided": False,
    "swizzled_128x4": True,
    "NO_SWIZZLE": False,
    "SWIZZLE_32_4_4": True,
    "SwizzleNone": False,
    "Swizzle32x4x4": True,
}


def _block_of(mode: Any) -> tuple[int, int]:
    """The block of a mode: ScaleMode, its name or torch's, "1x128", (rows, k) or (..., rows, k)."""
    if isinstance(mode, ScaleMode):
        return mode.value
    if isinstance(mode, (tuple, list)):
        is_whole = all(isinstance(extent, SupportsIndex) for extent in mode)
        extents = [index(extent) for extent in mode] if is_whole else []
        is_block = len(extents) >= 2 and all(extent == 1 for extent in extents[:-2])
        if is_block and all(0 <= extent < 2**31 for extent in extents):
            return extents[-2], extents[-1]
        raise InvalidArgumentError(
            f"invalid argument: mode: expected (rows, k) after leading 1s, whole numbers from 0 to 2147483647, got {mode!r}"
        )
    word = mode if isinstance(mode, str) else getattr(mode, "name", str(mode))
    return _core.parse_scale_block(word)


def _is_swizzled(swizzle: Any, block: tuple[int, int]) -> bool:
    if swizzle is None:
        if block in ((1, 16), (1, 32)):
            raise InvalidArgumentError(
                "invalid argument: swizzle: expected ScaleSwizzleMode for scales of 1x16 or 1x32, which are stored either way, "
                "got None"
            )
        return False
    word = swizzle if isinstance(swizzle, str) else getattr(swizzle, "name", str(swizzle))
    if word not in _SWIZZLES:
        raise InvalidArgumentError(f"invalid argument: swizzle: expected SwizzleNone or Swizzle32x4x4, got {swizzle!r}")
    return _SWIZZLES[word]


def code_table(name: str) -> tuple[float, ...]:
    """The sixteen numbers of a named table: "nf4", or "nf4.bf16" and "nf4.f16", which are rounded to that type."""
    return tuple(_core.parse_code_table(name))


def _table_of(table: Any) -> list[float] | None:
    """Sixteen numbers: of a named table, or those given."""
    if table is None:
        return None
    numbers = [float(number) for number in (code_table(table) if isinstance(table, str) else table)]
    if len(numbers) != 16:
        raise InvalidArgumentError(f"invalid argument: table: expected a name or sixteen numbers, got {len(numbers)} numbers")
    return numbers


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


class ScaledOperand:
    """An operand with scales, in place of A or B: (quantized - zero_point) * scale, or table[quantized] * scale.

    quantized: the tensor of elements, (M, K) for A, (K, N) for B, or a batch of them.
    scale: a tensor with a value for each block, of the operand's shape divided by the block: for A (M, K) with blocks of 1x128
        (M, ceil(K / 128)), for B (K, N) (ceil(K / 128), N). float32, float16, bfloat16, float8_e8m0fnu or float8_e4m3fn. A list
        of two multiplies both, the one that varies along k first.
    mode: the block, for each scale: a ScaleMode, its name, torch's ScalingType, "1x64", or (rows, k) with 0 for all.
    swizzle: ScaleSwizzleMode or torch's SwizzleType, for each scale; None means SwizzleNone, but 1x16 and 1x32 must say it.
    zero_point: what is subtracted from the elements first, of the shape of a strided scale in the first scale's blocks.
    table: the numbers that codes of uint4 stand for: "nf4", "nf4.bf16" or "nf4.f16" (rounded to that type), or sixteen numbers,
        which are copied now. Kernels of tensor cores take numbers that the other operand's 16-bit type has.

    Nothing else is copied: arguments keep the tensors alive, and kernels read scales when they run. ValueError
    (InvalidArgumentError) for unknown modes; shapes and types are checked by the arguments.

        A = gemmery.ScaledOperand(a, scale_a, mode="1x128")
        args = gemmery.GemmArguments(A, B, out)
    """

    def __init__(
        self, quantized: Any, scale: Any, mode: Any, swizzle: Any = None, zero_point: Any = None, table: Any = None
    ) -> None:
        scales = _as_list(scale)
        modes = list(mode) if isinstance(mode, list) else [mode]
        swizzles = list(swizzle) if isinstance(swizzle, list) else [swizzle] * len(scales)
        if len(modes) != len(scales) or len(swizzles) != len(scales):
            raise InvalidArgumentError(
                f"invalid argument: mode: expected a mode and a swizzle for each of {len(scales)} scales, "
                f"got {len(modes)} and {len(swizzles)}"
            )
        self.quantized = quantized
        self.scale = scale
        self.mode = mode
        self.swizzle = swizzle
        self.zero_point = zero_point
        self.table = table
        blocks = [_block_of(one) for one in modes]
        self._scales = [
            (tensor, *block, _is_swizzled(how, block)) for tensor, block, how in zip(scales, blocks, swizzles, strict=True)
        ]
        self._zero = None if zero_point is None else (zero_point, *blocks[0], False)
        self._table = _table_of(table)
        self._is_prepared = False
        self._program: tuple[_core.Program, dict[str, Any], str | None] | None = None

    @property
    def is_prepared(self) -> bool:
        """True if prepare_operand made it."""
        return self._is_prepared

    def _with(self, quantized: Any, scale: Any, zero_point: Any, is_prepared: bool) -> ScaledOperand:
        made = ScaledOperand(quantized, scale, self.mode, self.swizzle, zero_point, self.table)
        made._is_prepared = is_prepared
        return made

    def to_device(self, device: Any) -> ScaledOperand:
        """The same operand with copies of its tensors, which are packed, on a device ("cuda:0")."""

        def copy(tensor: Any) -> Any:
            return None if tensor is None else _core.copy_to_device(tensor, device)

        scale = [copy(one) for one in self.scale] if isinstance(self.scale, (list, tuple)) else copy(self.scale)
        return self._with(copy(self.quantized), scale, copy(self.zero_point), self._is_prepared)

    @staticmethod
    def numel_scale(shape: Sequence[int], mode: Any, swizzle: Any = None) -> int:
        """The number of scales of an operand of this shape (..., rows, K), with padding if they are swizzled."""
        block = _block_of(mode)
        extents = tuple(index(extent) for extent in shape)
        if len(extents) < 2 or not all(0 <= extent < 2**31 for extent in extents):
            raise InvalidArgumentError(
                f"invalid argument: shape: expected (..., rows, K), extents from 0 to 2147483647, got {tuple(shape)}"
            )
        *batch, rows, k = extents
        count: int = _core.scale_count(rows, k, block[0], block[1], _is_swizzled(swizzle, block))
        return count * prod(batch)

    def __repr__(self) -> str:
        return f"ScaledOperand(mode={self.mode!r}, swizzle={self.swizzle!r}, zero_point={self.zero_point is not None})"


def prepare_operand(B: Any, kernel: Any | None = None) -> ScaledOperand:
    """A weight whose codes are reordered once for the kernels that will use it.

    B: a ScaledOperand or a tensor, (K, N), or (G, K, N) with a weight for each group, of 4 or 8 bits; K is a multiple of 32, N of
    32 (4 bits) or 16 (8 bits). kernel: the result is for this kernel, which must take prepared elements; None: for any that does.

    Returns an operand with the same scales, zero point and table, which it shares, and with codes of its own on the device of
    B's, in the order of the fragments that tensor cores take. It is a value of its own kind: get_kernels of its arguments lists
    kernels for prepared elements only, and all other kernels refuse it. InvalidArgumentError or UnsupportedError names what
    does not fit.

        weight = gemmery.prepare_operand(weight)
        args = gemmery.GemmArguments(x, weight, out)
    """
    operand = B if isinstance(B, ScaledOperand) else ScaledOperand(B, [], [])
    if operand._program is not None:
        raise InvalidArgumentError(
            "invalid argument: prepare_operand: B: expected elements without a program, got an operand with one"
        )
    if operand.is_prepared:
        raise InvalidArgumentError(
            "invalid argument: prepare_operand: B: expected elements in their own order, got a prepared operand"
        )
    codes = _core.prepare_codes(operand.quantized, operand._table, kernel)
    return operand._with(codes, operand.scale, operand.zero_point, True)


def swizzle_scales(scales: Any, out: Any = None) -> Any:
    """Copies scales (rows, blocks of k) in CPU memory to the swizzled layout and returns them; padding is 0.

    out: packed memory for ceil(rows / 128) * 128 * ceil(blocks / 4) * 4 values of the same type; None: a new Tensor.
    """
    return _core.swizzle_scales(scales, out)


def unswizzle_scales(swizzled: Any, out: Any) -> Any:
    """The inverse: copies swizzled scales to `out` (rows, blocks of k), of any strides, and returns it. CPU memory."""
    return _core.unswizzle_scales(swizzled, out)
