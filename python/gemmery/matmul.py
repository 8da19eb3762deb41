# SPDX-License-Identifier: Apache-2.0
"""A matrix product in one call: makes arguments, finds the best kernel, compiles it once and runs it."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from gemmery import _core
from gemmery._call_errors import suggestion
from gemmery.discovery import get_kernels
from gemmery.epilogue import EpilogueArguments
from gemmery.errors import UnsupportedError
from gemmery.kernel import registrations
from gemmery.promotion import product_dtype
from gemmery.scales import ScaledOperand
from gemmery.typing import TensorLike

__all__ = ["matmul"]

_keywords = ("out", "epilogue", "out_dtype", "accumulator_type", "C", "alpha", "beta", "stream")


def matmul(
    a: TensorLike | ScaledOperand,
    b: TensorLike | ScaledOperand,
    out: TensorLike | None = None,
    epilogue: Any = None,
    *,
    out_dtype: Any = None,
    accumulator_type: Any = None,
    C: TensorLike | None = None,
    alpha: float = 1.0,
    beta: float | None = None,
    stream: Any = None,
    **operands: Any,
) -> Any:
    """a @ b, (M, K) by (K, N) or batches of them, by the kernel that discovery ranks first.

        gemmery.matmul(a, b)
        gemmery.matmul(a, b, out=out, C=residual)                    # a @ b + residual
        gemmery.matmul(a, b, epilogue=lambda accum, bias: gelu(accum + bias), bias=bias)
        gemmery.matmul(a, gemmery.ScaledOperand(q, scale, mode="row"))

    out: written and returned; None: a new tensor of a's framework and of `out_dtype` (None: the narrowest type that
        holds all values of a's and b's types, as NumPy promotes them; int32 for integers; beside an operand with scales the
        other one's type of 16 bits or more, else it must be said). Views, also a and b, may have any strides.
    epilogue: a program as for EpilogueArguments, with its tensors and numbers as `operands`; or EpilogueArguments. A callable
        is traced only once as long as nothing that it reads changes (gemmery.fusion.trace).
    C, alpha, beta: alpha * a @ b + beta * C; beta is 1 if C is given. Only without an epilogue.
    stream: None: the stream that a's framework reports as current. The call does not wait for the work, except with jax.

    The kernel of a problem is found once per process and compiled at its first use. UnsupportedError with the reasons
    of `explain` if there is none; ValueError for shapes that do not fit.
    """
    given = out
    if out is None:
        out = _empty_result(_elements(a), _elements(b), _result_dtype(a, b, out_dtype))
    args = _core.GemmArguments(
        a,
        b,
        out,
        accumulator_type,
        epilogue=_bound(epilogue, operands),
        C=C,
        alpha=alpha,
        beta=beta if beta is not None else (0.0 if C is None else 1.0),
    )
    kernel_for(args).run(args, stream=stream)
    return _of_framework(_elements(a), out) if given is None else out


def _elements(operand: Any) -> Any:
    return operand.quantized if isinstance(operand, ScaledOperand) else operand


def _result_dtype(a: Any, b: Any, out_dtype: Any) -> Any:
    """The type that was asked for; where one operand has scales, that of the other one. None: by the types of both."""
    others = [operand for operand in (a, b) if not isinstance(operand, ScaledOperand)]
    if out_dtype is not None or len(others) == 2:
        return out_dtype
    if not others and all(operand._program is not None and _dtype_of(operand.quantized).bits >= 16 for operand in (a, b)):
        return None
    if not others or _dtype_of(others[0]).bits < 16:
        raise TypeError("matmul: out_dtype: expected the type of the result, which scales do not tell, got None")
    is_own = hasattr(others[0], "dtype") and _framework(others[0]) == _framework(_elements(a))
    return others[0].dtype if is_own else _dtype_of(others[0]).name


def _bound(epilogue: Any, operands: dict[str, Any]) -> Any:
    if epilogue is None:
        if operands:
            name = next(iter(operands))
            raise TypeError(f"matmul() got an unexpected keyword argument '{name}'{suggestion(name, _keywords)}")
        return None
    if isinstance(epilogue, _core.EpilogueArguments):
        if operands:
            raise TypeError("matmul: expected operands bound by EpilogueArguments or by keywords, got both")
        return epilogue
    return EpilogueArguments(epilogue, **operands)


# --- the kernel of a problem ---------------------------------------------------------------------

_kernels: dict[tuple[bytes, int], Any] = {}
_lock = threading.Lock()
_most_kernels = 8192


def kernel_for(args: _core.GemmArguments) -> Any:
    """The first kernel of get_kernels(args), cached by problem and device until a kernel or a class is registered or
    withdrawn."""
    key = (args._identity, registrations.count)
    kernel = _kernels.get(key)
    if kernel is None:
        kernel = _first(args)
        with _lock:
            if len(_kernels) >= _most_kernels:
                _kernels.clear()
            _kernels[key] = kernel
    return kernel


def _first(args: _core.GemmArguments) -> Any:
    kernels = get_kernels(args)
    if not kernels:
        raise UnsupportedError(f"unsupported: no kernel serves these arguments\n{_core.explain(args)}")
    return kernels[0]


# --- results -------------------------------------------------------------------------------------


def result_shape(a: Any, b: Any) -> tuple[int, ...]:
    """(M, N), or (L, M, N) if a or b is a batch."""
    shapes = (_shape_of(a, "a"), _shape_of(b, "b"))
    if any(len(shape) not in (2, 3) for shape in shapes):
        raise ValueError(f"matmul: expected operands of rank 2 or 3, got {tuple(shapes[0])} and {tuple(shapes[1])}")
    batches = [shape[0] for shape in shapes if len(shape) == 3]
    matrix = (shapes[0][-2], shapes[1][-1])
    return (max(batches), *matrix) if batches else matrix


def _shape_of(operand: Any, name: str) -> tuple[int, ...]:
    """The shape according to the framework; for objects with only DLPack, according to the library."""
    if not hasattr(operand, "shape") and not hasattr(operand, "__dlpack__"):
        raise TypeError(
            f"{name}: expected a tensor (torch, numpy, cupy, jax or any with DLPack 1.x), got {type(operand).__name__}"
        )
    shape: tuple[int, ...] = operand.shape if hasattr(operand, "shape") else _core.as_tensor(operand).shape
    return shape


def _empty_result(a: Any, b: Any, out_dtype: Any) -> Any:
    shape = result_shape(a, b)
    framework = _framework(a)
    if framework in ("torch", "numpy", "cupy"):
        library = __import__(framework)
        dtype = _product_dtype(library, a, b) if out_dtype is None else out_dtype
        if framework == "torch":
            return library.empty(shape, dtype=_torch_dtype(library, dtype), device=a.device)
        with a.device if framework == "cupy" else contextlib.nullcontext():  # cupy's are made on the current one
            return library.empty(shape, dtype=dtype)
    view = _core.as_tensor(a)
    dtype = _core.dtype(out_dtype) if out_dtype is not None else product_dtype(view.dtype, _dtype_of(b))
    return _core.empty(shape, dtype, view.device)


def _dtype_of(operand: Any) -> Any:
    return _core.dtype(operand.dtype) if hasattr(operand, "dtype") else _core.as_tensor(operand).dtype


def _product_dtype(library: Any, a: Any, b: Any) -> Any:
    """The type of the product as the framework's own object: that of an operand if it has this type (ml_dtypes are not the
    library's)."""
    types = (_core.dtype(a.dtype), _dtype_of(b))
    dtype = product_dtype(*types)
    if dtype in types:
        operand = (a, b)[types.index(dtype)]
        if hasattr(operand, "dtype") and _framework(operand) == library.__name__:
            return operand.dtype
    return getattr(library, dtype.name)


def _torch_dtype(torch: Any, dtype: Any) -> Any:
    return dtype if isinstance(dtype, torch.dtype) else getattr(torch, _core.dtype(dtype).name)


def _of_framework(a: Any, out: Any) -> Any:
    """Converts to an array of jax if a is one. The work has completed then, as always with operands of jax."""
    if _framework(a) not in ("jax", "jaxlib"):
        return out
    import jax

    return jax.dlpack.from_dlpack(out)


def _framework(tensor: Any) -> str:
    return type(tensor).__module__.partition(".")[0]
