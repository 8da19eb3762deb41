// SPDX-License-Identifier: Apache-2.0
// simt's kernel for operands whose scales vary along k or that have zero points.
//
//   A, B in global memory
//     | as in simt.cuh, unscaled
//   [k][m], [k][n] in shared memory
//     | copy/scale_operand: a block that has arrived is scaled in place
//   the mainloop and the epilogues of simt.cuh
#pragma once

#include <device/gemm/simt.cuh>

namespace gemmery::device {

template <const abi::SimtDesign& design>
__device__ inline void simt_scaled_gemm(const abi::SimtScaledParams& params) {
  for_each_simt_tile<design>(
      params.gemm,
      [](SimtGemm<design>& gemm, const abi::TilePosition& tile) { gemm.compute_tile(tile); }, {},
      {&params.a, &params.b});
}

/// The same with an emitted epilogue.
template <const abi::SimtDesign& design, class Epilogue, class EpilogueParams>
__device__ inline void simt_scaled_gemm(
    const abi::ProgramParams<abi::SimtScaledParams, EpilogueParams>& params) {
  for_each_simt_tile<design>(params.gemm.gemm,
                             [&](SimtGemm<design>& gemm, const abi::TilePosition& tile) {
                               gemm.template compute_tile<Epilogue>(tile, params.epilogue);
                             },
                             {}, {&params.gemm.a, &params.gemm.b});
}

}  // namespace gemmery::device
