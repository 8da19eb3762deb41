# SPDX-License-Identifier: Apache-2.0
"""A product in one call."""

import numpy as np
import pytest

import gemmery
from gemmery import _core
from gemmery.fusion import relu
from gemmery.promotion import product_dtype

LIBRARY_EPSILON = {np.float32: 2.0**-23, np.float64: 2.0**-52}


def bound(a, b, dtype):
    """The bound for sums in the type, in any order, and one rounding."""
    k = a.shape[-1]
    return (k + 1) * LIBRARY_EPSILON[dtype] * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shapes", [((5, 7), (7, 9)), ((3, 5, 7), (3, 7, 9)), ((3, 5, 7), (7, 9)), ((5, 7), (2, 7, 9))])
def test_it_is_the_product(rng, dtype, shapes):
    a, b = (rng.standard_normal(shape).astype(dtype) for shape in shapes)
    result = gemmery.matmul(a, b)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    assert isinstance(result, np.ndarray) and result.dtype == dtype and result.shape == exact.shape
    assert (np.abs(result - exact) <= bound(a, b, dtype)).all()


def test_views_of_any_strides_serve(rng):
    a = rng.standard_normal((14, 5)).astype(np.float32)[::2].T
    b = rng.standard_normal((9, 7)).astype(np.float32).T
    out = np.zeros((9, 5), np.float32).T
    assert gemmery.matmul(a, b, out) is out
    assert (np.abs(out - a.astype(np.float64) @ b) <= bound(a, b, np.float32)).all()


def test_an_epilogue_takes_its_operands_by_keyword(rng):
    a, b, bias = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((5, 7), (7, 9), (9,)))
    peak = np.zeros((5, 1), np.float32)

    def epilogue(accum, bias):
        D = relu(accum + bias)
        peak = max(D)
        return D, peak

    result = gemmery.matmul(a, b, epilogue=epilogue, bias=bias, peak=peak)
    expected = np.maximum(a @ b + bias, 0)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(peak, expected.max(1, keepdims=True))
    np.testing.assert_array_equal(gemmery.matmul(a, b, epilogue="D = relu(accum + bias)", bias=bias), expected)
    program = gemmery.EpilogueArguments("D = relu(accum + bias)", bias=bias)
    np.testing.assert_array_equal(gemmery.matmul(a, b, epilogue=program), expected)


def test_a_residual_is_added(rng):
    a, b, c = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((5, 7), (7, 9), (5, 9)))
    np.testing.assert_array_equal(gemmery.matmul(a, b, C=c), a @ b + c)
    np.testing.assert_array_equal(gemmery.matmul(a, b, C=c, alpha=2, beta=-1), 2 * (a @ b) - c)


def test_integers_of_8_bits_give_int32(rng):
    a, b = (rng.integers(-128, 128, shape).astype(np.int8) for shape in ((5, 70), (70, 9)))
    result = gemmery.matmul(a, b)
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, a.astype(np.int32) @ b.astype(np.int32))


FLOATING = ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"]
INTEGERS = ["int8", "uint8"]
PROMOTED = {
    "float64": dict.fromkeys(FLOATING, "float64"),
    "float32": dict.fromkeys(FLOATING[1:], "float32"),
    "float16": {"bfloat16": "float32", "float8_e4m3fn": "float16", "float8_e5m2": "float16"},
    "bfloat16": {"float8_e4m3fn": "bfloat16", "float8_e5m2": "bfloat16"},
    "float8_e4m3fn": {"float8_e5m2": "float16"},
}


def expected_result_type(a: str, b: str) -> str | None:
    if a in INTEGERS and b in INTEGERS:
        return "int32"
    if a == b:
        return a
    return PROMOTED.get(a, {}).get(b) or PROMOTED.get(b, {}).get(a)


