# SPDX-License-Identifier: Apache-2.0
"""What operators of torch share: tensors without their history, types of results, refusals of derivatives."""

from __future__ import annotations

import torch

from gemmery import _core
from gemmery.promotion import product_dtype

__all__ = ["plain", "refuse_derivatives", "result_dtype", "tags"]

tags = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order)


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """Detaches a tensor from its autograd history."""
    return tensor.detach() if tensor.requires_grad else tensor


def result_dtype(a: torch.Tensor, b: torch.Tensor) -> torch.dtype:
    """The type of a product whose caller names none."""
    dtype: torch.dtype = getattr(torch, product_dtype(_core.dtype(a.dtype), _core.dtype(b.dtype)).name)
    return dtype


def refuse_derivatives(what: str, *operands: torch.Tensor) -> None:
    """Raises RuntimeError if an operand wants a derivative."""
    if torch.is_grad_enabled() and any(operand.requires_grad for operand in operands):
        raise RuntimeError(f"{what} has no derivative, and an operand wants one: detach it, or call under torch.no_grad()")
