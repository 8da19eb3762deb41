# SPDX-License-Identifier: Apache-2.0
"""A kernel of machine code, registered from Python: a cubin for one architecture, PTX for another. Both are made by nvcc
here, as a build would make them; from then on no compiler is needed.

    python examples/python/cubin_gemm.py              # on the first GPU, or on one that is emulated
"""

import pathlib
import shutil
import subprocess
import tempfile

import gemmery
from gemmery import own_kernels

SOURCE = r"""
// One thread per element of out.
extern "C" __global__ void dot_gemm(const float* a, const float* b, float* out, int m, int n, int k, long long a_row,
                                    long long b_row, long long out_row, float alpha) {
  const int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
  if (row >= m || column >= n) return;
  float sum = 0;
  for (int step = 0; step < k; ++step) sum += a[row * a_row + step] * b[step * b_row + column];
  out[row * out_row + column] = alpha * sum;
}
"""


def find_nvcc() -> str | None:
    return shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")


def compiled(form: str, architecture: str) -> bytes:
    """SOURCE as a "cubin" or as "ptx"."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "dot.cu").write_text(SOURCE)
        subprocess.run([find_nvcc(), f"-{form}", f"-arch={architecture}", "-o", folder / "dot", folder / "dot.cu"], check=True)
        return (folder / "dot").read_bytes()


def register(images: dict[str, bytes | str]) -> gemmery.Kernel:
    rows = own_kernels.Operand("float32", "row")
    return own_kernels.register_image(
        "dot_gemm",
        images,
        entry="dot_gemm",
        parameters=["A", "B", "out", "m", "n", "k", "A.leading", "B.leading", "out.leading", "alpha"],
        grid=("n/32", "m/8"),
        block=(32, 8),
        A=rows,
        B=rows,
        out=rows,
        design={"tile": "8x32x1"},
    )


def main():
    if find_nvcc() is None:
        print("no nvcc here: nothing to register")
        return
    gpus = [device for device in gemmery.devices() if device.startswith("cuda")]
    device = gpus[0] if gpus else "emulated:a100"  # which executes PTX
    of_device = f"sm_{gemmery.utils.device_cc(device)}"
    images = {"sm_80": compiled("ptx", "sm_80").decode(), "sm_90": compiled("cubin", "sm_90")}
    if of_device not in images:
        images[of_device] = compiled("cubin", of_device)
    dot_gemm = register(images)
    report = gemmery.verify(dot_gemm, "gemm 130x70x33 a=f32 alpha=0.5", device=device)
    print(f"{dot_gemm.name} on {device}: {report.elements} elements, {report.mismatches} outside their bounds")
    assert report.passed


if __name__ == "__main__":
    main()
