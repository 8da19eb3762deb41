# SPDX-License-Identifier: Apache-2.0
"""The command `gemmery` of the package, as `python -m gemmery`: the same program in a process of Python."""

import pathlib
import signal
import subprocess
import sys

import pytest

import gemmery


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "gemmery", *words]


def run(*words: str) -> subprocess.CompletedProcess:
    return subprocess.run(command(*words), capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture(scope="module", autouse=True)
def _program():
    if (done := run("version")).returncode == 3 and "built without" in done.stderr:
        pytest.skip("the package was built without the command line")


def test_it_is_that_of_the_library():
    done = run("version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"gemmery {gemmery.version()}\n", "")


def test_it_multiplies_and_verifies():
    done = run("verify", "gemm", "33x17x65", "a=f32", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    assert "of what is allowed: ok" in done.stdout


def test_errors_and_exit_codes_are_the_programs():
    done = run("lst")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean list?" in done.stderr and "Traceback" not in done.stderr
    assert run("list", "gemm", "8x8x8", "a=f64", "--device", "h200", "--provider", "cublaslt").returncode == 1


def test_a_reader_that_closes_early_ends_it_quietly():
    with subprocess.Popen(command("list"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline()
        program.stdout.close()
        said = program.stderr.read()
    assert (program.returncode, said) == (0, "")


def test_ctrl_c_ends_it_by_the_signal():
    words = command("bench", "gemm", "64x64x64", "a=f32", "--samples", "1000", "--sample-ms", "100")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr.readline().startswith("device: ")
        program.send_signal(signal.SIGINT)
        _, said = program.communicate(timeout=60)
    assert program.returncode == -signal.SIGINT
    assert "Traceback" not in said


def test_libraries_of_another_gemmery_are_refused():
    library = pathlib.Path(gemmery.__file__).parents[2] / "examples/19_own_kernel_library.so"
    if not library.is_file():
        pytest.skip("the examples were not built")
    done = run("list", "--load", str(library), "--provider", "user")
    assert done.returncode == 2 and done.stdout == ""
    assert "gemmery.own_kernels registers kernels" in done.stderr
