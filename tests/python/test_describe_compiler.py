# SPDX-License-Identifier: Apache-2.0
"""Compiling described operations: many at once, each once, by which compiler. Named after the rows of docs/describe-rows.md."""

import math
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time

import pytest

import gemmery
from describing import operation, tile
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
    with pytest.raises(TypeError, match="operations: expected a list"):
        describe.compiler.add_module(several[0])
    assert describe.compiler.add_module(several)


def fp8_operation():
    """An operation whose instruction exists from sm_89 on."""
    fp8 = describe.float8_e4m3fn
    instruction = describe.MathInstruction([16, 8, 32], fp8, fp8, describe.float32, describe.OpClass.TensorOp)
    a, b = (describe.TensorDescription(fp8, layout, 16) for layout in (describe.RowMajor, describe.ColumnMajor))
    c = describe.TensorDescription(describe.float32, describe.RowMajor, 4)
    functor = describe.LinearCombination(c.element, c.alignment)
    return describe.GemmOperationUniversal(89, tile(instruction, (64, 64, 64)), a, b, c, functor)


def test_row_71_one_of_eight_fails():
    seven = [operation(stages=stages, shape=(32, 64, 32), warps=(1, 2, 1)) for stages in range(2, 9)]
    failing = fp8_operation()
    with pytest.raises(gemmery.Error) as caught:
        describe.compiler.add_module([*seven[:3], failing, *seven[3:]], target="sm_86")
    assert failing.name in str(caught.value)
    assert not any(one.name in str(caught.value) for one in seven)
    before = gemmery.cache.report()
    assert describe.compiler.add_module(seven, target="sm_86")
    assert gemmery.cache.report() == before  # the code was in memory


def test_row_73_the_nvcc_of_cuda_install_path(tmp_path, clean_environment):
    os.environ.pop("CUDA_INSTALL_PATH", None)
    with pytest.raises(gemmery.UnavailableError, match="CUDA_INSTALL_PATH"):
        describe.compiler.nvcc()
    os.environ["CUDA_INSTALL_PATH"] = str(tmp_path)
    with pytest.raises(gemmery.UnavailableError, match=str(tmp_path / "bin" / "nvcc")):
        describe.compiler.nvcc()
    # If the configured program is not nvcc, no other nvcc is used.
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
    # A wrapper that records its use.
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
    before = gemmery.cache.report()
    fastest = math.inf
    for _ in range(200):  # the minimum, since other programs may use the processor
        again = operation(stages=9)
        begin = time.perf_counter()
        describe.compiler.add_module([again])
        fastest = min(fastest, time.perf_counter() - begin)
        if fastest < 1e-3:
            break
    assert operation(stages=9).compile(cc=80).compile_ms == first.compile_ms
    assert gemmery.cache.report() == before
    assert fastest < 1e-3


PROGRAM = """
import itertools
import sys
import time
sys.path.insert(0, {tests!r})
import gemmery
from describing import operation
from gemmery import describe
warps = [(2, 2, 1), (2, 1, 1), (1, 2, 1), (1, 1, 1)]
designs = itertools.islice(itertools.product(range(2, 7), warps), {count})
several = [operation(stages=stages, shape=(32, 32, 32), warps=warps) for stages, warps in designs]
begin = time.perf_counter()
describe.compiler.add_module(several, target={target!r})
elapsed = time.perf_counter() - begin
report = gemmery.cache.report()
print("hits", report["hits"], "kept", report["kept"], "ms", round(1e3 * elapsed), flush=True)
"""


def run_program(cache, folder, count=1, target=None, more="", **variables):
    tests = str(pathlib.Path(__file__).parent)
    package = str(pathlib.Path(gemmery.__file__).parents[1])
    environment = os.environ | {"GEMMERY_CACHE_DIR": str(cache), "PYTHONPATH": package} | variables
    environment.pop("GEMMERY_CACHE_MAX_BYTES", None)
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(tests=tests, count=count, target=target) + more],
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
    again = (run_program(cache, tmp_path) for _ in range(5))
    assert any(int(done.stdout.split()[-1]) < 100 for done in [second, *again])
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
    threads = [threading.Thread(target=lambda: outcomes.append(run_program(cache, tmp_path, 20))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [done.returncode for done in outcomes] == [0, 0], [done.stderr for done in outcomes]
    assert len(entries(cache)) == 20
    assert "hits 20 kept 0" in run_program(cache, tmp_path, 20).stdout


def test_row_77_and_78_damage_and_deletion_cost_time_only(tmp_path):
    cache = tmp_path / "cache"
    assert "hits 0 kept 1" in run_program(cache, tmp_path).stdout
    for path in cache.rglob("*"):
        if path.is_file() and path.stat().st_size > 2000:
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 0xFF
            path.write_bytes(content)
    assert "hits 0 kept 1" in run_program(cache, tmp_path).stdout
    assert "hits 1 kept 0" in run_program(cache, tmp_path).stdout
    shutil.rmtree(cache)
    assert "hits 0 kept 1" in run_program(cache, tmp_path).stdout
    assert entries(cache)


def test_row_78_another_target_is_another_entry(tmp_path):
    cache = tmp_path / "cache"
    assert "hits 0 kept 1" in run_program(cache, tmp_path).stdout
    assert "hits 0 kept 1" in run_program(cache, tmp_path, target="sm_86").stdout
    assert "hits 1 kept 0" in run_program(cache, tmp_path).stdout


def test_row_78_deleted_while_the_process_runs(tmp_path):
    cache = tmp_path / "cache"
    lines = [
        "import shutil",
        f"shutil.rmtree({str(cache)!r})",
        "assert describe.compiler.add_module(several)",
        "describe.compiler.add_module([operation(stages=9)])",
    ]
    done = run_program(cache, tmp_path, more="\n".join(lines))
    assert done.returncode == 0, done.stderr
    assert len(entries(cache)) == 1
