# SPDX-License-Identifier: Apache-2.0
"""Epilogue visitor trees: a Python function of the accumulators, translated to an epilogue program."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gemmery import _core
from gemmery.describe.coordinates import real_number, whole_numbers
from gemmery.describe.descriptions import TensorDescription
from gemmery.describe.functors import EpilogueFunctor
from gemmery.describe.operands import Operand, Place
from gemmery.describe.staged import StagedWork, wait_for
from gemmery.describe.words import Element, Layout, float32, to_element
from gemmery.errors import InvalidArgumentError, UnsupportedError
from gemmery.fusion.functions import while_tracing
from gemmery.fusion.returned_names import returned_names
from gemmery.fusion.tracing import place_at, place_of, trace
from gemmery.fusion.value import Reduced, TraceError, Value

__all__ = ["EpilogueVisitTree", "VisitorOutputOp", "reduction_op"]

_KINDS = ("tensor", "row", "column", "scalar")


class _Reduction(Reduced):
    """A sum and its direction: "row" leaves one number for each row."""

    __slots__ = ("direction",)

    def __init__(self, value: Value, direction: str) -> None:
        super().__init__("sum", value)
        self.direction = direction


def reduction_op(value: Any, direction: str, operation: str = "Add", length: int | None = None) -> Any:
    """The sum over each row ("row": one number for each m, complete over N) or over each column ("column"). `length`,
    PyCUTLASS's number of reducing threads, has no effect. On NumPy arrays it computes the same sum."""
    if direction not in ("row", "column"):
        raise InvalidArgumentError(f'invalid argument: reduction_op: expected "row" or "column", got {direction!r}')
    if operation != "Add":
        raise UnsupportedError(f'unsupported: reduction_op: expected "Add", got {operation!r}')
    if isinstance(value, Value):
        return _Reduction(value, direction)
    if isinstance(value, Reduced):
        value._refuse_use()
    return value.sum(axis=-1 if direction == "row" else -2)


class EpilogueVisitTree(EpilogueFunctor):
    """The epilogue of a kernel, as a method:

        class Bias(describe.EpilogueVisitTree):
            def __call__(self, accum: "tensor", c: "tensor", bias: "row", alpha: "scalar"):
                Z = alpha * relu.numpy(accum + bias)
                T = Z + c
                return Z, T

    Parameters are tensors like C ("tensor"), rows of N numbers ("row"), columns of M numbers ("column"), or numbers of a
    launch ("scalar"). The returned values are stored; D, or else the first full tensor, is D of the arguments. The method
    may use + - * /, comparisons, the activations of this package and every function of gemmery.fusion; a value that is
    used twice is computed once. On NumPy arrays the method is its own reference. Pass it with visitor=True. Raises
    InvalidArgumentError with the line for anything that a program cannot do.
    """

    is_visitor = True

    def __init__(
        self,
        elementwise_functor: Any = None,
        tile_description: Any = None,
        element_accumulator: Any = float32,
        elements_per_access: int = 1,
        element_compute: Any = None,
        element_output: Any = float32,
    ) -> None:
        # The first two select PyCUTLASS's C++ templates; they have no effect here.
        self.element_accumulator: Element = to_element(element_accumulator, "element_accumulator")
        self.element_output: Element = to_element(element_output, "element_output")
        self.element_compute: Element = to_element(element_compute or element_accumulator, "element_compute")
        self.elements_per_access = elements_per_access
        self._traced: _Traced | None = None

    def __call__(self, accum: Any) -> Any:
        raise NotImplementedError("derive from EpilogueVisitTree and define __call__(self, accum, …)")

    def initialize(self) -> None:
        """Translates the function; the operation calls it if the caller has not."""
        self._traced = _Traced(self)

    @property
    def traced(self) -> _Traced:
        """The program and the kinds of its operands and results."""
        if self._traced is None:
            self._traced = _Traced(self)
        return self._traced

    @property
    def program(self) -> _core.Program:
        """The epilogue program; its D is the returned D, or else the first full tensor that is returned."""
        return self.traced.program

    def _native(self) -> _core.EpilogueFunctor:
        traced = self.traced
        stored = [(name, kind) for name, kind in traced.results.items() if name != traced.destination]
        operands = [(name, kind, self.element_of(name)) for name, kind in [*traced.inputs.items(), *stored]]
        return _core.epilogue_visit_tree(
            traced.program, operands, self.element_output, self.elements_per_access, self.element_accumulator
        )

    def element_of(self, name: str) -> Element:
        """The element type of an operand or result: C's, or that of the accumulators for a sum."""
        is_sum = self.traced.results.get(name, "tensor") != "tensor"
        wide = self.element_accumulator == Element.float64
        return (Element.float64 if wide else float32) if is_sum else self.element_output

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EpilogueVisitTree) and self._native() == other._native()

    def __hash__(self) -> int:
        return hash(self.program.text)


