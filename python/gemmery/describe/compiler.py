# SPDX-License-Identifier: Apache-2.0
"""Compiling many described operations, by PyCUTLASS's names."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from gemmery import _core
from gemmery.describe.conv2d import Conv2dOperation
from gemmery.describe.operation import GemmOperationUniversal
from gemmery.describe.reduction import ReductionOperation
from gemmery.errors import CompileError, UnavailableError, UnsupportedError

__all__ = ["ArtifactManager", "compiler"]


class ArtifactManager:
    """Chooses the compiler and compiles many operations at once. Compiled code is kept in the process and on disk
    (docs/cache.md); a `compiled_cache.db` in the working directory is neither read nor written."""

    def nvrtc(self) -> None:
        """Compiles with NVRTC, the default, which needs neither nvcc nor a host compiler."""
        os.environ["GEMMERY_COMPILER"] = "nvrtc"

    def nvcc(self) -> None:
        """Compiles with $CUDA_INSTALL_PATH/bin/nvcc. Raises UnavailableError with the path that was tried."""
        root = os.environ.get("CUDA_INSTALL_PATH")
        if not root:
            raise UnavailableError(
                "unavailable: nvcc: expected CUDA_INSTALL_PATH to name a CUDA toolkit, got no such variable; "
                "compiler.nvrtc() needs none"
            )
        path = os.path.join(root, "bin", "nvcc")
        if not os.path.isabs(root) or not os.access(path, os.X_OK):
            raise UnavailableError(f"unavailable: nvcc: expected a program, tried {path}")
        before = os.environ.get("CUDA_HOME")
        os.environ["CUDA_HOME"] = root  # the first place where the library looks
        if f"at {path}\n" not in _core.doctor():
            if before is None:
                del os.environ["CUDA_HOME"]
            else:
                os.environ["CUDA_HOME"] = before
            raise UnavailableError(f"unavailable: nvcc: expected a usable nvcc, tried {path}, which does not tell its version")
        os.environ["GEMMERY_COMPILER"] = "nvcc"

    def add_module(
        self,
        operations: Iterable[GemmOperationUniversal | Conv2dOperation | ReductionOperation],
        compile_options: Any = None,
        *,
        target: str | None = None,
    ) -> bool:
        """Compiles operations in parallel, each for its own compute capability (or all for a target such as "sm_90"). If some
        fail, the others are still compiled; CompileError names those that failed."""
        if compile_options is not None:
            raise UnsupportedError(
                "unsupported: compile_options: expected None, got options; flags are part of every kernel and of the "
                "cache's key"
            )
        if not isinstance(operations, Iterable):
            raise TypeError(f"operations: expected a list of operations, got {type(operations).__name__}")
        several: list[GemmOperationUniversal | Conv2dOperation] = []
        for one in operations:
            if isinstance(one, (GemmOperationUniversal, Conv2dOperation)):
                several.append(one)
            elif not isinstance(one, ReductionOperation):  # a reduction is compiled for its operands, by its first run
                raise TypeError(f"operations: expected GemmOperationUniversal or Conv2dOperation, got {type(one).__name__}")
        outcomes = _core.add_module(several, target)
        failed = [(one, error) for one, error in zip(several, outcomes, strict=True) if error is not None]
        if len(failed) == 1:
            raise failed[0][1]
        if failed:
            lines = "\n".join(f"{one.name}: {error}" for one, error in failed)
            raise CompileError(f"compile: {len(failed)} of {len(several)} operations failed\n{lines}")
        return True


compiler = ArtifactManager()
