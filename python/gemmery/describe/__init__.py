# SPDX-License-Identifier: Apache-2.0
"""The explicit description: specifies one kernel exactly, with PyCUTLASS's names.

    from gemmery import describe
    from gemmery.describe import *

    math = MathInstruction([16, 8, 16], float16, float16, float32, OpClass.TensorOp)
    tile = TileDescription([128, 128, 32], 4, [2, 2, 1], math)
    A, B = TensorDescription(float16, RowMajor, 8), TensorDescription(float16, ColumnMajor, 8)
    C = TensorDescription(float32, RowMajor, 4)
    operation = GemmOperationUniversal(80, tile, A, B, C, LinearCombination(C.element, C.alignment))
    arguments = GemmArguments(operation, GemmCoord(512, 256, 128), a, b, c, d, output_op=operation.epilogue_type(1.0, 0.0))
    operation.run(arguments)
    arguments.sync()

docs/python-describe.md lists what is the same as in PyCUTLASS and what differs.
"""

from gemmery.describe import conv, gemm
from gemmery.describe.activations import (
    ActivationFunctor,
    gelu,
    hardswish,
    identity,
    leaky_relu,
    relu,
    sigmoid,
    silu,
    tanh,
)
from gemmery.describe.arguments import GemmArguments
from gemmery.describe.compiler import ArtifactManager, compiler
from gemmery.describe.conv import Conv2dProblemSize, IteratorAlgorithm, SplitKMode, StrideSupport
from gemmery.describe.conv2d import Conv2dArguments, Conv2dOperation
from gemmery.describe.coordinates import GemmCoord, MatrixCoord, Tensor4DCoord
from gemmery.describe.descriptions import MathInstruction, TensorDescription, TileDescription
from gemmery.describe.devices import device, set_device
from gemmery.describe.functors import (
    EpilogueFunctor,
    FastLinearCombinationClamp,
    LinearCombination,
    LinearCombinationClamp,
    LinearCombinationGeneric,
)
from gemmery.describe.gemm import Mode
from gemmery.describe.grouped import GemmGroupedArguments, GemmOperationGrouped
from gemmery.describe.memory_pool import PoolMemoryManager, get_allocated_size, get_memory_pool
from gemmery.describe.operation import GemmOperationUniversal
from gemmery.describe.reduction import ReductionArguments, ReductionOperation
from gemmery.describe.visitor import EpilogueVisitTree, VisitorOutputOp, reduction_op
from gemmery.describe.words import (
    BatchedIdentitySwizzle,
    ColumnMajor,
    ColumnMajorInterleaved32,
    Element,
    HorizontalSwizzle,
    IdentitySwizzle1,
    IdentitySwizzle2,
    IdentitySwizzle4,
    IdentitySwizzle8,
    Layout,
    MathOperation,
    OpClass,
    OpcodeClass,
    RowMajor,
    RowMajorInterleaved32,
    SchedulerMode,
    StridedDgradHorizontalSwizzle,
    StridedDgradIdentitySwizzle1,
    StridedDgradIdentitySwizzle4,
    SwizzlingFunctor,
    TensorC32RSK32,
    TensorNC32HW32,
    TensorNHWC,
    bfloat16,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    float64,
    int8,
    int32,
    tfloat32,
    uint8,
)

__all__ = [
    "ActivationFunctor",
    "ArtifactManager",
    "BatchedIdentitySwizzle",
    "ColumnMajor",
    "ColumnMajorInterleaved32",
    "Conv2dArguments",
    "Conv2dOperation",
    "Conv2dProblemSize",
    "Element",
    "EpilogueFunctor",
    "EpilogueVisitTree",
    "FastLinearCombinationClamp",
    "GemmArguments",
    "GemmCoord",
    "GemmGroupedArguments",
    "GemmOperationGrouped",
    "GemmOperationUniversal",
    "HorizontalSwizzle",
    "IdentitySwizzle1",
    "IdentitySwizzle2",
    "IdentitySwizzle4",
    "IdentitySwizzle8",
    "IteratorAlgorithm",
    "Layout",
    "LinearCombination",
    "LinearCombinationClamp",
    "LinearCombinationGeneric",
    "MathInstruction",
    "MathOperation",
    "MatrixCoord",
    "Mode",
    "OpClass",
    "OpcodeClass",
    "PoolMemoryManager",
    "ReductionArguments",
    "ReductionOperation",
    "RowMajor",
    "RowMajorInterleaved32",
    "SchedulerMode",
    "SplitKMode",
    "StrideSupport",
    "StridedDgradHorizontalSwizzle",
    "StridedDgradIdentitySwizzle1",
    "StridedDgradIdentitySwizzle4",
    "SwizzlingFunctor",
    "Tensor4DCoord",
    "TensorC32RSK32",
    "TensorDescription",
    "TensorNC32HW32",
    "TensorNHWC",
    "TileDescription",
    "VisitorOutputOp",
    "bfloat16",
    "compiler",
    "conv",
    "device",
    "float8_e4m3fn",
    "float8_e5m2",
    "float16",
    "float32",
    "float64",
    "gelu",
    "gemm",
    "get_allocated_size",
    "get_memory_pool",
    "hardswish",
    "identity",
    "int8",
    "int32",
    "leaky_relu",
    "reduction_op",
    "relu",
    "set_device",
    "sigmoid",
    "silu",
    "tanh",
    "tfloat32",
    "uint8",
]
