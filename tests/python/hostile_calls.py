# SPDX-License-Identifier: Apache-2.0
"""Random invalid calls of all public functions: valid calls in which arguments are replaced by unsuitable objects.

usage: hostile_calls.py SEED COUNT      exits with 0 if every call returned or raised an exception of ALLOWED

Excluded: numbers as addresses, which cannot be checked, and calls that change this process's settings.
"""

from __future__ import annotations

import collections
import faulthandler
import gc
import os
import pathlib
import random
import sys
import tempfile

import ml_dtypes
import numpy

import gemmery
from gemmery import own_kernels

ALLOWED = (
    ArithmeticError, AttributeError, BufferError, gemmery.Error, LookupError, MemoryError, OSError, RecursionError,
    RuntimeError, TypeError, ValueError,
)  # fmt: skip
LONGEST_CALL_S = 120


class Raising:
    """Raises in every method."""

    def __getattr__(self, name):
        raise RuntimeError(f"no {name} today")

    def __repr__(self):
        return "Raising()"

    def __index__(self):
        raise ZeroDivisionError

    def __bool__(self):
        raise ZeroDivisionError

    def __hash__(self):
        raise ZeroDivisionError

    def __eq__(self, other):
        raise ZeroDivisionError


class FalseInterface:
    """An array with a wrong array interface and no memory."""

    @property
    def __array_interface__(self):
        return {"shape": (-1, 1 << 62), "typestr": "<f99", "data": (0, False), "version": 3}


class FalseCapsule:
    """Has DLPack's methods, which return an object that is not a capsule."""

    def __dlpack__(self, **_options):
        return 5

    def __dlpack_device__(self):
        return (1, "zero")


def array(*shape, dtype=numpy.float32):
    return numpy.ones(shape, numpy.float32).astype(dtype)


def read_only(*shape):
    values = array(*shape)
    values.setflags(write=False)
    return values


def self_containing():
    values = []
    values.append(values)
    return values


NUMBERS = [
    lambda: True, lambda: -1, lambda: 0, lambda: 7, lambda: 1 << 31, lambda: 1 << 63, lambda: -(1 << 200), lambda: 1.5,
    lambda: 1e308, lambda: float("nan"), lambda: float("inf"), lambda: 1j,
]  # fmt: skip
WORDS = [
    lambda: "", lambda: "\0", lambda: "gemm 8x8x8 a=f32\0", lambda: "\ud800", lambda: "x" * 100_000,
    lambda: "D = accum + " * 2000,
    lambda: "D = " + "(" * 5000, lambda: "f16", lambda: "cpu", lambda: "emulated:a100", lambda: "sm_90",
    lambda: "gemm 0x8x8 a=f32", lambda: "gemm 8x8x8 a=bf16 out=f32", lambda: "alpha", lambda: "out", lambda: "tf32",
    lambda: b"f32",
]  # fmt: skip
TENSORS = [
    lambda: array(), lambda: array(0, 0), lambda: array(3), lambda: array(2, 2, 2, 2), lambda: array(1, 8, 8),
    lambda: array(8, 7), lambda: array(8, 8, dtype=numpy.int8), lambda: array(8, 8, dtype=numpy.complex64),
    lambda: array(8, 8, dtype=object), lambda: array(8, 8, dtype=ml_dtypes.bfloat16),
    lambda: array(8, 8, dtype=numpy.float64), lambda: read_only(8, 8), lambda: array(8, 16)[:, ::-2],
    lambda: array(16, 8)[::2].T, lambda: numpy.broadcast_to(array(1), (8, 8)),
    lambda: numpy.lib.stride_tricks.as_strided(array(64), (8, 8), (4, 4)),
    lambda: numpy.frombuffer(bytearray(8 * 8 * 4 + 1), numpy.uint8)[1:].view(numpy.float32).reshape(8, 8),
    lambda: numpy.array(["a", "b"]), lambda: numpy.ma.masked_array([1, 2], [0, 1]), lambda: memoryview(array(4, 4)),
    lambda: gemmery.empty((8, 8), "float32", "emulated:h200"), lambda: gemmery.empty((8, 8), "float16"), FalseInterface,
    FalseCapsule,
]  # fmt: skip
OBJECTS = [
    lambda: None, list, self_containing, lambda: (1, "two", None), lambda: {"A": 1, 2: []}, lambda: {1, 2}, object,
    lambda: object, Raising, lambda: lambda *_: 1 / 0, lambda: (step for step in (1, 2)),
    lambda: pathlib.Path("/no/such/file"), lambda: gemmery.float32, lambda: gemmery.GemmArguments, lambda: gemmery,
    lambda: gemmery.Program("D = relu(accum)"), lambda: gemmery.Stream("emulated:h200"),
]  # fmt: skip
KINDS = [NUMBERS, WORDS, TENSORS, OBJECTS]


