# SPDX-License-Identifier: Apache-2.0
"""Views of tensors of any framework, batches by pointers; memory and streams of the library."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from gemmery import _core
from gemmery._core import Stream, Tensor, as_tensor, empty, synchronize
from gemmery.typing import DTypeLike, TensorLike

__all__ = ["Stream", "Tensor", "as_tensor", "empty", "pointer_array", "synchronize"]


def pointer_array(
    matrices: Sequence[TensorLike] | TensorLike,
    shape: tuple[int, int, int] | None = None,
    dtype: DTypeLike | None = None,
    strides: tuple[int, int] | None = None,
    alignment: int | None = None,
) -> Tensor:
    """A batch by pointers: matrices at any addresses, as an operand of shape (L, rows, columns).

    matrices: a list of L matrices of one shape, layout, type and device, whose addresses are copied into an array on the device
    now; or an array of addresses on the device, a packed tensor of L 64-bit integers, with `shape`, `dtype` and `strides` of
    (rows, columns) in elements (None: packed, row major). The result keeps the matrices, or the array, alive, but not the
    matrices to which an array points. Kernels read the array, so its addresses may change between launches, also of graphs.
    alignment: the caller promises that it divides every address, in bytes; a power of two not below an element's width. None:
    that of the matrices, or 16 for an array.
    Raises InvalidArgumentError for matrices that differ and for an array of the wrong size.

        batch = gemmery.pointer_array([a0, a1, a2])
        gemmery.GemmArguments(batch, weights, out)
    """
    if isinstance(matrices, (list, tuple)):
        if shape is not None or dtype is not None or strides is not None:
            raise TypeError("pointer_array: expected none of shape, dtype and strides beside a list, whose matrices have them")
        return _core.pointer_array_of(tuple(matrices), alignment)
    if shape is None or dtype is None:
        raise TypeError("pointer_array: an array of addresses needs shape and dtype of what they lead to")
    return _core.pointer_array(_in_words(matrices), tuple(shape), dtype, strides, 16 if alignment is None else alignment)


def _in_words(array: Any) -> Any:
    """Views the same memory as 32-bit integers: operands have no elements of 64 bits."""
    if str(getattr(array, "dtype", "")).removeprefix("torch.") not in ("int64", "uint64"):
        return array
    torch = sys.modules.get("torch")
    return array.view(torch.int32 if torch is not None and isinstance(array, torch.Tensor) else "int32")
