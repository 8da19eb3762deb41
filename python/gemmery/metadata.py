# SPDX-License-Identifier: Apache-2.0
"""Metadata of kernels: operands, design, epilogue and targets, for people and filters."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterator
from typing import Any, cast

from gemmery import _core
from gemmery.status import Status

__all__ = [
    "BLASDesignMetadata",
    "DenseTensorAttributes",
    "DesignMetadata",
    "ElementwiseOperandsMetadata",
    "EpilogueMetadata",
    "GemmOperandsMetadata",
    "KernelMetadata",
    "Sm100DesignMetadata",
    "TensorAttributes",
    "operands_of",
]

# The unit stride of (batch, row, column); the others may be anything.
_STRIDES = {"row": (0, 0, 1), "column": (0, 1, 0)}


@dataclasses.dataclass(frozen=True)
class TensorAttributes:
    """The requirements of a kernel on one operand.

    stride: 1 along the contiguous dimension of a matrix, (0, 0, 1) for row major and (0, 1, 0) for column major;
    None for any. alignment: bytes that divide the address of every row (or column).
    dtype: in any spelling; cutlass.TFloat32 is float32 in memory and sets is_tf32, which selects math "tf32".
    """

    dtype: _core.DType
    stride: tuple[int, ...] | None
    alignment: int
    is_tf32: bool = dataclasses.field(default=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.dtype, _core.DType):
            return
        is_tf32 = getattr(self.dtype, "__name__", self.dtype) == "TFloat32"
        object.__setattr__(self, "is_tf32", is_tf32)
        object.__setattr__(self, "dtype", _core.dtype("float32" if is_tf32 else self.dtype))

    @classmethod
    def from_tensor(cls, tensor: Any) -> TensorAttributes:
        """The attributes of a tensor of rank 2 or 3."""
        view = _core.as_tensor(tensor)
        stride = _normalised(view)
        return cls(view.dtype, stride, _alignment(view, stride))

    @property
    def layout(self) -> str:
        """ "row", "column" or "any"."""
        return next((name for name, stride in _STRIDES.items() if stride == self.stride), "any")

    def supports(self, operand: Any) -> Status:
        """True if a tensor, or the attributes of one, meets these requirements."""
        other = operand if isinstance(operand, TensorAttributes) else TensorAttributes.from_tensor(operand)
        if other.dtype != self.dtype:
            return Status.fail(f"expected element type {self.dtype}, got {other.dtype}")
        if self.stride is not None and other.stride is not None and 1 in self.stride:
            at = self.stride.index(1)
            if other.stride[at] != 1:
                return Status.fail(f"expected stride[{at}] to be 1, got {other.stride[at]}")
        elif self.stride is not None and other.stride is None:
            return Status.fail("expected a stride of 1, got none")
        if other.alignment % self.alignment != 0:
            return Status.fail(f"expected alignment to {self.alignment} bytes, got {other.alignment}")
        return Status.success()


def _normalised(view: _core.Tensor) -> tuple[int, ...] | None:
    rows, columns = view.strides[-2:]
    if columns == 1 or view.shape[-1] <= 1:
        return _STRIDES["row"]
    if rows == 1 or view.shape[-2] <= 1:
        return _STRIDES["column"]
    return None


def _alignment(view: _core.Tensor, stride: tuple[int, ...] | None) -> int:
    width = max(view.dtype.bits // 8, 1)
    unit = 1 if stride == _STRIDES["row"] else 2
    steps = [s for d, s in enumerate(reversed(view.strides), 1) if d != unit and view.shape[-d] > 1]
    divisible = [view.data_ptr] + [s * width for s in steps]
    return next(bytes_ for bytes_ in (16, 8, 4, 2, 1) if all(d % bytes_ == 0 for d in divisible))


class DenseTensorAttributes(TensorAttributes):
    """TensorAttributes with the name and arguments of later releases of the peers: divisibility is in elements."""

    def __init__(
        self, dtype: Any, stride: tuple[int, ...] | None, divisibility: int, ptr_alignment_bytes: int | None = None
    ) -> None:
        super().__init__(dtype, stride, 1)
        width = max(self.dtype.bits // 8, 1)
        object.__setattr__(self, "alignment", max(ptr_alignment_bytes or 1, divisibility * width))


class OperandsMetadata:
    """The requirements of a kernel on all operands of an operation."""

    def _tensors_support(self, args: Any, kind: type[Any]) -> Status:
        """True if arguments of this kind have A, B and out that meet the requirements."""
        if not isinstance(args, kind):
            return Status.fail(f"expected {kind.__name__}, got {type(args).__name__}")
        for name in ("A", "B", "out"):
            status = getattr(self, name).supports(args.views[name])
            if not status:
                return Status.fail(f"operand `{name}` is unsupported: {status.error}")
        return Status.success()


@dataclasses.dataclass(frozen=True)
class GemmOperandsMetadata(OperandsMetadata):
    """The requirements of a kernel on the operands of a GEMM. C is None for kernels without C; math is "native", "tf32", …"""

    A: TensorAttributes
    B: TensorAttributes
    out: TensorAttributes
    accumulator_type: _core.DType
    C: TensorAttributes | None = None
    math: str = "native"

    def __post_init__(self) -> None:
        if not isinstance(self.accumulator_type, _core.DType):
            object.__setattr__(self, "accumulator_type", _core.dtype(self.accumulator_type))
        if self.math == "native" and getattr(self.A, "is_tf32", False):
            object.__setattr__(self, "math", "tf32")

    def supports(self, args: Any) -> Status:
        """True if GemmArguments meet these requirements; otherwise a status that names the operand."""
        status = self._tensors_support(args, _core.GemmArguments)
        if status and args.accumulator_type != self.accumulator_type:
            return Status.fail(f"expected accumulator type {self.accumulator_type}, got {args.accumulator_type}")
        return status


@dataclasses.dataclass(frozen=True)
class ElementwiseOperandsMetadata(OperandsMetadata):
    """The requirements of a kernel on the operands of an elementwise operation."""

    A: TensorAttributes
    B: TensorAttributes
    out: TensorAttributes

    def supports(self, args: Any) -> Status:
        """True if ElementwiseArguments meet these requirements; otherwise a status that names the operand."""
        return self._tensors_support(args, _core.ElementwiseArguments)


def operands_of(args: _core.GemmArguments) -> GemmOperandsMetadata | ElementwiseOperandsMetadata:
    """The operands of arguments as metadata; `args.to_operands_metadata()`."""
    of = {name: TensorAttributes.from_tensor(args.views[name]) for name in ("A", "B", "out")}
    if isinstance(args, _core.ElementwiseArguments):
        return ElementwiseOperandsMetadata(**of)
    c = TensorAttributes.from_tensor(args.views["C"]) if "C" in args.views else None
    return GemmOperandsMetadata(**of, accumulator_type=args.accumulator_type, C=c, math=args.math)


class DesignMetadata:
    """The design of a kernel: its tile, stages and so on. Each field of `fields` can also be read as an attribute."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__.get("fields", {})
        if name in fields:
            return fields[name]
        raise AttributeError(f"this design has no {name!r}; it has {', '.join(fields) or 'no fields'}", name=name, obj=self)

    def __iter__(self) -> Iterator[str]:
        return iter(self.fields)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DesignMetadata) and self.fields == other.fields

    def __hash__(self) -> int:
        return hash(tuple(sorted((name, str(value)) for name, value in self.fields.items())))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.fields.items())})"


