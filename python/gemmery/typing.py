# SPDX-License-Identifier: Apache-2.0
"""Types for annotations: tensors, numbers, element types, streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, SupportsFloat, TypeAlias, runtime_checkable

__all__ = ["DTypeLike", "NumericLike", "StreamLike", "TensorLike"]


@runtime_checkable
class TensorLike(Protocol):
    """Any tensor with DLPack 1.x: torch, numpy, cupy, jax, gemmery.Tensor."""

    @property
    def __dlpack__(self) -> Callable[..., Any]: ...

    @property
    def __dlpack_device__(self) -> Callable[..., Any]: ...


# An element type: gemmery's, its name, a torch, numpy or ml_dtypes dtype.
DTypeLike: TypeAlias = Any
# The types of an epilogue's numbers.
NumericLike: TypeAlias = int | float | SupportsFloat
# A stream: a handle, or one of torch, cupy, numba, cuda.core, anything with __cuda_stream__.
StreamLike: TypeAlias = Any
