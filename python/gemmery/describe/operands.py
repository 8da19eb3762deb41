# SPDX-License-Identifier: Apache-2.0
"""Operands of any framework as addresses on one device: NumPy arrays are staged, all others are used in place."""

from __future__ import annotations

import contextlib
import math
import numbers
from collections.abc import Iterator, Sequence
from typing import Any

from gemmery import _core
from gemmery.describe.descriptions import TensorDescription
from gemmery.describe.words import Layout
from gemmery.errors import InvalidArgumentError, UnsupportedError

__all__ = [
    "Operand",
    "Place",
    "common_device",
    "current_stream",
    "is_address",
    "is_host_array",
    "packed_strides",
    "to_address",
    "view_of",
]


class Place:
    """The requirements of an operand: its name, description, extents and device."""

    def __init__(self, name: str, tensor: TensorDescription, shape: Sequence[int], device: str) -> None:
        self.name = name
        self.tensor = tensor
        self.shape = tuple(shape)  # (batch, rows, columns)
        self.device = device

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def extents(self) -> str:
        """The extents of the operand, or of one matrix of a batch."""
        return "x".join(str(extent) for extent in self.shape[1:] or self.shape)

    @property
    def has_blocks(self) -> bool:
        """True if the layout has blocks of elements, which have no shape of their own."""
        return self.tensor.layout not in (Layout.RowMajor, Layout.ColumnMajor)

    def accepted(self) -> list[tuple[Sequence[int], Sequence[int]]]:
        """The accepted shapes and strides: packed rows or columns, each matrix as in memory or transposed."""
        batch, rows, columns = self.shape
        if self.has_blocks:
            return []
        in_memory = (rows, columns) if self.tensor.layout == Layout.RowMajor else (columns, rows)
        strides = packed_strides(in_memory)
        return [
            ((batch, *in_memory), (rows * columns, *strides)),
            ((batch, *in_memory[::-1]), (rows * columns, *strides[::-1])),
        ]

    def refuse(self, expected: str, got: str, hint: str = "") -> InvalidArgumentError:
        tail = f"; {hint}" if hint else ""
        return InvalidArgumentError(f"invalid argument: {self.name}: expected {expected}, got {got}{tail}")


def is_host_array(given: Any) -> bool:
    """True for a NumPy array, which is copied to the device."""
    return any(base.__module__.partition(".")[0] == "numpy" and base.__name__ == "ndarray" for base in type(given).__mro__)


def is_address(given: Any) -> bool:
    """True for a whole number, or an object that converts to one, such as a driver's pointer."""
    return hasattr(given, "__int__") and not hasattr(given, "shape") and not hasattr(given, "__cuda_array_interface__")


def to_address(given: Any, name: str) -> int:
    is_number = isinstance(given, numbers.Number)
    address = -1 if isinstance(given, bool) or (is_number and not isinstance(given, numbers.Integral)) else int(given)
    if not 0 <= address < 2**64:
        raise InvalidArgumentError(f"invalid argument: {name}: expected an array, a tensor or an address, got {given!r}")
    return address


def view_of(given: Any, name: str, device: str | None = None) -> _core.Tensor:
    """A view of a tensor of any framework, also with __cuda_array_interface__ only; on `device` if it names none."""
    if given is None:
        raise InvalidArgumentError(f"invalid argument: {name}: expected an array, a tensor or an address, got None")
    offered = getattr(given, "__cuda_array_interface__", None)
    if offered is not None and not hasattr(given, "__dlpack__"):
        return _view_of_interface(given, offered, name, device)
    try:
        return _core.as_tensor(given)
    except TypeError as error:
        raise TypeError(f"{name}{str(error).removeprefix('tensor')}") from None
    except (InvalidArgumentError, UnsupportedError) as error:  # they speak of a tensor: say which
        raise type(error)(str(error).replace(": tensor:", f": {name}:", 1)) from None