class _Traced:
    """The result of tracing a tree's function."""

    def __init__(self, tree: EpilogueVisitTree) -> None:
        function = type(tree).__call__
        self.inputs = _kinds_of_parameters(function)
        _check_reduction_inputs(function)
        try:
            values = {
                name: Value(_core.accum() if name == "accum" else _core.operand(name)) for name in ["accum", *self.inputs]
            }
            with while_tracing():
                returned = tree(**values)
            named = _named(function, returned)
            self.results = {name: _kind_of_result(value) for name, value in named.items()}
            full = [name for name, kind in self.results.items() if kind == "tensor"]
            if not full:
                raise TraceError("invalid argument: epilogue: expected a tensor of D's size among the returned names, got none")
            self.destination = "D" if "D" in full else full[0]
            self.program = trace({"D" if name == self.destination else name: value for name, value in named.items()})
        except (InvalidArgumentError, UnsupportedError) as error:
            kind = UnsupportedError if isinstance(error, UnsupportedError) else InvalidArgumentError
            raise kind(f"{error}{place_of(error) or _first_line(function)}") from error
        unread = [name for name in self.inputs if name not in self.program.inputs]
        if unread:
            raise InvalidArgumentError(
                f"invalid argument: epilogue: expected parameters that what is returned reads, got {unread[0]}, "
                "which it does not"
                f"{_first_line(function)}"
            )


def _kinds_of_parameters(function: Any) -> dict[str, str]:
    kinds: dict[str, str] = {}
    parameters = list(inspect.signature(function).parameters.values())[1:]
    if not parameters or parameters[0].name != "accum":
        raise InvalidArgumentError(f"invalid argument: epilogue: expected accum as the first parameter{_first_line(function)}")
    for parameter in parameters[1:]:
        kind = parameter.annotation
        kind = kind.strip("'\"") if isinstance(kind, str) else kind
        if kind not in _KINDS:
            raise InvalidArgumentError(
                f"invalid argument: epilogue: expected {parameter.name} annotated as one of {', '.join(_KINDS)}, got "
                f"{'nothing' if kind is inspect.Parameter.empty else repr(kind)}{_first_line(function)}"
            )
        if parameter.name == "problem_size":
            raise InvalidArgumentError(
                "invalid argument: epilogue: expected parameters that epilogue_type has no other use for, got problem_size"
                f"{_first_line(function)}"
            )
        kinds[parameter.name] = kind
    return kinds


