// SPDX-License-Identifier: Apache-2.0
// The splitting phase of sm90 kernels with float32 operands: it replaces the operands of a stage by
// the parts that wgmma multiplies, in place and after their tiles.
#pragma once

#include <device/copy/operand_parts.cuh>
#include <device/gemm/sm90_shared.cuh>
#include <device/mma/part_products.cuh>
#include <device/ptx/fence.cuh>
#include <device/ptx/warp.cuh>

namespace gemmery::device {

template <const abi::Sm90Design& design>
class Sm90OperandParts {
 public:
  /// The warps of the tile's consumers share the units, while wgmmas of the previous stage are in
  /// flight. Returns after a barrier, when all parts are written. The previous contents of the
  /// stage are no longer read, since the pipeline has filled it again.
  __device__ __forceinline__ static void split_stage(Sm90Shared<design>& shared, unsigned stage,
                                                     unsigned consumer) {
    constexpr unsigned first_barrier = 11;  // lower ones are used by turns
    const unsigned own = takes_turns ? 0 : consumer * abi::warps_per_consumer;
    const unsigned warp = ptx::same_in_warp(own + threadIdx.x % abi::warpgroup_threads / 32);
    split_tile<SplitterA, a_bytes>(ptx::cvta_shared(&shared.a[stage]), warp);
    split_tile<SplitterB, b_bytes>(ptx::cvta_shared(&shared.b[stage]), warp);
    ptx::fence_proxy_async();
    ptx::bar_sync<warp_count * 32>(first_barrier + (takes_turns ? consumer : 0));
  }

  /// accumulators = a b over the k of a split stage, from a consumer's first row and column on, as
  /// one group of wgmmas in flight.
  __device__ __forceinline__ static void multiply_stage(Sm90Shared<design>& shared, unsigned stage,
                                                        unsigned first_row, unsigned first_column) {
    multiply_products<design>(
        parts_from<a_bytes>(ptx::cvta_shared(&shared.a[stage]), first_row),
        parts_from<b_bytes>(ptx::cvta_shared(&shared.b[stage]), first_column));
  }

 private:
  static constexpr unsigned a_bytes = abi::a_tile_bytes(design);
  static constexpr unsigned b_bytes = abi::b_tile_bytes(design);
  static constexpr unsigned warp_count = abi::consumers_per_tile(design) * abi::warps_per_consumer;
  static constexpr bool takes_turns = abi::takes_turns(design);
  static constexpr abi::DType multiplied = abi::multiplied_type(design.math, design.a);
  using SplitterA = UnitSplitter<design.math, abi::is_transposed(multiplied, design.a_major)>;
  using SplitterB = UnitSplitter<design.math, abi::is_transposed(multiplied, design.b_major)>;

  template <class Splitter, unsigned tile_bytes>
  __device__ __forceinline__ static void split_tile(unsigned tile, unsigned warp) {
    const Splitter splitter(threadIdx.x % 32);
#pragma unroll 1
    for (unsigned unit = warp; unit < tile_bytes / Splitter::bytes; unit += warp_count)
      splitter.take(tile + unit * Splitter::bytes,
                    tile + tile_bytes + unit * Splitter::bytes_behind);
  }

  /// `first` is the first of an atom, or a row of a K-major tile at which the swizzle repeats.
  template <unsigned tile_bytes>
  __device__ __forceinline__ static OperandParts parts_from(unsigned tile, unsigned first) {
    return {.tile = tile + first * abi::sm90_swizzle_bytes,
            .behind = tile + tile_bytes + first * abi::part_bytes_per_line(design.math)};
  }
};

}  // namespace gemmery::device
