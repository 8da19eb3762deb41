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
    "GemmGroupedArguments",
    "GemmOperationGrouped",
]


class _Later:
    _kind = ""
    _instead = ""

    def __init__(self, *args: Any, **options: Any) -> None:
        raise UnsupportedError(
            f"unsupported: {type(self).__name__}: expected a dense or batched GEMM, got {self._kind}; {self._instead}"
        )


class _Grouped(_Later):
    _kind = "a grouped GEMM"
    _instead = "products of equal size are Mode.Array of GemmArguments"


class _Convolution(_Later):
    _kind = "a convolution"
    _instead = "convolutions of 1x1 filters over NHWC tensors are GEMMs of GemmOperationUniversal"


class GemmOperationGrouped(_Grouped):
    """Not served yet."""


class GemmGroupedArguments(_Grouped):
    """Not served yet."""


class Conv2dOperation(_Convolution):
    """Not served yet."""


class Conv2dArguments(_Convolution):
    """Not served yet."""


class Conv2dProblemSize(_Convolution):
    """Not served yet."""


class Conv2dReduction(_Convolution):
    """Not served yet."""
