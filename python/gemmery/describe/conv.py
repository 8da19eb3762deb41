# SPDX-License-Identifier: Apache-2.0
"""PyCUTLASS's names for convolutions, which are not supported yet: each one raises an error that names it."""

from __future__ import annotations

from typing import NoReturn

from gemmery.errors import UnsupportedError


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise UnsupportedError(
        f"unsupported: conv.{name}: expected a dense or batched GEMM, got a convolution; convolutions of 1x1 filters over NHWC "
        "tensors are GEMMs of GemmOperationUniversal"
    )
