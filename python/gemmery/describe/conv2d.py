# SPDX-License-Identifier: Apache-2.0
"""The described convolution: one kernel, specified exactly, and its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gemmery import _core
from gemmery._core import ConvOperator, IteratorAlgorithm, SplitKMode, StrideSupport
from gemmery.describe import devices
from gemmery.describe.conv_size import Conv2dProblemSize
from gemmery.describe.coordinates import whole_number
from gemmery.describe.descriptions import TensorDescription, TileDescription
from gemmery.describe.functors import EpilogueFunctor
from gemmery.describe.operands import Operand, Place, common_device, current_stream, packed_strides
from gemmery.describe.operation import SourceText, check_types, scaling_op
from gemmery.describe.staged import StagedWork
from gemmery.describe.words import Layout, SwizzlingFunctor, to_word
from gemmery.errors import InvalidArgumentError

__all__ = ["Conv2dArguments", "Conv2dOperation"]


class Conv2dOperation(_core.Conv2dOperation):
    """A two-dimensional convolution of this kind, math instruction, tile, operands and functor; a gemmery.Kernel.

        Conv2dOperation(conv.Operator.fprop, conv.IteratorAlgorithm.optimized, 80, tile_description, A, B, C,
                        StrideSupport.Strided, epilogue_functor)

    fprop: A images (N, H, W, C), B filters (K, R, S, C), C and D outputs (N, P, Q, K); dgrad: outputs, filters, images;
    wgrad: outputs, images, filters. Layouts are TensorNHWC, or for int8 fprop TensorNC32HW32 of A and C with
    TensorC32RSK32 of B. One kernel serves the four iterator algorithms, which keep the limits of PyCUTLASS
    (docs/describe.md). Raises InvalidArgumentError or UnsupportedError naming the field, before a compiler starts.
    """

    def __init__(
        self,
        conv_kind: ConvOperator | str,
        iterator_algorithm: IteratorAlgorithm | str,
        arch: int,
        tile_description: TileDescription,
        A: TensorDescription,
        B: TensorDescription,
        C: TensorDescription,
        stride_support: StrideSupport | str,
        epilogue_functor: EpilogueFunctor,
        swizzling_functor: Any = SwizzlingFunctor.IdentitySwizzle1,
    ) -> None:
        check_types(tile_description, A, B, C, epilogue_functor)
        self.conv_kind: ConvOperator = to_word(ConvOperator, conv_kind, "conv_kind")
        self.iterator_algorithm: IteratorAlgorithm = to_word(IteratorAlgorithm, iterator_algorithm, "iterator_algorithm")
        self.stride_support: StrideSupport = to_word(StrideSupport, stride_support, "stride_support")
        self.swizzling_functor = to_word(SwizzlingFunctor, swizzling_functor, "swizzling_functor")
        super().__init__(
            self.conv_kind,
            self.iterator_algorithm,
            whole_number(arch, "compute_capability"),
            tile_description._native(),
            (A._native(), B._native(), C._native()),
            self.stride_support,
            epilogue_functor._native(),
            self.swizzling_functor,
        )
        self.arch = arch
        self.tile_description = tile_description
        self.A, self.B, self.C = A, B, C
        self.epilogue_functor = epilogue_functor

    @property
    def rt_module(self) -> SourceText:
        """The source text, as rt_module.emit()."""
        return SourceText(self)

    def procedural_name(self) -> str:
        """The name of the kernel, which gemmery.find_kernel reads back."""
        return str(self.name)

    def epilogue_type(self, *numbers: float, **operands: Any) -> _core.OutputOp:
        """The arguments of the functor for a launch: (alpha, beta, *activation_args). Raises InvalidArgumentError for a wrong
        count."""
        return scaling_op(self, numbers, operands)

    def run(  # type: ignore[misc, override]
        self, arguments: Conv2dArguments, stream: Any = None
    ) -> int:
        """Puts the work on `stream` and returns 0. The default is the stream of the arguments: the one that they were given, or
        the current one of their framework. Raises LaunchError with CUDA's message if the driver refuses a launch."""
        if not isinstance(arguments, Conv2dArguments):
            raise TypeError(f"arguments: expected Conv2dArguments, got {type(arguments).__name__}")
        on = arguments._start(stream)
        self.launch(arguments._native, on)
        arguments._has_run = True
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Conv2dOperation) and self.has_same_description(other)

    def __hash__(self) -> int:
        return hash((self.conv_kind, self.arch, self.tile_description, self.A, self.B, self.C))

    def __repr__(self) -> str:
        return str(self.describe())


class _Image(Place):
    """An operand of four dimensions, channels last."""

    @property
    def extents(self) -> str:
        return "x".join(str(extent) for extent in self.shape)

    @property
    def has_blocks(self) -> bool:
        return self.tensor.layout != Layout.TensorNHWC

    def accepted(self) -> list[tuple[Sequence[int], Sequence[int]]]:
        """As in memory, or in torch's order of dimensions."""
        if self.has_blocks:
            return []
        strides = packed_strides(self.shape)
        in_order_of_torch = (0, 3, 1, 2)
        return [
            (self.shape, strides),
            ([self.shape[d] for d in in_order_of_torch], [strides[d] for d in in_order_of_torch]),
        ]


