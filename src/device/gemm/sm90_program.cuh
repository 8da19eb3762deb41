// SPDX-License-Identifier: Apache-2.0
// The GEMM of sm90.cuh with an emitted epilogue: a program computes out and its other results
// from the accumulators.
#pragma once

#include <device/abi/sm90_program.hpp>
#include <device/epilogue/warpgroup_program_block.cuh>
#include <device/gemm/empty_groups.cuh>
#include <device/gemm/sm90.cuh>
#include <device/gemm/sm90_outside.cuh>

namespace gemmery::device {

__device__ __forceinline__ const abi::Sm90Params& gemm_of(const abi::Sm90Params& params) {
  return params;
}
__device__ __forceinline__ const abi::Sm90Params& gemm_of(const abi::Sm90GroupedParams& params) {
  return params.gemm;
}
__device__ __forceinline__ const abi::Sm90Params& gemm_of(const abi::Sm90GroupTableParams& params) {
  return params.grouped.gemm;
}
__device__ __forceinline__ const abi::Sm90Params& gemm_of(const abi::Sm90ScaledParams& params) {
  return params.gemm;
}
__device__ __forceinline__ const abi::Sm90Params& gemm_of(
    const abi::Sm90ScaledGroupParams& params) {
  return params.grouped.gemm;
}
__device__ __forceinline__ const abi::Sm90Params& gemm_of(const abi::Sm90ScatterParams& params) {
  return params.grouped.gemm;
}
__device__ __forceinline__ const abi::Sm90Params& gemm_of(const abi::Sm90GatherParams& params) {
  return params.scattered.grouped.gemm;
}
__device__ __forceinline__ const abi::Sm90Params& gemm_of(const abi::Sm90ConvParams& params) {
  return params.gemm;
}
__device__ __forceinline__ const abi::Sm90Params& gemm_of(const abi::Sm90PhaseParams& params) {
  return params.gemm;
}

/// The kernel with an emitted epilogue; `maps` are those of the inputs that TMA loads.
template <const abi::Sm90Design& design, class Epilogue, class GemmParams, class EpilogueParams>
__device__ __forceinline__ void sm90_gemm(
    const abi::ProgramParams<GemmParams, EpilogueParams>& params, const abi::TensorMap* maps) {
  using Finish = WarpgroupProgram<abi::stored_of<design>(), Epilogue>;
  const abi::Sm90Params& gemm = gemm_of(params.gemm);
  run_sm90_gemm<design>(
      gemm,
      [&](unsigned shared, unsigned consumer, unsigned thread) {
        return Finish(gemm, params.epilogue, maps, shared, consumer, thread);
      },
      [&](unsigned shared) { Finish::initialize(maps, shared); },
      [&](unsigned lane) {
        Finish::open_results(params.epilogue, lane);
        if constexpr (design.has_groups)
          store_reductions_of_nothing<Epilogue, typename Finish::Compute>(
              sizes_of_groups<design>(gemm), params.epilogue, {.m = gemm.m, .n = gemm.n},
              {.own = lane, .count = 32});
      });
}

template <const abi::Sm90Design& design, class Epilogue, class Program, int maps>
__device__ __forceinline__ void sm90_gemm(const abi::Sm90ProgramParams<Program, maps>& params) {
  if constexpr (maps > 0)
    sm90_gemm<design, Epilogue>(params.program, params.input);
  else
    sm90_gemm<design, Epilogue>(params.program, static_cast<const abi::TensorMap*>(nullptr));
}

}  // namespace gemmery::device
