# SPDX-License-Identifier: Apache-2.0
"""Arguments of a described GEMM: operands of any framework, checked. NumPy arrays are staged on the device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gemmery import _core
from gemmery.describe import devices
from gemmery.describe.coordinates import GemmCoord, to_gemm_coord, whole_number
from gemmery.describe.descriptions import TensorDescription
from gemmery.describe.gemm import Mode
from gemmery.describe.operands import Operand, Place, common_device, current_stream
from gemmery.describe.operation import GemmOperationUniversal
from gemmery.describe.staged import StagedWork
from gemmery.describe.visitor import VisitorOutputOp
from gemmery.describe.words import to_word
from gemmery.errors import InvalidArgumentError

__all__ = ["GemmArguments"]


class GemmArguments(StagedWork):
    """Operands of one operation, packed in its layouts.

    problem_size: a GemmCoord or (M, N, K). A, B, C, D: NumPy arrays, which are copied to the device here (`sync()` copies D
    back); or tensors of torch, CuPy and others on the device, or addresses, which are used in place. They are flat, or have
    the operand's shape with the batch in front. C may be None with beta = 0. Mode.Array takes a list of tensors for each
    operand, or one tensor for all products. `bias`: C is one row of N numbers for each product, added to every row. `device`:
    the device of NumPy arrays; the default is that of the other operands, else describe.device().
    InvalidArgumentError names the operand, what was expected and what was found.
    """

    def __init__(
        self,
        operation: GemmOperationUniversal,
        problem_size: GemmCoord | Sequence[int],
        A: Any,
        B: Any,
        C: Any,
        D: Any = None,
        gemm_mode: Mode | str = Mode.Gemm,
        output_op: Any = None,
        split_k_slices: int = 1,
        batch: int = 1,
        bias: bool = False,
        *,
        stream: Any = None,
        device: str | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(operation, GemmOperationUniversal):
            raise TypeError(f"operation: expected a GemmOperationUniversal, got {type(operation).__name__}")
        self.operation = operation
        self.problem_size = to_gemm_coord(problem_size)
        self.gemm_mode = to_word(Mode, gemm_mode, "gemm_mode")
        self.split_k_slices, self.batch = whole_number(split_k_slices, "split_k_slices"), whole_number(batch, "batch")
        if self.batch < 1:
            raise InvalidArgumentError(f"invalid argument: batch: expected a number from 1 on, got {batch}")
        self.bias = bool(bias)
        self.output_op = _output_op(operation, output_op)
        self._is_partial = False
        D = self._destination(D)
        self.device = device or common_device([A, B, C, D]) or devices.device()
        self._operands = {"A": self._read("A", A), "B": self._read("B", B), "C": self._read("C", C)}
        self._operands["D"] = self._read("D", D, is_output=True)
        self.stream = current_stream([A, B, C, D]) if stream is None else stream
        self._native: Any = _core.DescribedArguments(
            operation,
            tuple(self.problem_size),
            self._addresses("A"),
            self._addresses("B"),
            self._addresses("C"),
            self._addresses("D"),
            self.device,
            self.gemm_mode,
            self._bound_op(),
            self.split_k_slices,
            self.batch,
            self.bias,
        )

    # --- after it ran ---

    def sync(self) -> None:
        """Waits for all runs and copies D back if it is a NumPy array; does nothing before the first run. Raises LaunchError
        if a run failed."""
        if self._wait() and not self._is_partial:
            for operand in self._memory()["D"]:
                operand.copy_back()

    @property
    def ptr_D(self) -> Any:
        """The address of D, or of the partial sums in GemmSplitKParallel. Once a caller has read the latter, a run no longer
        computes D; a ReductionOperation does."""
        if self.gemm_mode != Mode.GemmSplitKParallel:
            return self._memory()["D"][0].address
        self._memory()
        partials = self._native.partials
        self._is_partial = True
        return partials

    @property
    def kernels(self) -> list[Any]:
        """The kernels that a run launches, in order."""
        self._memory()
        return list(self._native.kernels)

    # --- operands ---

    def _destination(self, D: Any) -> Any:
        if not isinstance(self.output_op, VisitorOutputOp):
            if D is None:
                raise InvalidArgumentError("invalid argument: D: expected memory, got None")
            return D
        stored = self.output_op.destination
        if D is not None and D is not stored:
            raise InvalidArgumentError(
                f"invalid argument: D: expected None or the tensor that output_op stores {self.output_op.destination_name} to, "
                "got another one"
            )
        return stored

    def _read(self, name: str, given: Any, *, is_output: bool = False) -> list[Operand]:
        if given is None and name == "C":
            return []
        is_several = self.gemm_mode == Mode.Array and isinstance(given, (list, tuple))
        if is_several and len(given) != self.batch:
            raise InvalidArgumentError(f"invalid argument: {name}: expected {self.batch} operands, got {len(given)}")
        batch, m, n, k = self.batch, *self.problem_size
        rows, columns = {"A": (m, k), "B": (k, n), "C": (1 if self.bias else m, n), "D": (m, n)}[name]
        tensor = self._description(name)
        if not is_several:
            place = Place(name, tensor, (batch, rows, columns), self.device)
            operand = Operand(given, place, is_output=is_output)
            return _split(operand, batch, rows * columns) if self.gemm_mode == Mode.Array else [operand]
        return [
            Operand(one, Place(f"{name}[{at}]", tensor, (1, rows, columns), self.device), is_output=is_output)
            for at, one in enumerate(given)
        ]

    def _addresses(self, name: str) -> list[int]:
        return [operand.address for operand in self._operands[name]]

    def _description(self, name: str) -> TensorDescription:
        operation = self.operation
        return {"A": operation.A, "B": operation.B}.get(name, operation.C)

    def _bound_op(self) -> _core.OutputOp:
        if isinstance(self.output_op, VisitorOutputOp):
            m, n, _ = self.problem_size
            bound, self._bound = self.output_op.bind(m, n, self.batch, self.device)
            return bound
        op: _core.OutputOp = self.output_op
        return op

    def _memory(self) -> dict[str, list[Operand]]:
        self._require_memory()
        return self._operands

    def __repr__(self) -> str:
        m, n, k = self.problem_size
        return f"GemmArguments({m}x{n}x{k}, {self.gemm_mode.name}, batch={self.batch}, split_k_slices={self.split_k_slices})"


class _Part(Operand):
    """The part of an operand that belongs to one product."""

    def __init__(self, whole: Operand, offset: int, *, is_first: bool) -> None:
        self._whole = whole
        self._is_first = is_first
        self.given = whole.given
        self.address = whole.address + offset

    def copy_back(self) -> None:
        if self._is_first:
            self._whole.copy_back()


def _split(operand: Operand, batch: int, count: int) -> list[Operand]:
    width = operand._place.tensor.element.dtype.bits // 8
    return [_Part(operand, at * count * width, is_first=at == 0) for at in range(batch)]


def _output_op(operation: GemmOperationUniversal, given: Any) -> Any:
    is_visitor = operation.epilogue_functor.is_visitor
    if given is None and not is_visitor:
        return operation.epilogue_type(1.0, 0.0)
    if not isinstance(given, (_core.OutputOp, VisitorOutputOp)):
        raise TypeError(f"output_op: expected what operation.epilogue_type(…) gives, got {type(given).__name__}")
    if isinstance(given, VisitorOutputOp) and given.tree != operation.epilogue_functor:
        raise InvalidArgumentError("invalid argument: output_op: expected one of this operation's visitor, got another's")
    return given
