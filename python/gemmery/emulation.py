# SPDX-License-Identifier: Apache-2.0
"""A kernel of your own, run and checked with no GPU: `gemmery.emulate`.

The emulator executes the kernel's PTX on the CPU and checks every access; docs/emulator.md says what it finds and what it
cannot see. `gemmery.testing` has the same for tests.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import Any, TypeAlias

from gemmery import _core
from gemmery._core import EmulatedLine, EmulatedPlace, EmulationFinding, EmulationReport

__all__ = ["EmulatedLine", "EmulatedPlace", "EmulationFinding", "EmulationReport", "TensorMap", "Unwritten", "emulate"]

Extents: TypeAlias = int | Sequence[int]


class Unwritten:
    """An array argument whose contents count as never written when the kernel begins: memory that the kernel must not read. The
    array receives results like any other."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __repr__(self) -> str:
        return f"Unwritten({self.array!r})"


class TensorMap:
    """An argument for a parameter `const __grid_constant__ CUtensorMap`: the array on the device, in C order, copied in boxes
    of `box` elements (as many extents as the array has, slowest first). `swizzle`: 0, 32, 64 or 128 bytes. The array may be
    `Unwritten`, and receives results like any other. Elements of uint16 count as bfloat16."""

    def __init__(self, array: Any, box: Sequence[int], swizzle: int = 0) -> None:
        self.array = array
        self.box = tuple(box)
        self.swizzle = swizzle

    def __repr__(self) -> str:
        return f"TensorMap({self.array!r}, {self.box}, {self.swizzle})"


def emulate(
    kernel: str | os.PathLike[str],
    grid: Extents,
    block: Extents,
    args: Sequence[Any],
    *,
    device: str = "h200",
    entry: str = "",
    cluster: Extents = 1,
    shared_bytes: int = 0,
    seeds: int = 8,
    seed: int = 1,
    options: Sequence[str] = (),
    stop_at_first: bool = False,
    timeout: float | None = None,
    sample_blocks: int = 0,
    coverage: bool = False,
    rules: str = "",
) -> EmulationReport:
    """Runs a kernel on an emulated device under `seeds` schedules and returns a report of what is wrong with it.

    kernel          CUDA C++ or PTX as text, or the path of a file (a `pathlib.Path`) with it
    grid, block, cluster   blocks, threads of a block, blocks of a cluster: a number, or up to three
    args            the kernel's parameters, in order: NumPy arrays in C order, which are buffers on the device and hold the
                    results of the first schedule afterwards (except read-only ones); `Unwritten(array)`;
                    `TensorMap(array, box)`; numbers, converted to the type that the kernel declares; NumPy's scalars, in their
                    own type; bytes, a struct by value
    device          the device whose architecture and memory are emulated: "h200", "a100", ...
    entry           the kernel's name in the source or in the PTX; "": the only one
    shared_bytes    of dynamic shared memory
    seed            of the first schedule; the others follow
    options         for NVRTC: "-I/usr/local/cuda/include"
    stop_at_first   ends at the first fault instead of continuing after it
    timeout         in seconds, for all schedules
    sample_blocks   runs only this many blocks (clusters), chosen by the seed; 0: all
    coverage        fills in `report.coverage`
    rules           for findings that are known: lines KIND[, FILE[:LINE][, KERNEL]]

    Raises InvalidArgumentError for code, an entry, arguments or extents that are not valid, CompileError with the compiler's
    log, UnsupportedError for an instruction that the emulator does not know, UnavailableError without NVRTC. Findings are not
    raised.
    """
    code, file = _read(kernel)
    search = [f"-I{pathlib.Path(file).parent}"] if isinstance(kernel, os.PathLike) else []
    report = _core.emulate(
        code=code,
        file=file,
        options=[*options, *search],
        entry=entry,
        device=device if device.startswith("emulated:") else f"emulated:{device}",
        grid=_extents(grid, "grid"),
        block=_extents(block, "block"),
        cluster=_extents(cluster, "cluster"),
        shared_bytes=shared_bytes,
        arguments=[_argument(argument, index) for index, argument in enumerate(args)],
        seed=seed,
        seeds=seeds,
        stops_at_first=stop_at_first,
        timeout_s=timeout or 0.0,
        sampled_blocks=sample_blocks,
        wants_coverage=coverage,
        rules=rules,
    )
    for index, contents, _ in report.outputs:
        _write_back(args[index], contents)
    return report


def _read(kernel: str | os.PathLike[str]) -> tuple[str, str]:
    if isinstance(kernel, str):
        return kernel, "kernel.cu"
    return pathlib.Path(kernel).read_text(encoding="utf-8"), os.fspath(kernel)


def _extents(extents: Extents, name: str) -> tuple[int, int, int]:
    numbers = (extents,) if isinstance(extents, int) else tuple(extents)
    if not 1 <= len(numbers) <= 3 or any(number < 0 or number >= 2**32 for number in numbers):
        raise ValueError(f"{name}: expected a number or up to three, below 2^32, got {extents!r}")
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


def _argument(argument: Any, index: int) -> tuple[Any, ...]:
    if isinstance(argument, TensorMap):
        array = argument.array.array if isinstance(argument.array, Unwritten) else argument.array
        dtype = "bfloat16" if array.dtype.name == "uint16" else array.dtype.name
        return "tensor map", _argument(argument.array, index), (dtype, array.shape, argument.box, argument.swizzle)
    if isinstance(argument, Unwritten):
        return "unwritten", len(_bytes_of(argument.array, index))
    if isinstance(argument, bytes):
        return "value", argument
    if isinstance(argument, (bool, int, float)) and type(argument).__module__ == "builtins":
        return "number", repr(int(argument) if isinstance(argument, bool) else argument)
    if hasattr(argument, "flags") and getattr(argument, "ndim", None) is not None:
        contents = bytes(_bytes_of(argument, index))
        is_scalar = not hasattr(argument, "__setitem__")
        return "value" if is_scalar else "buffer", contents
    raise TypeError(
        f"argument {index}: expected a NumPy array or scalar, Unwritten(array), a number or bytes, "
        f"got {type(argument).__name__}"
    )


def _bytes_of(array: Any, index: int) -> memoryview:
    """The memory of an array, or a copy of a scalar's."""
    if not array.flags.c_contiguous:
        raise ValueError(
            f"argument {index}: expected an array in C order, got strides {array.strides}; numpy.ascontiguousarray(array)"
        )
    if array.dtype.hasobject:
        raise TypeError(f"argument {index}: expected numbers, got Python objects")
    return memoryview(array.reshape(-1).view("u1"))


def _write_back(argument: Any, contents: bytes) -> None:
    array = argument.array if isinstance(argument, (TensorMap, Unwritten)) else argument
    if isinstance(array, Unwritten):
        array = array.array
    if array.flags.writeable and contents:
        memoryview(array.reshape(-1).view("u1"))[:] = contents
