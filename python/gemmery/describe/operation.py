# SPDX-License-Identifier: Apache-2.0
"""The described GEMM: one kernel, specified exactly."""

from __future__ import annotations

from typing import Any

from gemmery import _core
from gemmery.describe.coordinates import real_number, whole_number
from gemmery.describe.descriptions import TensorDescription, TileDescription
from gemmery.describe.functors import EpilogueFunctor
from gemmery.describe.staged import StagedWork
from gemmery.describe.visitor import EpilogueVisitTree, VisitorOutputOp
from gemmery.describe.words import SwizzlingFunctor, to_word
from gemmery.errors import UnsupportedError

__all__ = ["GemmOperationUniversal", "SourceText", "check_types", "scaling_op"]


class SourceText:
    """The text of an operation's kernel."""

    def __init__(self, operation: _core.GemmOperationUniversal | _core.Conv2dOperation) -> None:
        self._operation = operation

    def emit(self) -> str:
        """The CUDA C++ text that is compiled; equal descriptions give equal text."""
        return str(self._operation.emit())


class GemmOperationUniversal(_core.GemmOperationUniversal):
    """A GEMM kernel of this math instruction, tile, operands, functor and swizzle; a gemmery.Kernel.

        GemmOperationUniversal(80, tile_description, A, B, C, epilogue_functor, swizzling_functor=IdentitySwizzle1)

    `arch` is the compute capability to compile for: 80, 86, …; at most that of the device it runs on. D has C's type and
    layout. With an EpilogueVisitTree `visitor` is True. Raises InvalidArgumentError or UnsupportedError naming the field,
    before a compiler starts, for a combination that the table of docs/describe.md does not have.
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
        visitor: bool = False,
        direct_store: bool = False,
    ) -> None:
        check_types(tile_description, A, B, C, epilogue_functor)
        if direct_store:
            raise UnsupportedError(
                "unsupported: direct_store: expected False, got True; results go through shared memory into whole runs of D"
            )
        swizzle = to_word(SwizzlingFunctor, swizzling_functor, "swizzling_functor")
        super().__init__(
            whole_number(arch, "compute_capability"),
            tile_description._native(),
            A._native(),
            B._native(),
            C._native(),
            epilogue_functor._native(),
            swizzle,
            bool(visitor),
        )
        self.arch = arch
        self.tile_description = tile_description
        self.A, self.B, self.C = A, B, C
        self.epilogue_functor = epilogue_functor
        self.swizzling_functor = swizzle
        self.visitor = visitor

    @property
    def rt_module(self) -> SourceText:
        """The source text, as rt_module.emit()."""
        return SourceText(self)

    def procedural_name(self) -> str:
        """The name of the kernel, which gemmery.find_kernel reads back."""
        return str(self.name)

    def epilogue_type(self, *numbers: float, **operands: Any) -> _core.OutputOp | VisitorOutputOp:
        """The arguments of the functor for a launch: (alpha, beta, *activation_args), or for a visitor every operand and
        result by keyword, and problem_size=[M, N]. Raises InvalidArgumentError for a wrong count and for missing or unknown
        keywords."""
        if isinstance(self.epilogue_functor, EpilogueVisitTree):
            return VisitorOutputOp(self.epilogue_functor, self.C, numbers, operands)
        return scaling_op(self, numbers, operands)

    def run(  # type: ignore[misc, override]
        self, arguments: Any, *positional: Any, stream: Any = None, **options: Any
    ) -> int:
        """run(arguments, stream=None): enqueues the work on `stream` and returns 0. The default is the stream of the arguments:
        the one that they were given, or the current one of their framework. Raises LaunchError with CUDA's message if the
        driver refuses the launch. gemmery.GemmArguments are run as gemmery.Kernel.run does."""
        if isinstance(arguments, _core.GemmArguments):
            named = options if stream is None else options | {"stream": stream}
            super().run(arguments, *positional, **named)
            return 0
        if not isinstance(arguments, StagedWork) or getattr(arguments, "gemm_mode", None) is None:
            raise TypeError(f"arguments: expected GemmArguments, got {type(arguments).__name__}")
        if len(positional) > 1 or options or (positional and stream is not None):
            raise TypeError("run: expected arguments and a stream, got more")
        self.launch(arguments._native, arguments._start(positional[0] if positional else stream))
        arguments._has_run = True
        if arguments._bound is not None:
            arguments.output_op.has_run(arguments)  # type: ignore[attr-defined]
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GemmOperationUniversal) and self.has_same_description(other)

    def __hash__(self) -> int:
        return hash((self.arch, self.tile_description, self.A, self.B, self.C))

    def __repr__(self) -> str:
        return str(self.describe())


def scaling_op(operation: Any, numbers: tuple[float, ...], operands: dict[str, Any]) -> _core.OutputOp:
    """alpha, beta and activation arguments, checked against a functor."""
    given = dict(zip(("alpha", "beta"), numbers, strict=False))
    twice = given.keys() & operands.keys()
    if twice:
        raise TypeError(f"epilogue_type: expected {twice.pop()} once, got it twice")
    given |= operands
    unknown = [name for name in given if name not in ("alpha", "beta")]
    if unknown:
        raise TypeError(f"epilogue_type: expected alpha, beta and activation arguments, got {unknown[0]}=")
    if "alpha" not in given:
        raise TypeError("epilogue_type: expected alpha, got none")
    alpha, beta = (real_number(given.get(name, 0), name) for name in ("alpha", "beta"))
    op: _core.OutputOp = operation.output_op(alpha, beta, [real_number(one, "activation_args") for one in numbers[2:]])
    return op


def check_types(tile: Any, A: Any, B: Any, C: Any, functor: Any) -> None:
    """The parts of a description are what users make."""
    for name, given, kind in (
        ("tile_description", tile, TileDescription),
        ("A", A, TensorDescription),
        ("B", B, TensorDescription),
        ("C", C, TensorDescription),
        ("epilogue_functor", functor, EpilogueFunctor),
    ):
        if not isinstance(given, kind):
            raise TypeError(f"{name}: expected a {kind.__name__}, got {type(given).__name__}")
