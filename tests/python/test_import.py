# SPDX-License-Identifier: Apache-2.0
"""Importing the package has no side effects, and its stubs are correct."""

import ast
import pathlib
import subprocess
import sys

import gemmery
from gemmery import _core


def run_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_import_opens_no_file_for_writing_starts_no_thread_and_touches_no_gpu():
    code = """
import os, sys
written = []
def watch(event, arguments):
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        written.append(arguments[0])
sys.dont_write_bytecode = True
sys.addaudithook(watch)
import gemmery
assert written == [], written
assert len(os.listdir("/proc/self/task")) == 1, "a thread was started"
maps = open("/proc/self/maps").read()
assert "libcuda" not in maps and "nvrtc" not in maps, "a CUDA library was opened"
assert "torch" not in sys.modules and "numpy" not in sys.modules and "cupy" not in sys.modules
"""
    run_python(code)


def test_leaving_python_with_everything_alive_is_silent():
    run_python(
        "import numpy, gemmery\n"
        "a = numpy.ones((4, 4), 'f'); args = gemmery.GemmArguments(a, a.copy(), a.copy())\n"
        "kernel = gemmery.get_kernels(args)[0]; kernel.metadata; launch = kernel.compile(args).bind(args); launch()\n"
        "gemmery.find_kernel(kernel.name).metadata\n"
    )


def test_the_stub_names_what_the_native_module_has():
    stub = ast.parse(pathlib.Path(gemmery.__file__).with_name("_core.pyi").read_text())
    promised = {node.name: node for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    there = {name for name in vars(_core) if not name.startswith("_")}
    assert there - promised.keys() == set()
    assert promised.keys() - there == set()
    for name, node in promised.items():
        if not isinstance(node, ast.ClassDef):
            continue
        members = [item.name for item in node.body if isinstance(item, ast.FunctionDef)]
        members += [item.target.id for item in node.body if isinstance(item, ast.AnnAssign)]
        missing = [member for member in members if not hasattr(getattr(_core, name), member)]
        assert missing == [], f"{name} lacks {missing}"


def test_everything_public_is_there():
    assert [name for name in gemmery.__all__ if not hasattr(gemmery, name)] == []
    assert gemmery.__version__ == gemmery.version()
