# SPDX-License-Identifier: Apache-2.0
"""The second pass of a split k, done by the caller: adds partial sums and applies a functor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gemmery import _core
from gemmery.describe import devices
from gemmery.describe.coordinates import SIZES, MatrixCoord, whole_number, whole_numbers
from gemmery.describe.descriptions import TensorDescription
from gemmery.describe.functors import EpilogueFunctor
from gemmery.describe.operands import Operand, Place, common_device, current_stream, is_address, to_address
from gemmery.describe.operation import scaling_op
from gemmery.describe.staged import StagedWork
from gemmery.describe.words import Element, to_element
from gemmery.errors import InvalidArgumentError

__all__ = ["ReductionArguments", "ReductionOperation"]


class ReductionOperation:
    """D = functor(sum of the partial sums, in their order), rows of D packed.

    `count` is C's alignment. `shape` (of a block of threads) and `partitions_per_stage` are ignored.
    element_workspace, if given, must be element_accumulator: partial sums are never rounded to D's type.
    """

    def __init__(
        self,
        shape: MatrixCoord | Sequence[int],
        C: TensorDescription,
        element_accumulator: Any,
        element_workspace: Any = None,
        element_compute: Any = None,
        epilogue_functor: EpilogueFunctor | None = None,
        count: int = 1,
        partitions_per_stage: int = 4,
    ) -> None:
        if not isinstance(epilogue_functor, EpilogueFunctor):
            raise TypeError(f"epilogue_functor: expected an EpilogueFunctor, got {type(epilogue_functor).__name__}")
        self.C = C
        self.element_accumulator: Element = to_element(element_accumulator, "element_accumulator")
        workspace = to_element(element_workspace or element_accumulator, "element_workspace")
        if workspace != self.element_accumulator:
            raise InvalidArgumentError(
                f"invalid argument: element_workspace: expected {self.element_accumulator}, that of the accumulators, "
                f"got {workspace}"
            )
        if not isinstance(C, TensorDescription):
            raise TypeError(f"C: expected a TensorDescription, got {type(C).__name__}")
        self.partitions_per_stage = whole_number(partitions_per_stage, "partitions_per_stage")
        functor = epilogue_functor._native()
        compute = to_element(element_compute or functor.element_compute, "element_compute")
        self._native = _core.ReductionOperation(
            whole_numbers(shape, 2, "shape"),
            C._native(),
            self.element_accumulator,
            compute,
            functor,
            whole_number(count, "count"),
            self.partitions_per_stage,
        )

    def epilogue_type(self, *numbers: float, **operands: Any) -> _core.OutputOp:
        """The arguments of the functor for a launch: (alpha, beta, *activation_args)."""
        return scaling_op(self._native, numbers, operands)

    def run(self, arguments: ReductionArguments, stream: Any = None) -> int:
        """Enqueues the work on a stream and returns 0."""
        if not isinstance(arguments, ReductionArguments):
            raise TypeError(f"arguments: expected ReductionArguments, got {type(arguments).__name__}")
        arguments._require_memory()
        self._native.launch(arguments._native, arguments.device, arguments._start(stream))
        arguments._has_run = True
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReductionOperation) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, int]:
        return repr(self), self.partitions_per_stage

    def __repr__(self) -> str:
        return str(self._native.describe())


class ReductionArguments(StagedWork):
    """The partial sums (`ptr_D` of GemmArguments or Conv2dArguments, or an address), the destination D and the C to add."""

    def __init__(
        self,
        operation: ReductionOperation,
        problem_size: Sequence[int],
        partitions: int,
        workspace: Any,
        destination: Any,
        source: Any = None,
        output_op: Any = None,
        bias: bool = False,
        *,
        stream: Any = None,
        device: str | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(operation, ReductionOperation):
            raise TypeError(f"operation: expected a ReductionOperation, got {type(operation).__name__}")
        rows, columns = MatrixCoord(*whole_numbers(problem_size, 2, "problem_size", SIZES))
        self.stream = current_stream([destination, source]) if stream is None else stream
        self.device = device or getattr(workspace, "device", None) or common_device([destination, source]) or devices.device()
        partials = _partials(operation, workspace, partitions, (rows, columns), self.device)
        op = operation.epilogue_type(1.0, 0.0) if output_op is None else output_op
        if not isinstance(op, _core.OutputOp):
            raise TypeError(f"output_op: expected what operation.epilogue_type(…) gives, got {type(op).__name__}")
        place = Place("destination", operation.C, (1, rows, columns), self.device)
        stored = Operand(destination, place, is_output=True)
        self._operands = {"destination": stored, "workspace": partials}  # the partial sums keep the GEMM's workspace
        source_address = 0
        if source is not None:
            place = Place("source", operation.C, (1, 1 if bias else rows, columns), self.device)
            self._operands["source"] = Operand(source, place)
            source_address = self._operands["source"].address
        self._native = _core.ReductionArguments(operation._native, partials, stored.address, source_address, op, bool(bias))

    def sync(self) -> None:
        """Waits for the work and copies D back if it is a NumPy array; does nothing before the first run."""
        if self._wait():
            self._operands["destination"].copy_back()


def _partials(operation: ReductionOperation, workspace: Any, partitions: int, size: tuple[int, int], device: str) -> Any:
    slices = whole_number(partitions, "partitions")
    if not isinstance(workspace, _core.Partials):
        if not is_address(workspace):
            raise TypeError(f"workspace: expected ptr_D of GemmArguments or an address, got {type(workspace).__name__}")
        address = to_address(workspace, "workspace")
        return _core.Partials(address, operation.element_accumulator.dtype, slices, *size, device)
    if (workspace.rows, workspace.columns) != size:
        raise InvalidArgumentError(
            f"invalid argument: problem_size: expected {[workspace.rows, workspace.columns]}, that of the partial sums, "
            f"got {list(size)}"
        )
    if slices < workspace.slices:
        raise InvalidArgumentError(
            f"invalid argument: partitions: expected at least the {workspace.slices} slices that there are, got {partitions}"
        )
    return workspace
