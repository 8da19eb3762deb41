# SPDX-License-Identifier: Apache-2.0
"""Operands of any framework as addresses on one device: NumPy arrays are staged, all others are used where they are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gemmery import _core
from gemmery.describe.descriptions import TensorDescription
from gemmery.describe.words import Layout
from gemmery.errors import InvalidArgumentError

__all__ = ["Operand", "Place", "common_device", "is_host_array"]


class Place:
    """What an operand has to be: its name, description, extents and device."""

    def __init__(self, name: str, tensor: TensorDescription, shape: Sequence[int], device: str) -> None:
        self.name = name
        self.tensor = tensor
        self.shape = tuple(shape)  # (batch, rows, columns)
        self.device = device

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    def refuse(self, expected: str, got: str, hint: str = "") -> InvalidArgumentError:
        tail = f"; {hint}" if hint else ""
        return InvalidArgumentError(f"invalid argument: {self.name}: expected {expected}, got {got}{tail}")


def is_host_array(given: Any) -> bool:
    """Whether it is an array of NumPy, which is copied to the device."""
    return any(base.__module__.partition(".")[0] == "numpy" and base.__name__ == "ndarray" for base in type(given).__mro__)


def _is_address(given: Any) -> bool:
    return hasattr(given, "__int__") and not hasattr(given, "shape")


def common_device(operands: Sequence[Any]) -> str | None:
    """Where operands are that are on a device; None where none says it."""
    for given in operands:
        if given is None or is_host_array(given) or _is_address(given) or isinstance(given, (list, tuple)):
            continue
        where = _core.as_tensor(given).device
        if where != "cpu":
            return where
    return None


class Operand:
    """One operand: its address on the device, and the array to copy back to."""

    def __init__(self, given: Any, place: Place, *, is_output: bool = False) -> None:
        self._host: _core.Tensor | None = None
        self._memory: _core.Tensor | None = None
        self._place = place
        self.given = given
        if _is_address(given):
            self.address = int(given)
            return
        view = _core.as_tensor(given)
        self._check(view)
        if not is_host_array(given):
            self._check_device(view)
            self.address = view.data_ptr
            return
        self._host = _core.Tensor(view.data_ptr, (place.count,), view.dtype, device="cpu", owner=given)
        self._memory = _core.empty((place.count,), view.dtype, place.device)
        if not is_output and place.count > 0:
            self._memory.copy_from(self._host)
        self.address = self._memory.data_ptr

    def copy_back(self) -> None:
        """To the array that the operand was given as; its stream has been waited for."""
        if self._host is not None and self._memory is not None and self._place.count > 0:
            self._host.copy_from(self._memory)

    # --- checks ---

    def _check(self, view: _core.Tensor) -> None:
        place = self._place
        expected = place.tensor.element.dtype
        if view.dtype != expected:
            raise place.refuse(expected.name, view.dtype.name)
        if math.prod(view.shape) != place.count:
            raise place.refuse(f"{place.count} elements for {self._extents()}", f"shape {view.shape}")
        if len(view.shape) > 1:
            self._check_layout(view)
        elif view.strides and view.shape[0] > 1 and view.strides[0] != 1:
            raise place.refuse("contiguous memory", f"strides {view.strides}")

    def _extents(self) -> str:
        return "x".join(str(extent) for extent in self._place.shape[1:] or self._place.shape)

    def _check_layout(self, view: _core.Tensor) -> None:
        """The elements must lie in memory as the description says."""
        place = self._place
        batch, rows, columns = place.shape
        if not _is_packed(view.shape, view.strides) and not _is_packed(view.shape[::-1], view.strides[::-1]):
            raise place.refuse("contiguous memory", f"shape {view.shape} with strides {view.strides}")
        if place.tensor.layout not in (Layout.RowMajor, Layout.ColumnMajor):
            return
        is_row_major = place.tensor.layout == Layout.RowMajor
        in_memory = (rows, columns) if is_row_major else (columns, rows)
        accepted = [(in_memory, _packed(in_memory)), (in_memory[::-1], _packed(in_memory)[::-1])]
        for shape, strides in accepted:
            if _lies_as(view, (batch, *shape), (rows * columns, *strides)):
                return
        raise place.refuse(
            f"{place.tensor.layout} memory of {rows}x{columns}", f"shape {view.shape} with strides {view.strides}"
        )

    def _check_device(self, view: _core.Tensor) -> None:
        if view.device != self._place.device:
            raise self._place.refuse(
                f"memory on {self._place.device}", f"on {view.device}", "only NumPy arrays are copied to the device"
            )


def _packed(shape: Sequence[int]) -> tuple[int, ...]:
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return tuple(strides)


def _is_packed(shape: Sequence[int], strides: Sequence[int]) -> bool:
    expected = _packed(shape)
    return all(extent <= 1 or given == wanted for extent, given, wanted in zip(shape, strides, expected, strict=True))


def _lies_as(view: _core.Tensor, shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether a view is of this shape and lies like this, extents of 1 left out."""
    own = [pair for pair in zip(view.shape, view.strides, strict=True) if pair[0] != 1]
    asked = [pair for pair in zip(shape, strides, strict=True) if pair[0] != 1]
    return own == asked or math.prod(shape) == 0
