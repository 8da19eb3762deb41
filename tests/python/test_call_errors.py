# SPDX-License-Identifier: Apache-2.0
"""Calls that nanobind refuses: the message names the argument, what was expected and got, and what may have been meant."""

import numpy as np
import pytest

import gemmery
import gemmery._core as core


def make_arguments():
    a = np.ones((8, 8), np.float32)
    return gemmery.GemmArguments(a, a, np.empty_like(a))


def a_kernel():
    return gemmery.get_kernels(make_arguments())[0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: core.find_kernel(3), "find_kernel: name: expected str, got int"),
        (lambda: core.find_kernel(None), "find_kernel: name: expected str, got None"),
        (lambda: core.find_kernel(nam="x"), "find_kernel: expected an argument named name, got nam; did you mean name?"),
        (lambda: core.find_kernel(), "find_kernel: name: expected a value, got none"),
        (lambda: core.find_kernel("a", "b"), "find_kernel: expected at most 1 argument by place, got 2"),
        (lambda: core.find_kernel("a", name="b"), "find_kernel: name: expected once, got by place and by name"),
        (lambda: core.version(1), "version: expected no arguments by place, got 1"),
        (lambda: a_kernel().run(3), "Kernel.run: args: expected GemmArguments, got int"),
        (lambda: a_kernel().run(make_arguments(), verify="yes"), "Kernel.run: verify: expected bool, got str"),
        (lambda: a_kernel().run(make_arguments(), max_sms=1 << 70), "Kernel.run: expected (args: GemmArguments, "),
        (lambda: core.get_kernels(arg=1), "get_kernels: expected arguments named args, "),
    ],
)
def test_a_refused_call_says_what_was_expected(call, message):
    with pytest.raises(TypeError) as raised:
        call()
    text = str(raised.value)
    assert text.startswith(message), text
    assert "\n" not in text
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


def test_a_name_that_is_nearly_right_is_suggested():
    with pytest.raises(TypeError, match=r"Kernel\.run: expected arguments named .*, got strem; did you mean stream\?$"):
        a_kernel().run(make_arguments(), strem=None)


def test_operators_and_comparisons_still_leave_the_other_side_its_turn():
    expression = gemmery.fusion.accum if hasattr(gemmery.fusion, "accum") else core.Expression(1.0)
    with pytest.raises(TypeError, match="unsupported operand"):
        expression + object()
    assert (core.DType.float32 == object()) is False


def functions_of(scope):
    for value in vars(scope).values():
        if type(value).__name__ in ("nb_func", "nb_method"):
            yield value
        if isinstance(value, type) and value.__module__ == core.__name__:
            yield from functions_of(value)


def test_every_native_function_has_a_message():
    """No signature is beyond the reader's words, whatever the call."""
    from gemmery._call_errors import describe_call

    functions = list(functions_of(core))
    assert len(functions) > 150
    for function in functions:
        for positional, named in [
            ((), {}),
            ((object(),) * 14, {}),
            ((object(), None), {"no_such_name": 1}),
            ((object(), object()), {}),
        ]:
            text = describe_call(function, positional, named)
            assert "expected" in text, function.__qualname__
            assert "gemmery._core" not in text, text


def test_errors_of_functions_themselves_stay():
    with pytest.raises(TypeError, match="B: expected a tensor"):
        gemmery.GemmArguments(np.ones((2, 2), np.float32), object(), np.ones((2, 2), np.float32))
    with pytest.raises(gemmery.InvalidArgumentError):
        core.dtype("no_such_type")
