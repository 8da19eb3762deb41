# SPDX-License-Identifier: Apache-2.0
"""Triton kernels, run and checked with no GPU.

    import gemmery.triton

    report = gemmery.triton.emulate(softmax[(rows,)], x, out, columns, BLOCK=128, num_warps=4)
    assert report, report

The kernel is launched as on a GPU, on NumPy arrays or torch's tensors on the CPU in place of tensors on a device. Triton
compiles it for the emulated device, which needs no GPU either, and findings name lines of the Python source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from gemmery import _core
from gemmery.emulation import EmulationReport, Unwritten
from gemmery.emulation import emulate as _emulate
from gemmery.errors import UnavailableError

__all__ = ["emulate"]

# Triton's names of the types of elements.
_ELEMENTS = {
    "bool": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    "float8_e4m3fn": "fp8e4nv",
    "float8_e5m2": "fp8e5",
}
_DIVISIBLE_BY_16 = [["tt.divisibility", 16]]


def emulate(
    launch: Callable[..., Any],
    *args: Any,
    device: str = "h200",
    seeds: int = 8,
    seed: int = 1,
    stop_at_first: bool = False,
    timeout: float | None = None,
    coverage: bool = False,
    rules: str = "",
    **kwargs: Any,
) -> EmulationReport:
    """Runs a Triton kernel on an emulated device under `seeds` schedules and returns a report, which is true if it passed.

    launch          `kernel[grid]`, where `kernel` has the decorator `triton.jit`; the grid may be a function of the arguments
    args, kwargs    those of the launch: arrays (NumPy's in C order, `gemmery.emulation.Unwritten(array)`, or torch's tensors on
                    the CPU), which hold the results of the first schedule afterwards; numbers; constants; and Triton's options
                    (`num_warps`, `num_stages`, ...)
    device, seeds, seed, stop_at_first, timeout, coverage, rules   as for `gemmery.emulate`

    Raises UnavailableError if Triton is not installed, TypeError for a launch or an argument that cannot be emulated, and what
    `gemmery.emulate` raises.
    """
    kernel, grid = _parts_of(launch)
    values, options = _bind(kernel, args, kwargs)
    compiled, passed = _compile(kernel, values, options, device)
    ptx = compiled.asm["ptx"]
    blocks = _grid_of(grid, values)
    cluster = tuple(getattr(compiled.metadata, "cluster_dims", (1, 1, 1)))
    scratch: list[Any] = [0] * (_parameter_count(ptx) - len(passed))
    scratch_bytes = getattr(compiled.metadata, "global_scratch_size", 0) or 0
    if scratch_bytes:
        scratch[0] = _scratch(scratch_bytes * blocks[0] * blocks[1] * blocks[2])
    return _emulate(
        ptx,
        tuple(count * of_cluster for count, of_cluster in zip(blocks, cluster, strict=True)),
        _threads_of(ptx),
        [*passed, *scratch],
        device=device,
        cluster=cluster,
        shared_bytes=compiled.metadata.shared,
        seeds=seeds,
        seed=seed,
        stop_at_first=stop_at_first,
        timeout=timeout,
        coverage=coverage,
        rules=rules,
    )


# --- the launch ----------------------------------------------------------------------------------


def _import_triton() -> Any:
    try:
        import triton
        import triton.backends.compiler
        import triton.compiler
    except ImportError as error:
        raise UnavailableError("Triton: expected an installed package, got none; pip install triton") from error
    return triton


def _parts_of(launch: Callable[..., Any]) -> tuple[Any, Any]:
    """The kernel and the grid of `kernel[grid]`, which Triton keeps in a closure."""
    triton = _import_triton()
    parts = {}
    if getattr(launch, "__closure__", None):
        parts = {
            name: cell.cell_contents for name, cell in zip(launch.__code__.co_freevars, launch.__closure__ or (), strict=True)
        }
    kernel, grid = parts.get("self"), parts.get("grid")
    if not isinstance(kernel, triton.JITFunction) or grid is None:
        got = type(kernel if kernel is not None else launch).__name__
        raise TypeError(
            f"launch: expected kernel[grid] of a kernel with triton.jit, got {got}; of an autotuned one give the function "
            "without autotune and the values of one configuration"
        )
    return kernel, grid


def _bind(kernel: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The kernel's arguments by name, and the options of the compiler."""
    names = [parameter.name for parameter in kernel.params]
    bound = kernel.signature.bind(*args, **{name: value for name, value in kwargs.items() if name in names})
    bound.apply_defaults()
    options = {name: value for name, value in kwargs.items() if name not in names}
    return dict(bound.arguments), options