@pytest.mark.parametrize("b_type", FLOATING + INTEGERS)
@pytest.mark.parametrize("a_type", FLOATING + INTEGERS)
def test_types_that_differ_are_promoted_or_refused(a_type, b_type):
    pytest.importorskip("ml_dtypes")
    a, b = np.full((4, 8), 1.5).astype(a_type), np.full((8, 4), 2.0).astype(b_type)
    expected = expected_result_type(a_type, b_type)
    if expected is None:
        with pytest.raises(
            gemmery.UnsupportedError, match=f"B: expected .*got {b_type} with A of {a_type}; convert one of them"
        ):
            gemmery.matmul(a, b)
        return
    try:
        result = gemmery.matmul(a, b)
    except gemmery.UnsupportedError as error:  # this machine has no kernel for the mixture; then the error has the reason
        assert "no kernel serves" in str(error)
        return
    assert result.dtype == np.dtype(expected)
    np.testing.assert_array_equal(result.astype(float), a.astype(float) @ b.astype(float))


def test_the_wider_type_of_two_keeps_its_accuracy(rng):
    a, b = rng.standard_normal((5, 70)).astype(np.float32), rng.standard_normal((70, 9))
    result = gemmery.matmul(a, b)
    assert result.dtype == np.float64
    assert (np.abs(result - a.astype(np.float64) @ b) <= 2 * bound(a, b, np.float64)).all()


def test_the_type_of_the_result_can_be_chosen(rng):
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((5, 7), (7, 9)))
    assert gemmery.matmul(a, b, out_dtype=np.float32).dtype == np.float32


@pytest.mark.parametrize(
    ("a", "b", "options", "kind", "reason"),
    [
        ((5, 7), (8, 9), {}, ValueError, "K"),
        ((5,), (5, 9), {}, ValueError, "rank 2 or 3"),
        ((5, 7), (7, 9), {"bias": 1.0}, TypeError, "unexpected keyword argument 'bias'"),
        ((5, 7), (7, 9), {"epilog": 1.0}, TypeError, "'epilog'; did you mean epilogue?"),
        ((5, 7), (7, 9), {"epilogue": "D = accum + bias"}, ValueError, "bias"),
    ],
)
def test_what_does_not_fit_is_refused(a, b, options, kind, reason):
    with pytest.raises(kind, match=reason):
        gemmery.matmul(np.zeros(a, np.float32), np.zeros(b, np.float32), **options)


# --- arrays of other frameworks ------------------------------------------------------------------

FRAMEWORKS = ["jax on the CPU", pytest.param("jax", marks=pytest.mark.gpu), pytest.param("cupy", marks=pytest.mark.gpu)]


@pytest.fixture(params=FRAMEWORKS)
def framework(request):
    """(conversion from a NumPy array, conversion to a NumPy array, the type of the framework's arrays)"""
    name, _, on_cpu = request.param.partition(" ")
    library = pytest.importorskip(name, reason=f"{name} is not installed")
    if name == "cupy":
        return library.asarray, library.asnumpy, library.ndarray
    place = library.devices("cpu" if on_cpu else "gpu")[0]
    return lambda array: library.device_put(array, place), np.asarray, library.Array


@pytest.mark.parametrize("shapes", [((5, 7), (7, 9)), ((3, 5, 7), (7, 9)), ((64, 96), (96, 80))])
def test_a_product_of_a_frameworks_arrays_is_an_array_of_it(rng, framework, shapes):
    put, get, kind = framework
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in shapes)
    result = gemmery.matmul(put(a), put(b))
    assert isinstance(result, kind) and str(result.dtype) == "float32"
    np.testing.assert_array_equal(get(result), a @ b)
    halves = gemmery.matmul(put(a.astype(np.float16)), put(b.astype(np.float16)), out_dtype="float32")
    np.testing.assert_array_equal(get(halves), a @ b)
    integers = gemmery.matmul(put(a.astype(np.int8)), put(b.astype(np.int8)))
    assert str(integers.dtype) == "int32"
    np.testing.assert_array_equal(get(integers), (a @ b).astype(np.int32))


def test_epilogues_and_residuals_of_a_frameworks_arrays(rng, framework):
    put, get, _ = framework
    a, b, bias, c = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((5, 7), (7, 9), (9,), (5, 9)))
    fused = gemmery.matmul(put(a), put(b), epilogue=lambda accum, bias: relu(accum + bias), bias=put(bias))
    np.testing.assert_array_equal(get(fused), np.maximum(a @ b + bias, 0))
    np.testing.assert_array_equal(get(gemmery.matmul(put(a), put(b), C=put(c), alpha=2)), 2 * (a @ b) + c)


