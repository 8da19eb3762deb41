# SPDX-License-Identifier: Apache-2.0
"""Signals, threads, forks and logging in a process that uses the library."""

import ast
import logging
import os
import secrets
import signal
import subprocess
import sys
import threading
import time

import numpy
import pytest

import gemmery


def test_ctrl_c_cancels_a_compilation():
    # Forty of the largest kernels take tens of seconds, since none is in the cache.
    code = """
import gemmery, numpy, signal, sys, threading, os, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what runs in the background without
a = numpy.zeros((4096, 4096), "f2")
args = gemmery.GemmArguments(a, a.copy(), a.copy(), "f32")
kernels = gemmery.get_kernels(args, cc=90)
kernels = sorted(kernels, key=lambda k: -numpy.prod(k.metadata.design.tile_shape))[:40]
def interrupt():
    time.sleep(1.0)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
begin = time.monotonic()
try:
    gemmery.compile_all(kernels, 90, jobs=1)
    print("finished", time.monotonic() - begin)
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - begin)
artifact = kernels[-1].compile(cc=90)
print("and on", artifact.targets)
"""
    environment = {**os.environ, "GEMMERY_CACHE_MAX_BYTES": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("interrupted"), done.stdout
    assert "and on" in done.stdout


# The kernel `slow` keeps only the front end of NVRTC busy.
REGISTER_SLOW_KERNEL = r"""
import gemmery, os, random, signal, subprocess, sys, threading, time
from gemmery import own_kernels
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start what runs in the background without
source = '''
__device__ constexpr unsigned mix(unsigned rounds, unsigned seed) {
  for (unsigned round = 0; round < rounds; ++round) seed = seed * 1664525u + 1013904223u;
  return seed;
}
template <unsigned first, unsigned last> struct Sum {
  static constexpr unsigned value = Sum<first, (first + last) / 2>::value + Sum<(first + last) / 2, last>::value;
};
template <unsigned first> struct Sum<first, first + 1> { static constexpr unsigned value = mix(ROUNDS, first); };
extern "C" __global__ void entry(float* a, float* b, float* out, int m, int n, int k) { out[0] = Sum<0, 1000>::value; }
'''
row = own_kernels.Operand("f32", "row")
kernel = own_kernels.register_source(
    "slow", source.replace("ROUNDS", sys.argv[1]), entry="entry", parameters=["A", "B", "out", "m", "n", "k"], grid=[1],
    A=row, B=row, out=row, supports=lambda problem, device: None,
)
"""


def run_with_slow_kernel(code: str, *arguments: object, rounds: int) -> subprocess.CompletedProcess:
    command = [sys.executable, "-W", "ignore", "-c", REGISTER_SLOW_KERNEL + code, str(rounds), *map(str, arguments)]
    environment = {**os.environ, "GEMMERY_CACHE_MAX_BYTES": "0"}
    return subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False, env=environment)


def test_ctrl_c_reaches_the_main_thread_while_another_compiles():
    code = """
compiling = threading.Thread(target=kernel.compile, kwargs={"cc": 90})
interrupts = 0
compiling.start()
while compiling.is_alive() and interrupts < 20:
    try:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        time.sleep(60)
    except KeyboardInterrupt:
        interrupts += 1
compiling.join()
print("interrupts", interrupts)
"""
    done = run_with_slow_kernel(code, rounds=1000)
    assert done.returncode == 0, (done.returncode, done.stderr)
    assert done.stdout, "the process ended in the middle"
    assert int(done.stdout.split()[1]) >= 2, done.stdout


def test_ctrl_c_at_any_moment_of_a_first_compilation_is_a_keyboard_interrupt():
    # Children of a process that has not opened NVRTC, one after another beside two busy loops. None ends but by its own words.
    code = """
INTERRUPTED, LATE, LOST, CHANGED = 41, 42, 43, 44
count, seed = map(int, sys.argv[2:])
random.seed(seed)

def compile_in_child(delay):
    before = signal.getsignal(signal.SIGINT)
    sender = threading.Thread(target=lambda: (time.sleep(delay), os.kill(os.getpid(), signal.SIGINT)))
    outcome = LOST
    try:
        sender.start()
        kernel.compile(cc=90)
        outcome = LATE
        time.sleep(10)  # until the signal comes
        outcome = LOST
    except KeyboardInterrupt:
        outcome = LATE if outcome == LATE else INTERRUPTED
    os._exit(outcome if signal.getsignal(signal.SIGINT) is before else CHANGED)

busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
outcomes = []
try:
    for _ in range(count):
        delay = random.uniform(0, 0.3)
        child = os.fork()
        if child == 0:
            compile_in_child(delay)
        outcomes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
finally:
    for loop in busy:
        loop.kill()
print({outcome: outcomes.count(outcome) for outcome in {INTERRUPTED, LATE, *outcomes}})
"""
    seed = secrets.randbits(32)
    done = run_with_slow_kernel(code, 200 if os.environ.get("GEMMERY_SOAK") == "1" else 8, seed, rounds=300)
    assert done.returncode == 0, done.stderr
    outcomes = ast.literal_eval(done.stdout)
    print(f"seed {seed}: {outcomes}")
    assert set(outcomes) == {41, 42}, f"seed {seed}: {outcomes} {done.stderr}"
    assert outcomes[41] > 0, f"seed {seed}: {outcomes}"


def test_threads_compile_and_run_at_the_same_time(rng):
    a, b = (rng.standard_normal((96, 96)).astype("f") for _ in range(2))
    expected = a.astype("d") @ b.astype("d")
    failures = []

    def work():
        try:
            for _ in range(20):
                out = numpy.zeros((96, 96), "f")
                args = gemmery.GemmArguments(a, b, out)
                for kernel in gemmery.get_kernels(args)[:2]:
                    kernel.run(args, kernel.compile(args))
                    numpy.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)
                gemmery.get_kernels(args, cc=90)[0].compile(args, cc=90)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_forked_child_computes():
    # In a separate process: other libraries in this one may have threads, which do not exist in a child.
    code = """
import gemmery, numpy, os
a = numpy.random.default_rng().integers(-4, 5, (33, 29)).astype("f")
b = numpy.random.default_rng().integers(-4, 5, (29, 47)).astype("f")
args = gemmery.GemmArguments(a, b, numpy.empty((33, 47), "f"), "f32")
gemmery.get_kernels(args)[0].run(args)
child = os.fork()
if child == 0:
    args.out[:] = 0
    gemmery.get_kernels(args)[-1].run(args)
    os._exit(0 if (args.out == a @ b).all() else 2)
print("status", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        pytest.fail("the child hangs")
    assert said == "status 0\n", said


def test_words_of_the_library_go_to_logging(gemm, caplog):
    options = gemmery.config.GlobalOptions()
    saved = options.save()
    # A program that no other test uses, so that it is not compiled yet.
    args, _ = gemm(64, 64, 64, epilogue=gemmery.EpilogueArguments("D = accum * 0.987 + 0.123"))
    kernel = gemmery.get_kernels(args, cc=90)[0]
    with pytest.raises(ValueError, match="log_level"):
        options.log_level = "loud"
    options.log_level = "debug"
    try:
        with caplog.at_level(logging.DEBUG, logger="gemmery"):
            kernel.compile(args, cc=90)
            for _ in range(1000):  # a pending call runs between bytecodes
                time.sleep(0.001)
                if caplog.records:
                    break
    finally:
        options.restore(saved)
    assert any(record.name == "gemmery" for record in caplog.records)
