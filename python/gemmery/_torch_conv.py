# SPDX-License-Identifier: Apache-2.0
"""torch.ops.gemmery.conv_*: convolutions with the arguments of torch's own, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import torch

from gemmery import _core
from gemmery._torch_tensors import plain, result_dtype, tags
from gemmery.epilogue import EpilogueArguments, Program
from gemmery.matmul import kernel_for

__all__ = ["conv1d", "conv2d", "conv3d"]

_library = torch.library.Library("gemmery", "FRAGMENT")
_SETTINGS = "int[] stride, SymInt[] lower, SymInt[] upper, int[] dilation, int groups, ScalarType? out_dtype=None"
_library.define(f"conv_forward(Tensor input, Tensor weight, Tensor? bias, {_SETTINGS}) -> Tensor", tags=tags)
_library.define(f"conv_input_gradient(Tensor gradient, Tensor weight, SymInt[] shape, {_SETTINGS}) -> Tensor", tags=tags)
_library.define(f"conv_weight_gradient(Tensor gradient, Tensor input, SymInt[] shape, {_SETTINGS}) -> Tensor", tags=tags)
_with_bias = Program("D = accum + bias")


# --- what users call -----------------------------------------------------------------------------


def conv2d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    *,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """A convolution, as torch.nn.functional.conv2d: (N, C, H, W) by (K, C/groups, R, S) -> (N, K, P, Q).

    input may be (C, H, W). `padding`: numbers, "same" (stride 1) or "valid". The result is channels last, of `out_dtype`, by
    default the narrowest type that holds the values of input and weight. Operands that are not channels last are copied
    first. `bias` (K) is added to the accumulators, before the result is rounded; of any float type. Differentiable, any
    number of times, in input, weight and bias: the gradients are convolutions of this library.

    Raises ValueError for shapes and numbers that do not fit, gemmery.UnsupportedError if no kernel supports the operands.
    """
    return _conv(2, input, weight, bias, stride, padding, dilation, groups, out_dtype)


def conv1d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    *,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """conv2d in one dimension: (N, C, W) by (K, C/groups, S) -> (N, K, Q)."""
    return _conv(1, input, weight, bias, stride, padding, dilation, groups, out_dtype)


def conv3d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    *,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """conv2d in three dimensions: (N, C, D, H, W) by (K, C/groups, T, R, S) -> (N, K, O, P, Q)."""
    return _conv(3, input, weight, bias, stride, padding, dilation, groups, out_dtype)


def _conv(
    dimensions: int,
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    out_dtype: torch.dtype | None,
) -> torch.Tensor:
    name = f"conv{dimensions}d"
    if weight.dim() != dimensions + 2:
        _refuse(name, f"weight: expected rank {dimensions + 2}, got shape {tuple(weight.shape)}")
    strides, dilations = (
        _numbers(name, what, given, dimensions, 1) for what, given in (("stride", stride), ("dilation", dilation))
    )
    lower, upper = _paddings(name, padding, weight, strides, dilations)
    is_single = input.dim() == dimensions + 1
    images = input.unsqueeze(0) if is_single else input
    y: torch.Tensor = torch.ops.gemmery.conv_forward(images, weight, bias, strides, lower, upper, dilations, groups, out_dtype)
    return y.squeeze(0) if is_single else y


def _numbers(name: str, what: str, given: Any, count: int, least: int) -> list[int]:
    numbers = [given] * count if isinstance(given, int) else list(given)
    numbers = numbers * count if len(numbers) == 1 else numbers
    if len(numbers) != count or any(isinstance(one, bool) or not isinstance(one, int) or one < least for one in numbers):
        _refuse(name, f"{what}: expected a whole number from {least} on, or {count} of them, got {given!r}")
    return numbers


def _paddings(name: str, padding: Any, weight: torch.Tensor, stride: list[int], dilation: list[int]) -> tuple[Any, Any]:
    """The padding before the first pixel and after the last one."""
    count = len(stride)
    if not isinstance(padding, str):
        both = _numbers(name, "padding", padding, count, 0)
        return both, both
    if padding not in ("same", "valid"):
        _refuse(name, f'padding: expected numbers, "same" or "valid", got {padding!r}')
    if padding == "valid":
        return [0] * count, [0] * count
    if any(one != 1 for one in stride):
        _refuse(name, 'padding: expected numbers where the stride is not 1, got "same"')
    total = [step * (taps - 1) for step, taps in zip(dilation, weight.shape[2:], strict=True)]
    return [one // 2 for one in total], [one - one // 2 for one in total]


def _refuse(name: str, what: str) -> NoReturn:
    raise ValueError(f"{name}: {what}")


# --- shapes --------------------------------------------------------------------------------------


def _check(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    lower: Sequence[int],
    upper: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> list[Any]:
    """The shape of the result. Raises ValueError for operands that do not fit."""
    name = f"conv{weight.dim() - 2}d"
    if input.dim() != weight.dim():
        _refuse(name, f"input: expected rank {weight.dim()}, or {weight.dim() - 1} for one image, got {tuple(input.shape)}")
    filters, channels = weight.shape[:2]
    if groups < 1 or filters % groups != 0:
        _refuse(name, f"groups: expected a divisor of the {filters} filters, got {groups}")
    if input.shape[1] != channels * groups:
        _refuse(name, f"input: expected {channels * groups} channels, of {groups} groups, got {tuple(input.shape)}")
    if bias is not None and tuple(bias.shape) != (filters,):
        _refuse(name, f"bias: expected ({filters},), got {tuple(bias.shape)}")
    shape = [input.shape[0], filters]
    for d, taps in enumerate(weight.shape[2:]):
        padded = input.shape[2 + d] + lower[d] + upper[d]
        reach = dilation[d] * (taps - 1) + 1
        if padded < reach:
            _refuse(name, f"weight: expected a filter that reaches over at most the padded image, {padded}, got {reach}")
        shape.append((padded - reach) // stride[d] + 1)
    return shape


def _new(like: torch.Tensor, shape: Sequence[Any], dtype: torch.dtype) -> torch.Tensor:
    """Uninitialised, channels last."""
    return like.new_empty((shape[0], *shape[2:], shape[1]), dtype=dtype).movedim(-1, 1)


def _channels_last(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor if its channels are adjacent, else a copy."""
    own = plain(tensor)
    if own.shape[1] <= 1 or own.stride(1) == 1 or own.numel() == 0:
        return own
    return own.movedim(1, -1).contiguous().movedim(-1, 1)