def _check_reduction_inputs(function: Any) -> None:
    """Requires that the operand of a reduction has a name, as in PyCUTLASS, so that a program means the same there."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return
    for node in ast.walk(tree):
        is_reduction = isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "reduction_op"
        if is_reduction and node.args and not isinstance(node.args[0], ast.Name):  # type: ignore[attr-defined]
            line = function.__code__.co_firstlineno + node.lineno - 1  # type: ignore[attr-defined]
            raise InvalidArgumentError(
                "invalid argument: epilogue: expected a name as what reduction_op reads, got an expression; assign it to a "
                f"name first{place_at(function.__code__.co_filename, line)}"
            )


def _first_line(function: Any) -> str:
    code = getattr(function, "__code__", None)
    return place_at(code.co_filename, code.co_firstlineno) if code is not None else ""


def _named(function: Any, returned: Any) -> dict[str, Any]:
    if isinstance(returned, Mapping):
        return dict(returned)
    several = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    names = returned_names(function, len(several))
    if names is None:
        raise TraceError(
            "invalid argument: epilogue: expected names of variables to be returned, got something else; return a dict"
        )
    return dict(zip(names, several, strict=True))


def _kind_of_result(value: Any) -> str:
    if isinstance(value, _Reduction):
        return "column" if value.direction == "row" else "row"
    if isinstance(value, Reduced):
        raise TraceError("invalid argument: epilogue: expected reduction_op(name, direction, …), got another reduction")
    return "tensor"


class VisitorOutputOp:
    """The operands and results of a visitor for one launch, by their names in its function."""

    def __init__(
        self, tree: EpilogueVisitTree, C: TensorDescription, numbers: Sequence[Any], operands: Mapping[str, Any]
    ) -> None:
        if numbers:
            raise TypeError("epilogue_type: expected operands by keyword for a visitor, got positional ones")
        self.tree = tree
        self._C = C
        self.operands = dict(operands)
        size = self.operands.pop("problem_size", None)
        self.problem_size = None if size is None else whole_numbers(size, 2, "problem_size")
        traced = tree.traced
        wanted = [*traced.inputs, *traced.results]
        for name in wanted:
            if name not in self.operands:
                raise InvalidArgumentError(f"invalid argument: epilogue_type: expected {name}=, got none")
        for name in self.operands:
            if name not in wanted:
                raise InvalidArgumentError(f"invalid argument: epilogue_type: expected {', '.join(wanted)}, got {name}=")
        self.destination_name = traced.destination
        self.destination = self.operands[traced.destination]
        self._last_run: Callable[[], None] | None = None

    def bind(self, m: int, n: int, batch: int, device: str) -> tuple[_core.OutputOp, BoundOperands]:
        """Binds the operands for one problem, with the objects that own their memory; NumPy arrays are staged."""
        if self.problem_size is not None and self.problem_size != (m, n):
            raise InvalidArgumentError(
                f"invalid argument: epilogue_type: expected problem_size={[m, n]}, that of the arguments, "
                f"got {list(self.problem_size)}"
            )
        traced = self.tree.traced
        bound: dict[str, Any] = {}
        held = BoundOperands()
        for name, kind in traced.inputs.items():
            given = self.operands[name]
            if kind == "scalar":
                bound[name] = real_number(given, name)
            else:
                bound[name] = self._tensor(name, kind, (m, n, batch), device, held.read)
        for name, kind in traced.results.items():
            if name != traced.destination:
                bound[name] = self._tensor(name, kind, (m, n, batch), device, held.stored)
        return _core.OutputOp.of_operands(bound), held

    def _tensor(self, name: str, kind: str, size: tuple[int, int, int], device: str, held: list[Operand]) -> _core.Tensor:
        m, n, batch = size
        given, is_output = self.operands[name], name in self.tree.traced.results
        rows, columns = {"tensor": (m, n), "row": (1, n), "column": (m, 1)}[kind]
        element = self.tree.element_of(name)
        place = Place(name, TensorDescription(element, self._C.layout), (batch, rows, columns), device)
        if kind != "tensor":
            place = Place(name, TensorDescription(element, Layout.RowMajor), (batch, 1, rows * columns), device)
        operand = Operand(given, place, is_output=is_output)
        held.append(operand)
        is_column_major = kind == "tensor" and self._C.layout == Layout.ColumnMajor
        strides = (rows * columns, 1, rows) if is_column_major else (rows * columns, columns, 1)
        return _core.Tensor(operand.address, (batch, rows, columns), element.dtype, strides, device, operand)

    def has_run(self, arguments: StagedWork) -> None:
        """Called after a run of its arguments: keeps the stored results for `sync`, even if the arguments are deleted."""
        stored = [*arguments._operands["D"], *arguments._bound.stored]
        pending, stream, device = arguments._pending, arguments.stream, arguments.device

        def copy_back() -> None:
            wait_for(pending, stream, device)
            for operand in stored:
                operand.copy_back()

        self._last_run = copy_back

    def sync(self) -> None:
        """Waits for the last run of its arguments and copies the results back to those that are NumPy arrays; does nothing
        before the first run."""
        if self._last_run is not None:
            self._last_run()


class BoundOperands:
    """The memory of a visitor's operands and results for one problem."""

    def __init__(self) -> None:
        self.read: list[Operand] = []
        self.stored: list[Operand] = []
