# SPDX-License-Identifier: Apache-2.0
"""GroupedGemmArguments: every form of the sizes, from arrays and numbers, and lists of problems."""

import gc
import sys

import numpy
import pytest

import gemmery

T, G, K, N = 20, 3, 16, 8
ENDS = [5, 5, 17]
GROUP_OF_ROW = [0] * 5 + [2] * 12 + [-1] * 3


@pytest.fixture
def operands():
    random = numpy.random.default_rng()
    a = random.integers(-4, 5, (T, K)).astype("f4")
    b = random.integers(-4, 5, (G, K, N)).astype("f4")
    return a, b, numpy.full((T, N), numpy.nan, "f4")


def run_all(args):
    """Runs each kernel on a poisoned out; yields after each."""
    kernels = gemmery.get_kernels(args)
    assert kernels
    for kernel in kernels:
        for out in args.out if isinstance(args.out, list) else [args.out]:
            out[...] = numpy.nan
        kernel.run(args)
        yield kernel


def expected_rows(a, b, groups=GROUP_OF_ROW):
    poison = numpy.full(b.shape[2], numpy.nan, "f4")
    return numpy.stack([a[row] @ b[group] if group >= 0 else poison for row, group in enumerate(groups)])


@pytest.mark.parametrize("kind", ["int32", "int64", "numbers"])
@pytest.mark.parametrize(
    ("form", "sizes"),
    [("offsets", ENDS), ("prefix", [0, *ENDS]), ("counts", [5, 0, 12]), ("labels", GROUP_OF_ROW)],
)
def test_every_form_of_the_sizes_gives_the_same(operands, kind, form, sizes):
    a, b, out = operands
    given = sizes if kind == "numbers" else numpy.array(sizes, kind)
    args = gemmery.GroupedGemmArguments(a, b, out, **{form: given})
    assert args.offsets is (None if kind == "numbers" else given)
    for _ in run_all(args):
        numpy.testing.assert_array_equal(out, expected_rows(a, b))


def test_arguments_in_the_order_of_cutlass(operands):
    a, b, out = operands
    args = gemmery.GroupedGemmArguments(a, b, out, "float32", numpy.array(ENDS, "i4"))
    assert args.problem == "grouped_gemm 20x8x16 groups=3 a=f32"
    assert args.problem_size == (T, N, K, G)
    assert isinstance(args, gemmery.GemmArguments)


def test_columns_depth_and_stacks(operands):
    a, b, _ = operands
    rows = expected_rows(a, b)
    columns = numpy.empty((N, T), "f4")
    transposed = gemmery.GroupedGemmArguments(b.transpose(0, 2, 1), a.T, columns, offsets=ENDS)
    for _ in run_all(transposed):
        numpy.testing.assert_array_equal(columns, rows.T)
    gradient = numpy.empty((G, K, N), "f4")
    grad = numpy.random.default_rng().integers(-3, 4, (T, N)).astype("f4")
    for _ in run_all(gemmery.GroupedGemmArguments(a.T, grad, gradient, offsets=ENDS)):
        for group, (start, end) in enumerate([(0, 5), (5, 5), (5, 17)]):
            numpy.testing.assert_array_equal(gradient[group], a[start:end].T @ grad[start:end])
    stack = numpy.empty((2, 10, N), "f4")
    masked = gemmery.GroupedGemmArguments(a.reshape(2, 10, K), b[:2], stack, masked=[0, 7], expected=3)
    for _ in run_all(masked):
        assert numpy.isnan(stack[0]).all() and numpy.isnan(stack[1, 7:]).all()
        numpy.testing.assert_array_equal(stack[1, :7], a[10:17] @ b[1])


def test_rows_outside_become_zero_on_request(operands):
    a, b, out = operands
    for _ in run_all(gemmery.GroupedGemmArguments(a, b, out, offsets=ENDS, outside="zero")):
        assert not out[17:].any() and not numpy.isnan(out).any()