# --- what runs, and what torch.compile sees ------------------------------------------------------


def _run(
    kind: Any,
    a: torch.Tensor,
    b: torch.Tensor,
    out: torch.Tensor,
    stride: Sequence[int],
    lower: Sequence[int],
    upper: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    epilogue: EpilogueArguments | None = None,
) -> torch.Tensor:
    args = _core.ConvArguments(
        kind,
        _channels_last(a),
        _channels_last(b),
        out,
        stride=list(stride),
        padding=list(lower),
        upper_padding=list(upper),
        dilation=list(dilation),
        groups=groups,
        epilogue=epilogue,
    )
    kernel_for(args).run(args)
    return out


def _empty_forward(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, *settings: Any, out_dtype: torch.dtype | None
) -> torch.Tensor:
    shape = _check(input, weight, bias, *settings)
    return _new(input, shape, out_dtype or result_dtype(input, weight))


def _conv_forward(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    lower: Sequence[int],
    upper: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    settings = (stride, lower, upper, dilation, groups)
    out = _empty_forward(input, weight, bias, *settings, out_dtype=out_dtype)
    of_channels = (-1, *(1 for _ in stride))
    epilogue = None if bias is None else EpilogueArguments(_with_bias, bias=plain(bias).reshape(of_channels))
    return _run("fprop", input, weight, out, *settings, epilogue)


def _conv_input_gradient(
    gradient: torch.Tensor,
    weight: torch.Tensor,
    shape: Sequence[int],
    stride: Sequence[int],
    lower: Sequence[int],
    upper: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    out = _new(gradient, shape, out_dtype or result_dtype(gradient, weight))
    return _run("dgrad", gradient, weight, out, stride, lower, upper, dilation, groups)


def _conv_weight_gradient(
    gradient: torch.Tensor,
    input: torch.Tensor,
    shape: Sequence[int],
    stride: Sequence[int],
    lower: Sequence[int],
    upper: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    out = _new(gradient, shape, out_dtype or result_dtype(gradient, input))
    return _run("wgrad", gradient, input, out, stride, lower, upper, dilation, groups)


def _fake_forward(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, *settings: Any, out_dtype: torch.dtype | None = None
) -> torch.Tensor:
    return _empty_forward(input, weight, bias, *settings[:5], out_dtype=_at(settings, 5, out_dtype))


def _fake_gradient(
    gradient: torch.Tensor, other: torch.Tensor, shape: Sequence[int], *settings: Any, out_dtype: torch.dtype | None = None
) -> torch.Tensor:
    return _new(gradient, shape, _at(settings, 5, out_dtype) or result_dtype(gradient, other))


def _at(settings: tuple[Any, ...], index: int, otherwise: Any) -> Any:
    return settings[index] if len(settings) > index else otherwise


for _device in ("CPU", "CUDA"):
    _library.impl("conv_forward", _conv_forward, _device)
    _library.impl("conv_input_gradient", _conv_input_gradient, _device)
    _library.impl("conv_weight_gradient", _conv_weight_gradient, _device)
torch.library.register_fake("gemmery::conv_forward", _fake_forward, lib=_library)
torch.library.register_fake("gemmery::conv_input_gradient", _fake_gradient, lib=_library)
torch.library.register_fake("gemmery::conv_weight_gradient", _fake_gradient, lib=_library)


# --- derivatives ---------------------------------------------------------------------------------
#
# A convolution is bilinear: the derivative of each of the three kinds in one operand is another kind, of the gradient and
# the other operand. A gradient of another type is rounded to the operands' first.


def _keep_forward(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    input, weight, bias, *settings = inputs
    ctx.save_for_backward(input, weight)
    ctx.settings = settings[:5]
    ctx.bias_dtype = None if bias is None else bias.dtype


def _differentiate_forward(ctx: Any, gradient: torch.Tensor) -> tuple[Any, ...]:
    input, weight = ctx.saved_tensors
    wants = ctx.needs_input_grad
    of_input = _input_gradient(gradient, weight, input, ctx.settings) if wants[0] else None
    of_weight = _weight_gradient(gradient, input, weight, ctx.settings) if wants[1] else None
    of_bias = None
    if ctx.bias_dtype is not None and wants[2]:
        of_bias = gradient.sum([d for d in range(gradient.dim()) if d != 1]).to(ctx.bias_dtype)
    return (of_input, of_weight, of_bias, *(None for _ in wants[3:]))


def _keep_gradient(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    gradient, other, _, *settings = inputs
    ctx.save_for_backward(gradient, other)
    ctx.settings = settings[:5]


def _differentiate_input_gradient(ctx: Any, of_dx: torch.Tensor) -> tuple[Any, ...]:
    gradient, weight = ctx.saved_tensors
    wants = ctx.needs_input_grad
    of_gradient = _forward(of_dx, weight, gradient, ctx.settings) if wants[0] else None
    of_weight = _weight_gradient(gradient, of_dx, weight, ctx.settings) if wants[1] else None
    return (of_gradient, of_weight, *(None for _ in wants[2:]))


def _differentiate_weight_gradient(ctx: Any, of_dw: torch.Tensor) -> tuple[Any, ...]:
    gradient, input = ctx.saved_tensors
    wants = ctx.needs_input_grad
    of_gradient = _forward(input, of_dw, gradient, ctx.settings) if wants[0] else None
    of_input = _input_gradient(gradient, of_dw, input, ctx.settings) if wants[1] else None
    return (of_gradient, of_input, *(None for _ in wants[2:]))


def _forward(input: torch.Tensor, weight: torch.Tensor, like: torch.Tensor, settings: Any) -> torch.Tensor:
    y: torch.Tensor = torch.ops.gemmery.conv_forward(input, weight.to(input.dtype), None, *settings, like.dtype)
    return y


def _input_gradient(gradient: torch.Tensor, weight: torch.Tensor, like: torch.Tensor, settings: Any) -> torch.Tensor:
    dx: torch.Tensor = torch.ops.gemmery.conv_input_gradient(
        gradient.to(weight.dtype), weight, like.shape, *settings, like.dtype
    )
    return dx


def _weight_gradient(gradient: torch.Tensor, input: torch.Tensor, like: torch.Tensor, settings: Any) -> torch.Tensor:
    dw: torch.Tensor = torch.ops.gemmery.conv_weight_gradient(
        gradient.to(input.dtype), input, like.shape, *settings, like.dtype
    )
    return dw


for _name, _differentiate, _keep in (
    ("conv_forward", _differentiate_forward, _keep_forward),
    ("conv_input_gradient", _differentiate_input_gradient, _keep_gradient),
    ("conv_weight_gradient", _differentiate_weight_gradient, _keep_gradient),
):
    torch.library.register_autograd(f"gemmery::{_name}", _differentiate, setup_context=_keep, lib=_library)
