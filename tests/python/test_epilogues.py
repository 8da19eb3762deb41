# SPDX-License-Identifier: Apache-2.0
"""Epilogues from Python callables: accepted and refused functions, and the positions in errors."""

import copy
import functools
import math
import pickle
import random
import re

import numpy as np
import pytest

import gemmery
from gemmery import fusion
from gemmery.epilogue import accum, operand
from gemmery.fusion import gelu, trace

HERE = __file__


def line_of(function):
    return function.__code__.co_firstlineno


# --- what is read --------------------------------------------------------------------------------


def with_docstring(accum, bias):
    """A docstring is not a statement."""
    D = accum + bias
    return D


def several_results(accum, bias):
    D = relu(accum + bias)  # noqa: F821
    amax = max(abs(D))
    return D, amax


def every_loop(accum, x):
    z = accum + x
    for _ in range(2):
        z = z * z
    z += 1
    return z


def with_defaults(accum, slope=0.25):
    return where(accum > 0, accum, slope * accum)  # noqa: F821


def keyword_only(accum, *, scale):
    return accum * scale


def returns_accum(accum):
    D = relu(accum)  # noqa: F821
    return D, accum


def returns_dict(accum):
    return {"D": tanh(accum), "aux": accum}  # noqa: F821


def constant_branch(accum):
    if math.pi > 3:
        return accum
    return -accum


def named_C(accum, C):
    D = accum + C
    return D


def uses_a_cast(accum):
    return cast(accum, bf16, saturate) + inf  # noqa: F821


def swiglu_by_methods(accum, gate):
    return accum * gate.silu()


def doubled(accum):
    D = accum * 2
    aux = D * D
    return aux, D


class Scaled:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, accum):
        return accum * self.factor

    def method(self, accum, x):
        return accum * self.factor + x


def closure(factor):
    def inner(accum):
        return accum * factor

    return inner


made_by_exec: dict = {}
exec("def f(accum, b):\n    D = accum + b\n    t = D * D\n    return D, t", made_by_exec)

