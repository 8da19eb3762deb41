# SPDX-License-Identifier: Apache-2.0
"""Streams and limits of a run are checked in the same way on every device and in every function that runs kernels."""

import os
import subprocess
import sys

import pytest

import gemmery

DEVICES = ["cpu", "emulated:h200"]


@pytest.fixture(params=DEVICES)
def placed(request, gemm):
    """Arguments on a device, their kernel and the artifact."""
    args = gemm(16, 24, 8)[0].to_device(request.param)
    kernel = gemmery.get_kernels(args)[-1]
    return args, kernel, kernel.compile(args)


WAYS = {
    "run": lambda args, kernel, artifact, stream: kernel.run(args, artifact, stream=stream),
    "run without an artifact": lambda args, kernel, artifact, stream: kernel.run(args, stream=stream),
    "prepared launch": lambda args, kernel, artifact, stream: artifact.bind(args)(stream),
    "sync": lambda args, kernel, artifact, stream: args.sync(stream),
    "check_result": lambda args, kernel, artifact, stream: gemmery.check_result(args, kernel, stream),
    "to_cuda_stream": lambda args, kernel, artifact, stream: gemmery.utils.to_cuda_stream(stream),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("stream", "kind", "words"),
    [
        ("x", TypeError, "stream: expected an int.*got str"),
        (1.5, TypeError, "stream: expected an int.*got float"),
        (True, TypeError, "stream: expected an int.*got bool"),
        ([], TypeError, "stream: expected an int.*got list"),
        (-1, gemmery.InvalidArgumentError, "stream: .*got -1"),
        (2**64, gemmery.InvalidArgumentError, "stream: .*got 18446744073709551616"),
    ],
    ids=str,
)
def test_what_is_no_stream_is_refused_by_every_way_to_run(placed, way, stream, kind, words):
    args, kernel, artifact = placed
    with pytest.raises(kind, match=words):
        WAYS[way](args, kernel, artifact, stream)
    kernel.run(args, artifact)
    assert gemmery.check_result(args, kernel).passed


class Protocol:
    def __cuda_stream__(self):
        return 0, 0


@pytest.mark.parametrize("stream", [None, 0, 1, 2, Protocol()], ids=repr)
def test_what_is_a_stream_is_taken_on_every_device(placed, stream):
    args, kernel, artifact = placed
    kernel.run(args, artifact, stream=stream)
    args.sync(stream)
    assert gemmery.check_result(args, kernel, stream).passed


@pytest.mark.parametrize("way", ["run", "run without an artifact", "prepared launch", "sync", "check_result"])
@pytest.mark.parametrize("handle", ["number", "destroyed"])
def test_a_handle_that_is_no_stream_of_an_emulated_device_is_refused_and_not_followed(gemm, way, handle):
    args = gemm(16, 24, 8)[0].to_device("emulated:h200")
    kernel = gemmery.get_kernels(args)[-1]
    artifact = kernel.compile(args)
    stream = 12345
    if handle == "destroyed":
        own = gemmery.Stream("emulated:h200")
        stream = own.__cuda_stream__()[1]
        del own
    with pytest.raises(gemmery.InvalidArgumentError, match="no stream of an emulated device") as raised:
        WAYS[way](args, kernel, artifact, stream)
    assert raised.value.operand == "stream"
    kernel.run(args, artifact)
    assert gemmery.check_result(args, kernel).passed


def test_a_limit_of_multiprocessors_is_none_or_positive(placed):
    args, kernel, artifact = placed
    for number in (-5, -1):
        with pytest.raises(gemmery.InvalidArgumentError, match=f"max_sms: .*got {number}"):
            kernel.run(args, artifact, max_sms=number)
    for number in (0, 1, 7):
        kernel.run(args, artifact, max_sms=number)
    with pytest.raises(gemmery.InvalidArgumentError, match="max_sms: expected at least 1, got 0"):
        gemmery.PerformanceControls(max_sms=0)
    with pytest.raises(TypeError, match="max_sms: expected a whole number or None, got 'many'"):
        gemmery.PerformanceControls(max_sms="many")


@pytest.mark.parametrize("device", DEVICES)
def test_a_number_of_threads_that_is_none_is_told_by_its_variable(device):
    code = f"""
import gemmery, numpy
a = numpy.ones((8, 8), "f")
try:
    args = gemmery.GemmArguments(a, a, a.copy()).to_device({device!r})
    gemmery.get_kernels(args)[-1].run(args)
except gemmery.InvalidArgumentError as error:
    print(error.operand, "|", error.expected, "|", error.got)
"""
    environment = {**os.environ, "GEMMERY_NUM_THREADS": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == 'GEMMERY_NUM_THREADS | a whole number from 1 to 4096 | "0"'
