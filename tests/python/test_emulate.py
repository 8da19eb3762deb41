# SPDX-License-Identifier: Apache-2.0
"""gemmery.emulate on NumPy arrays, and the decorator and plugin of gemmery.testing."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

import gemmery
import gemmery.triton
from gemmery.emulation import TensorMap, Unwritten
from gemmery.testing import EmulationFailure, emulated

SUM = """\
__global__ void sum(const float* numbers, float* sums, unsigned count, float factor) {
  __shared__ float partial[256];
  const unsigned at = blockIdx.x * 256 + threadIdx.x;
  partial[threadIdx.x] = at < count ? numbers[at] : 0;
  __syncthreads();
  for (unsigned step = 128; step > 0; step /= 2) {
    if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
    SYNC
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = factor * partial[0];
}
"""
RIGHT = SUM.replace("SYNC", "__syncthreads();")
RACY = SUM.replace("SYNC", "")


@pytest.fixture(autouse=True)
def needs_nvrtc():
    if re.search(r"NVRTC\s+not found", gemmery.doctor()):
        pytest.skip("no NVRTC")


def sum_arguments(count=1000):
    numbers = np.arange(count, dtype=np.float32)
    return numbers, np.full(4, -1, np.float32)


FETCH = r"""
struct alignas(64) CUtensorMap { unsigned long long words[16]; };
__global__ void fetch(const __grid_constant__ CUtensorMap map, float* out) {
  __shared__ alignas(128) float tile[8 * 16];
  __shared__ unsigned long long arrived;
  const unsigned to = (unsigned)__cvta_generic_to_shared(tile), barrier = (unsigned)__cvta_generic_to_shared(&arrived);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;\n fence.mbarrier_init.release.cluster;" :: "r"(barrier) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 512;" :: "r"(barrier) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {0, 2}], [%2];"
                 :: "r"(to), "l"(&map), "r"(barrier) : "memory");
  }
  __syncthreads();
  asm volatile("{ .reg .pred done;\n again: mbarrier.try_wait.parity.shared.b64 done, [%0], 0;\n @!done bra again; }"
               :: "r"(barrier) : "memory");
  for (int at = threadIdx.x; at < 128; at += 64) out[at] = tile[at];
}
"""


def test_a_kernel_gets_the_tensor_map_of_an_array():
    numbers = np.arange(120, dtype=np.float32).reshape(10, 12)
    out = np.empty((8, 16), np.float32)
    report = gemmery.emulate(FETCH, 1, 64, [TensorMap(numbers, (8, 16)), Unwritten(out)], seeds=2)
    assert report and not report.findings, report
    assert np.array_equal(out, np.pad(numbers[2:], ((0, 0), (0, 4))))
    with pytest.raises(gemmery.InvalidArgumentError, match="a box of as many, got 2 and 1"):
        gemmery.emulate(FETCH, 1, 64, [TensorMap(numbers, (8,)), Unwritten(out)])


def test_results_are_in_the_arrays():
    numbers, sums = sum_arguments()
    report = gemmery.emulate(RIGHT, 4, 256, [numbers, sums, len(numbers), 0.5], seeds=2, device="a100")
    assert report and report.passed and not report.findings
    padded = np.concatenate([numbers, np.zeros(24, np.float32)])
    assert np.array_equal(sums, padded.reshape(4, 256).sum(axis=1) / 2)
    assert report.kernel.startswith("sum(") and report.schedules == 2
    assert "no findings" in str(report)


def test_findings_are_objects_with_both_sides():
    numbers, sums = sum_arguments()
    report = gemmery.emulate(RACY, 4, 256, [numbers, Unwritten(sums), len(numbers), 1], seeds=2)
    assert not report
    race = next(finding for finding in report.findings if finding.kind == "race")
    assert race.place.file == "kernel.cu" and race.place.line == 7 and race.other.line == 7
    assert race.place.lane >= 0 and race.place.warp >= 0 and len(race.place.block) == 3
    assert race.count > 0 and set(race.seeds) <= {1, 2} and not race.is_by_the_letter
    assert "it needs a barrier" in str(race) and "kernel.cu:7" in repr(race)


def test_rules_time_coverage_and_files(tmp_path):
    file = tmp_path / "mine.cu"
    file.write_text('#include "sums.cuh"\n')
    (tmp_path / "sums.cuh").write_text(RACY)
    numbers, sums = sum_arguments()
    arguments = [numbers, sums, np.uint32(len(numbers)), np.float32(1)]
    report = gemmery.emulate(file, 4, 256, arguments, rules="race, sums.cuh\nresults differ\ntrap", coverage=True, timeout=60)
    assert report, str(report)
    assert report.findings[0].rule == "race, sums.cuh" and "trap" in report.unused_rules
    assert any(line.has_run and line.line == 10 for line in report.coverage)
    first = gemmery.emulate(file, (4,), (256, 1, 1), arguments, stop_at_first=True)
    assert len(first.findings) == 1


def test_every_kind_of_argument():
    source = """
