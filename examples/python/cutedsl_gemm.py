# SPDX-License-Identifier: Apache-2.0
"""A kernel written in the CuTe DSL (pip install nvidia-cutlass-dsl), as a class of kernels: found, compiled and run by the same
calls as the library's own.

    python examples/python/cutedsl_gemm.py                    # on the first GPU, or compiles for one that is not here

Tensor cores multiply what every thread reads straight from global memory, element by element: any strides and extents
serve, and no more is shown than what a kernel takes to be one of gemmery's.
"""

import contextlib

import numpy as np

import gemmery
from gemmery.metadata import BLASDesignMetadata, GemmOperandsMetadata, KernelMetadata, TensorAttributes
from gemmery.providers import CuTeDSLProvider
from gemmery.providers.cutedsl.kernel import CuteDslKernel

try:
    import cutlass
    from cuda.bindings import driver, runtime
    from cutlass import cute
    from cutlass.cute.runtime import make_ptr
except ModuleNotFoundError as missing:
    raise gemmery.UnavailableError(f"unavailable: {missing.name}: pip install nvidia-cutlass-dsl") from missing

TILE = (64, 64, 32)
WARPS = (2, 2, 1)
THREADS = 128
Strides = tuple[cutlass.Int64, cutlass.Int64, cutlass.Int64]

# --- the kernel ----------------------------------------------------------------------------------


@cute.jit
def load(values, tile, at, bounds):
    """A thread's elements of a tile; 0 for those out of bounds."""
    values.fill(0.0)
    for i in cutlass.range_constexpr(cute.size(values)):
        if cute.elem_less(at[i], bounds):
            values[i] = tile[i]


def tiles_of(tensor, block, along):
    """The tiles of a matrix that a block works on, those along K as a further dimension."""
    return cute.local_tile(tensor, TILE, block, proj=along)


@cute.kernel
def multiply_tile(a: cute.Tensor, b: cute.Tensor, out: cute.Tensor, alpha: cutlass.Float32, mma: cute.TiledMma):
    """A is (M, K, batches), B (N, K, batches), out (M, N, batches)."""
    column, row, batch = cute.arch.block_idx()
    thread = mma.get_slice(cute.arch.thread_idx()[0])
    (m, n, _), k = out.shape, a.shape[1]
    block = (row, column, None)

    def mine(partition, matrix, extents, along):
        """This thread's part of a matrix, and its coordinates."""
        where = cute.make_identity_tensor(extents)
        return partition(tiles_of(matrix[None, None, batch], block, along)), partition(tiles_of(where, block, along))

    a_tiles, a_at = mine(thread.partition_A, a, (m, k), (1, None, 1))
    b_tiles, b_at = mine(thread.partition_B, b, (n, k), (None, 1, 1))
    out_tile, out_at = mine(thread.partition_C, out, (m, n), (1, 1, None))

    a_values = mma.make_fragment_A(a_tiles[None, None, None, 0])
    b_values = mma.make_fragment_B(b_tiles[None, None, None, 0])
    sums = cute.make_rmem_tensor(out_tile.shape, cutlass.Float32)
    sums.fill(0.0)
    for step in range(cute.ceil_div(k, TILE[2])):
        load(a_values, a_tiles[None, None, None, step], a_at[None, None, None, step], (m, k))
        load(b_values, b_tiles[None, None, None, step], b_at[None, None, None, step], (n, k))
        cute.gemm(mma, sums, a_values, b_values, sums)
    for i in cutlass.range_constexpr(cute.size(sums)):
        if cute.elem_less(out_at[i], (m, n)):
            out_tile[i] = (alpha * sums[i]).to(out.element_type)