def hostile_like(rng, value):
    """An unsuitable value, mostly of the same kind as the one that it replaces."""
    kind = rng.choice(KINDS)
    if rng.random() < 0.7:
        if isinstance(value, numpy.ndarray | gemmery.Tensor):
            kind = TENSORS
        elif isinstance(value, str):
            kind = WORDS
        elif isinstance(value, int | float):
            kind = NUMBERS
    return rng.choice(kind)()


class World:
    """Valid calls to modify: (function, arguments, keywords), created anew for every call."""

    def __init__(self, rng, folder):
        self.rng = rng
        self.folder = folder
        A, B, self.out = array(8, 8), array(8, 8), array(8, 8)
        self.operands = [A, B, self.out]
        self.args = gemmery.GemmArguments(A, B, self.out, "float32")
        self.kernel = gemmery.get_kernels(self.args)[0]
        self.artifact = self.kernel.compile(self.args)
        self.on_gpu = gemmery.GemmArguments(
            *(gemmery.empty((8, 8), "float32", "emulated:h200") for _ in range(3)), accumulator_type="float32"
        )
        self.gpu_kernel = gemmery.get_kernels(self.on_gpu)[0]
        self.gpu_artifact = self.gpu_kernel.compile(self.on_gpu)

    def arguments(self):
        return gemmery.GemmArguments(array(8, 8), array(8, 8), array(8, 8), "float32")

    def calls(self):
        A, B, out = array(8, 8), array(8, 8), array(8, 8)
        args, bias = self.arguments(), array(8)
        on, kernel, artifact = self.rng.choice(
            [(args, self.kernel, self.artifact), (self.on_gpu, self.gpu_kernel, self.gpu_artifact)]
        )
        launch = artifact.bind(on)
        tensor = gemmery.empty((8, 8), "float32")
        epilogue = gemmery.EpilogueArguments("D = accum + bias", bias=bias)
        line = "gemm 8x8x8 a=f32"
        path = self.folder / "kernels"
        return [
            (
                gemmery.GemmArguments,
                [A, B, out, "float32"],
                {"C": out, "alpha": 1.0, "beta": 0.5, "math": "native", "epilogue": None},
            ),
            (gemmery.GemmArguments, [A, B, out, "float32"], {"epilogue": epilogue, "performance": None}),
            (gemmery.ElementwiseArguments, [A, B, out], {"epilogue": None}),
            (gemmery.EpilogueArguments, ["D = accum + bias"], {"bias": bias}),
            (gemmery.EpilogueArguments, [lambda accum, bias: accum * bias], {"bias": bias}),
            (gemmery.PerformanceControls, [], {"max_sms": 4}),
            (gemmery.RuntimeArguments, [], {"epilogue": epilogue}),
            (gemmery.Program, ["D = accum"], {}),
            (gemmery.as_tensor, [A], {}),
            (gemmery.empty, [(8, 8), "float32"], {"device": "cpu"}),
            (gemmery.matmul, [A, B], {"out": out, "epilogue": "D = relu(accum)"}),
            (gemmery.matmul, [A, B], {"epilogue": "D = accum + bias", "bias": bias}),
            (gemmery.get_kernels, [on], {"metadata_filter": None, "cc": None, "providers": None}),
            (gemmery.get_kernels, [args], {"cc": 90}),
            (gemmery.explain, [args], {"cc": "h200"}),
            (gemmery.find_kernel, [kernel.name], {}),
            (gemmery.device_info, ["emulated:h200"], {}),
            (gemmery.check_result, [args, self.kernel], {}),
            (gemmery.verify, [self.kernel, line], {}),
            (gemmery.compile_all, [[self.gpu_kernel]], {"cc": "sm_90"}),
            (gemmery.artifact.save, [path, [self.gpu_artifact]], {}),
            (gemmery.artifact.load, [path], {}),
            (gemmery.define_op, ["hostile_op", "x * 2"], {}),
            (gemmery.fusion.trace, [lambda accum: accum * 2], {}),
            (gemmery._core.dtype, ["float32"], {}),
            (gemmery._core.parse_target, ["sm_90a"], {}),
            (gemmery.Stream, ["emulated:h200"], {}),
            (gemmery.synchronize, ["emulated:h200"], {}),
            (kernel.supports, [on], {}),
            (kernel.get_workspace_size, [on], {}),
            (kernel.compile, [on], {"cc": None}),
            (kernel.run, [on, artifact], {"stream": None, "workspace": None, "assume_supported_args": False}),
            (artifact.bind, [on], {}),
            (artifact.load_on, ["emulated:h200"], {}),
            (launch, [], {"stream": None}),
            (launch.set_data, ["A", tensor], {}),
            (launch.set_scalars, [1.0, 0.0], {}),
            (launch.set_scalar, ["alpha", 1.0], {}),
            (args.set_data, ["A", A], {}),
            (args.set_scalars, [1.0, 0.0], {}),
            (args.set_scalar, ["alpha", 1.0], {}),
            (args.to_device, ["emulated:h200"], {}),
            (args.sync, [], {"stream": None}),
            (tensor.copy_from, [A], {}),
            (tensor.__dlpack__, [], {"stream": None, "max_version": (1, 0), "dl_device": None, "copy": None}),
            (self.register, [{"A": "float32", "B": "float32", "out": "float32", "targets": ["cpu"]}], {}),
        ]

    def register(self, words):
        """Registers a user's kernel, runs it once if it is accepted, and withdraws it."""
        kernel = own_kernels.register_callable(f"hostile_{self.rng.random()}", **words)(lambda call: None)
        try:
            kernel.run(self.arguments())
        finally:
            own_kernels.withdraw_kernel(kernel)


