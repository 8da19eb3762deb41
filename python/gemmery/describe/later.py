# SPDX-License-Identifier: Apache-2.0
"""PyCUTLASS's names for operations that are not supported yet: they exist, and raise an error that names them."""

from __future__ import annotations

from typing import Any

from gemmery.errors import UnsupportedError

__all__ = [
    "Conv2dArguments",
    "Conv2dOperation",
    "Conv2dProblemSize",
    "Conv2dReduction",
]


class _Later:
    _kind = ""
    _instead = ""

    def __init__(self, *args: Any, **options: Any) -> None:
        raise UnsupportedError(
            f"unsupported: {type(self).__name__}: expected a dense, batched or grouped GEMM, got {self._kind}; {self._instead}"
        )


class _Convolution(_Later):
    _kind = "a convolution"
    _instead = "convolutions of 1x1 filters over NHWC tensors are GEMMs of GemmOperationUniversal"


class Conv2dOperation(_Convolution):
    """Not served yet."""


class Conv2dArguments(_Convolution):
    """Not served yet."""


class Conv2dProblemSize(_Convolution):
    """Not served yet."""


class Conv2dReduction(_Convolution):
    """Not served yet."""
