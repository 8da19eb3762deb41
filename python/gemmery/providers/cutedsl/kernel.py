# SPDX-License-Identifier: Apache-2.0
"""The base of kernels written in the CuTe DSL; the package is imported when one is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gemmery._core import CompiledArtifact
from gemmery.kernel import Kernel

__all__ = ["CuteDslKernel"]


class CuteDslKernel(Kernel):
    """A kernel whose `compile` calls cute.compile and whose `_run` calls the result.

    Register it with gemmery.providers.CuTeDSLProvider, which reports if the DSL is missing.
    """

    def cute_compile(
        self, function: Callable[..., Any], *args: Any, target: int | str | None = None, **options: Any
    ) -> CompiledArtifact:
        """Compiles a @cute.jit function with cute.compile for these arguments: for the current GPU, and loaded, so that even
        the first launch may be captured; or for a `target` ("sm_90a", 90) that this machine need not have."""
        from cutlass import cute

        if target is not None:
            name = f"sm_{target}" if isinstance(target, int) else target
            return CompiledArtifact(cute.compile[cute.GPUArch(name)](function, *args, **options), self)
        compiled = cute.compile(function, *args, **options)
        compiled.to()
        return CompiledArtifact(compiled, self)

    def cute_run(self, artifact: Any, *args: Any) -> None:
        """Calls what `cute_compile` compiled, or an artifact that holds it; the stream is one of the arguments."""
        compiled: Any = artifact
        while isinstance(compiled, CompiledArtifact):
            compiled = compiled.compiled_obj
        compiled(*args)