class BLASDesignMetadata(DesignMetadata):
    """A design with a tile (M, N, K) and a cluster (M, N, 1) of thread blocks."""

    def __init__(self, tile_shape: tuple[int, ...], cluster_shape: tuple[int, ...] = (1, 1, 1), **fields: Any) -> None:
        super().__init__(tile_shape=tuple(tile_shape), cluster_shape=tuple(cluster_shape), **fields)


class Sm100DesignMetadata(BLASDesignMetadata):
    """A design for sm_100. No kernel of the library has one; users' kernels may, and filters for it find them."""

    def __init__(
        self,
        tile_shape: tuple[int, ...],
        cluster_shape: tuple[int, ...] = (1, 1, 1),
        *,
        use_2cta_mma: bool = False,
        use_tma_store: bool = False,
        **fields: Any,
    ) -> None:
        super().__init__(tile_shape, cluster_shape, use_2cta_mma=use_2cta_mma, use_tma_store=use_tma_store, **fields)


@dataclasses.dataclass(frozen=True)
class EpilogueMetadata:
    """The epilogue that a kernel applies to its accumulators, made from EpilogueArguments, a Program, or a text."""

    text: str

    def __init__(self, program: Any) -> None:
        program = getattr(program, "program", program)
        object.__setattr__(self, "text", program if isinstance(program, str) else program.text)

    @classmethod
    def from_args(cls, epilogue_args: Any) -> EpilogueMetadata:
        """The metadata of EpilogueArguments."""
        return cls(epilogue_args)

    def supports(self, epilogue: Any) -> Status:
        """True if EpilogueArguments, or arguments that contain them, have the same program."""
        if isinstance(epilogue, _core.GemmArguments):
            epilogue = epilogue.epilogue
        if epilogue is None:
            return Status.fail(f'the kernel computes "{self.text}", the arguments have no epilogue')
        if epilogue.program.text != self.text and epilogue.program != _core.Program(self.text):
            return Status.fail(f'the kernel computes "{self.text}", the arguments ask for "{epilogue.program.text}"')
        return Status.success()