class _Bias(Place):
    """One number for each channel."""

    @property
    def has_blocks(self) -> bool:
        return False

    def accepted(self) -> list[tuple[Sequence[int], Sequence[int]]]:
        return []


class Conv2dArguments(StagedWork):
    """Operands of one described convolution, packed in its layouts.

    A, B, C, D: NumPy arrays, which are copied to the device here (`sync()` copies D back); or tensors of torch, CuPy and
    others on the device, or addresses, which are used in place. They are flat, or have the operand's shape: (N, H, W, C)
    and the like, or torch's (N, C, H, W) with channels-last strides. C may be None with beta = 0. split_k_slices may also
    be said by the problem size. `bias`: C is one number for each channel of D, added to every pixel.
    InvalidArgumentError names the operand or the field of the size, what was expected and what was found.
    """

    def __init__(
        self,
        operation: Conv2dOperation,
        problem_size: Conv2dProblemSize,
        A: Any,
        B: Any,
        C: Any,
        D: Any,
        split_k_mode: SplitKMode | str = SplitKMode.Serial,
        output_op: _core.OutputOp | None = None,
        split_k_slices: int | None = None,
        bias: bool = False,
        *,
        stream: Any = None,
        device: str | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(operation, Conv2dOperation):
            raise TypeError(f"operation: expected a Conv2dOperation, got {type(operation).__name__}")
        if not isinstance(problem_size, Conv2dProblemSize):
            raise TypeError(f"problem_size: expected a Conv2dProblemSize, got {type(problem_size).__name__}")
        self.operation = operation
        self.problem_size = problem_size
        self.split_k_mode: SplitKMode = to_word(SplitKMode, split_k_mode, "split_k_mode")
        self.split_k_slices = self._read_slices(split_k_slices)
        self.bias = bool(bias)
        self.output_op = operation.epilogue_type(1.0, 0.0) if output_op is None else output_op
        if not isinstance(self.output_op, _core.OutputOp):
            raise TypeError(f"output_op: expected what operation.epilogue_type(…) gives, got {type(output_op).__name__}")
        self._is_partial = False
        self.device = device or common_device([A, B, C, D]) or devices.device()
        given = {"A": A, "B": B, "C": C, "D": D}
        self._operands = {name: self._read(name, one) for name, one in given.items() if one is not None or name != "C"}
        self.stream = current_stream([A, B, C, D]) if stream is None else stream
        self._native: Any = _core.DescribedConvArguments(
            operation,
            problem_size._native,
            tuple(self._operands[name].address if name in self._operands else 0 for name in given),
            self.device,
            self.split_k_mode,
            self.output_op,
            self.split_k_slices,
            self.bias,
        )

    def sync(self) -> None:
        """Waits for all runs and copies D back if it is a NumPy array; does nothing before the first run. Raises LaunchError
        if a run failed."""
        if self._wait() and not self._is_partial:
            self._operands["D"].copy_back()

    @property
    def ptr_D(self) -> Any:
        """The address of D, or of the partial sums in SplitKMode.Parallel. Once a caller has read the latter, a run no longer
        computes D; a ReductionOperation does."""
        self._require_memory()
        if self.split_k_mode != SplitKMode.Parallel:
            return self._operands["D"].address
        partials = self._native.partials
        self._is_partial = True
        return partials

    @property
    def kernels(self) -> list[Any]:
        """The kernels that a run launches, in order."""
        self._require_memory()
        return list(self._native.kernels)

    def _read_slices(self, given: int | None) -> int:
        if given is None:
            return self.problem_size.split_k_slices
        slices = whole_number(given, "split_k_slices")
        of_size = self.problem_size.split_k_slices
        if of_size not in (1, slices):
            raise InvalidArgumentError(
                f"invalid argument: split_k_slices: expected {of_size}, that of the problem size, got {slices}"
            )
        return slices

    def _read(self, name: str, given: Any) -> Operand:
        tensor = {"A": self.operation.A, "B": self.operation.B}.get(name, self.operation.C)
        shape = self._shape_of(name)
        place = (
            _Bias(name, tensor, shape[-1:], self.device)
            if name == "C" and self.bias
            else _Image(name, tensor, shape, self.device)
        )
        return Operand(given, place, is_output=name == "D")

    def _shape_of(self, name: str) -> tuple[int, int, int, int]:
        size = self.problem_size
        images, filters, outputs = size.activation_extent(), size.filter_extent(), size.output_extent()
        a, b, d = {
            ConvOperator.fprop: (images, filters, outputs),
            ConvOperator.dgrad: (outputs, filters, images),
            ConvOperator.wgrad: (outputs, images, filters),
        }[self.operation.conv_kind]
        return {"A": a, "B": b}.get(name, d)

    def __repr__(self) -> str:
        return f"Conv2dArguments({self.problem_size}, {self.split_k_mode}, split_k_slices={self.split_k_slices})"
