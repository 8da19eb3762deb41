# SPDX-License-Identifier: Apache-2.0
"""Epilogues from Python functions: `trace`, the functions that programs know, and functions as their own reference.

    from gemmery.fusion import gelu, trace

    trace(lambda accum, bias: gelu(accum + bias)).text      # "D = gelu(accum + bias)"

Every function of the text form is an attribute here (`gemmery.fusion.silu`), also those of `define_op`. Applied to
traced values it extends the program; applied to torch tensors, NumPy arrays and numbers it computes the result.
"""

from typing import Any

from gemmery._core import function_names as _function_names
from gemmery.fusion import activation, foreign
from gemmery.fusion.functions import find as _find
from gemmery.fusion.tracing import reference, trace, trace_in_out
from gemmery.fusion.value import Reduced, TraceError, Value

__all__ = ["Reduced", "TraceError", "Value", "activation", "foreign", "reference", "trace", "trace_in_out"]


def __getattr__(name: str) -> Any:
    function = _find(name)
    if function is None:
        raise AttributeError(f"module 'gemmery.fusion' has no attribute '{name}'")
    return function


def __dir__() -> list[str]:
    return sorted({*__all__, *_function_names()})