def test_a_result_is_written_where_the_framework_lets_arrays_be_written(rng, framework):
    put, get, kind = framework
    a, b = (put(rng.integers(-4, 5, shape).astype(np.float32)) for shape in ((5, 7), (7, 9)))
    out = put(np.zeros((5, 9), np.float32))
    if kind.__module__.startswith("jax"):
        with pytest.raises(gemmery.InvalidArgumentError, match="arrays of JAX never may") as raised:
            gemmery.matmul(a, b, out=out)
        assert raised.value.operand == "out" and not get(out).any()
    else:
        assert gemmery.matmul(a, b, out=out) is out
        np.testing.assert_array_equal(get(out), get(a) @ get(b))


def test_frameworks_on_one_device_may_be_mixed(rng, framework):
    put, get, kind = framework
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((5, 7), (7, 9)))
    other = gemmery.empty(b.shape, "float32", gemmery.as_tensor(put(a)).device)
    other.copy_from(b)
    result = gemmery.matmul(put(a), other)
    assert isinstance(result, kind)
    np.testing.assert_array_equal(get(result), a @ b)


def test_what_jax_traces_is_refused_by_name():
    jax = pytest.importorskip("jax", reason="jax is not installed")
    with pytest.raises(TypeError, match=r"expected an array with memory.*jax\.jit.*pure_callback"):
        jax.jit(lambda a, b: gemmery.matmul(a, b))(np.ones((4, 4), "f"), np.ones((4, 4), "f"))
    with pytest.raises(TypeError, match=r"A: expected an array with memory"):
        jax.jit(lambda a: gemmery.GemmArguments(a, a, a))(np.ones((4, 4), "f"))


@pytest.mark.parametrize("b", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("a", [np.float16, np.float32, np.float64])
def test_the_type_of_mixed_floats_is_numpys(rng, a, b):
    operands = rng.standard_normal((5, 7)).astype(a), rng.standard_normal((7, 9)).astype(b)
    result = gemmery.matmul(*operands)
    assert result.dtype == np.promote_types(a, b) == (operands[0] @ operands[1]).dtype
    exact = operands[0].astype(np.float64) @ operands[1].astype(np.float64)
    magnitude = np.abs(operands[0]).astype(np.float64) @ np.abs(operands[1]).astype(np.float64)
    sums = (7 + 1) * 2.0**-23 * magnitude  # in float32 at least
    assert (np.abs(result - exact) <= sums + np.finfo(result.dtype).eps * (np.abs(exact) + sums)).all()


@pytest.mark.parametrize("pair", [(np.int8, np.int8), (np.int8, np.uint8), (np.uint8, np.int8)])
def test_the_type_of_integers_is_int32(rng, pair):
    operands = [rng.integers(0, 100, shape).astype(dtype) for shape, dtype in zip(((5, 7), (7, 9)), pair, strict=True)]
    result = gemmery.matmul(*operands)
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, operands[0].astype(np.int32) @ operands[1].astype(np.int32))


@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (("float16", "bfloat16"), "float32"),
        (("bfloat16", "float32"), "float32"),
        (("float8_e4m3fn", "float8_e5m2"), "float16"),
        (("float8_e5m2", "bfloat16"), "bfloat16"),
        (("float8_e4m3fn", "float8_e4m3fn"), "float8_e4m3fn"),
        (("float64", "float8_e5m2"), "float64"),
    ],
)
def test_a_type_that_holds_both_is_taken(pair, expected):
    for a, b in (pair, pair[::-1]):
        assert product_dtype(_core.dtype(a), _core.dtype(b)).name == expected


def test_integers_with_floats_are_refused(rng):
    with pytest.raises(ValueError, match="B: expected"):
        gemmery.matmul(np.ones((5, 7), np.float32), np.ones((7, 9), np.int8))
