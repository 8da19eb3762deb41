// SPDX-License-Identifier: Apache-2.0
// simt's kernel for operands with programs.
//
//   A, B in global memory
//     | as in simt.cuh, as they are stored
//   [k][m], [k][n] in shared memory
//     | epilogue/operand_program: a block that has arrived is scaled and goes through the program,
//     | in place
//   the mainloop and the epilogues of simt.cuh
#pragma once

#include <device/gemm/simt.cuh>

namespace gemmery::device {

/// `Params`: an abi::SimtProgramParams.
template <const abi::SimtDesign& design, class Params>
__device__ inline void simt_program_gemm(const Params& params) {
  using Programs = typename Params::Programs;
  for_each_simt_tile<design, Programs>(
      params.gemm,
      [](SimtGemm<design, Programs>& gemm, const abi::TilePosition& tile) {
        gemm.compute_tile(tile);
      },
      {}, {&params.a, &params.b}, {&params.program_a, &params.program_b});
}

/// The same with an emitted epilogue.
template <const abi::SimtDesign& design, class Epilogue, class Params, class EpilogueParams>
__device__ inline void simt_program_gemm(const abi::ProgramParams<Params, EpilogueParams>& params) {
  using Programs = typename Params::Programs;
  for_each_simt_tile<design, Programs>(
      params.gemm.gemm,
      [&](SimtGemm<design, Programs>& gemm, const abi::TilePosition& tile) {
        gemm.template compute_tile<Epilogue>(tile, params.epilogue);
      },
      {}, {&params.gemm.a, &params.gemm.b}, {&params.gemm.program_a, &params.gemm.program_b});
}

}  // namespace gemmery::device
