# SPDX-License-Identifier: Apache-2.0
"""Operand programs: text and traced functions, scaled operands, what the result is, what is refused."""

import re

import numpy as np
import pytest

import gemmery


@pytest.fixture
def rng():
    return np.random.default_rng()


def integers(rng, *shape, dtype=np.float32):
    return rng.integers(-4, 5, shape).astype(dtype)


def run_all(args, out, exact):
    for kernel in gemmery.get_kernels(args):
        out[...] = np.nan
        kernel.run(args)
        assert (out == exact).all(), kernel
        assert gemmery.find_kernel(kernel.name) == kernel


def test_text_and_functions_are_one_program(rng):
    x, gate, w = integers(rng, 9, 40), integers(rng, 9, 40), integers(rng, 40, 7)
    out = np.empty((9, 7), np.float32)

    def gated(a, gate):
        return relu(a) * gate  # noqa: F821

    text = gemmery.OperandProgram("A = relu(a) * gate", x, gate=gate)
    traced = gemmery.OperandProgram(gated, x, gate=gate)
    assert text.text == traced.text == "A = gate * relu(a)"
    one, two = (gemmery.GemmArguments(operand, w, out) for operand in (text, traced))
    assert one.problem == two.problem
    assert 'program_a="A = gate * relu(a)" a.gate=f32' in one.problem
    run_all(two, out, (np.maximum(x, 0) * gate) @ w)


def test_programs_of_b_take_vectors_and_numbers(rng):
    x, codes = integers(rng, 5, 16), rng.integers(0, 9, (16, 6)).astype(np.uint8)
    by_k, by_n = integers(rng, 16, 1), integers(rng, 6)
    out = np.empty((5, 6), np.float32)
    B = gemmery.OperandProgram(lambda b, by_k, by_n, zero: (b - zero) * by_k + by_n, codes, by_k=by_k, by_n=by_n, zero=4)
    args = gemmery.GemmArguments(x, B, out)
    run_all(args, out, x @ ((codes.astype(np.float32) - 4) * by_k + by_n))
    assert "b.zero=4" in args.problem


def test_scaled_operands_are_scaled_first(rng):
    codes, scale = integers(rng, 4, 64, dtype=np.int8), (2.0 ** rng.integers(-2, 3, (4, 2))).astype(np.float32)
    w = integers(rng, 64, 3)
    A = gemmery.OperandProgram("A = max(a, -1)", gemmery.ScaledOperand(codes, scale, (1, 32), "strided"))
    out = gemmery.matmul(A, w)
    assert (out == np.maximum(codes * np.repeat(scale, 32, 1), -1) @ w).all()


def test_matmul_keeps_kernels_of_programs_apart(rng):
    x, w = integers(rng, 8, 8), integers(rng, 8, 8)
    assert (gemmery.matmul(gemmery.OperandProgram("A = abs(a)", x), w) == np.abs(x) @ w).all()
    assert (gemmery.matmul(gemmery.OperandProgram("A = -a", x), w) == -x @ w).all()
    for slope in (2.0, 3.0):
        assert (gemmery.matmul(gemmery.OperandProgram("A = a * s", x, s=slope), w) == slope * x @ w).all()


def test_what_operands_cannot_be_is_refused_by_name(rng):
    x, w, out = integers(rng, 8, 8), integers(rng, 8, 8), np.empty((8, 8), np.float32)
    for program, part in [
        ("A = sum(a)", "program_a"),
        ("def f(a):\n  A = a\n  peak = a\n  return A, peak", "a further result, peak"),
        ("D = accum", "either A or B"),
        (lambda accum: accum, "one of the parameters a and b"),
        (lambda a: max(a) if a else a, "where"),
    ]:
        with pytest.raises((gemmery.Error, ValueError, TypeError), match=part):
            gemmery.GemmArguments(gemmery.OperandProgram(program, x), w, out)
    with pytest.raises(gemmery.InvalidArgumentError, match="program_b"):
        gemmery.GemmArguments(x, gemmery.OperandProgram("A = a", w), out)
    with pytest.raises(gemmery.InvalidArgumentError, match="gate"):
        gemmery.GemmArguments(gemmery.OperandProgram("A = a * gate", x), w, out)
    with pytest.raises(gemmery.InvalidArgumentError, match="a.gate: expected a shape that broadcasts"):
        gemmery.GemmArguments(gemmery.OperandProgram("A = a * gate", x, gate=np.ones(3, np.float32)), w, out)
    with pytest.raises(gemmery.InvalidArgumentError, match="without a program"):
        gemmery.OperandProgram("A = a", gemmery.OperandProgram("A = a", x))


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (lambda a: reluu(a), "program_a: expected a parameter, a variable or a function, got 'reluu'"),  # noqa: F821
        (lambda b: (b, b), "program_b: expected one value, B, got 2 values; the element that is multiplied: return b"),
        (lambda a: {"D": a}, "program_a: expected one value, A, got the names D"),
        (lambda a: None, "program_a: expected a value for A, got None; the function ends with: return A"),
        (lambda a: max(a), r"program_a: expected A element by element, got a reduction \(max\)"),
        (lambda a: a / max(abs(a)), "program_a: expected operations of one element, got the max of a value"),
        (lambda a: a @ a, "program_a: expected an operator of programs, got '@'; programs work element by element\n"),
        (lambda a, *gates: a, r"program_a: expected a parameter for every operand, got \*gates; def f\(a, bias\)"),
        (lambda gate: gate, r"operand program: expected one of the parameters a and b, the element, got \(gate\)"),
        ("A = sum(a)", "program_a: .*compute it before, and bind it by name"),
    ],
)
def test_what_a_function_of_an_operand_cannot_do_is_refused_in_its_words(rng, program, said):
    with pytest.raises(gemmery.InvalidArgumentError, match=said) as raised:
        gemmery.OperandProgram(program, integers(rng, 8, 8))
    assert not re.search(r"epilogue|accum|\bD\b", str(raised.value).split("\n")[0].replace("names D", ""))
    assert raised.value.operand in said


def test_a_function_of_an_operand_may_name_its_value(rng):
    x, w = integers(rng, 8, 8), integers(rng, 8, 8)
    assert (gemmery.matmul(gemmery.OperandProgram(lambda a: {"A": 2 * a}, x), w) == 2 * x @ w).all()


def test_what_is_no_function_is_refused(rng):
    with pytest.raises(TypeError, match="operand program: expected a function or a text, got 3; wrap it: lambda a: ..."):
        gemmery.OperandProgram(3, integers(rng, 8, 8))


def test_programs_of_both_operands_give_the_type_of_both(rng):
    x, w = integers(rng, 4, 8), integers(rng, 8, 3)
    doubled, cut = gemmery.OperandProgram("A = 2 * a", x), gemmery.OperandProgram("B = relu(b)", w)
    out = gemmery.matmul(doubled, cut)
    assert out.dtype == np.float32
    assert (out == 2 * x @ np.maximum(w, 0)).all()


@pytest.mark.parametrize("value", ["x", None, [1, 2], 1j, 10**400])
def test_operands_of_another_kind_are_refused_by_name(rng, value):
    with pytest.raises(TypeError, match=r"a\.gate: expected a tensor or a number"):
        gemmery.matmul(gemmery.OperandProgram("A = a * gate", integers(rng, 4, 8), gate=value), integers(rng, 8, 3))
