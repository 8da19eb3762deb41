# SPDX-License-Identifier: Apache-2.0
"""The enumerations of descriptions, spelled as in PyCUTLASS: scalar types, layouts, opcode classes, swizzles."""

from __future__ import annotations

from typing import Any

from gemmery import _core
from gemmery._core import Element, Layout, MathOperation, OpcodeClass, SchedulerMode, SwizzlingFunctor
from gemmery.errors import InvalidArgumentError

int8 = Element.int8
uint8 = Element.uint8
int32 = Element.int32
float16 = Element.float16
bfloat16 = Element.bfloat16
float32 = Element.float32
tfloat32 = Element.tfloat32
float64 = Element.float64
float8_e4m3fn = Element.float8_e4m3fn
float8_e5m2 = Element.float8_e5m2

RowMajor = Layout.RowMajor
ColumnMajor = Layout.ColumnMajor
RowMajorInterleaved32 = Layout.RowMajorInterleaved32
ColumnMajorInterleaved32 = Layout.ColumnMajorInterleaved32
TensorNHWC = Layout.TensorNHWC
TensorNC32HW32 = Layout.TensorNC32HW32
TensorC32RSK32 = Layout.TensorC32RSK32

OpClass = OpcodeClass

IdentitySwizzle1 = SwizzlingFunctor.IdentitySwizzle1
IdentitySwizzle2 = SwizzlingFunctor.IdentitySwizzle2
IdentitySwizzle4 = SwizzlingFunctor.IdentitySwizzle4
IdentitySwizzle8 = SwizzlingFunctor.IdentitySwizzle8
HorizontalSwizzle = SwizzlingFunctor.HorizontalSwizzle
BatchedIdentitySwizzle = SwizzlingFunctor.BatchedIdentitySwizzle
StridedDgradIdentitySwizzle1 = SwizzlingFunctor.StridedDgradIdentitySwizzle1
StridedDgradIdentitySwizzle4 = SwizzlingFunctor.StridedDgradIdentitySwizzle4
StridedDgradHorizontalSwizzle = SwizzlingFunctor.StridedDgradHorizontalSwizzle

__all__ = [
    "BatchedIdentitySwizzle",
    "ColumnMajor",
    "ColumnMajorInterleaved32",
    "Element",
    "HorizontalSwizzle",
    "IdentitySwizzle1",
    "IdentitySwizzle2",
    "IdentitySwizzle4",
    "IdentitySwizzle8",
    "Layout",
    "MathOperation",
    "OpClass",
    "OpcodeClass",
    "RowMajor",
    "RowMajorInterleaved32",
    "SchedulerMode",
    "StridedDgradHorizontalSwizzle",
    "StridedDgradIdentitySwizzle1",
    "StridedDgradIdentitySwizzle4",
    "SwizzlingFunctor",
    "TensorC32RSK32",
    "TensorNC32HW32",
    "TensorNHWC",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
    "float16",
    "float32",
    "float64",
    "int8",
    "int32",
    "tfloat32",
    "uint8",
]


def to_element(given: Any, field: str) -> Element:
    """Converts a name, or a type of NumPy, torch or gemmery, to a scalar type."""
    if isinstance(given, Element):
        return given
    if given == "tfloat32":
        return tfloat32
    name = _core.dtype(given).name
    found = Element.__members__.get(name)
    if found is None:
        raise InvalidArgumentError(f"invalid argument: {field}: expected one of {', '.join(Element.__members__)}, got {name}")
    return found


def to_word(kind: Any, given: Any, field: str) -> Any:
    """Converts a name to a member of an enumeration."""
    if isinstance(given, kind):
        return given
    found = kind.__members__.get(given) if isinstance(given, str) else None
    if found is None:
        raise InvalidArgumentError(f"invalid argument: {field}: expected one of {', '.join(kind.__members__)}, got {given!r}")
    return found