READ = [
    (lambda accum, bias: gelu(accum + bias), (), "D = gelu(accum + bias)"),
    (with_docstring, (), "D = accum + bias"),
    (several_results, (), "D = relu(accum + bias); amax = max(abs(D))"),
    (every_loop, (), "_1 = accum + x; _2 = _1 * _1; D = _2 * _2 + 1"),
    (with_defaults, (), "D = where(accum > 0, accum, 0.25 * accum)"),
    (with_defaults, ("slope",), "D = where(accum > 0, accum, slope * accum)"),
    (keyword_only, ("scale",), "D = scale * accum"),
    (returns_accum, ("accum",), "D = relu(accum); accum_out = accum"),
    (returns_dict, ("aux",), "D = tanh(accum); aux = accum"),
    (constant_branch, (), "D = accum"),
    (named_C, ("C",), "D = accum + C"),
    (uses_a_cast, (), "D = cast(accum, bf16, saturate) + inf"),
    (swiglu_by_methods, ("gate",), "D = silu(gate) * accum"),
    (doubled, (), "D = 2 * accum; aux = D * D"),
    (lambda x, accum: accum - x, (), "D = accum - x"),
    (lambda accum: -accum, (), "D = -accum"),
    (lambda accum: accum * -1.0, (), "D = accum * -1"),
    (lambda accum: accum**2, (), "D = accum * accum"),
    (lambda accum: 2**accum, (), "D = pow(2, accum)"),
    (lambda accum: accum * accum, (), "D = accum * accum"),
    (lambda accum: (accum > 0) * accum, (), "D = accum * where(accum > 0, 1, 0)"),
    (lambda accum: where((accum > 0) & ~(accum >= 6), accum, 0), (), None),  # noqa: F821
    (lambda accum: where((accum > 0) & True, accum, 0), (), "D = where(1 == 1 and accum > 0, accum, 0)"),  # noqa: F821
    (lambda accum: gelu(2.0) * accum + fusion.cast(1.001, "bf16"), (), "D = gelu(2) * accum + cast(1.001, bf16)"),
    (lambda accum: where(False, 1, accum), (), "D = accum"),  # noqa: F821
    (lambda accum: max(accum, 0), (), "D = max(accum, 0)"),
    (lambda accum: max(accum, 0, min(3, 2)), (), "D = max(max(accum, 0), 2)"),
    (lambda accum: abs(accum) + pow(accum, 3) + round(accum), (), None),
    (lambda accum: accum + sum([1, 2]), (), "D = accum + 3"),
    (lambda accum: accum.clamp(min=0, max=6), (), "D = clamp(accum, 0, 6)"),
    (lambda accum: accum.clamp(min=0), (), "D = max(accum, 0)"),
    (lambda accum: accum.to("float16"), (), "D = cast(accum, f16)"),
    (lambda accum: accum.astype(np.int8), (), "D = cast(accum, s8, toward_zero)"),
    (lambda accum: np.tanh(accum) * np.float32(2), (), "D = 2 * tanh(accum)"),
    (lambda accum: np.where(accum > 0, accum, np.maximum(accum, -1)), (), "D = where(accum > 0, accum, max(accum, -1))"),
    (lambda accum: identity(accum), (), "D = accum"),  # noqa: F821
    (lambda accum: leaky_relu(accum), (), "D = leaky_relu(accum, 0.01)"),  # noqa: F821
    (lambda accum: multiply_add(accum, 2, 1), (), "D = fma(accum, 2, 1)"),  # noqa: F821
    (lambda accum: (accum, accum * 2), ("aux",), "D = accum; aux = 2 * accum"),
    (lambda accum: 1.0, (), "D = 1"),
    (functools.partial(lambda accum, s: accum * s, s=3.0), (), "D = 3 * accum"),
    (Scaled(3), (), "D = 3 * accum"),
    (Scaled(3).method, ("x",), None),
    (closure(0.5), (), "D = 0.5 * accum"),
    (made_by_exec["f"], ("b", "D", "t"), "D = accum + b; t = D * D"),
    (made_by_exec["f"], ("b", "t"), "D = accum + b; t = D * D"),
    ("D = relu(accum + bias)", (), "D = relu(accum + bias)"),
    ("def f(accum, bias):\n    D = relu(accum + bias)\n    return D", (), "D = relu(accum + bias)"),
    ({"D": accum() * 2, "aux": operand("x").tanh()}, (), "D = 2 * accum; aux = tanh(x)"),
]


@pytest.mark.parametrize("case", range(len(READ)))
def test_callables_and_texts_become_the_same_program(case):
    function, bound, text = READ[case]
    program = trace(function, bound)
    assert program == gemmery.Program(program.text)
    if text is not None:
        assert program == gemmery.Program(text), program.text


def test_every_function_of_the_text_form_is_known_by_name_method_and_import():
    for name, arity in gemmery._core.functions().items():
        operands = [accum(), operand("x"), operand("y")][:arity]
        if name in ("logical_and", "logical_or", "logical_not", "where"):
            operands[0] = operands[0] > 0
        if name in ("logical_and", "logical_or"):
            operands[1] = operands[1] > 0
        result = getattr(fusion, name)(*operands)
        text = trace({"D": result}).text
        names = (
            ("accum > 0", "x > 0" if name.startswith("logical") else "x", "y")
            if name[0] in "lw" and (name.startswith("logical") or name == "where")
            else ("accum", "x", "y")
        )
        assert gemmery.Program(f"D = {name}({', '.join(names[:arity])})") == gemmery.Program(text)
        if name != "where":  # its method has torch's order
            assert trace({"D": getattr(operands[0], name)(*operands[1:])}).text == text


def test_blocks_are_reduced_within_a_program():
    def scaled(accum):
        s = fusion.mx_scale(fusion.block_amax(accum, 1, 32), "e4m3", "rceil")
        D = accum / s
        return D, s

    text = "s = mx_scale(block_amax(accum, 1, 32), e4m3, rceil); D = accum / s"
    assert trace(scaled) == gemmery.Program(text)
    a, b = np.ones((8, 1), "f4"), np.arange(-70, 0, dtype="f4").reshape(1, 70)
    out, s = np.empty((8, 70), "f4"), np.empty((8, 3), "f4")
    args = gemmery.GemmArguments(a, b, out, accumulator_type=np.float32, epilogue=gemmery.EpilogueArguments(scaled, s=s))
    gemmery.get_kernels(args)[0].run(args)
    assert (s == [[0.25, 0.125, 2.0**-6]]).all()
    assert (out == b / np.repeat(s, 32, 1)[:, :70]).all()
    assert fusion.mx_scale(np.float32(70), "e4m3", "rceil") == 0.25


