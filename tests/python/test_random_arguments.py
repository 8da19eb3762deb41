# SPDX-License-Identifier: Apache-2.0
"""Random operands: accepted ones give correct results, others give a ValueError; nothing else happens."""

import os

import ml_dtypes
import numpy
import pytest
from hypothesis import HealthCheck, example, given, seed, settings
from hypothesis import strategies as st

import gemmery
from conftest import SEED

EXAMPLES = 20_000 if os.environ.get("GEMMERY_SOAK") == "1" else 200

DTYPES = [
    numpy.float64, numpy.float32, numpy.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, numpy.int8,
    numpy.uint8, numpy.int32, numpy.int64, numpy.complex64, numpy.bool_,
]  # fmt: skip

extents = st.integers(0, 9)
dtypes = st.sampled_from(DTYPES)


@st.composite
def arrays(draw, shape):
    """An array of a shape (nearly always) with any strides and its own memory."""
    shape = list(shape)
    if draw(st.integers(0, 19)) == 0:
        shape[draw(st.integers(0, len(shape) - 1))] = draw(extents)
    if draw(st.integers(0, 29)) == 0:
        shape = [draw(extents), *shape]
    dtype = draw(dtypes)
    axes = draw(st.permutations(range(len(shape))))
    steps = [draw(st.sampled_from([1, 1, 1, 2, -1, -3])) for _ in shape]
    whole = [max(extent, 1) * abs(step) for extent, step in zip(shape, steps, strict=True)]
    memory = numpy.zeros([whole[axis] for axis in axes], dtype=numpy.float32)
    memory[...] = (numpy.arange(memory.size) % 7 - 3).reshape(memory.shape)
    memory = memory.astype(dtype).transpose(numpy.argsort(axes))
    array = memory[tuple(slice(None, None, step) for step in steps)]
    array = array[tuple(slice(0, extent) for extent in shape)]
    if shape and draw(st.integers(0, 9)) == 0:
        array = numpy.broadcast_to(array[:1], (shape[0], *shape[1:])) if shape[0] and array.shape[0] else array
    return array


@st.composite
def operands(draw):
    m, n, k, batch = draw(extents), draw(extents), draw(extents), draw(st.sampled_from([None, None, 1, 3]))
    lead = [] if batch is None else [batch]
    return draw(arrays([*lead, m, k])), draw(arrays([*lead, k, n])), draw(arrays([*lead, m, n]))


accumulators = st.sampled_from([None, "float32", "float64", "float16", "int32", numpy.float32, "bf16"])


@seed(SEED)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(operands=operands(), accumulator=accumulators)
@example((numpy.zeros((0, 0), "f"),) * 3, None)
def test_arguments_compute_or_refuse(operands, accumulator):
    a, b, out = operands
    try:
        args = gemmery.GemmArguments(a, b, out, accumulator)
    except ValueError as error:
        assert isinstance(error, gemmery.Error) and error.operand and error.expected and error.got, error
        return
    kernels = gemmery.get_kernels(args)
    if not kernels:
        assert all(reason.failed for reason in gemmery.explain(args).reasons)
        return
    reference = kernels[-1]
    assert reference.supports(args)
    reference.run(args)
    if out.dtype not in (numpy.float64, numpy.float32, numpy.int32):
        return
    # Small integers: every sum is exact.
    assert (out.astype("d") == a.astype("d") @ b.astype("d")).all()


@seed(SEED)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(
    shape=st.lists(st.integers(-2, 2**40), max_size=7),
    strides=st.none() | st.lists(st.integers(-(2**40), 2**40), max_size=7),
    data=st.sampled_from([0, 1, 16, 256, 2**63, 2**64 - 1]),
    dtype=st.sampled_from(["f32", "bf16", "e4m3", "float4_e2m1fn", "int8"]),
    device=st.sampled_from(["cuda:0", "cpu", "cuda:-1", "emulated:h200", "tpu"]),
)
def test_views_of_addresses_hold_what_they_were_given_or_refuse(shape, strides, data, dtype, device):
    try:
        tensor = gemmery.Tensor(data, shape, dtype, strides, device)
    except ValueError as error:
        assert isinstance(error, gemmery.Error), error
        return
    assert tensor.data_ptr == data and tensor.shape == tuple(shape)
    assert strides is None or tensor.strides == tuple(strides)
    try:
        gemmery.GemmArguments(tensor, tensor, gemmery.Tensor(1 << 50, shape, dtype, None, device))
    except ValueError as error:
        assert isinstance(error, gemmery.Error), error


@pytest.mark.parametrize("count", [0, 1, 6])
def test_arguments_of_random_objects_are_type_errors(count):
    with pytest.raises(TypeError):
        gemmery.GemmArguments(*[object()] * count)