@dataclasses.dataclass(frozen=True, eq=False)
class KernelMetadata:
    """The description of a kernel: operands, design, epilogue and targets.

    kernel_name is stable, unique and versioned. kernel_class names its family. min_cc is the lowest compute capability
    (0: the CPU). epilogue is None for the default program, alpha * accum + beta * C.
    """

    kernel_name: str
    kernel_class: Any
    min_cc: int
    operands: Any
    design: Any = None  # DesignMetadata or None; filters read fields that not all designs have
    epilogue: EpilogueMetadata | None = None
    provider: str = ""
    supported_targets: tuple[str, ...] = ()
    deterministic: bool = True
    kernel: Any = dataclasses.field(default=None, repr=False, compare=False)

    def _repr_html_(self) -> str:
        from gemmery import _html

        return _html.of_metadata(self)

    def supports(self, args: Any) -> Status:
        """True if the kernel would run these arguments, as `Kernel.supports` says."""
        if self.kernel is not None:
            return cast(Status, self.kernel.supports(args))
        status = cast(Status, self.operands.supports(args))
        if not status or (self.epilogue is None and args.epilogue is None):
            return status
        if self.epilogue is None:
            return Status.fail("epilogue metadata is absent but an epilogue is provided")
        return self.epilogue.supports(args.epilogue)

    @classmethod
    def _of_kernel(cls, kernel: _core.Kernel) -> KernelMetadata:
        """The metadata of a kernel of the library."""
        metadata = object.__new__(_LibraryKernelMetadata)
        metadata.__dict__["kernel"] = kernel
        return metadata

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, KernelMetadata):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in _compared_fields)

    def __hash__(self) -> int:
        return hash((self.kernel_name, self.provider))


_compared_fields = tuple(field.name for field in dataclasses.fields(KernelMetadata) if field.compare)


class _lazy:
    """functools.cached_property without its lock: two threads that compute a value get the same one."""

    def __init__(self, compute: Callable[[Any], Any]) -> None:
        self._compute = compute
        self._name = compute.__name__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


class _LibraryKernelMetadata(KernelMetadata):
    """Fields are read from the kernel on first use: filters read few of them for every kernel."""

    __qualname__ = KernelMetadata.__qualname__  # how it prints

    @_lazy
    def kernel_name(self) -> str:  # type: ignore[override]
        return self.kernel.name  # type: ignore[no-any-return]

    @_lazy
    def kernel_class(self) -> str:  # type: ignore[override]
        return self.kernel.family  # type: ignore[no-any-return]

    @_lazy
    def provider(self) -> str:  # type: ignore[override]
        return self.kernel.provider  # type: ignore[no-any-return]

    @_lazy
    def supported_targets(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(self.kernel.targets)

    @_lazy
    def min_cc(self) -> int:  # type: ignore[override]
        return min((_cc_of(target) for target in self.supported_targets), default=0)

    @_lazy
    def operands(self) -> GemmOperandsMetadata:  # type: ignore[override]
        key = self.kernel._rules_key
        operands = _operands_of_rules.get(key)
        if operands is None:
            operands = _operands_of_rules[key] = _asked_operands(self.kernel.operand_rules)
        return operands

    @_lazy
    def design(self) -> DesignMetadata:  # type: ignore[override]
        return _design_of(tuple(self.kernel.design.items()))

    @_lazy
    def epilogue(self) -> EpilogueMetadata | None:  # type: ignore[override]
        return None if self.kernel.is_default_epilogue else EpilogueMetadata(self.kernel.epilogue_text)

    @_lazy
    def deterministic(self) -> bool:  # type: ignore[override]
        return self.kernel.is_deterministic  # type: ignore[no-any-return]


@functools.lru_cache(maxsize=256)
def _cc_of(target: str) -> int:
    digits = re.search(r"\d+", target)
    return int(digits.group()) if digits else 0


# By the bytes of a kernel's operand rules, of which the library has some thousands.
_operands_of_rules: dict[bytes, GemmOperandsMetadata] = {}


def _asked_operands(rules: dict[str, Any]) -> GemmOperandsMetadata:
    def attributes(rule: dict[str, Any]) -> TensorAttributes:
        width = max(rule["dtype"].bits // 8, 1)
        return TensorAttributes(rule["dtype"], _STRIDES.get(rule["layout"]), max(rule["alignment"], width))

    return GemmOperandsMetadata(
        A=attributes(rules["A"]),
        B=attributes(rules["B"]),
        out=attributes(rules["out"]),
        accumulator_type=rules["accumulator_type"],
        C=attributes(rules["C"]) if "C" in rules else None,
        math=rules["math"],
    )


@functools.lru_cache(maxsize=8192)
def _design_of(fields: tuple[tuple[str, str], ...]) -> DesignMetadata:
    """Converts sizes to tuples of numbers and numbers to numbers; `tile` and `cluster` also have the peers' names."""
    values = {name: _value_of(text) for name, text in fields}
    tile = values.get("tile")
    if not isinstance(tile, tuple):
        return DesignMetadata(**values)
    cluster = values.get("cluster", (1, 1))
    cluster = cluster if isinstance(cluster, tuple) else (cluster,)
    return BLASDesignMetadata(tile, (*cluster, 1, 1)[:3], **values)


@functools.lru_cache(maxsize=4096)
def _value_of(text: str) -> Any:
    if re.fullmatch(r"\d+(x\d+)+", text):
        return tuple(int(part) for part in text.split("x"))
    return int(text) if re.fullmatch(r"\d+", text) else text
