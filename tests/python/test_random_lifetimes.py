# SPDX-License-Identifier: Apache-2.0
"""Random orders of creating, binding, patching, running and deleting: memory lives exactly as long as it may be used."""

import gc
import os
import weakref

import numpy
from hypothesis import HealthCheck, example, given, seed, settings
from hypothesis import strategies as st

import gemmery
from conftest import SEED

EXAMPLES = 4_000 if os.environ.get("GEMMERY_SOAK") == "1" else 100
SHAPES = {"A": (4, 3), "B": (3, 5), "bias": (5,), "out": (4, 5)}


class Array(numpy.ndarray):
    """Overwrites its numbers when it is deleted, so that later uses are detected."""

    def __del__(self):
        if self.base is None:
            self.fill(7777)


class World:
    """Arguments and prepared launches of a program, and the operands that each must use."""

    def __init__(self):
        self.rng = numpy.random.default_rng(SEED)
        self.made = []  # weak references to all arrays
        self.users = []

    def array(self, operand):
        array = Array(SHAPES[operand], numpy.float32)
        array[...] = self.rng.integers(-4, 5, SHAPES[operand])
        self.made.append(weakref.ref(array))
        return array

    def make(self, at, operand):
        arrays = {operand: self.array(operand) for operand in SHAPES}
        epilogue = gemmery.EpilogueArguments("D = relu(accum + bias)", bias=arrays["bias"])
        args = gemmery.GemmArguments(arrays["A"], arrays["B"], arrays["out"], epilogue=epilogue)
        self.users.append(User(args, arrays))

    def bind(self, at, operand):
        user = self.users[at]
        if isinstance(user.target, gemmery.GemmArguments):
            launch = gemmery.get_kernels(user.target)[-1].compile(user.target).bind(user.target)
            self.users.append(User(launch, {}, user))

    def patch(self, at, operand):
        array = self.array(operand)
        self.users[at].target.set_data(operand, array)
        self.users[at].note(operand, array)

    def run(self, at, operand):
        self.users[at].run()

    def drop(self, at, operand):
        del self.users[at]

    def collect(self, at, operand):
        gc.collect()


class User:
    def __init__(self, target, arrays, like=None):
        self.target = target
        self.numbers = dict(like.numbers) if like else {}
        self.out = like.out if like else None
        for operand, array in arrays.items():
            self.note(operand, array)

    def note(self, operand, array):
        if operand == "out":
            self.out = weakref.ref(array)
        else:
            self.numbers[operand] = numpy.array(array)

    def run(self):
        if isinstance(self.target, gemmery.GemmArguments):
            gemmery.get_kernels(self.target)[-1].run(self.target)
        else:
            self.target()
        out = self.out()
        assert out is not None, "the result was let go of while it could be written"
        expected = numpy.maximum(self.numbers["A"] @ self.numbers["B"] + self.numbers["bias"], 0)
        numpy.testing.assert_array_equal(out, expected)


STEPS = st.tuples(
    st.sampled_from(["make", "bind", "bind", "patch", "patch", "patch", "run", "run", "drop", "collect"]),
    st.integers(0, 99),
    st.sampled_from(sorted(SHAPES)),
)


@seed(SEED)
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(st.lists(STEPS, min_size=1, max_size=40))
@example([("make", 0, "A"), ("bind", 0, "A"), ("patch", 0, "A"), ("run", 1, "A"), ("run", 0, "A")])
@example([("make", 0, "A"), ("bind", 0, "A"), ("patch", 0, "out"), ("drop", 0, "A"), ("run", 0, "A")])
def test_memory_lives_as_long_as_arguments_and_launches_may_use_it(steps):
    world = World()
    for step, at, operand in steps:
        if step == "make" or world.users:
            getattr(world, step)(at % max(1, len(world.users)), operand)
    while world.users:
        world.users.pop().run()
    gc.collect()
    assert [array() for array in world.made if array() is not None] == [], "something still holds an array"


def test_patching_over_and_over_holds_the_newest_alone():
    world = World()
    world.make(0, "A")
    for _ in range(50):
        for operand in SHAPES:
            world.patch(0, operand)
    gc.collect()
    # The present ones, and the bias of the EpilogueArguments.
    assert sum(array() is not None for array in world.made) == len(SHAPES) + 1
