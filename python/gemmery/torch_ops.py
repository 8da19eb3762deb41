# SPDX-License-Identifier: Apache-2.0
"""Operators of torch: `torch.ops.gemmery.*`, for torch.compile and CUDA graphs. Importing it registers them.

    import gemmery.torch_ops as gt

    y = gt.matmul(a, b)                                    # functional, differentiable
    gt.matmul(a, b, out=y)
    swish = gt.fused(lambda accum, bias: silu(accum + bias))
    y = swish(a, b, bias=bias)                             # traced here, once; inside torch.compile one operator
    y = gt.grouped_mm(tokens, experts, offs=ends)          # groups of rows, as in torch
    y = gt.conv2d(images, filters, bias, padding=1)        # and its gradients

Each operator has a fake kernel, so that torch.compile sees shapes without a graph break. The first call of a problem
compiles: make it before a CUDA graph is captured (torch.compile's own graphs do).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from gemmery import _core
from gemmery._torch_conv import conv1d, conv2d, conv3d
from gemmery._torch_grouped import grouped_mm
from gemmery._torch_tensors import plain, refuse_derivatives, result_dtype, tags
from gemmery.epilogue import EpilogueArguments, Program
from gemmery.fusion.tracing import trace
from gemmery.matmul import kernel_for, result_shape

__all__ = ["Fused", "conv1d", "conv2d", "conv3d", "fused", "grouped_mm", "matmul"]

# torch keeps its operators, and with them this module, until the process ends; this is not a leak.
_core.set_leak_warnings(False)

_library = torch.library.Library("gemmery", "DEF")

_library.define("matmul(Tensor a, Tensor b, ScalarType? out_dtype=None) -> Tensor", tags=tags)
_library.define("matmul_out(Tensor a, Tensor b, Tensor(a!) out) -> ()", tags=tags)
_library.define(
    "fused_matmul(Tensor a, Tensor b, str program, str[] names, Tensor[] tensors, str[] number_names, float[] numbers,"
    " ScalarType? out_dtype=None) -> Tensor",
    tags=tags,
)
_library.define(
    "fused_matmul_out(Tensor a, Tensor b, str program, str[] names, Tensor[] tensors, str[] number_names, float[] numbers,"
    " Tensor(a!) out, str[] result_names, Tensor(b!)[] results) -> ()",
    tags=tags,
)


# --- what users call -----------------------------------------------------------------------------


def matmul(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor | None = None, *, out_dtype: Any = None) -> torch.Tensor:
    """a @ b, (M, K) by (K, N) or batches of them. Differentiable without `out`."""
    if out is None:
        return torch.ops.gemmery.matmul(a, b, out_dtype)
    refuse_derivatives("matmul with out=", a, b, out)
    torch.ops.gemmery.matmul_out(a, b, out)
    return out


def fused(epilogue: Callable[..., Any] | str | Program) -> Fused:
    """An epilogue, traced now, as a function of tensors: `fused(fn)(a, b, **operands)`."""
    return Fused(epilogue)


class Fused:
    """a @ b with an epilogue. Operands and the tensors of results other than D are keywords; the latter are written."""

    def __init__(self, epilogue: Callable[..., Any] | str | Program) -> None:
        program = trace(epilogue)
        self.program = program.text
        self._results = [name for name in program.outputs if name != "D"]

    def __call__(
        self,
        a: torch.Tensor,
        b: torch.Tensor,
        out: torch.Tensor | None = None,
        *,
        out_dtype: Any = None,
        **operands: Any,
    ) -> torch.Tensor:
        """Returns D: `out`, or a new tensor of `out_dtype` (None: the type that holds a's and b's). Not differentiable."""
        results = {name: operands.pop(name) for name in self._results if name in operands}
        names = [name for name, value in operands.items() if isinstance(value, torch.Tensor)]
        numbers = [name for name in operands if name not in names]
        bound = (
            self.program,
            names,
            [operands[name] for name in names],
            numbers,
            [float(operands[name]) for name in numbers],
        )
        if out is None and not results:
            return torch.ops.gemmery.fused_matmul(a, b, *bound, out_dtype)
        if out is None:
            out = torch.empty(result_shape(a, b), dtype=out_dtype or result_dtype(a, b), device=a.device)
        refuse_derivatives("a fused product that writes tensors", a, b, out, *bound[2])
        torch.ops.gemmery.fused_matmul_out(a, b, *bound, out, list(results), list(results.values()))
        return out


# --- what runs -----------------------------------------------------------------------------------


def _empty_result(a: torch.Tensor, b: torch.Tensor, out_dtype: torch.dtype | None) -> torch.Tensor:
    return a.new_empty(result_shape(a, b), dtype=out_dtype or result_dtype(a, b))


def _run(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, epilogue: EpilogueArguments | None = None) -> None:
    args = _core.GemmArguments(a, b, out, None, epilogue=epilogue)
    kernel_for(args).run(args)


_program = functools.lru_cache(maxsize=1024)(Program)


def _bound(
    program: str, names: Sequence[str], tensors: Sequence[torch.Tensor], number_names: Sequence[str], numbers: Sequence[float]
) -> dict[str, Any]:
    return dict(zip(names, tensors, strict=True)) | dict(zip(number_names, numbers, strict=True))


def _matmul(a: torch.Tensor, b: torch.Tensor, out_dtype: torch.dtype | None = None) -> torch.Tensor:
    out = _empty_result(a, b, out_dtype)
    _run(plain(a), plain(b), out)
    return out


def _matmul_out(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    _run(plain(a), plain(b), plain(out))


def _fused_matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    program: str,
    names: Sequence[str],
    tensors: Sequence[torch.Tensor],
    number_names: Sequence[str],
    numbers: Sequence[float],
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    out = _empty_result(a, b, out_dtype)
    _fused_matmul_out(a, b, program, names, tensors, number_names, numbers, out, [], [])
    return out


def _fused_matmul_out(
    a: torch.Tensor,
    b: torch.Tensor,
    program: str,
    names: Sequence[str],
    tensors: Sequence[torch.Tensor],
    number_names: Sequence[str],
    numbers: Sequence[float],
    out: torch.Tensor,
    result_names: Sequence[str],
    results: Sequence[torch.Tensor],
) -> None:
    bound = _bound(program, names, [plain(tensor) for tensor in tensors], number_names, numbers)
    bound |= dict(zip(result_names, [plain(result) for result in results], strict=True))
    _run(plain(a), plain(b), plain(out), EpilogueArguments(_program(program), **bound))


for _device in ("CPU", "CUDA"):
    _library.impl("matmul", _matmul, _device)
    _library.impl("matmul_out", _matmul_out, _device)
    _library.impl("fused_matmul", _fused_matmul, _device)
    _library.impl("fused_matmul_out", _fused_matmul_out, _device)


# --- what torch.compile sees ---------------------------------------------------------------------


def _check(a: torch.Tensor, b: torch.Tensor) -> None:
    torch._check(a.shape[-1] == b.shape[-2], lambda: f"matmul: a has {a.shape[-1]} columns, b {b.shape[-2]} rows; K must agree")


def _fake_matmul(a: torch.Tensor, b: torch.Tensor, out_dtype: torch.dtype | None = None) -> torch.Tensor:
    _check(a, b)
    return _empty_result(a, b, out_dtype)


def _fake_matmul_out(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
    _check(a, b)


def _fake_fused_matmul(a: torch.Tensor, b: torch.Tensor, *rest: Any, out_dtype: torch.dtype | None = None) -> torch.Tensor:
    _check(a, b)
    return _empty_result(a, b, rest[5] if len(rest) > 5 else out_dtype)


def _fake_fused_matmul_out(a: torch.Tensor, b: torch.Tensor, *rest: Any) -> None:
    _check(a, b)


torch.library.register_fake("gemmery::matmul", _fake_matmul, lib=_library)
torch.library.register_fake("gemmery::matmul_out", _fake_matmul_out, lib=_library)
torch.library.register_fake("gemmery::fused_matmul", _fake_fused_matmul, lib=_library)
torch.library.register_fake("gemmery::fused_matmul_out", _fake_fused_matmul_out, lib=_library)


# --- derivatives ---------------------------------------------------------------------------------


def _keep_operands(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs[:2])


def _differentiate(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    a, b = ctx.saved_tensors
    wants_a, wants_b, *others = ctx.needs_input_grad  # arguments that are left at their defaults may be missing
    of_a = _summed(torch.ops.gemmery.matmul(gradient, b.mT, a.dtype), a) if wants_a else None
    of_b = _summed(torch.ops.gemmery.matmul(a.mT, gradient, b.dtype), b) if wants_b else None
    return of_a, of_b, *(None for _ in others)


def _summed(gradient: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Sums over the batches along which the operand was broadcast."""
    if gradient.dim() > like.dim():
        return gradient.sum(0)
    if gradient.dim() == 3 and like.shape[0] == 1 and gradient.shape[0] != 1:
        return gradient.sum(0, keepdim=True)
    return gradient


def _refuse_to_differentiate(ctx: Any, *gradients: Any) -> Any:
    raise NotImplementedError("gemmery::fused_matmul has no derivative: call gemmery.torch_ops.matmul, and the function on it")


torch.library.register_autograd("gemmery::matmul", _differentiate, setup_context=_keep_operands, lib=_library)
torch.library.register_autograd("gemmery::fused_matmul", _refuse_to_differentiate, lib=_library)
