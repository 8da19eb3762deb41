# SPDX-License-Identifier: Apache-2.0
"""The names of PyCUTLASS's cutlass.conv: kinds, modes, algorithms and sizes of convolutions."""

from gemmery._core import ConvMode as Mode
from gemmery._core import ConvOperator as Operator
from gemmery._core import IteratorAlgorithm, SplitKMode, StrideSupport
from gemmery.describe.conv_size import Conv2dProblemSize, implicit_gemm_problem_size

__all__ = [
    "Conv2dProblemSize",
    "IteratorAlgorithm",
    "Mode",
    "Operator",
    "SplitKMode",
    "StrideSupport",
    "implicit_gemm_problem_size",
]
