# SPDX-License-Identifier: Apache-2.0
"""Element types of other packages in all places that take a type. Fakes replace packages that are not installed."""

import importlib.util

import numpy as np
import pytest

import gemmery
from gemmery import metadata, utils


class DslType(type):
    """The metaclass of the CuTe DSL's types, which are classes."""


def dsl_type(name):
    return DslType(name, (), {"__module__": "cutlass.base_dsl.typing"})


class TorchDtype:
    """Like torch.dtype: an instance whose str is torch's name."""

    def __init__(self, name):
        self._text = f"torch.{name}"

    def __repr__(self):
        return self._text


DSL_NAMES = {
    "float64": "Float64",
    "float32": "Float32",
    "float16": "Float16",
    "bfloat16": "BFloat16",
    "float8_e4m3fn": "Float8E4M3FN",
    "float8_e5m2": "Float8E5M2",
    "int8": "Int8",
    "uint8": "Uint8",
    "int32": "Int32",
    "uint32": "Uint32",
}
SPELLINGS = [
    *[(name, dsl_type(theirs)) for name, theirs in DSL_NAMES.items()],
    *[(name, TorchDtype(name)) for name in DSL_NAMES],
    *[(name, name) for name in DSL_NAMES],
    *[(name, np.dtype(name)) for name in DSL_NAMES if "float8" not in name and name != "bfloat16"],
    *[(name, getattr(np, name)) for name in DSL_NAMES if "float8" not in name and name != "bfloat16"],
]
if importlib.util.find_spec("ml_dtypes"):
    import ml_dtypes

    SPELLINGS += [(name, getattr(ml_dtypes, name)) for name in DSL_NAMES if "float8" in name or name == "bfloat16"]
    SPELLINGS += [(name, np.dtype(getattr(ml_dtypes, name))) for name in DSL_NAMES if "float8" in name or name == "bfloat16"]
if importlib.util.find_spec("cutlass"):
    import cutlass

    SPELLINGS += [(name, getattr(cutlass, theirs)) for name, theirs in DSL_NAMES.items()]
if importlib.util.find_spec("torch"):
    import torch

    SPELLINGS += [(name, getattr(torch, name)) for name in DSL_NAMES]


@pytest.mark.parametrize(("name", "spelling"), SPELLINGS)
def test_a_type_equals_its_other_spellings_both_ways(name, spelling):
    ours = getattr(gemmery.DType, name)
    assert gemmery.dtype.dtype(spelling) is ours
    assert ours == spelling and spelling == ours
    assert (ours != spelling, spelling != ours) == (False, False)
    for other in gemmery.DType:
        assert (other == spelling) is (other is ours)


@pytest.mark.parametrize("thing", [None, 3, object(), "no type", "torch", "\udc80", int, [], gemmery.Status.success()])
def test_a_type_equals_nothing_else(thing):
    assert gemmery.float32 != thing and thing != gemmery.float32


def test_hashes_are_those_of_our_types_only():
    assert {gemmery.dtype.dtype(np.dtype("float32")): 1}[gemmery.float32] == 1
    assert gemmery.float32 in {gemmery.DType.float32}
    assert len(set(gemmery.DType)) == len(list(gemmery.DType))


@pytest.mark.parametrize(("name", "spelling"), SPELLINGS)
def test_metadata_takes_every_spelling(name, spelling):
    ours = getattr(gemmery.DType, name)
    attributes = metadata.TensorAttributes(spelling, (0, 0, 1), 1)
    assert attributes.dtype is ours and attributes == metadata.TensorAttributes(ours, (0, 0, 1), 1)
    operands = metadata.GemmOperandsMetadata(attributes, attributes, attributes, spelling)
    assert operands.accumulator_type is ours


def test_metadata_of_a_peers_types_supports_arguments():
    f64 = metadata.TensorAttributes(dsl_type("Float64"), (0, 0, 1), 1)
    operands = metadata.GemmOperandsMetadata(f64, f64, f64, accumulator_type=dsl_type("Float64"))
    a, out = np.ones((4, 4)), np.empty((4, 4))
    assert operands.supports(gemmery.GemmArguments(a, a.copy(), out, accumulator_type=dsl_type("Float64")))


def test_divisibility_of_later_releases_is_in_elements():
    attributes = metadata.DenseTensorAttributes(dsl_type("Float16"), (0, 0, 1), 8)
    assert attributes.alignment == 16 and isinstance(attributes, metadata.TensorAttributes)
    assert not attributes.supports(np.zeros((16, 12), np.float16))


def test_tf32_is_float32_in_memory_and_a_choice_of_math():
    tf32 = metadata.TensorAttributes(dsl_type("TFloat32"), (0, 0, 1), 4)
    assert tf32.dtype is gemmery.float32 and tf32.is_tf32
    assert metadata.GemmOperandsMetadata(tf32, tf32, tf32, "float32").math == "tf32"
    assert gemmery.float32 != dsl_type("TFloat32")


def test_a_filter_with_a_peers_type_finds_what_ours_finds():
    def kernels(dtype):
        return gemmery.get_kernels(cc="cpu", metadata_filter=lambda m: m.operands.A.dtype == dtype)

    found = kernels(dsl_type("Float16"))
    assert found and found == kernels(gemmery.float16) == kernels(TorchDtype("float16"))


def test_a_wrapper_is_a_view_and_checks_its_alignment():
    memory = np.zeros(64, np.uint8)
    start = -memory.ctypes.data % 16
    wrapped = utils.TensorWrapper(memory[start:], alignment_bytes=16)
    assert isinstance(wrapped, gemmery.Tensor) and isinstance(wrapped, utils.TensorWrapper)
    assert isinstance(utils.TensorWrapper(wrapped), gemmery.Tensor)
    with pytest.raises(ValueError, match="multiple of 16"):
        utils.TensorWrapper(memory[start + 1 :], alignment_bytes=16)
