# SPDX-License-Identifier: Apache-2.0
"""Gemmery: finds, compiles and runs GEMM kernels on NVIDIA GPUs and on the CPU.

    import gemmery, torch

    args = gemmery.GemmArguments(A, B, out, accumulator_type=torch.float32)
    kernel = gemmery.get_kernels(args)[0]
    artifact = kernel.compile(args)
    kernel.run(args, artifact)

Importing it opens no file for writing, starts no thread and touches no GPU.
"""

import sys as _sys
from typing import TYPE_CHECKING, NoReturn

from gemmery import (
    _html,
    _log,
    _tidy,
    arguments,
    artifact,
    cache,
    checkpoints,
    config,
    emulation,
    fusion,
    kernel,
    manifest,
    metadata,
    own_kernels,
    providers,
    status,
    tuning,
    typing,
    utils,
)
from gemmery._core import (
    CompiledArtifact,
    DeviceInfo,
    PreparedLaunch,
    device_info,
    devices,
    provider_names,
    version,
)
from gemmery.arguments import (
    ConvArguments,
    ElementwiseArguments,
    EpilogueArguments,
    GemmArguments,
    GroupedGemmArguments,
    PerformanceControls,
    RuntimeArguments,
)
from gemmery.artifact import compile_all
from gemmery.checks import VerifyReport, check_result, doctor, measure, verify
from gemmery.discovery import Explanation, explain, find_kernel, get_kernels
from gemmery.dtype import (
    DType,
    bfloat16,
    float4_e2m1fn,
    float6_e2m3fn,
    float6_e3m2fn,
    float8_e4m3fn,
    float8_e5m2,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    int4,
    int8,
    int32,
    uint4,
    uint8,
    uint32,
)
from gemmery.emulation import EmulationFinding, EmulationReport, emulate
from gemmery.epilogue import Program, define_op
from gemmery.errors import (
    CompileError,
    Error,
    FileError,
    InvalidArgumentError,
    LaunchError,
    OutOfMemoryError,
    UnavailableError,
    UnsupportedError,
    VerificationError,
)
from gemmery.kernel import Kernel
from gemmery.manifest import Manifest
from gemmery.matmul import matmul
from gemmery.metadata import KernelMetadata
from gemmery.operand_program import OperandProgram
from gemmery.own_kernels import get_include
from gemmery.providers import Provider
from gemmery.scales import (
    ScaledOperand,
    ScaleMode,
    ScaleSwizzleMode,
    code_table,
    prepare_operand,
    swizzle_scales,
    unswizzle_scales,
)
from gemmery.status import Status
from gemmery.tensor import Stream, Tensor, as_tensor, empty, pointer_array, synchronize
from gemmery.tuning import tune

__version__ = version()
_log.install()
_html.install()
_tidy.install(_sys.modules[__name__])

if not TYPE_CHECKING:  # checkers know the names that are here

    def __getattr__(name: str) -> NoReturn:
        from gemmery._other_names import OTHER_NAMES

        hint = OTHER_NAMES.get(name)
        raise AttributeError(f"module 'gemmery' has no attribute '{name}'" + (f"; here: {hint}" if hint else ""))

    def __dir__() -> list[str]:
        return sorted([*__all__, "__doc__", "__version__"])


__all__ = [
    "CompileError",
    "CompiledArtifact",
    "ConvArguments",
    "DType",
    "DeviceInfo",
    "ElementwiseArguments",
    "EmulationFinding",
    "EmulationReport",
    "EpilogueArguments",
    "Error",
    "Explanation",
    "FileError",
    "GemmArguments",
    "GroupedGemmArguments",
    "InvalidArgumentError",
    "Kernel",
    "KernelMetadata",
    "LaunchError",
    "Manifest",
    "OperandProgram",
    "OutOfMemoryError",
    "PerformanceControls",
    "PreparedLaunch",
    "Program",
    "Provider",
    "RuntimeArguments",
    "ScaleMode",
    "ScaleSwizzleMode",
    "ScaledOperand",
    "Status",
    "Stream",
    "Tensor",
    "UnavailableError",
    "UnsupportedError",
    "VerificationError",
    "VerifyReport",
    "arguments",
    "artifact",
    "as_tensor",
    "bfloat16",
    "cache",
    "check_result",
    "checkpoints",
    "code_table",
    "compile_all",
    "config",
    "define_op",
    "device_info",
    "devices",
    "doctor",
    "empty",
    "emulate",
    "emulation",
    "explain",
    "find_kernel",
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "float64",
    "fusion",
    "get_include",
    "get_kernels",
    "int4",
    "int8",
    "int32",
    "kernel",
    "manifest",
    "matmul",
    "measure",
    "metadata",
    "own_kernels",
    "pointer_array",
    "prepare_operand",
    "provider_names",
    "providers",
    "status",
    "swizzle_scales",
    "synchronize",
    "tune",
    "tuning",
    "typing",
    "uint4",
    "uint8",
    "uint32",
    "unswizzle_scales",
    "utils",
    "verify",
    "version",
]