def test_operands_of_an_epilogue_per_group(operands):
    a, b, out = operands
    bias = numpy.arange(G * N, dtype="f4").reshape(G, 1, N)
    top = numpy.empty((G, 1, 1), "f4")
    epilogue = gemmery.EpilogueArguments("D = relu(accum + bias); top = amax(D)", bias=bias, top=top)
    args = gemmery.GroupedGemmArguments(a, b, out, offsets=ENDS, epilogue=epilogue)
    for _ in run_all(args):
        for group, (start, end) in enumerate([(0, 5), (5, 5), (5, 17)]):
            expected = numpy.maximum(a[start:end] @ b[group] + bias[group], 0)
            numpy.testing.assert_array_equal(out[start:end], expected)
            assert top[group, 0, 0] == (expected.max() if end > start else 0)


def test_sizes_are_read_when_work_runs_unless_read_now(operands):
    a, b, out = operands
    ends = numpy.array(ENDS, "i4")
    late = gemmery.GroupedGemmArguments(a, b, out, offsets=ends)
    early = gemmery.GroupedGemmArguments(a, b, out, offsets=ends, read_now=True)
    ends[:] = [1, 1, 1]
    for args, rows in ((late, 1), (early, 17)):
        for _ in run_all(args):
            assert numpy.isnan(out).any(axis=1).sum() == T - rows
    other = numpy.array([T, T, T], "i4")
    late.set_data("sizes", other)
    for _ in run_all(late):
        numpy.testing.assert_array_equal(out, a @ b[0])
    with pytest.raises(ValueError, match="sizes"):
        late.set_data("sizes", numpy.array([1, 2], "i4"))


