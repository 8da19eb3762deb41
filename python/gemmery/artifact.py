# SPDX-License-Identifier: Apache-2.0
"""Compiled kernels, their files, and prepared launches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gemmery import _core
from gemmery._core import CompiledArtifact, PreparedLaunch

__all__ = ["CompiledArtifact", "PreparedLaunch", "compile_all", "load", "save"]


def save(
    path: str | os.PathLike[str], artifacts: CompiledArtifact | Sequence[CompiledArtifact], *, with_ptx: bool = False
) -> None:
    """Writes artifacts into one self-contained file: a temporary file, then renamed.

    With `with_ptx` also PTX, which emulated devices run. FileError if it cannot be written, UnsupportedError for
    kernels that are not compiled (those of the CPU).
    """
    several = [artifacts] if isinstance(artifacts, CompiledArtifact) else list(artifacts)
    _core.save_artifacts(path, several, with_ptx=with_ptx)


def load(path: str | os.PathLike[str]) -> list[CompiledArtifact]:
    """Loads the artifacts of a file; no compiler is needed. `artifact.kernel_obj` is the kernel of each.

    FileError for a file that cannot be read or is damaged; UnsupportedError for a file version that this version does not
    support.
    """
    return _core.load_artifacts(path)


def compile_all(
    kernels: Iterable[Any],
    cc: int | str,
    *,
    jobs: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[CompiledArtifact | Exception]:
    """Compiles many kernels in parallel for a device (90, "h200") or an exact target ("sm_90a").

    Results are in the order of the kernels; for a kernel that failed, its exception. `jobs` run at a time (0: one per core);
    `progress(done, all)` is called after each one. Ctrl-C cancels running compilations.
    """
    return _core.compile_all(list(kernels), cc, jobs, progress)