@cute.jit
def multiply(
    a: cute.Pointer, b: cute.Pointer, out: cute.Pointer,
    m: cutlass.Int32, n: cutlass.Int32, k: cutlass.Int32, batches: cutlass.Int32,
    a_strides: Strides, b_strides: Strides, out_strides: Strides,
    alpha: cutlass.Float32, stream: driver.CUstream,
):  # fmt: skip
    """Strides in elements, the batch's last. Compiled once for all extents, strides and addresses."""
    instruction = cute.nvgpu.warp.MmaF16BF16Op(a.value_type, cutlass.Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(instruction, cute.make_layout(WARPS), permutation_mnk=(32, 32, 16))
    multiply_tile(
        cute.make_tensor(a, cute.make_layout((m, k, batches), stride=a_strides)),
        cute.make_tensor(b, cute.make_layout((n, k, batches), stride=b_strides)),
        cute.make_tensor(out, cute.make_layout((m, n, batches), stride=out_strides)),
        alpha,
        mma,
    ).launch(
        grid=(cute.ceil_div(n, TILE[1]), cute.ceil_div(m, TILE[0]), batches),
        block=(THREADS, 1, 1),
        stream=stream,
    )


# --- as kernels of gemmery -----------------------------------------------------------------------

NAMES = {gemmery.float16: cutlass.Float16, gemmery.bfloat16: cutlass.BFloat16, gemmery.float32: cutlass.Float32}
TYPES = [
    (gemmery.float16, gemmery.float16),
    (gemmery.float16, gemmery.float32),
    (gemmery.bfloat16, gemmery.bfloat16),
    (gemmery.bfloat16, gemmery.float32),
]


def pointer(view):
    return make_ptr(NAMES[view.dtype], view.data_ptr, cute.AddressSpace.gmem, assumed_align=view.dtype.bits // 8)


def words_of(args, stream):
    """The operands for `multiply` from arguments, whose views have rank 3, the batch first."""
    m, n, k, batches = args.problem_size
    a, b, out = (args.views[name] for name in ("A", "B", "out"))
    strides = [
        tuple(cutlass.Int64(view.strides[dimension]) for dimension in order)
        for view, order in ((a, (1, 2, 0)), (b, (2, 1, 0)), (out, (1, 2, 0)))
    ]
    return (*map(pointer, (a, b, out)), m, n, k, batches, *strides, args.alpha, driver.CUstream(stream))


@contextlib.contextmanager
def current(device):
    """Makes "cuda:1" the current device for a while, since launches use the current device."""
    before = runtime.cudaGetDevice()[1]
    runtime.cudaSetDevice(int(device.partition(":")[2]))
    try:
        yield
    finally:
        runtime.cudaSetDevice(before)


@CuTeDSLProvider.register
class CuteGemm(CuteDslKernel):
    """f16 and bf16 with float32 accumulators, any strides."""

    takes_alpha = True

    @staticmethod
    def generate_kernels(metadata_filter, epilogue_args=None, cc=None):
        if epilogue_args is not None or (cc is not None and cc < 80):
            return
        for inputs, output in TYPES:
            metadata = KernelMetadata(
                kernel_name=f"cutedsl_gemm_v1_{inputs.alias}_{output.alias}_{'x'.join(map(str, TILE))}",
                kernel_class=CuteGemm,
                min_cc=80,
                operands=GemmOperandsMetadata(
                    A=TensorAttributes(inputs, None, inputs.bits // 8),
                    B=TensorAttributes(inputs, None, inputs.bits // 8),
                    out=TensorAttributes(output, None, output.bits // 8),
                    accumulator_type=gemmery.float32,
                ),
                design=BLASDesignMetadata(tile_shape=TILE, warps=THREADS // 32),
            )
            if metadata_filter(metadata):
                yield CuteGemm(metadata)

    def _supports(self, args):
        m, n, k, batches = args.problem_size
        if 0 in (m, n) or max(m, n, k) >= 2**31 or m > 65535 * TILE[0] or batches > 65535:
            return gemmery.Status.fail("expected extents that are not 0, and a grid that CUDA takes")
        return gemmery.Status.success()

    def compile(self, args, cc=None):
        return self.cute_compile(multiply, *words_of(args, stream=0), target=cc)

    def compile_key(self, args):
        return args.device  # one code for all of its problems

    def _run(self, args, artifact, stream, workspace):
        with current(args.device):
            self.cute_run(artifact, *words_of(args, stream))


# --- its use -------------------------------------------------------------------------------------


def arguments_without_memory():
    """Arguments for a GPU that is not present, only to compile."""
    shapes = {1 << 40: (64, 32), 1 << 41: (32, 96), 1 << 42: (64, 96)}
    return gemmery.GemmArguments(*(gemmery.Tensor(address, shape, "float16") for address, shape in shapes.items()))


def main():
    if not any(device.startswith("cuda") for device in gemmery.devices()):
        args = arguments_without_memory()
        (kernel,) = gemmery.get_kernels(args, cc="h200", providers=["cutedsl"])
        kernel.compile(args, cc="sm_90a")
        print(f"{kernel.name}: no GPU here; compiled for sm_90a")
        return
    rng = np.random.default_rng()
    a, b = (rng.integers(-4, 5, shape).astype(np.float16) for shape in ((1000, 512), (512, 768)))
    out = np.empty((1000, 768), np.float32)
    args = gemmery.GemmArguments(a, b, out, accumulator_type=np.float32).to_device()
    (kernel,) = gemmery.get_kernels(args, providers=["cutedsl"])
    kernel.run(args, kernel.compile(args))
    args.sync()
    assert (out == a.astype(np.float32) @ b.astype(np.float32)).all()
    print(f"{kernel.name}: equal to NumPy's")


if __name__ == "__main__":
    main()