def _grid_of(grid: Any, values: Mapping[str, Any]) -> tuple[int, int, int]:
    extents = grid(values) if callable(grid) else grid
    extents = (extents,) if isinstance(extents, int) else tuple(extents)
    x, y, z = (*extents, 1, 1)[:3]
    return x, y, z


# --- compiling -----------------------------------------------------------------------------------


def _compile(kernel: Any, values: Mapping[str, Any], options: Mapping[str, Any], device: str) -> tuple[Any, list[Any]]:
    """The compiled kernel, and the arguments that it takes."""
    triton = _import_triton()
    capability = int(re.sub(r"\D", "", _core.device_info(device.removeprefix("emulated:")).target))
    target = triton.backends.compiler.GPUTarget("cuda", capability, 32)
    _check_options(triton, target, options)
    signature: dict[str, str] = {}
    constants: dict[tuple[int, ...], Any] = {}
    attributes: dict[tuple[int, ...], Any] = {}
    passed = []
    for index, parameter in enumerate(kernel.params):
        value = values[parameter.name]
        is_one = isinstance(value, int) and value == 1 and not parameter.do_not_specialize
        if parameter.is_constexpr or value is None or (is_one and not isinstance(value, bool)):
            signature[parameter.name] = "constexpr"
            constants[(index,)] = value
            continue
        signature[parameter.name], argument = _typed(value, parameter.name)
        if not parameter.do_not_specialize and _is_divisible(value):
            attributes[(index,)] = _DIVISIBLE_BY_16
        passed.append(argument)
    source = triton.compiler.ASTSource(kernel, signature, constants, attributes)
    return triton.compile(source, target=target, options=dict(options)), passed


def _check_options(triton: Any, target: Any, options: Mapping[str, Any]) -> None:
    known = vars(triton.compiler.make_backend(target).parse_options({}))
    for name in options:
        if name not in known:
            raise TypeError(f"{name}: expected an argument of the kernel or an option of Triton ({', '.join(sorted(known))})")


def _is_divisible(value: Any) -> bool:
    """Buffers on the device are aligned to 256 bytes."""
    return value % 16 == 0 if isinstance(value, int) else not isinstance(value, float)


def _typed(value: Any, name: str) -> tuple[str, Any]:
    """Triton's name of the argument's type, and the argument as `gemmery.emulate` takes it."""
    if isinstance(value, bool):
        return "i1", value
    if isinstance(value, int):
        return ("i32" if -(2**31) <= value < 2**31 else "i64" if value < 2**63 else "u64"), value
    if isinstance(value, float):
        return "fp32", value
    array = value.array if isinstance(value, Unwritten) else value
    element = _ELEMENTS.get(str(getattr(array, "dtype", "")).removeprefix("torch."))
    if element is None:
        raise TypeError(f"{name}: expected an array of numbers that Triton knows, or a number, got {type(array).__name__}")
    view = _bytes_of_tensor(array, name) if hasattr(array, "data_ptr") else array
    return f"*{element}", Unwritten(view) if isinstance(value, Unwritten) else view


def _bytes_of_tensor(tensor: Any, name: str) -> Any:
    """The memory of a tensor of torch as an array of bytes."""
    import torch

    if tensor.device.type != "cpu" or not tensor.is_contiguous():
        raise ValueError(
            f"{name}: expected a contiguous tensor on the CPU, got one on {tensor.device}; tensor.cpu().contiguous()"
        )
    return tensor.detach().reshape(-1).view(torch.uint8).numpy()


# --- what the PTX says ---------------------------------------------------------------------------


def _parameter_count(ptx: str) -> int:
    header = re.search(r"\.entry\s+\S+?\((.*?)\)", ptx, re.DOTALL)
    return header[1].count(".param") if header else 0


def _threads_of(ptx: str) -> int:
    threads = re.search(r"\.(?:reqntid|maxntid)\s+(\d+)", ptx)
    return int(threads[1]) if threads else 128


def _scratch(count: int) -> Unwritten:
    import numpy as np

    return Unwritten(np.empty(count, np.uint8))
