# SPDX-License-Identifier: Apache-2.0
"""Kernels of your own: CUDA C++ source, machine code, or any Python callable, registered with the library.

A registered kernel is like every other: `get_kernels` finds and ranks it, `explain` gives reasons, and `compile`, `run`,
`bind`, `verify`, artifact files and the disk cache support it. A class with its own generator of kernels is
`gemmery.Kernel`; docs/python-own-kernels.md shows all of them.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict, Unpack

from gemmery import _core
from gemmery._core import Kernel
from gemmery.fusion.tracing import trace
from gemmery.kernel import registrations

__all__ = [
    "Declaration",
    "EpilogueOperand",
    "KernelCall",
    "LaunchedDeclaration",
    "Operand",
    "Problem",
    "get_include",
    "register_callable",
    "register_image",
    "register_source",
    "withdraw_kernel",
]


@dataclass(frozen=True)
class Operand:
    """The requirements of a kernel on A, B, C or out: a type, a layout ("row", "column", "any") and the bytes that divide the
    addresses of its first row or column (0: the size of an element)."""

    dtype: Any
    layout: str = "any"
    alignment: int = 0


@dataclass(frozen=True)
class EpilogueOperand:
    """A kernel's requirements on a tensor of its epilogue: a type, the indices that it varies with ("n", "m", "lmn", "" for one
    element), the contiguous one last, and its alignment in bytes (0: the size of an element)."""

    dtype: Any
    indices: str = "mn"
    alignment: int = 0


@dataclass(frozen=True)
class Problem:
    """A problem: (m, k) times (k, n), l times; `text` is its whole description."""

    text: str
    m: int
    n: int
    k: int
    l: int


@dataclass(frozen=True)
class KernelCall:
    """The arguments of a callable. Tensors are views of rank 3, valid during the call; they have DLPack:
    `torch.from_dlpack(call.A)`, `numpy.from_dlpack(call.A)`."""

    A: _core.Tensor
    B: _core.Tensor
    out: _core.Tensor
    C: _core.Tensor | None
    alpha: float
    beta: float
    problem: str
    problem_size: tuple[int, int, int, int]
    device: str
    stream: int = 0  # the handle of the stream for the work
    workspace: int = 0  # the address
    workspace_bytes: int = 0
    max_multiprocessors: int = 0
    operands: dict[str, _core.Tensor | float] = field(default_factory=dict)  # of the epilogue


OperandLike = Operand | str | Any  # an Operand, or a type alone

# Extents, numbers and constants joined by '*', or a function of (problem, device).
Factors = int | str | Callable[[Problem, _core.DeviceInfo], int]


class _Operands(TypedDict):
    A: OperandLike
    B: OperandLike
    out: OperandLike


class Declaration(_Operands, total=False):
    """What every own kernel declares, as keywords of the functions that register one.

    A, B, out, C: an `Operand`, or a type alone. accumulator_type: float32. math: "native".
    multiples: numbers that divide m, n and k: {"n": 64}.
    epilogue: the one program that the kernel computes (text, callable, Program), with epilogue_operands: for every
        name an `EpilogueOperand`, or "number". Without it D = alpha * accum + beta * C.
    design: fields for people and filters: {"tile": "64x64x16"}; {"instruction": "mma"} says that tensor cores
        compute the accumulators.
    targets: the devices it runs on ("sm_80", "cpu"). Source: sm_80 and later. deterministic: equal inputs give equal bits.
    workspace: bytes of scratch memory: a number, factors ("4*m*n"), or a function of (problem, device).
    supports: a function of (problem, device) for other conditions. It returns True or None, or the reason as a text.
    predicted_us: a function of (problem, device) that discovery ranks by; without it the kernel comes last.
    version: must be increased with every change that others could notice.
    """

    C: OperandLike
    accumulator_type: Any
    math: str
    multiples: Mapping[str, int]
    epilogue: Any
    epilogue_operands: Mapping[str, EpilogueOperand | str]
    design: Mapping[str, object]
    targets: Sequence[int | str]
    deterministic: bool
    workspace: Factors
    supports: Callable[[Problem, _core.DeviceInfo], object] | None
    predicted_us: Callable[[Problem, _core.DeviceInfo], float] | None
    version: int


class _Launch(TypedDict):
    entry: str
    parameters: Sequence[str]
    grid: Sequence[int | str] | Callable[[Problem, _core.DeviceInfo], tuple[int, int, int]]


class LaunchedDeclaration(Declaration, _Launch, total=False):
    """The further declarations of a kernel of source or machine code: how it is launched.

    entry: the name of its `extern "C" __global__` function.
    parameters: the entry's parameters, in order, one word each: "A", "out" (addresses), "m", "n", "k", "l" (i32),
        "A.row_stride", "A.leading" (i64), "alpha", "beta" (f32), a name of the epilogue, "=3.5", "workspace",
        "A.map=64x128/128" (a tensor map); ":u32" after a word gives it another type.
    grid: blocks along x, y, z: "n/64" is rounded up, "multiprocessors*2", or a function of (problem, device).
    block, cluster: threads, and blocks of a cluster: (1, 1, 1). shared_bytes: dynamic shared memory: 0.
    clears_workspace: true if the workspace must be zero when the kernel starts.
    """

    block: Sequence[int]
    cluster: Sequence[int]
    shared_bytes: int
    clears_workspace: bool


def get_include() -> str:
    """The folder of the library's device headers, for the option -I of a compiler: `#include <device/mma/warp_mma.cuh>`.

        register_source("mine", source, options=[f"-I{gemmery.get_include()}"], ...)

    The headers are those of this version; other versions may name and arrange things differently.
    """
    return str(pathlib.Path(__file__).parent / "include")


def register_source(name: str, source: str, *, options: Sequence[str] = (), **declared: Unpack[LaunchedDeclaration]) -> Kernel:
    """Registers a kernel of CUDA C++ source with an `extern "C" __global__` function. It is compiled on first use, and the disk
    cache keeps the code.

        register_source("mine", source, entry="mine", parameters=["A", "B", "out", "m", "n", "k"], grid=["n/64", "m/64"],
                        block=[256], A="float16", B="float16", out="float32")

    options: compiler options. declared: the fields of `LaunchedDeclaration` and of `Declaration`.

    The declaration is checked for every problem: types, layouts, alignments, `multiples`. A kernel that takes no stride of an
    operand gets only packed operands. ValueError or TypeError names the field.
    """
    return _register({**_launched(name, declared), "source": source, "options": _words(options, "options")})


def register_image(name: str, images: Mapping[str, bytes | str], **declared: Unpack[LaunchedDeclaration]) -> Kernel:
    """Registers a kernel of machine code: a dict from targets ("sm_90a") to a cubin (bytes) or PTX (str). Otherwise like
    `register_source`."""
    code = {target: _image(image) for target, image in _mapping(images, "images").items()}
    return _register({**_launched(name, declared), "images": code})


def register_callable(
    name: str, *, prepare: Callable[[str], None] | None = None, **declared: Unpack[Declaration]
) -> Callable[[Callable[[KernelCall], None]], Kernel]:
    """A decorator that registers a function of a `KernelCall` as a kernel.

        @register_callable("numpy_gemm", A="float32", B="float32", out="float32", targets=["cpu"])
        def numpy_gemm(call):
            numpy.matmul(numpy.from_dlpack(call.A), numpy.from_dlpack(call.B), out=numpy.from_dlpack(call.out))

    The function enqueues work on `call.stream` and returns; on the CPU the work is complete then. Its exceptions pass through
    `run` with the kernel's name added; KeyboardInterrupt and SystemExit pass unchanged. It may be called from any thread.

    prepare: called with a device before the first run there and by `compile`, for work that must not happen while a stream
        is captured, such as compiling.
    declared: the fields of `Declaration`. ValueError or TypeError that names the field.
    """
    fields = _declared(name, declared)

    def register(run: Callable[[KernelCall], None]) -> Kernel:
        return _register({**fields, "run": run, "prepare": prepare})

    return register


def withdraw_kernel(kernel: Kernel) -> None:
    """Removes a kernel that was registered here from discovery; its name becomes free. Existing objects of it stay valid.
    ValueError for any other kernel."""
    _core.withdraw_kernel(kernel)
    registrations.note()


def _register(fields: dict[str, Any]) -> Kernel:
    kernel = _core.register_kernel(fields)
    registrations.note()
    return kernel


# --- conversion of declarations for the native module --------------------------------------------


def _check_words(function: str, given: Mapping[str, Any], known: Any) -> None:
    """`known`: a TypedDict of keywords."""
    unknown = [word for word in given if word not in known.__annotations__]
    if unknown:
        raise TypeError(f"{function}: got an unexpected {unknown[0]!r}; it takes {', '.join(known.__annotations__)}")
    missing = [word for word in known.__annotations__ if word in known.__required_keys__ and word not in given]
    if missing:
        raise TypeError(f"{function}: expected {missing[0]}=, got none")


def _declared(name: str, declared: Mapping[str, Any]) -> dict[str, Any]:
    _check_words(f"kernel {name}", declared, Declaration)
    return _declaration(name, **declared)


def _launched(name: str, declared: Mapping[str, Any]) -> dict[str, Any]:
    _check_words(f"kernel {name}", declared, LaunchedDeclaration)
    of_all = {word: value for word, value in declared.items() if word in Declaration.__annotations__}
    launch = {word: value for word, value in declared.items() if word not in of_all}
    return {**_declaration(name, **of_all), **_launch(**launch)}


def _declaration(
    name: str,
    *,
    A: OperandLike,
    B: OperandLike,
    out: OperandLike,
    C: OperandLike = None,
    accumulator_type: Any = "float32",
    math: str = "native",
    multiples: Mapping[str, int] | None = None,
    epilogue: Any = None,
    epilogue_operands: Mapping[str, EpilogueOperand | str] | None = None,
    design: Mapping[str, object] | None = None,
    targets: Sequence[int | str] = (),
    deterministic: bool = True,
    workspace: Factors = 0,
    supports: Callable[[Problem, _core.DeviceInfo], object] | None = None,
    predicted_us: Callable[[Problem, _core.DeviceInfo], float] | None = None,
    version: int = 1,
) -> dict[str, Any]:
    bound = _mapping(epilogue_operands, "epilogue_operands")
    extents = _mapping(multiples, "multiples")
    if extents.keys() - set("mnk"):
        raise ValueError(f"{name}: multiples: expected m, n and k, got {', '.join(map(str, extents))}")
    return {
        "name": name,
        "version": version,
        "A": _operand(A),
        "B": _operand(B),
        "C": None if C is None else _operand(C),
        "out": _operand(out),
        "accumulator_type": accumulator_type,
        "math": math,
        "multiples": [extents.get(extent, 1) for extent in "mnk"],
        "epilogue": None if epilogue is None else trace(epilogue, bound),
        "epilogue_operands": [_epilogue_operand(key, rule) for key, rule in bound.items()],
        "design": {key: str(value) for key, value in _mapping(design, "design").items()},
        "targets": _words(targets, "targets"),
        "deterministic": deterministic,
        "workspace": workspace if callable(workspace) else str(workspace),
        "supports": supports,
        "predicted_us": predicted_us,
    }


def _launch(
    *,
    entry: str,
    parameters: Sequence[str],
    grid: Any,
    block: Sequence[int] = (1, 1, 1),
    cluster: Sequence[int] = (1, 1, 1),
    shared_bytes: int = 0,
    clears_workspace: bool = False,
) -> dict[str, Any]:
    return {
        "entry": entry,
        "parameters": _words(parameters, "parameters"),
        "grid": grid if callable(grid) else [str(factor) for factor in _three(grid, "grid")],
        "block": _three(block, "block"),
        "cluster": _three(cluster, "cluster"),
        "shared_bytes": shared_bytes,
        "clears_workspace": clears_workspace,
    }


def _mapping(given: Any, field: str) -> dict[Any, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"{field}: expected a dict, got {given!r}")
    return dict(given)


def _words(given: Any, field: str) -> list[Any]:
    """Splits words; a single text would be iterated by letters."""
    if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
        raise TypeError(f"{field}: expected a list, got {given!r}")
    return list(given)


def _three(given: Any, field: str) -> list[Any]:
    """Completes one number or factor with two of 1."""
    values = [given] if isinstance(given, (int, str)) else _words(given, field)
    return values + [1] * (3 - len(values))


def _image(image: bytes | str) -> tuple[bytes | None, str | None]:
    if isinstance(image, str):
        return None, image
    if isinstance(image, (bytes, bytearray, memoryview)):
        return bytes(image), None
    raise TypeError(f"images: expected the bytes of a cubin or a str of PTX, got {type(image).__name__}")


def _operand(rule: OperandLike) -> tuple[Any, str, int]:
    operand = rule if isinstance(rule, Operand) else Operand(rule)
    return operand.dtype, operand.layout, operand.alignment


def _epilogue_operand(name: str, rule: EpilogueOperand | str) -> tuple[str, Any, str, int]:
    if isinstance(rule, EpilogueOperand):
        return name, rule.dtype, rule.indices, rule.alignment
    if rule != "number":
        raise TypeError(f'{name}: expected an EpilogueOperand or "number", got {rule!r}')
    return name, None, "", 1
