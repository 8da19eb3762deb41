# SPDX-License-Identifier: Apache-2.0
"""A kernel written in Triton, twice: as a class of kernels that generates its designs, and as one plain function.

    python examples/python/triton_gemm.py

Both are then found by get_kernels, filtered, compiled and run through the same calls as the library's own.
"""

import gemmery
from gemmery import own_kernels
from gemmery.metadata import BLASDesignMetadata, GemmOperandsMetadata, KernelMetadata, TensorAttributes
from gemmery.providers import TritonProvider

try:
    import torch
    import triton
    import triton.language as tl
except ModuleNotFoundError as missing:
    raise gemmery.UnavailableError(f"unavailable: {missing.name}: pip install torch triton") from missing


@triton.jit
def tiled_gemm(
    a, b, out, m, n, k,
    a_batch, a_row, a_column, b_batch, b_row, b_column, out_batch, out_row, out_column, alpha,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * TILE_M + tl.arange(0, TILE_M)
    columns = tl.program_id(1) * TILE_N + tl.arange(0, TILE_N)
    steps = tl.arange(0, TILE_K)
    batch = tl.program_id(2).to(tl.int64)
    a_at = a + batch * a_batch + rows[:, None].to(tl.int64) * a_row + steps[None, :] * a_column
    b_at = b + batch * b_batch + steps[:, None] * b_row + columns[None, :].to(tl.int64) * b_column
    sums = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for first in range(0, k, TILE_K):
        left = k - first
        a_tile = tl.load(a_at, mask=(rows[:, None] < m) & (steps[None, :] < left), other=0.0)
        b_tile = tl.load(b_at, mask=(steps[:, None] < left) & (columns[None, :] < n), other=0.0)
        sums = tl.dot(a_tile, b_tile, sums)
        a_at += TILE_K * a_column
        b_at += TILE_K * b_row
    out_at = out + batch * out_batch + rows[:, None].to(tl.int64) * out_row + columns[None, :].to(tl.int64) * out_column
    tl.store(out_at, (alpha * sums).to(out.dtype.element_ty), mask=(rows[:, None] < m) & (columns[None, :] < n))


def launch(a, b, out, alpha, tile, warps, stream, only_compile=False):
    """Multiplies tensors of rank 3 on one GPU, on the stream."""
    (batches, m, k), n = a.shape, b.shape[2]
    grid = (triton.cdiv(m, tile[0]), triton.cdiv(n, tile[1]), batches)
    numbers = (m, n, k, *a.stride(), *b.stride(), *out.stride(), alpha)
    constants = {"TILE_M": tile[0], "TILE_N": tile[1], "TILE_K": tile[2], "num_warps": warps}
    with torch.cuda.device(out.device), torch.cuda.stream(torch.cuda.ExternalStream(stream, device=out.device)):
        if only_compile:
            tiled_gemm.warmup(a, b, out, *numbers, **constants, grid=grid)
        else:
            tiled_gemm[grid](a, b, out, *numbers, **constants)


def as_torch(view):
    """A torch tensor of a view. The -1 means that no stream has to wait for another one, since the work is enqueued on the
    stream on which the operands are used (and a captured stream must not wait)."""
    return torch.from_dlpack(view.__dlpack__(stream=-1, max_version=(1, 0)))


# --- a class: every design is a kernel -----------------------------------------------------------

DESIGNS = [((64, 64, 32), 4), ((128, 128, 32), 8), ((128, 256, 64), 8)]
TYPES = [(gemmery.float16, gemmery.float16), (gemmery.float16, gemmery.float32), (gemmery.bfloat16, gemmery.bfloat16)]


@TritonProvider.register
class TritonGemm(gemmery.Kernel):
    """f16 and bf16 with float32 accumulators, any strides."""

    takes_alpha = True

    @staticmethod
    def generate_kernels(metadata_filter, epilogue_args=None, cc=None):
        if epilogue_args is not None or (cc is not None and cc < 80):
            return
        for inputs, output in TYPES:
            for tile, warps in DESIGNS:
                metadata = KernelMetadata(
                    kernel_name=f"triton_gemm_v1_{inputs.alias}_{output.alias}_{'x'.join(map(str, tile))}",
                    kernel_class=TritonGemm,
                    min_cc=80,
                    operands=GemmOperandsMetadata(
                        A=TensorAttributes(inputs, None, 2),
                        B=TensorAttributes(inputs, None, 2),
                        out=TensorAttributes(output, None, output.bits // 8),
                        accumulator_type=gemmery.float32,
                    ),
                    design=BLASDesignMetadata(tile_shape=tile, warps=warps),
                )
                if metadata_filter(metadata):
                    yield TritonGemm(metadata)

    def _supports(self, args):
        m, n, k, batches = args.problem_size
        if 0 in (m, n, k) or batches > 65535 or n > 65535 * self.metadata.design.tile_shape[1]:
            return gemmery.Status.fail("expected extents that are not 0, and a grid that CUDA takes")
        return gemmery.Status.success()

    def compile(self, args, cc=None):
        self._launch(args, stream=0, only_compile=True)
        return gemmery.CompiledArtifact(tiled_gemm, self)

    def _run(self, args, artifact, stream, workspace):
        self._launch(args, stream)

    def _launch(self, args, stream, only_compile=False):
        design = self.metadata.design
        views = [as_torch(args.views[name]) for name in ("A", "B", "out")]
        launch(*views, args.alpha, design.tile_shape, design.warps, stream, only_compile)


# --- a function: one kernel of the library -------------------------------------------------------


@own_kernels.register_callable(
    "triton_64",
    A="float16",
    B="float16",
    out="float16",
    targets=["sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"],
    design={"tile": "64x64x32", "instruction": "mma"},
    supports=lambda problem, device: "K is 0" if problem.k == 0 else None,
)
def triton_64(call):
    a, b, out = (as_torch(view) for view in (call.A, call.B, call.out))
    launch(a, b, out, call.alpha, (64, 64, 32), 4, call.stream)


def main():
    a = torch.randn(1000, 512, device="cuda", dtype=torch.float16)
    b = torch.randn(512, 768, device="cuda", dtype=torch.float16)
    out = torch.empty(1000, 768, device="cuda", dtype=torch.float16)
    args = gemmery.GemmArguments(a, b, out, accumulator_type=torch.float32)
    kernels = gemmery.get_kernels(args, providers=["triton", "user"])
    for kernel in kernels:
        artifact = kernel.compile(args)
        kernel.run(args, artifact)
        report = gemmery.check_result(args, kernel) if kernel.provider == "user" else None
        error = (out - a @ b).abs().max().item()
        print(f"{kernel.name}: largest difference from torch {error:.3g}{'' if report is None else ', verified'}")
        assert report is None or report.passed
    assert len(kernels) == len(DESIGNS) + 1


if __name__ == "__main__":
    main()
