# SPDX-License-Identifier: Apache-2.0
"""Helpers for devices, streams, types and layouts, by the peers' names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gemmery import _core
from gemmery._core import as_tensor, dtype
from gemmery.errors import InvalidArgumentError, UnavailableError, UnsupportedError
from gemmery.status import Status

__all__ = [
    "TensorWrapper",
    "add_batch_mode",
    "device_cc",
    "get_stride_order",
    "is_device_cc_supported",
    "leading_dim",
    "permute_batch_mode",
    "permuted",
    "strides_to_layout_string",
    "to_cuda_stream",
    "to_cutlass_type",
    "to_gemmery_type",
    "tuple_to_string",
]


class _WrapperType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _core.Tensor)


class TensorWrapper(metaclass=_WrapperType):
    """gemmery.Tensor by the peers' name: TensorWrapper(tensor) is as_tensor(tensor), and views of tensors are instances.

    alignment_bytes: must divide the tensor's address, else ValueError; None: any address.
    static_layout has no effect: kernels are compiled for any extents.
    """

    def __new__(
        cls, tensor: Any, *args: Any, alignment_bytes: int | None = None, static_layout: bool = False, **of: Any
    ) -> Any:
        if isinstance(tensor, int):
            return _core.Tensor(tensor, *args, **of)
        (alignment,) = args or (alignment_bytes,)
        view = as_tensor(tensor)
        if alignment and not view.is_fake and view.data_ptr % alignment:
            raise InvalidArgumentError(
                f"invalid argument: tensor: expected an address that is a multiple of {alignment}, got {view.data_ptr:#x}"
            )
        return view


to_gemmery_type = dtype


def device_cc(device: int | str = 0) -> int:
    """The compute capability of a GPU: 90 for an H200. UnavailableError (a RuntimeError) if the GPU is missing."""
    return _core.device_info(f"cuda:{device}" if isinstance(device, int) else device).cc


def is_device_cc_supported(supported: Iterable[int], device: int | str = 0) -> Status:
    """True if a GPU has one of these compute capabilities. Never raises."""
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
    """The dimension whose elements are adjacent (the last one of several); None if there is none."""
    view = as_tensor(tensor)
    fitting = [d for d, (extent, stride) in enumerate(zip(view.shape, view.strides, strict=True)) if stride == 1 or extent == 1]
    return fitting[-1] if fitting else None


def get_stride_order(strides: Sequence[int]) -> tuple[int, ...]:
    """The rank of each dimension by its stride, the smallest first; among equal strides the last dimension comes first."""
    order = sorted(range(len(strides)), key=lambda d: (strides[d], -d))
    return tuple(order.index(d) for d in range(len(strides)))


def strides_to_layout_string(*strides: Sequence[int]) -> str:
    """One letter per matrix: t for row major, n for column major, as in BLAS; x if neither stride is 1."""
    return "".join("t" if s[-1] == 1 else "n" if s[-2] == 1 else "x" for s in strides)


def add_batch_mode(tensor: Any) -> Any:
    """A matrix as a batch of one: (1, M, N). Batches stay as they are; nothing is copied. ValueError for other ranks."""
    rank = len(tensor.shape)
    if rank not in (2, 3):
        raise InvalidArgumentError(f"invalid argument: tensor: expected a matrix or a batch of them, got rank {rank}")
    if rank == 3:
        return tensor
    if isinstance(tensor, _core.Tensor):
        return _relaid(tensor, (1, *tensor.shape), (0, *tensor.strides))
    return tensor[None]


def permute_batch_mode(tensor: Any) -> Any:
    """(L, M, N) as (M, N, L); nothing is copied. ValueError for other ranks."""
    rank = len(tensor.shape)
    if rank != 3:
        raise InvalidArgumentError(f"invalid argument: tensor: expected a batch of matrices, got rank {rank}")
    if isinstance(tensor, _core.Tensor):
        return permuted(tensor, (1, 2, 0))
    return tensor.permute(1, 2, 0) if hasattr(tensor, "permute") else tensor.transpose(1, 2, 0)


def permuted(tensor: Any, order: Sequence[int]) -> _core.Tensor:
    """A view with the dimensions in another order."""
    view = as_tensor(tensor)
    return _relaid(view, [view.shape[d] for d in order], [view.strides[d] for d in order])


def _relaid(view: _core.Tensor, shape: Sequence[int], strides: Sequence[int]) -> _core.Tensor:
    if view.is_fake:
        raise UnsupportedError("unsupported: tensor: expected one with memory, got one of torch's meta or fake tensors")
    return _core.Tensor(view.data_ptr, shape, view.dtype, strides, view.device, owner=view)


def to_cutlass_type(dtype_like: Any) -> Any:
    """The CuTe DSL's class for an element type (cutlass.Float16 for torch.float16), for kernels that are written in it. This
    package accepts either. UnavailableError if the package is not installed."""
    name = str(dtype(dtype_like))
    try:
        import cutlass
    except ImportError as error:
        raise UnavailableError(
            "unavailable: to_cutlass_type: expected the module cutlass, which was not found; pip install nvidia-cutlass-dsl, "
            "or use to_gemmery_type, which needs no package"
        ) from error
    return getattr(cutlass, _CUTLASS_NAMES[name])


_CUTLASS_NAMES = {
    "float64": "Float64",
    "float32": "Float32",
    "float16": "Float16",
    "bfloat16": "BFloat16",
    "float8_e4m3fn": "Float8E4M3FN",
    "float8_e5m2": "Float8E5M2",
    "float8_e8m0fnu": "Float8E8M0FNU",
    "float6_e2m3fn": "Float6E2M3FN",
    "float6_e3m2fn": "Float6E3M2FN",
    "float4_e2m1fn": "Float4E2M1FN",
    "int4": "Int4",
    "uint4": "Uint4",
    "int8": "Int8",
    "uint8": "Uint8",
    "int32": "Int32",
    "uint32": "Uint32",
}
