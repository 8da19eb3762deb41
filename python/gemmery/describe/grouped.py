# SPDX-License-Identifier: Apache-2.0
"""A described GEMM for a list of problems of different sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gemmery import _core
from gemmery.describe import devices
from gemmery.describe.coordinates import GemmCoord, to_gemm_coord
from gemmery.describe.descriptions import TensorDescription, TileDescription
from gemmery.describe.functors import EpilogueFunctor
from gemmery.describe.operands import Operand, Place, common_device, current_stream
from gemmery.describe.operation import GemmOperationUniversal
from gemmery.describe.staged import StagedWork
from gemmery.describe.words import SchedulerMode, SwizzlingFunctor, to_word
from gemmery.errors import InvalidArgumentError, UnsupportedError

__all__ = ["GemmGroupedArguments", "GemmOperationGrouped"]


class GemmOperationGrouped(GemmOperationUniversal):
    """The described kernel for problems of different sizes, which GemmGroupedArguments lists.

        GemmOperationGrouped(80, tile_description, A, B, C, epilogue_functor, IdentitySwizzle1, SchedulerMode.Host)

    Problems of equal size are one launch. Sizes are in host memory in both modes of `precompute_mode`, which give the same
    launches and bits. Raises like GemmOperationUniversal; an EpilogueVisitTree is refused.
    """

    def __init__(
        self,
        arch: int,
        tile_description: TileDescription,
        A: TensorDescription,
        B: TensorDescription,
        C: TensorDescription,
        epilogue_functor: EpilogueFunctor,
        swizzling_functor: Any = SwizzlingFunctor.IdentitySwizzle1,
        precompute_mode: SchedulerMode | str = SchedulerMode.Device,
    ) -> None:
        if getattr(epilogue_functor, "is_visitor", False):
            raise UnsupportedError(
                "unsupported: epilogue_functor: expected a functor for problems of different sizes, got a visitor; its "
                "operands have the size of one problem"
            )
        super().__init__(arch, tile_description, A, B, C, epilogue_functor, swizzling_functor)
        self.precompute_mode = to_word(SchedulerMode, precompute_mode, "precompute_mode")

    def run(  # type: ignore[misc, override]
        self, arguments: GemmGroupedArguments, stream: Any = None
    ) -> int:
        """Enqueues the work on `stream` and returns 0. The default is the stream of the arguments: the one that they were
        given, or the current one of their framework. Raises LaunchError with CUDA's message if the driver refuses a launch."""
        if not isinstance(arguments, GemmGroupedArguments):
            raise TypeError(f"arguments: expected GemmGroupedArguments, got {type(arguments).__name__}")
        if arguments.operation != self:
            raise InvalidArgumentError(
                f"invalid argument: arguments: expected arguments of this operation, got those of {arguments.operation.name}"
            )
        on = arguments._start(stream)
        arguments._native.launch(on)
        arguments._has_run = True
        return 0

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, GemmOperationGrouped)
            and self.precompute_mode == other.precompute_mode
            and self.has_same_description(other)
        )

    __hash__ = GemmOperationUniversal.__hash__


class GemmGroupedArguments(StagedWork):
    """Operands of a list of problems, each packed in the operation's layouts.

    problem_sizes: GemmCoords or (M, N, K). A, B, C, D: as many arrays or tensors, as GemmArguments takes them: NumPy arrays
    are copied to the device here (`sync()` copies D back), others are used in place. C may be None with beta = 0.
    InvalidArgumentError names the problem and the operand: "A[3]".
    """

    def __init__(
        self,
        operation: GemmOperationGrouped,
        problem_sizes: Sequence[GemmCoord | Sequence[int]],
        A: Sequence[Any],
        B: Sequence[Any],
        C: Sequence[Any] | None,
        D: Sequence[Any],
        output_op: _core.OutputOp | None = None,
        *,
        stream: Any = None,
        device: str | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(operation, GemmOperationGrouped):
            raise TypeError(f"operation: expected a GemmOperationGrouped, got {type(operation).__name__}")
        self.operation = operation
        self.problem_sizes = [to_gemm_coord(size) for size in problem_sizes]
        self.output_op = operation.epilogue_type(1.0, 0.0) if output_op is None else output_op
        if not isinstance(self.output_op, _core.OutputOp):
            raise TypeError(f"output_op: expected what operation.epilogue_type(…) gives, got {type(output_op).__name__}")
        given = {"A": A, "B": B, "C": C, "D": D}
        for name, operands in given.items():
            self._check_length(name, operands)
        everything = [one for operands in given.values() if operands is not None for one in operands]
        self.device = device or common_device(everything) or devices.device()
        self._operands = {name: self._read(name, operands) for name, operands in given.items()}
        self.stream = current_stream(everything) if stream is None else stream
        self._native: Any = _core.DescribedGroupedArguments(
            operation,
            operation.precompute_mode,
            [tuple(size) for size in self.problem_sizes],
            tuple([operand.address for operand in self._operands[name]] for name in given),
            self.device,
            self.output_op,
        )

    def sync(self) -> None:
        """Waits for all runs and copies every D back that is a NumPy array; does nothing before the first run. Raises
        LaunchError if a run failed."""
        if self._wait():
            for operand in self._operands["D"]:
                operand.copy_back()

    @property
    def kernels(self) -> list[Any]:
        """The kernels that a run launches, in order: one for each size, and more if layouts are interleaved."""
        self._require_memory()
        return list(self._native.kernels)

    def _check_length(self, name: str, operands: Sequence[Any] | None) -> None:
        if operands is None and name == "C":
            return
        if not isinstance(operands, (list, tuple)):
            raise TypeError(f"{name}: expected a list of {len(self.problem_sizes)} operands, got {type(operands).__name__}")
        if len(operands) != len(self.problem_sizes):
            expected = f"{len(self.problem_sizes)} operands, one for each problem"
            raise InvalidArgumentError(f"invalid argument: {name}: expected {expected}, got {len(operands)}")

    def _read(self, name: str, operands: Sequence[Any] | None) -> list[Operand]:
        tensor = {"A": self.operation.A, "B": self.operation.B}.get(name, self.operation.C)
        read = []
        for at, (given, (m, n, k)) in enumerate(zip(operands or [], self.problem_sizes, strict=False)):
            rows, columns = {"A": (m, k), "B": (k, n)}.get(name, (m, n))
            read.append(Operand(given, Place(f"{name}[{at}]", tensor, (1, rows, columns), self.device), is_output=name == "D"))
        return read

    def __repr__(self) -> str:
        return f"GemmGroupedArguments({len(self.problem_sizes)} problems)"