def takes_addresses(function):
    return getattr(function, "__name__", "") in ("set_data", "as_tensor", "Stream")


def spoil(rng, function, arguments, keywords):
    """Replaces, drops or adds arguments."""
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        places = [*range(len(arguments)), *keywords]
        place = rng.choice(places) if places else None
        replaced = None if place is None else (keywords if isinstance(place, str) else arguments)[place]
        value = hostile_like(rng, replaced)
        if isinstance(value, int) and takes_addresses(function):
            continue
        deed = rng.random()
        if deed < 0.05:
            arguments.append(value)
        elif deed < 0.1:
            keywords["surprise"] = value
        elif place is not None and deed < 0.15:
            del (keywords if isinstance(place, str) else arguments)[place]
        elif isinstance(place, str):
            keywords[place] = value
        elif place is not None:
            arguments[place] = value


def main(seed, count):
    rng = random.Random(seed)
    outcomes = collections.Counter()
    sys.path[:] = [os.path.abspath(place) for place in sys.path]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # strings that are used as paths name files in it
        world = World(rng, pathlib.Path(folder))
        for step in range(count):
            function, arguments, keywords = rng.choice(world.calls())
            spoil(rng, function, arguments, keywords)
            faulthandler.dump_traceback_later(LONGEST_CALL_S, exit=True)
            try:
                result = function(*arguments, **keywords)
                repr(result)
                outcomes["returned"] += 1
            except ALLOWED as error:
                outcomes[type(error).__name__] += 1
                del error
            except BaseException as error:
                name = getattr(function, "__name__", function)
                sys.exit(f"call {step} of seed {seed}: {name}{tuple(arguments)!r:.300} {keywords!r:.300} raised {error!r}")
            if step % 50 == 0:
                gc.collect()
        faulthandler.cancel_dump_traceback_later()
        assert numpy.array_equal(gemmery.matmul(array(8, 8), array(8, 8)), numpy.full((8, 8), 8, numpy.float32))
    print(f"{count} calls:", ", ".join(f"{name} {number}" for name, number in outcomes.most_common()))
    sys.stdout.flush()


if __name__ == "__main__":
    os.environ.setdefault("GEMMERY_CACHE_MAX_BYTES", "0")
    main(int(sys.argv[1]), int(sys.argv[2]))
