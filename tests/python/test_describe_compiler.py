# SPDX-License-Identifier: Apache-2.0
"""Compiling described operations: many at once, by which compiler, once only. Named after the rows of docs/describe-rows.md."""

import os
import pathlib
import shutil
import subprocess
import sys
import threading

import pytest

import gemmery
from describing import operation
from gemmery import describe


@pytest.fixture
def clean_environment():
    names = ("GEMMERY_COMPILER", "CUDA_HOME", "CUDA_INSTALL_PATH")
    before = {name: os.environ.get(name) for name in names}
    yield
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def test_row_71_one_call_for_many_operations():
    several = [operation(stages=stages, warps=warps) for stages in (2, 3, 4, 5) for warps in ((2, 2, 1), (2, 1, 1))]
    assert describe.compiler.add_module(several)
    for one in several:
        assert one.compile(cc=80).compile_ms >= 0


def test_row_71_one_that_fails_is_named_and_the_others_stay():
    several = [operation(stages=6), operation(stages=7)]
    with pytest.raises(gemmery.Error) as caught:
        describe.compiler.add_module(several, target="sm_75")
    assert several[0].name in str(caught.value) and several[1].name in str(caught.value)
    with pytest.raises(TypeError, match="GemmOperationUniversal"):
        describe.compiler.add_module([several[0], "another"])
    with pytest.raises(gemmery.UnsupportedError, match="compile_options"):
        describe.compiler.add_module(several, "-O1")
    assert describe.compiler.add_module(several)


def test_row_73_the_nvcc_of_cuda_install_path(tmp_path, clean_environment):
    os.environ.pop("CUDA_INSTALL_PATH", None)
    with pytest.raises(gemmery.UnavailableError, match="CUDA_INSTALL_PATH"):
        describe.compiler.nvcc()
    os.environ["CUDA_INSTALL_PATH"] = str(tmp_path)
    with pytest.raises(gemmery.UnavailableError, match=str(tmp_path / "bin" / "nvcc")):
        describe.compiler.nvcc()
    # A program in its place that is no nvcc is not passed over for another one.
    (tmp_path / "bin").mkdir()
    wrapper = tmp_path / "bin" / "nvcc"
    wrapper.write_text("#!/bin/sh\nexit 1\n")
    wrapper.chmod(0o755)
    with pytest.raises(gemmery.UnavailableError, match=f"tried {wrapper}"):
        describe.compiler.nvcc()
    assert os.environ.get("GEMMERY_COMPILER") != "nvcc"
    real = shutil.which("nvcc", path="/usr/local/cuda/bin")
    if real is None:
        pytest.skip("no nvcc here")
    # Another nvcc was used before.
    os.environ["CUDA_INSTALL_PATH"] = "/usr/local/cuda"
    describe.compiler.nvcc()
    os.environ["CUDA_INSTALL_PATH"] = str(tmp_path)
    # A wrapper in its place that leaves a word.
    log = tmp_path / "called"
    wrapper.write_text(f'#!/bin/sh\necho called >> {log}\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    describe.compiler.nvcc()
    log.unlink(missing_ok=True)
    describe.compiler.add_module([operation(stages=8)])
    assert log.exists()
    describe.compiler.nvrtc()
    assert os.environ["GEMMERY_COMPILER"] == "nvrtc"


def test_row_75_an_equal_description_is_compiled_once():
    describe.compiler.add_module([operation(stages=9)])
    first = operation(stages=9).compile(cc=80)
    assert operation(stages=9).compile(cc=80).compile_ms == first.compile_ms


PROGRAM = """
import sys
sys.path.insert(0, {tests!r})
import gemmery
from describing import operation
from gemmery import describe
describe.compiler.add_module([operation(stages=stages) for stages in range(2, 2 + {count})])
report = gemmery.cache.report()
print("hits", report["hits"], "kept", report["kept"], flush=True)
"""


def run_program(cache, folder, count=1, **variables):
    tests = str(pathlib.Path(__file__).parent)
    package = str(pathlib.Path(gemmery.__file__).parents[1])
    environment = os.environ | {"GEMMERY_CACHE_DIR": str(cache), "PYTHONPATH": package} | variables
    environment.pop("GEMMERY_CACHE_MAX_BYTES", None)
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(tests=tests, count=count)],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def entries(cache):
    return sorted(path.name for path in cache.rglob("*") if path.is_file() and path.stat().st_size > 2000)


def test_row_76_the_next_process_finds_what_was_compiled(tmp_path):
    cache = tmp_path / "cache"
    assert run_program(cache, tmp_path).returncode == 0
    before = entries(cache)
    second = run_program(cache, tmp_path)
    assert second.returncode == 0, second.stderr
    assert "hits 1 kept 0" in second.stdout
    assert entries(cache) == before


def test_row_77_a_database_of_the_working_directory_is_never_opened(tmp_path):
    database = tmp_path / "compiled_cache.db"
    database.write_bytes(b"not a database")
    database.chmod(0)
    done = run_program(tmp_path / "cache", tmp_path)
    assert done.returncode == 0, done.stderr
    assert database.stat().st_size == len(b"not a database")


def test_row_77_two_processes_at_once_lose_nothing(tmp_path):
    cache = tmp_path / "cache"
    outcomes = []
    threads = [threading.Thread(target=lambda: outcomes.append(run_program(cache, tmp_path, 4))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [done.returncode for done in outcomes] == [0, 0], [done.stderr for done in outcomes]
    assert len(entries(cache)) >= 4


def test_row_77_and_78_damage_and_deletion_cost_time_only(tmp_path):
    cache = tmp_path / "cache"
    assert run_program(cache, tmp_path).returncode == 0
    for path in cache.rglob("*"):
        if path.is_file() and path.stat().st_size > 2000:
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 0xFF
            path.write_bytes(content)
    assert run_program(cache, tmp_path).returncode == 0
    shutil.rmtree(cache)
    assert run_program(cache, tmp_path).returncode == 0
    assert entries(cache)