def _view_of_interface(given: Any, offered: dict[str, Any], name: str, device: str | None) -> _core.Tensor:
    dtype = _core.dtype(_NAMES_OF_TYPES.get(offered["typestr"][1:], offered["typestr"]))
    strides = offered.get("strides")
    address = offered["data"][0]
    where = _device_of_interface(given) or device or "cuda:0"
    if offered.get("stream") is not None:  # waits for the work that produces the array
        _core.synchronize(offered["stream"], where)
    in_elements = None if strides is None else [stride // (dtype.bits // 8) for stride in strides]
    return _core.Tensor(address or 0, offered["shape"], dtype, in_elements, where, given)


def _device_of_interface(given: Any) -> str | None:
    """The protocol has no device; arrays of Numba and others do."""
    number = getattr(getattr(given, "device", None), "id", None)
    return None if number is None else f"cuda:{number}"


def _is_read_only(given: Any, view: _core.Tensor) -> bool:
    offered = getattr(given, "__cuda_array_interface__", None)
    return view.is_read_only or (isinstance(offered, dict) and bool(offered["data"][1]))


# Type strings of array interfaces, without the sign of the byte order.
_NAMES_OF_TYPES = {"f2": "float16", "f4": "float32", "f8": "float64", "i1": "int8", "u1": "uint8", "i4": "int32"}


def _one_by_one(operands: Sequence[Any]) -> Iterator[Any]:
    for given in operands:
        yield from given if isinstance(given, (list, tuple)) else [given]


def _on_devices(operands: Sequence[Any]) -> list[_core.Tensor]:
    """Views of the operands that are tensors and name their device."""
    views = []
    for given in _one_by_one(operands):
        if given is None or is_host_array(given) or is_address(given) or not _says_device(given):
            continue
        with contextlib.suppress(TypeError):  # no tensor: refused by its name where it is read
            views.append(view_of(given, "operand"))
    return [view for view in views if view.device != "cpu"]


def _says_device(given: Any) -> bool:
    has_interface_alone = hasattr(given, "__cuda_array_interface__") and not hasattr(given, "__dlpack__")
    return not has_interface_alone or _device_of_interface(given) is not None


def common_device(operands: Sequence[Any]) -> str | None:
    """The device of the operands; None if none of them names one."""
    return next((view.device for view in _on_devices(operands)), None)


def current_stream(operands: Sequence[Any]) -> int:
    """The current stream of the operands' frameworks; the legacy default stream if there is no framework."""
    views = _on_devices(operands)
    return _core.current_stream(views, [f"operand {at}" for at in range(len(views))])


class Operand:
    """One operand: its address on the device, and the array to copy back to."""

    def __init__(self, given: Any, place: Place, *, is_output: bool = False) -> None:
        self._host: _core.Tensor | None = None
        self._memory: _core.Tensor | None = None
        self._place = place
        self.given = given
        if is_address(given):
            self.address = to_address(given, place.name)
            return
        view = view_of(given, place.name, place.device)
        self._check(view)
        if is_output and _is_read_only(given, view):
            raise place.refuse("memory that may be written", "read-only memory")
        if not is_host_array(given):
            self._check_device(view)
            self.address = view.data_ptr
            return
        self._host = _core.Tensor(view.data_ptr, (place.count,), view.dtype, device="cpu", owner=view)
        self._memory = _core.empty((place.count,), view.dtype, place.device)
        if not is_output and place.count > 0:
            self._memory.copy_from(self._host)
        self.address = self._memory.data_ptr

    def copy_back(self) -> None:
        """Copies to the array that the caller gave. The stream must have been synchronised."""
        if self._host is not None and self._memory is not None and self._place.count > 0:
            self._host.copy_from(self._memory)

    # --- checks ---

    def _check(self, view: _core.Tensor) -> None:
        place = self._place
        expected = place.tensor.element.dtype
        if view.dtype != expected:
            raise place.refuse(expected.name, view.dtype.name)
        if math.prod(view.shape) != place.count:
            raise place.refuse(f"{place.count} elements for {place.extents}", f"shape {view.shape}")
        if len(view.shape) > 1:
            self._check_layout(view)
        elif view.strides and view.shape[0] > 1 and view.strides[0] != 1:
            raise place.refuse("contiguous memory", f"strides {view.strides}")

    def _check_layout(self, view: _core.Tensor) -> None:
        """Checks that the elements lie in memory as the description says."""
        place = self._place
        if any(_lies_as(view, shape, strides) for shape, strides in place.accepted()):
            return
        is_packed = _is_packed(view.shape, view.strides) or _is_packed(view.shape[::-1], view.strides[::-1])
        if is_packed and place.has_blocks:
            return
        expected = f"{place.tensor.layout} memory of {place.extents}" if is_packed else "contiguous memory"
        raise place.refuse(expected, f"shape {view.shape} with strides {view.strides}")

    def _check_device(self, view: _core.Tensor) -> None:
        if view.device != self._place.device:
            raise self._place.refuse(
                f"memory on {self._place.device}", f"on {view.device}", "only NumPy arrays are copied to the device"
            )


def packed_strides(shape: Sequence[int]) -> tuple[int, ...]:
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return tuple(strides)


def _is_packed(shape: Sequence[int], strides: Sequence[int]) -> bool:
    expected = packed_strides(shape)
    return all(extent <= 1 or given == wanted for extent, given, wanted in zip(shape, strides, expected, strict=True))


def _lies_as(view: _core.Tensor, shape: Sequence[int], strides: Sequence[int]) -> bool:
    """True if a view has this shape and these strides; dimensions of extent 1 are ignored."""
    own = [pair for pair in zip(view.shape, view.strides, strict=True) if pair[0] != 1]
    asked = [pair for pair in zip(shape, strides, strict=True) if pair[0] != 1]
    return own == asked or math.prod(shape) == 0
