# SPDX-License-Identifier: Apache-2.0
"""The base of kernels written in the CuTe DSL; the package is imported when one is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gemmery._core import CompiledArtifact
from gemmery.kernel import Kernel

__all__ = ["CuteDslKernel"]


class CuteDslKernel(Kernel):
    """A kernel whose `compile` goes through cute.compile and whose `_run` calls what that gave.

    Register it with gemmery.providers.CuTeDSLProvider, which says where the DSL is missing.
    """

    def cute_compile(self, function: Callable[..., Any], *args: Any, **options: Any) -> CompiledArtifact:
        """cute.compile of a @cute.jit function for these arguments."""
        from cutlass import cute

        return CompiledArtifact(cute.compile(function, *args, **options), self)

    def cute_run(self, artifact: CompiledArtifact, *args: Any) -> None:
        """Calls what `cute_compile` compiled; the stream is one of the arguments."""
        compiled: Any = artifact.compiled_obj
        compiled(*args)
