# SPDX-License-Identifier: Apache-2.0
"""torch.ops.gemmery.grouped_mm: grouped products with the arguments of torch's own."""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from gemmery import _core
from gemmery._torch_tensors import plain, result_dtype, tags
from gemmery.epilogue import EpilogueArguments, Program
from gemmery.matmul import kernel_for

__all__ = ["grouped_mm"]

_library = torch.library.Library("gemmery", "FRAGMENT")
_library.define(
    "grouped_mm(Tensor mat_a, Tensor mat_b, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None,"
    " bool zero_outside=False) -> Tensor",
    tags=tags,
)
_with_bias = Program("D = accum + bias")


def grouped_mm(
    mat_a: torch.Tensor,
    mat_b: torch.Tensor,
    *,
    offs: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    outside: str = "untouched",
) -> torch.Tensor:
    """Products of groups, as torch.nn.functional.grouped_mm. `offs` (G) of int32 or int64: where each group ends.

    (T, K) by (G, K, N) -> (T, N): groups of rows.           y[s:e] = a[s:e] @ b[g] + bias[g]
    (G, M, K) by (K, T) -> (M, T): groups of columns.        y[:, s:e] = a[g] @ b[:, s:e]
    (M, T) by (T, N) -> (G, M, N): groups of k.              y[g] = a[:, s:e] @ b[s:e] + bias[g]
    (G, M, K) by (G, K, N) -> (G, M, N): without offs.       y[g] = a[g] @ b[g] + bias[g]

    Sizes stay on the device; groups may be empty, of any size, and unaligned. `offs[-1]` may be below T: the elements after it
    are left uninitialised (`outside="untouched"`, as in torch) or set to zero ("zero"), at the cost of a fill. Gradients there
    are zero. `bias` is (G, N) or (N), of any float type; groups of columns take none. `out_dtype`: by default the
    narrowest type that holds the values of both. Differentiable in mat_a, mat_b and bias.

    Raises ValueError for shapes that do not fit, gemmery.UnsupportedError if no kernel supports the operands.
    """
    if outside not in ("untouched", "zero"):
        raise ValueError(f'grouped_mm: outside: expected "untouched" or "zero", got {outside!r}')
    y: torch.Tensor = torch.ops.gemmery.grouped_mm(mat_a, mat_b, offs, bias, out_dtype, outside == "zero")
    return y


# --- shapes --------------------------------------------------------------------------------------


def _check(mat_a: torch.Tensor, mat_b: torch.Tensor, offs: torch.Tensor | None, bias: torch.Tensor | None) -> None:
    _check_operands(mat_a, mat_b)
    if offs is not None or mat_a.dim() == 2 or mat_b.dim() == 2:
        _check_offs(mat_a, mat_b, offs)
    elif mat_a.shape[0] != mat_b.shape[0]:
        _refuse(f"mat_b: expected {mat_a.shape[0]} matrices, as mat_a has, got {mat_b.shape[0]}")
    if bias is not None:
        _check_bias(mat_a, mat_b, offs, bias)


def _check_operands(mat_a: torch.Tensor, mat_b: torch.Tensor) -> None:
    if mat_a.dim() not in (2, 3) or mat_b.dim() not in (2, 3):
        _refuse(f"expected operands of rank 2 or 3, got {tuple(mat_a.shape)} and {tuple(mat_b.shape)}")
    if mat_a.shape[-1] != mat_b.shape[-2]:
        _refuse(f"mat_b: expected {mat_a.shape[-1]} rows, as mat_a has columns, got {mat_b.shape[-2]}")


def _check_offs(mat_a: torch.Tensor, mat_b: torch.Tensor, offs: torch.Tensor | None) -> None:
    if offs is None:
        _refuse("offs: expected the end of every group, since an operand is of rank 2, got None")
    if mat_a.dim() == 3 and mat_b.dim() == 3:
        _refuse("offs: expected None, since both operands are of rank 3, got a tensor")
    if offs.dim() != 1 or offs.dtype not in (torch.int32, torch.int64):
        _refuse(f"offs: expected a vector of int32 or int64, got {offs.dtype} of shape {tuple(offs.shape)}")
    groups = mat_a.shape[0] if mat_a.dim() == 3 else mat_b.shape[0] if mat_b.dim() == 3 else offs.shape[0]
    if offs.shape[0] != groups:
        _refuse(f"offs: expected {groups} ends, one for each matrix of the stack, got {offs.shape[0]}")


