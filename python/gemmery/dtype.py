# SPDX-License-Identifier: Apache-2.0
"""The element types, by torch's names. Every parameter that takes one also takes a torch, NumPy,
ml_dtypes or CuTe DSL type, or a name, and each equals its other spellings: `gemmery.float16 == torch.float16`. Hashes are those
of this enumeration only: make keys of a dict with `dtype(type)`."""

from gemmery._core import DType, dtype

__all__ = [
    "DType",
    "bfloat16",
    "dtype",
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "float64",
    "int4",
    "int8",
    "int32",
    "uint4",
    "uint8",
    "uint32",
]

float64 = DType.float64
float32 = DType.float32
float16 = DType.float16
bfloat16 = DType.bfloat16
float8_e4m3fn = DType.float8_e4m3fn
float8_e5m2 = DType.float8_e5m2
float8_e8m0fnu = DType.float8_e8m0fnu
float6_e2m3fn = DType.float6_e2m3fn
float6_e3m2fn = DType.float6_e3m2fn
float4_e2m1fn = DType.float4_e2m1fn
int4 = DType.int4
uint4 = DType.uint4
int8 = DType.int8
uint8 = DType.uint8
int32 = DType.int32
uint32 = DType.uint32
