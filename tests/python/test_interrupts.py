# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while native code runs: KeyboardInterrupt is raised soon, with the error of the call as its context."""

import subprocess
import sys

import pytest

PRELUDE = """
import gemmery, numpy, os, signal, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what runs in the background without
sent = [None]
def interrupt_in(seconds):
    def send():
        time.sleep(seconds)
        sent[0] = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=send, daemon=True).start()
def outcome_of(call, seconds):
    interrupt_in(seconds)
    try:
        call()
        time.sleep(60)
        print("finished")
    except KeyboardInterrupt as error:
        print("interrupted", time.monotonic() - sent[0], type(error.__context__).__name__, error.__context__)
    except BaseException as error:
        print("wrong", repr(error))
"""

# Tens of seconds on one core.
EMULATED = """
a = numpy.ones((4096, 4096), "f2")
args = gemmery.GemmArguments(a, a, numpy.zeros((4096, 4096), "f4"), "f32").to_device("emulated:h200")
kernel = gemmery.get_kernels(args)[0]
artifact = kernel.compile(args)
"""

# From the signal to the handler of the exception: 0.01 s on an idle machine, up to 11 s on a busy one with a sanitizer.
MOST_SECONDS = 60.0  # a launch that is not interrupted takes hours


def run(code: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-c", PRELUDE + code], capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize(
    "call",
    [
        "kernel.run(args, artifact)",
        "artifact.bind(args)()",
        'gemmery.verify(kernel, args.problem, device="emulated:h200")',
        "gemmery.matmul(args.A, args.B, args.out, accumulator_type='f32')",
    ],
)
def test_an_emulated_launch_ends_on_ctrl_c(call):
    code = f"outcome_of(lambda: {call}, 2.0)\nprint(args.problem, flush=True)"
    done = run(EMULATED + code)
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    assert words[0] == "interrupted", done.stdout
    assert float(words[1]) < MOST_SECONDS, done.stdout
    assert words[2] == "LaunchError" and "interrupted" in done.stdout.splitlines()[0].partition("LaunchError")[2], done.stdout


def test_the_device_serves_on_after_an_interrupt():
    code = """
outcome_of(lambda: kernel.run(args, artifact), 1.0)
b = numpy.ones((64, 64), "f2")
small = gemmery.GemmArguments(b, b, numpy.zeros((64, 64), "f4"), "f32").to_device("emulated:h200")
first = gemmery.get_kernels(small)[0]
first.run(small)
print(gemmery.check_result(small, first).passed)
"""
    done = run(EMULATED + code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("interrupted") and done.stdout.endswith("True\n"), done.stdout


def test_an_error_at_the_moment_of_ctrl_c_is_not_lost():
    # The call holds the GIL and fails at once: most signals arrive within it, or while its exception is made.
    code = """
def fail_for_ever():
    while True:
        try:
            gemmery.Program("D = " + "accum + " * 20000)
        except Exception as error:
            assert isinstance(error, gemmery.InvalidArgumentError), repr(error)
for attempt in range(20):
    outcome_of(fail_for_ever, 0.02 + 0.0007 * attempt)
"""
    done = run(code)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 20 and all(line.startswith("interrupted") for line in lines), done.stdout
    assert any("InvalidArgumentError" in line for line in lines), done.stdout
