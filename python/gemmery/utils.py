# SPDX-License-Identifier: Apache-2.0
"""Small questions about devices, streams, types and layouts, by the names that users of the peers know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gemmery import _core
from gemmery._core import as_tensor, dtype
from gemmery.status import Status

__all__ = [
    "TensorWrapper",
    "add_batch_mode",
    "device_cc",
    "get_stride_order",
    "is_device_cc_supported",
    "leading_dim",
    "permute_batch_mode",
    "strides_to_layout_string",
    "to_cuda_stream",
    "to_gemmery_type",
    "tuple_to_string",
]

# A view of a tensor of any framework; made by `as_tensor`.
TensorWrapper = _core.Tensor
to_gemmery_type = dtype


def device_cc(device: int | str = 0) -> int:
    """The compute capability of a GPU: 90 for an H200. UnavailableError (a RuntimeError) where it is not there."""
    return _core.device_info(f"cuda:{device}" if isinstance(device, int) else device).cc


def is_device_cc_supported(supported: Iterable[int], device: int | str = 0) -> Status:
    """Whether the capability of a GPU is one of these. Never raises."""
    expected = sorted(supported)
    try:
        found = device_cc(device)
    except Exception as error:
        return Status.fail(error)
    if found in expected:
        return Status.success()
    return Status.fail(f"compute capability {found} is not in the supported set {expected}")


def to_cuda_stream(stream: Any) -> int:
    """The handle of a stream: of an int, torch, cupy, numba, cuda.core, or anything with `__cuda_stream__`."""
    return _core.resolve_stream(stream)


def tuple_to_string(numbers: Sequence[int]) -> str:
    """ "128x64x32" of (128, 64, 32)."""
    return "x".join(str(number) for number in numbers)


def leading_dim(tensor: Any) -> int | None:
    """The dimension whose elements are neighbours (the last one that is); None where there is none."""
    view = as_tensor(tensor)
    fitting = [d for d, (extent, stride) in enumerate(zip(view.shape, view.strides, strict=True)) if stride == 1 or extent == 1]
    return fitting[-1] if fitting else None


def get_stride_order(strides: Sequence[int]) -> tuple[int, ...]:
    """The place of each dimension among its like, smallest stride first; equal strides from the last on."""
    order = sorted(range(len(strides)), key=lambda d: (strides[d], -d))
    return tuple(order.index(d) for d in range(len(strides)))


def strides_to_layout_string(*strides: Sequence[int]) -> str:
    """One letter a matrix: t row major, n column major, as BLAS has them; x where neither stride is 1."""
    return "".join("t" if s[-1] == 1 else "n" if s[-2] == 1 else "x" for s in strides)


def add_batch_mode(tensor: Any) -> Any:
    """A matrix as a batch of one: (1, M, N). Batches stay as they are; nothing is copied."""
    return tensor if len(tensor.shape) == 3 else tensor[None]


def permute_batch_mode(tensor: Any) -> Any:
    """(L, M, N) as (M, N, L); nothing is copied."""
    return tensor.transpose(1, 2, 0) if hasattr(tensor, "__array_interface__") else tensor.permute(1, 2, 0)
