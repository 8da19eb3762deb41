# SPDX-License-Identifier: Apache-2.0
"""The element type of a product whose caller names none."""

from __future__ import annotations

import functools

from gemmery import _core

__all__ = ["product_dtype"]

# Bits of exponent and mantissa, from the narrowest type to the widest.
_floats = {
    "float8_e4m3fn": (4, 3),
    "float8_e5m2": (5, 2),
    "float16": (5, 10),
    "bfloat16": (8, 7),
    "float32": (8, 23),
    "float64": (11, 52),
}


@functools.cache
def product_dtype(a: _core.DType, b: _core.DType) -> _core.DType:
    """int32 for integers; for floats the narrowest type that holds every value of both (a's type if both are the same).

    float16, float32 and float64 promote as in NumPy, bfloat16 as in torch: float16 with bfloat16 gives float32. Mixes of
    integers and floats get a's type; no kernel multiplies them, and the arguments refuse them.
    """
    if not a.is_floating and not b.is_floating:
        return _core.DType.int32
    if a == b or a.name not in _floats or b.name not in _floats:
        return a
    exponent, mantissa = (max(bits) for bits in zip(_floats[a.name], _floats[b.name], strict=True))
    wide_enough = (name for name, bits in _floats.items() if bits[0] >= exponent and bits[1] >= mantissa)
    dtype: _core.DType = _core.dtype(next(wide_enough))
    return dtype
