# SPDX-License-Identifier: Apache-2.0
"""NVRTC from the wheel nvidia-cuda-nvrtc, in processes from which a CUDA toolkit is hidden."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

import gemmery
from gemmery import _nvrtc

COMPILE = """
import gemmery, numpy
a = numpy.zeros((256, 256), "f4")
args = gemmery.GemmArguments(a, a.copy(), a.copy(), "f32")
kernel = gemmery.get_kernels(args, cc="h200")[0]
artifact = kernel.compile(args, cc="h200")
print("compiled", kernel.name)
"""


def nvrtc_of_doctor(text: str) -> str:
    """The path of NVRTC that the library reports; "" if it reports none."""
    found = re.search(r"^\s*NVRTC +[0-9.]+ at (\S+)$", text, re.MULTILINE)
    return found.group(1) if found else ""


def run_without_toolkit(code: str, *folders: pathlib.Path, **variables: str) -> subprocess.CompletedProcess:
    """Runs Python with additional package folders, and without variables that could lead to NVRTC."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GEMMERY_NVRTC")}
    environment |= {"GEMMERY_HIDE_CUDA": "1", "GEMMERY_CACHE_MAX_BYTES": "0"} | variables
    environment["PYTHONPATH"] = os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture
def wheel(tmp_path):
    """NVRTC in a wheel, and the wheel's folder: the installed one, or links with the same layout."""
    installed = _nvrtc.find_library()
    if installed:
        return installed, tmp_path
    library = pathlib.Path(nvrtc_of_doctor(gemmery.doctor()))
    if not library.is_file():
        pytest.skip("no NVRTC here (pip install nvidia-cuda-nvrtc)")
    folder = tmp_path / "nvidia" / "cu13" / "lib"
    folder.mkdir(parents=True)
    for file in [*library.parent.glob("libnvrtc.so*"), *library.parent.glob("libnvrtc-builtins.so*")]:
        (folder / file.name).symlink_to(file)
    if not (folder / "libnvrtc.so.13").exists():
        pytest.skip(f"a stand-in for the wheel is made of NVRTC 13, and here is {library}")
    return str(folder / "libnvrtc.so.13"), tmp_path


def test_a_kernel_for_a_gpu_is_compiled_where_only_the_wheel_has_nvrtc(wheel):
    library, folder = wheel
    done = run_without_toolkit(COMPILE + "print(gemmery.doctor())", folder)
    assert done.returncode == 0, done.stderr
    assert "compiled " in done.stdout
    assert nvrtc_of_doctor(done.stdout) == library


def test_doctor_names_the_wheels_nvrtc_before_anything_is_compiled(wheel):
    library, folder = wheel
    done = run_without_toolkit("import gemmery; print(gemmery.doctor())", folder)
    assert done.returncode == 0, done.stderr
    assert nvrtc_of_doctor(done.stdout) == library


def test_the_nvrtc_that_the_user_names_goes_before_the_wheels(wheel, tmp_path):
    _, folder = wheel
    absent = str(tmp_path / "absent.so")
    done = run_without_toolkit(COMPILE, folder, GEMMERY_NVRTC_LIBRARY=absent)
    assert done.returncode != 0
    assert absent in done.stderr


SASS = """
import sys, gemmery, numpy
a = numpy.zeros((256, 256), "f4")
args = gemmery.GemmArguments(a, a.copy(), a.copy(), "f32")
artifact = gemmery.get_kernels(args, cc="h200")[0].compile(args, cc="h200")
try:
    artifact.sass()
except gemmery.UnavailableError as error:
    print("without:", error.operand)
sys.modules.pop("nvidia", None)
sys.path.insert(0, sys.argv[1])
print(artifact.sass())
"""


def test_machine_code_is_shown_by_the_nvdisasm_of_this_pythons_packages(tmp_path):
    library = nvrtc_of_doctor(gemmery.doctor())
    if not library:
        pytest.skip("no NVRTC here")
    program = tmp_path / "nvidia/cu13/bin/nvdisasm"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho a stand-in\n")
    program.chmod(0o755)
    hidden = {"GEMMERY_HIDE_CUDA": "1", "GEMMERY_NVRTC_LIBRARY": library}
    environment = {name: value for name, value in os.environ.items() if name != "GEMMERY_NVDISASM"} | hidden
    command = [sys.executable, "-c", SASS, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    without = [] if _nvrtc.find_disassembler() else ["without: nvdisasm"]
    assert done.stdout.split("\n")[: len(without)] == without
    assert "a stand-in" in done.stdout or not without


def test_without_toolkit_and_wheel_the_error_says_what_to_install(tmp_path):
    # A package `nvidia` without NVRTC hides the installed one.
    (tmp_path / "nvidia").mkdir()
    (tmp_path / "nvidia" / "__init__.py").touch()
    done = run_without_toolkit(COMPILE, tmp_path)
    assert done.returncode != 0
    assert "UnavailableError" in done.stderr, done.stderr
    assert "nvidia-cuda-nvrtc" in done.stderr