def test_a_defined_operation_is_known_at_once():
    name = f"halved_{random.randrange(10**9)}"
    gemmery.define_op(name, "0.5 * x")
    function = eval(f"lambda accum: {name}(accum)")
    assert trace(function) == gemmery.Program("D = 0.5 * accum")
    assert trace({"D": getattr(fusion, name)(accum())}) == gemmery.Program("D = 0.5 * accum")


def test_the_function_itself_stays_as_it_was():
    before = dict(several_results.__globals__)
    trace(several_results)
    assert several_results.__globals__ is globals() and globals() == before
    with pytest.raises(NameError):
        several_results(np.ones((2, 2)), 1.0)


def test_a_name_of_the_users_own_wins():
    namespace: dict = {}
    exec("def relu(x):\n    return x * 3\ndef f(accum):\n    return relu(accum)", namespace)
    assert trace(namespace["f"]) == gemmery.Program("D = 3 * accum")


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda program: pickle.loads(pickle.dumps(program))])
def test_programs_are_copied_and_pickled(copied):
    program = gemmery.Program("D = relu(accum + bias); peak = amax(D)")
    again = copied(program)
    assert (
        type(again) is gemmery.Program
        and again == program
        and hash(again) == hash(program)
        and again.outputs == program.outputs
    )


def test_tracing_calls_the_function_once():
    calls = []

    def counted(accum):
        calls.append(accum)
        return accum

    trace(counted)
    assert len(calls) == 1


# --- what is refused, with the line that asked ---------------------------------------------------


def branches(accum):
    if accum > 0:
        return accum
    return -accum


def calls_nested(accum):
    return branches(accum)


def assigns_no_D(accum, out2):
    aux = accum + out2
    return aux