# A mixture layer: tokens are read in place, results are multiplied by weights and stored in the order of (token, choice) pairs.
@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_rows_by_index_are_a_mixture_without_a_permutation(kind):
    random = numpy.random.default_rng()
    tokens, choices = 9, 2
    x = random.integers(-4, 5, (tokens, K)).astype("f4")
    b = random.integers(-4, 5, (G, K, N)).astype("f4")
    weight = random.integers(1, 4, (tokens * choices, 1)).astype("f4")
    expert = random.integers(-1, G, tokens * choices)  # of each pair; -1: not on this machine
    order = numpy.argsort(numpy.where(expert < 0, G, expert), kind="stable").astype(kind)
    counts = numpy.bincount(expert[expert >= 0], minlength=G).astype("i4")
    out = numpy.full((tokens * choices, N), numpy.nan, "f4")
    epilogue = gemmery.EpilogueArguments("D = weight * accum", weight=weight)
    args = gemmery.GroupedGemmArguments(
        x, b, out, counts=counts, gather=order, gather_divide=choices, scatter=order, epilogue=epilogue
    )
    assert args.gather is order and args.scatter is order
    for _ in run_all(args):
        for pair, group in enumerate(expert):
            if group < 0:
                assert numpy.isnan(out[pair]).all()
            else:
                numpy.testing.assert_array_equal(out[pair], weight[pair] * (x[pair // choices] @ b[group]))


def test_indices_of_minus_one_are_zeros_and_nowhere(operands):
    a, b, out = operands
    gather, scatter = numpy.arange(T, dtype="i8"), numpy.arange(T, dtype="i4")[::-1].copy()
    gather[0] = scatter[1] = -1
    args = gemmery.GroupedGemmArguments(a, b, out, offsets=ENDS, gather=gather, scatter=scatter)
    for _ in run_all(args):
        assert not out[T - 1].any() and numpy.isnan(out[T - 2]).all()
        numpy.testing.assert_array_equal(out[T - 3], a[2] @ b[0])
    other = numpy.full(T, -1, "i4")
    args.set_data("scatter", other)
    for _ in run_all(args):
        assert numpy.isnan(out).all()
    gather[4] = T
    with pytest.raises(gemmery.Error, match=r"gather\[4\]: expected -1, or from 0 to 19, got 20"):
        gemmery.get_kernels(args)[0].run(args)
    with pytest.raises(ValueError, match="like the one that was bound"):
        args.set_data("gather", other)


def test_a_list_of_problems_each_with_its_own(operands):
    a, b, _ = operands
    outs = [numpy.empty((T, N), "f4"), numpy.empty((3, N), "f4"), numpy.empty((0, N), "f4")]
    c = [numpy.ones_like(out) for out in outs]
    args = gemmery.GroupedGemmArguments([a, a[:3], a[:0]], list(b), outs, C=c, alpha=2, beta=[1, 0, 1])
    assert args.A[1].shape == (3, K) and args.out == outs
    for _ in run_all(args):
        numpy.testing.assert_array_equal(outs[0], 2 * (a @ b[0]) + 1)
        numpy.testing.assert_array_equal(outs[1], 2 * (a[:3] @ b[1]))
    with pytest.raises(gemmery.Error, match="list of problems"):
        args.set_data("A", a)


@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        ({}, "offsets: expected the end of every group"),
        ({"offsets": ENDS, "counts": [5, 0, 12]}, "offsets and counts"),
        ({"offsets": numpy.array(ENDS, "f4")}, "a packed vector of int32 or int64"),
        ({"offsets": numpy.arange(6, dtype="i4")[::2]}, "a packed vector of int32 or int64"),
        ({"offsets": numpy.arange(6, dtype="i8")[::2]}, "a strided vector of int64; copy it"),
        ({"offsets": numpy.array(3, "i8")}, r"int64 of shape \(\)"),
        ({"offsets": numpy.ones((3, 1), "i8")}, r"int64 of shape \(3, 1\)"),
        ({"offsets": numpy.array(ENDS, "u8")}, r'a packed vector of int32 or int64.*convert it: array.astype\("int32"\)'),
        ({"offsets": numpy.array(ENDS, "i2")}, "a packed vector of int32 or int64"),
        ({"offsets": ["one", 2, 3]}, "whole numbers"),
        ({"offsets": [1, 2, 2**63]}, "64 bits at most"),
        ({"offsets": ENDS, "ragged": "k"}, "ragged: expected m, by the ranks"),
        ({"offsets": [5, 4, 3]}, r"ends\[1\]: expected from 5 to 20, got 4"),
        ({"offsets": numpy.array([5, 4, 3], "i4"), "check": True}, r"ends\[1\]"),
        ({"offsets": [1, 2]}, "expected 3 sizes, got 2"),
        ({"offsets": ENDS, "outside": "nan"}, "untouched or zero"),
        ({"offsets": ENDS, "ragged": "x"}, "m, n or k"),
        ({"offsets": ENDS, "alignment": 0}, "alignment"),
        ({"offsets": ENDS, "gather": [1, 2]}, "gather: expected an array of int32 or int64"),
        ({"offsets": ENDS, "gather": numpy.zeros(T, "f4")}, "gather: expected a packed vector"),
        ({"offsets": ENDS, "gather": numpy.zeros(3, "i4")}, "gather: expected 20 indices, one for each row of out, got 3"),
        ({"offsets": ENDS, "scatter": numpy.zeros(T, "i4"), "check": True}, r"scatter\[1\].*got 0, as in scatter\[0\]"),
        ({"offsets": ENDS, "gather_divide": 2}, "gather_divide: expected 1 without a gather"),
        ({"masked": [1, 2, 3]}, "stacks"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(operands, keywords, says):
    with pytest.raises(ValueError, match=says):
        gemmery.GroupedGemmArguments(*operands, **keywords)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ragged", "k"),
        ("outside", "zero"),
        ("outside", "nan"),
        ("alignment", 8),
        ("expected", 3),
        ("read_now", True),
        ("check", True),
    ],
)
def test_a_list_takes_no_promises_about_sizes(operands, name, value):
    a, b, out = operands
    with pytest.raises(ValueError, match=f"{name}: expected none with a list of problems"):
        gemmery.GroupedGemmArguments([a], [b[0]], [out], **{name: value})


def test_sizes_inside_out_are_refused(operands):
    a, b, out = operands
    sizes = out.reshape(-1)[:G].view("i4")
    sizes[:] = ENDS
    with pytest.raises(ValueError, match="out: expected memory that shares nothing with sizes"):
        gemmery.GroupedGemmArguments(a, b, out, offsets=sizes)


def test_what_is_not_served_is_refused_by_name(operands):
    args = gemmery.GroupedGemmArguments(*operands, offsets=ENDS)
    with pytest.raises(gemmery.Error, match="to_device"):
        args.to_device()
    reasons = gemmery.explain(args, cc=90)
    assert "groups" in str(reasons)


def test_arguments_keep_their_memory_alive(operands):
    a, b, out = operands
    sizes = numpy.array(ENDS, "i8")
    before = sys.getrefcount(sizes)
    args = gemmery.GroupedGemmArguments(a, b, out, offsets=sizes)
    assert sys.getrefcount(sizes) > before
    del args
    gc.collect()
    assert sys.getrefcount(sizes) == before
