// SPDX-License-Identifier: Apache-2.0
// A bfloat16 GEMM of CUTLASS 2.x for sm_80, by 128x128x32 with warps of 64x64: to compare the
// machine code of its main loop with that of an sm80 kernel (docs/performance-sm80.md). Not built
// with the benchmarks:
//   nvcc -std=c++17 -O3 -arch=sm_80 -cubin -I CUTLASS/include -DSTAGES=4 -o cutlass.cubin
//        bench/peers/cutlass_sm80.cu
//   tools/count_main_loop.py NVDISASM cutlass.cubin
#include <cutlass/epilogue/thread/linear_combination.h>
#include <cutlass/gemm/device/gemm.h>

using Element = cutlass::bfloat16_t;
using Gemm = cutlass::gemm::device::Gemm<
    Element, cutlass::layout::RowMajor, Element, cutlass::layout::ColumnMajor, Element,
    cutlass::layout::RowMajor, float, cutlass::arch::OpClassTensorOp, cutlass::arch::Sm80,
    cutlass::gemm::GemmShape<128, 128, 32>, cutlass::gemm::GemmShape<64, 64, 32>,
    cutlass::gemm::GemmShape<16, 8, 16>,
    cutlass::epilogue::thread::LinearCombination<Element, 8, float, float>,
    cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<8>, STAGES>;

template __global__ void cutlass::Kernel<Gemm::GemmKernel>(Gemm::GemmKernel::Params);