REFUSED = [
    (lambda x: x, "accum among the parameters"),
    (lambda accum, *rest: accum, r"got \*rest"),
    (lambda accum, **rest: accum, r"got \*rest"),
    (lambda accum, unread: accum, "'unread', which it does not"),
    (branches, "the truth of one.*where"),
    (calls_nested, "the truth of one.*where"),
    (lambda accum: accum if accum > 0 else 0, "the truth of one"),
    (lambda accum: 0 < accum < 6, r"\(0 < x\) & \(x < 6\)"),
    (lambda accum: accum and 1, "the truth of one"),
    (lambda accum: gelo(accum), "did you mean gelu"),  # noqa: F821
    (lambda accum: accum + something, "'something'; values from outside are parameters"),  # noqa: F821
    (lambda accum: fusion.relu(accum, 2.0), "1 operand of relu, got 2"),
    (lambda accum: accum % 2, r"'%'; x - y \* floor"),
    (lambda accum: accum // 2, r"'//'; floor"),
    (lambda accum: accum @ accum, "'@'; the epilogue works element by element"),
    (lambda accum: accum[0], "an index"),
    (lambda accum: [x for x in accum], "a loop over a value"),
    (lambda accum: len(accum), "len"),
    (lambda accum: accum.permute(1, 0), "'permute'.*layouts belong to tensors"),
    (lambda accum: accum.reshape(2, 2), "'reshape'.*layouts belong to tensors"),
    (lambda accum: accum.T, "layouts belong to tensors"),
    (lambda accum: accum.shape, "one element"),
    (lambda accum: accum.mean(), "sum"),
    (lambda accum: accum.max(1), "without dimensions"),
    (lambda accum: accum.sum(dim=0), "without dimensions"),
    (lambda accum: max(accum) + 1, "the max of a value in a further operation"),
    (lambda accum: max(accum), "a reduction as D"),
    (lambda accum: math.exp(accum), "without its module"),
    (lambda accum: float(accum), "symbols"),
    (lambda accum: np.ones(3) * accum, "make it a parameter"),
    (lambda accum: accum + np.ones(3), "make it a parameter"),
    (lambda accum: accum + 1j, "real numbers"),
    (lambda accum: accum + "1", "got str '1'"),
    (lambda accum: accum == None, "got NoneType"),  # noqa: E711
    (lambda accum: (accum > 0) < (accum > 1), "comparisons do not chain"),
    (lambda accum: where(accum, 1, 0), "a truth value"),  # noqa: F821
    (lambda accum: None, "a value for D, got None"),
    (lambda accum: {"D": accum, 3: accum}, "named by strings, got 3"),
    (lambda accum: {"D": accum, "class": accum}, "a meaning of its own"),
    (lambda accum: accum + 10**400, "float64 holds"),
    (lambda accum: cast(accum, float4_e2m1fn), "a number by itself"),  # noqa: F821
    (lambda accum: round(accum, 2), "1 operand of round, got 2"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refusals_say_why_and_at_which_line(case):
    function, reason = REFUSED[case]
    with pytest.raises(ValueError, match=reason) as raised:
        trace(function)
    text = str(raised.value)
    assert text.startswith("invalid argument: epilogue: expected "), text
    place = re.search(r"\n  at (.*):(\d+): (.*)$", text)
    assert place and place[1] == HERE, text
    expected = line_of(branches) + 1 if function in (branches, calls_nested) else line_of(function)
    assert int(place[2]) == expected, text


def test_errors_of_the_functions_own_pass_as_they_are():
    def broken(accum):
        return {}["missing"]

    with pytest.raises(KeyError, match="missing"):
        trace(broken)


@pytest.mark.parametrize("text", ["D = gelo(accum)", "relu(accum)", "def f(x): return relu(x)", "D = accum % 2"])
def test_texts_are_refused_with_line_and_column(text):
    with pytest.raises(ValueError, match="line 1, column"):
        trace(text)


@pytest.mark.parametrize("given", [3, None, object(), print, 1.5])
def test_what_is_no_function_is_a_type_error(given):
    with pytest.raises((TypeError, ValueError), match="epilogue"):
        trace(given)


# --- bound to tensors ----------------------------------------------------------------------------

BIAS = np.ones(4, np.float32)
ROW = np.ones((3, 1), np.float32)
FULL = np.zeros((3, 4), np.float32)


def test_operands_are_reached_by_name():
    arguments = gemmery.EpilogueArguments(lambda accum, bias, slope: gelu(accum + bias) * slope, bias=BIAS, slope=0.5)
    assert arguments.program == gemmery.Program("D = gelu(accum + bias) * slope")
    bound = dict(zip(arguments.parameter_names, arguments.parameters, strict=True))
    assert bound["bias"] is BIAS and bound["slope"] == 0.5 and len(bound) == 2
    assert list(arguments.tensors) == ["bias"]
    assert "4 float32" in repr(arguments)


def test_the_peers_form_binds_results_and_D_by_name():
    def epilogue(accum, C, alpha):
        F = relu(accum * alpha)  # noqa: F821
        D = F + C
        return D, F

    arguments = gemmery.EpilogueArguments(epilogue, C=FULL, alpha=2.0, D=FULL.copy(), F=FULL.copy())
    assert set(arguments.program.outputs) == {"D", "F"}


@pytest.mark.parametrize(
    ("function", "bound", "reason"),
    [
        (lambda accum, x: accum + x, {}, "operand x"),
        (lambda accum: accum, {"x": BIAS}, "operand x"),
        (lambda accum: accum, {"x": 1.0}, "operand x"),
        (several_results, {"bias": BIAS, "amax": 1.0}, "amax"),
        (assigns_no_D, {"out2": BIAS, "aux": FULL}, "D among the returned names"),
    ],
)
def test_names_that_do_not_match_are_refused_at_construction(function, bound, reason):
    with pytest.raises(ValueError, match=reason):
        gemmery.EpilogueArguments(function, **bound)


def test_what_is_neither_tensor_nor_number_is_a_type_error():
    with pytest.raises(TypeError, match="x: expected a tensor or a number"):
        gemmery.EpilogueArguments(lambda accum, x: accum + x, x="text")
    with pytest.raises(TypeError, match="x: expected a tensor or a number that float64 holds"):
        gemmery.EpilogueArguments(lambda accum, x: accum + x, x=10**400)


def test_arguments_print_as_a_line_that_has_their_numbers():
    factor, addend = np.ones((5, 1), np.float32), np.ones((5, 9), np.float32)
    epilogue = gemmery.EpilogueArguments("D = alpha * accum + beta * C", alpha=factor, beta=0.25, C=addend)
    a, b, out = (np.ones(shape, np.float32) for shape in ((5, 7), (7, 9), (5, 9)))
    line = str(gemmery.GemmArguments(a, b, out, epilogue=epilogue))
    assert "alpha=f32[m] beta=0.25 C=f32" in line


def test_arguments_with_results_of_nothing_print():
    a, b, out, rows = (np.ones(shape, np.float32) for shape in ((33, 24), (24, 0), (33, 0), (33, 1)))
    epilogue = gemmery.EpilogueArguments("D = accum; rows = sum(D)", rows=rows)
    arguments = gemmery.GemmArguments(a, b, out, epilogue=epilogue)
    assert "rows=f32[m]" in str(arguments)
    assert gemmery.get_kernels(arguments) and gemmery.explain(arguments)


# --- a function as its own reference -------------------------------------------------------------


def results(kernel_of, epilogue, shape=(5, 7, 9), seed=0):
    rng = np.random.default_rng(seed)
    m, n, k = shape
    a = rng.standard_normal((m, k)).astype(np.float32)
    b = rng.standard_normal((k, n)).astype(np.float32)
    out = np.zeros((m, n), np.float32)
    arguments = gemmery.GemmArguments(a, b, out, np.float32, epilogue=epilogue)
    kernel_of(arguments).run(arguments)
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32), out


@pytest.mark.parametrize("name", ["relu", "gelu", "silu", "hardswish", "sigmoid", "tanh", "softplus", "gelu_tanh", "erf"])
def test_functions_compute_on_arrays_what_programs_compute(name):
    function = getattr(fusion, name)
    seed = random.randrange(2**31)
    print("seed", seed)
    sums, out = results(
        lambda args: gemmery.get_kernels(args)[0], gemmery.EpilogueArguments(lambda accum: function(accum)), seed=seed
    )
    # Sums of 9 products of float32 and a function with slopes of at most 1.2.
    assert np.abs(out - function(sums)).max() <= 4 * 9 * 2.0**-23 * max(1.0, float(np.abs(sums).max()))


def test_what_is_no_function_has_no_reference():
    with pytest.raises(ValueError, match="a function, got 'D = relu"):
        fusion.reference("D = relu(accum)")


def test_a_function_with_unknown_names_becomes_its_reference():
    reference = fusion.reference(several_results)
    d, amax = reference(np.array([[-1.0, 2.0]], np.float32), np.float32(1))
    assert d.tolist() == [[0.0, 3.0]] and amax == 3.0


def test_pythons_own_functions_stay_pythons_outside_of_tracing():
    assert fusion.max(1, 2) == 2 and fusion.max([3, 1]) == 3 and fusion.sum([1, 2]) == 3 and fusion.abs(-2) == 2


# --- what the peers get silently wrong -----------------------------------------------------------


def whole(*shape, dtype=np.float32):
    return np.random.default_rng(random.randrange(2**31)).integers(-4, 5, shape).astype(dtype)


def run(a, b, out, epilogue, accumulator_type=np.float32):
    args = gemmery.GemmArguments(a, b, out, accumulator_type, epilogue=epilogue)
    gemmery.get_kernels(args)[0].run(args)
    return out


def test_an_operand_called_C_broadcasts_like_every_other():
    a, b = whole(5, 6), whole(6, 4)
    for c in (whole(4), whole(5, 1), whole(1), whole(5, 4)):
        epilogue = gemmery.EpilogueArguments(lambda accum, C: accum + C, C=c)
        np.testing.assert_array_equal(run(a, b, np.empty((5, 4), np.float32), epilogue), a @ b + c)


def test_a_scale_for_each_batch_is_one():
    a, b, scale = whole(3, 5, 6), whole(3, 6, 4), whole(3, 1, 1)
    epilogue = gemmery.EpilogueArguments(lambda accum, scale: accum * scale, scale=scale)
    np.testing.assert_array_equal(run(a, b, np.empty((3, 5, 4), np.float32), epilogue), (a @ b) * scale)


def test_a_bound_D_is_written_in_place_of_out():
    a, b, out, d, sums = whole(5, 6), whole(6, 4), whole(5, 4), whole(5, 4), whole(5, 4)
    before = out.copy()
    run(a, b, out, gemmery.EpilogueArguments(returns_accum, D=d, accum=sums))
    np.testing.assert_array_equal(out, before)
    np.testing.assert_array_equal(d, np.maximum(a @ b, 0))
    np.testing.assert_array_equal(sums, a @ b)


def test_operands_of_other_types_and_integer_sums_serve():
    a, b, aux = whole(5, 60, dtype=np.int8), whole(60, 4, dtype=np.int8), whole(5, 4, dtype=np.int8)
    epilogue = gemmery.EpilogueArguments(lambda accum, aux: max(accum + aux, 0), aux=aux)
    out = run(a, b, np.empty((5, 4), np.int32), epilogue, np.int32)
    np.testing.assert_array_equal(out, np.maximum(a.astype(np.int32) @ b.astype(np.int32) + aux, 0))


@pytest.mark.parametrize("bias", [(5,), (2, 4), (7, 5, 4), (2, 1, 5, 4)])
def test_shapes_that_do_not_broadcast_to_out_are_refused(bias):
    epilogue = gemmery.EpilogueArguments(lambda accum, bias: accum + bias, bias=np.zeros(bias, np.float32))
    with pytest.raises(ValueError, match="bias"):
        gemmery.GemmArguments(whole(5, 6), whole(6, 4), whole(5, 4), np.float32, epilogue=epilogue)


def test_kernels_of_one_program_refuse_another():
    a, b, out = whole(5, 6), whole(6, 4), whole(5, 4)

    def arguments(function):
        epilogue = None if function is None else gemmery.EpilogueArguments(function)
        return gemmery.GemmArguments(a, b, out, np.float32, epilogue=epilogue)

    of_relu = gemmery.get_kernels(arguments(lambda accum: fusion.relu(accum)))[0]
    assert of_relu.supports(arguments(lambda accum: fusion.relu(accum)))
    assert of_relu.supports(arguments("D = relu(accum)"))
    assert not of_relu.supports(arguments(lambda accum: fusion.tanh(accum)))
    assert not of_relu.supports(arguments(None))


# --- any expression ------------------------------------------------------------------------------


FORMS = """
({} + {})  ({} - {})  ({} * {})  ({} / {})  (-{})  ({} ** 2)  ({} ** {})  (0.5 * {})  ({} - 2)  (1.5 / {})
abs({})  max({}, {})  min({}, 0.25)  relu({})  gelu({})  silu({})  exp({})  round({})  cast({}, bf16)
clamp({}, -1, {})  fma({}, {}, {})  where({} < {}, {}, {})  where(({} > 0) & ({} <= x), {}, {})
""".strip()


def random_expression(rng, depth):
    """The same in Python and in the program language. Python evaluates constants; its integers have no -0."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice(["accum", "x", "y"])
    form = rng.choice(re.split(r"  |\n", FORMS))
    return form.format(*(random_expression(rng, depth - 1) for _ in range(form.count("{}"))))


def test_any_expression_means_the_same_as_text_and_as_a_function():
    seed = random.randrange(2**31)
    print("seed", seed)
    rng = random.Random(seed)
    for _ in range(300):
        body = random_expression(rng, 4)
        text = f"accum + x * y + {body}"
        traced = trace(eval(f"lambda accum, x, y: {text}"))
        assert traced == gemmery.Program("D = " + text.replace("&", "and")), text