struct Pair { int first; float second; };
__global__ void take(Pair pair, unsigned char small, double wide, unsigned short half_bits, float* out,
                     const unsigned short* narrow) {
  out[0] = pair.first; out[1] = pair.second; out[2] = small; out[3] = wide; out[4] = half_bits; out[5] = narrow[1];
}
"""
    out = np.zeros((2, 3), np.float32)
    narrow = np.array([1, 2], ml_dtypes.bfloat16)
    narrow.flags.writeable = False
    pair = np.array((3, 1.5), dtype=[("first", "i4"), ("second", "f4")]).tobytes()
    report = gemmery.emulate(source, 1, 1, [pair, True, 0.25, np.float16(1), out, narrow], seeds=1)
    assert report, str(report)
    assert out.ravel().tolist() == [3, 1.5, 1, 0.25, 0x3C00, 0x4000]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ([np.zeros((4, 4), np.float32).T, np.zeros(4), 1, 1], ValueError, "argument 0.*C order"),
        ([np.array([None]), np.zeros(4), 1, 1], TypeError, "argument 0.*objects"),
        (["text", np.zeros(4), 1, 1], TypeError, "argument 0.*str"),
        ([np.zeros(4), np.zeros(4), 1.5, 1], gemmery.InvalidArgumentError, "argument 2"),
        ([np.zeros(4), np.zeros(4), np.float64(1), 1], gemmery.InvalidArgumentError, "argument 2"),
        ([np.zeros(4)], gemmery.InvalidArgumentError, "arguments of sum"),
    ],
)
def test_each_refusal_names_the_argument(arguments, error, words):
    with pytest.raises(error, match=words):
        gemmery.emulate(RIGHT, 1, 256, arguments)


def test_refusals_of_code_device_and_extents():
    with pytest.raises(gemmery.CompileError, match=r"kernel\.cu\(1\)"):
        gemmery.emulate("__global__ void broken( {}", 1, 1, [])
    with pytest.raises(gemmery.Error, match="h999"):
        gemmery.emulate(RIGHT, 1, 1, [], device="h999")
    with pytest.raises(ValueError, match="grid"):
        gemmery.emulate(RIGHT, (1, 2, 3, 4), 1, [])


@emulated("a100", seeds=2)
@pytest.mark.parametrize("count", [256, 700])
def test_the_decorator_passes_launch_beside_parameters(launch, count, tmp_path):
    assert isinstance(tmp_path, pathlib.Path)
    numbers, sums = sum_arguments(count)
    report = launch(RIGHT, 4, 256, [numbers, sums, count, 1])
    assert report.schedules == 2 and sums.sum() == numbers.sum()


@emulated(seeds=1)
def test_a_failing_launch_raises_the_report(launch):
    numbers, sums = sum_arguments()
    with pytest.raises(EmulationFailure, match="race: ") as caught:
        launch(RACY, 4, 256, [numbers, sums, 1000, 1])
    assert caught.value.report.findings


def test_a_test_without_launch_is_refused():
    with pytest.raises(TypeError, match="launch"):
        emulated()(lambda: None)


def run_pytest(file, *words, cwd):
    words = ["-m", "pytest", "-p", "gemmery.testing", "-p", "no:cacheprovider", *words, str(file)]
    environment = {**os.environ, "PYTHONPATH": str(pathlib.Path(gemmery.__file__).resolve().parents[1])}
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=cwd, env=environment, check=False)


def test_the_example_passes_and_fails_without_its_barrier(tmp_path):
    example = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python" / "test_reduce.py"
    done = run_pytest(example, cwd=tmp_path)
    assert done.returncode == 0 and "emulated: 1 launches under 8 schedules, 0 with findings" in done.stdout, done.stdout
    broken = tmp_path / "test_broken.py"
    broken.write_text(example.read_text().replace("    __syncthreads();\n  }", "  }"))
    assert "race: " in run_pytest(broken, cwd=tmp_path).stdout


def test_failures_read_well_and_the_plugin_counts(tmp_path):
    test = tmp_path / "test_mine.py"
    test.write_text(
        "import numpy as np\n"
        "from gemmery.testing import emulated\n"
        f"SOURCE = {RACY!r}\n"
        "@emulated('h200', seeds=8)\n"
        "def test_sum(launch):\n"
        "    launch(SOURCE, 4, 256, [np.ones(1024, np.float32), np.zeros(4, np.float32), 1024, 1])\n"
    )
    done = run_pytest(test, "--emulated-seeds", "3", cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "emulated: 1 launches under 3 schedules, 1 with findings" in done.stdout
    assert "gemmery.testing.EmulationFailure" in done.stdout and "kernel.cu:7" in done.stdout
    assert "    launch(SOURCE, 4, 256" in done.stdout, "the test's own line is where it ends"
    assert "python/gemmery/testing.py" not in done.stdout and "_core.emulate" not in done.stdout


@pytest.mark.skipif(importlib.util.find_spec("triton") is not None, reason="Triton is installed")
def test_without_triton_its_kernels_are_refused():
    with pytest.raises(gemmery.UnavailableError, match="Triton: expected an installed package"):
        gemmery.triton.emulate(print)