def _check_bias(mat_a: torch.Tensor, mat_b: torch.Tensor, offs: torch.Tensor | None, bias: torch.Tensor) -> None:
    if mat_a.dim() == 3 and mat_b.dim() == 2:
        _refuse("bias: expected None, since the columns of the result differ from group to group, got a tensor")
    groups = mat_a.shape[0] if offs is None else offs.shape[0]
    if tuple(bias.shape) not in ((mat_b.shape[-1],), (groups, mat_b.shape[-1])):
        _refuse(f"bias: expected ({groups}, {mat_b.shape[-1]}) or ({mat_b.shape[-1]},), got {tuple(bias.shape)}")


def _refuse(what: str) -> NoReturn:
    raise ValueError(f"grouped_mm: {what}")


def _empty_result(
    mat_a: torch.Tensor, mat_b: torch.Tensor, offs: torch.Tensor | None, out_dtype: torch.dtype | None, zero_outside: bool
) -> torch.Tensor:
    matrix = (mat_a.shape[-2], mat_b.shape[-1])
    is_stack = mat_a.dim() == mat_b.dim()
    shape = ((mat_a.shape[0] if offs is None else offs.shape[0]), *matrix) if is_stack else matrix
    new = mat_a.new_zeros if zero_outside and not is_stack else mat_a.new_empty
    return new(shape, dtype=out_dtype or result_dtype(mat_a, mat_b))


# --- what runs, and what torch.compile sees ------------------------------------------------------


def _arguments(
    mat_a: torch.Tensor, mat_b: torch.Tensor, out: torch.Tensor, offs: torch.Tensor | None, bias: torch.Tensor | None
) -> _core.GemmArguments:
    rows = None if bias is None else plain(bias).unsqueeze(-2)  # a row for each group, or one for all
    epilogue = None if rows is None else EpilogueArguments(_with_bias, bias=rows)
    if offs is None:
        return _core.GemmArguments(plain(mat_a), plain(mat_b), out, None, epilogue=epilogue)
    return _core.GroupedGemmArguments(plain(mat_a), plain(mat_b), out, None, offs, epilogue)


def _grouped_mm(
    mat_a: torch.Tensor,
    mat_b: torch.Tensor,
    offs: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    zero_outside: bool = False,
) -> torch.Tensor:
    _check(mat_a, mat_b, offs, bias)
    out = _empty_result(mat_a, mat_b, offs, out_dtype, zero_outside)
    args = _arguments(mat_a, mat_b, out, offs, bias)
    kernel_for(args).run(args)
    return out


def _fake_grouped_mm(
    mat_a: torch.Tensor,
    mat_b: torch.Tensor,
    offs: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    zero_outside: bool = False,
) -> torch.Tensor:
    _check(mat_a, mat_b, offs, bias)
    return _empty_result(mat_a, mat_b, offs, out_dtype, zero_outside)


for _device in ("CPU", "CUDA"):
    _library.impl("grouped_mm", _grouped_mm, _device)
torch.library.register_fake("gemmery::grouped_mm", _fake_grouped_mm, lib=_library)


# --- derivatives ---------------------------------------------------------------------------------


def _keep_operands(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    mat_a, mat_b, *rest = inputs  # arguments that are left at their defaults may be missing
    offs, bias, *_ = (*rest, None, None)
    ctx.save_for_backward(mat_a, mat_b, offs, bias)


def _differentiate(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    """Both gradients are grouped products with the same ends; elements in no group have a gradient of zero."""
    mat_a, mat_b, offs, bias = ctx.saved_tensors
    wants = (*ctx.needs_input_grad, False, False)
    multiply = torch.ops.gemmery.grouped_mm
    of_a = multiply(gradient.to(mat_b.dtype), mat_b.mT, offs, None, mat_a.dtype, True) if wants[0] else None
    of_b = multiply(mat_a.mT, gradient.to(mat_a.dtype), offs, None, mat_b.dtype, True) if wants[1] else None
    of_bias = _sum_rows(gradient, offs, bias) if bias is not None and wants[3] else None
    return (of_a, of_b, None, of_bias, None, None)[: len(ctx.needs_input_grad)]


def _sum_rows(gradient: torch.Tensor, offs: torch.Tensor | None, bias: torch.Tensor) -> torch.Tensor:
    """The sums over the rows of each group, (G, N); over all groups, too, if the bias was one row for all."""
    if gradient.dim() == 3:
        sums = gradient.sum(-2)
    else:
        ones = gradient.new_ones((1, gradient.shape[0]))
        sums = torch.ops.gemmery.grouped_mm(ones, gradient, offs, None, gradient.dtype, True).squeeze(-2)
    return (sums if bias.dim() == 2 else sums.sum(0)).to(bias.dtype)


torch.library.register_autograd("gemmery::grouped_mm", _differentiate, setup_context=_keep_operands, lib=_library)
