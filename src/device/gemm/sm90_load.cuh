// SPDX-License-Identifier: Apache-2.0
// The loading phase of sm90 kernels: TMA copies A and B to the stages of the pipeline.
#pragma once

#include <device/abi/sm90_params.hpp>
#include <device/copy/tma_operand.cuh>
#include <device/epilogue/output_place.cuh>
#include <device/gemm/sm90_shared.cuh>
#include <device/ptx/async_copy.cuh>
#include <device/ptx/shared_memory.cuh>

namespace gemmery::device {

/// The matrices of a tile, kept between its stages. Empty if a multiplication finds them.
template <bool has_pointers>
struct TileMatrices {};
template <>
struct TileMatrices<true> {
  MapMatrix<true> a;
  MapMatrix<true> b;
};

template <abi::Sm90Design design>
class Sm90Load {
 public:
  using Shared = Sm90Shared<design>;

  /// `rank` of the block in its cluster.
  __device__ Sm90Load(const abi::Sm90Params& params, Shared& shared, unsigned rank)
      : params_(params), shared_(shared), rank_(rank) {}

  /// One thread calls it, before anything is loaded.
  __device__ __forceinline__ void prefetch_maps() const {
    ptx::prefetch_tensormap(params_.a);
    ptx::prefetch_tensormap(params_.b);
  }

  /// All threads call it, before the first copy and a barrier of the block.
  __device__ __forceinline__ void clear_stages() const {
    clear_stages<abi::a_tile_bytes(design)>(shared_.a, params_.a_bytes);
    clear_stages<abi::b_tile_bytes(design)>(shared_.b, params_.b_bytes);
  }

  /// A tile, and the place of its matrices of A and B in tensor maps.
  struct Tile {
    OutputPlace place;
    TileMatrices<design.has_pointers> matrices;
  };
  /// Reads the addresses of the matrices of a batch by pointers, once for a tile.
  __device__ __forceinline__ Tile find_tile(const OutputPlace& place) const {
    if constexpr (design.has_pointers)
      return {place, {a_matrix(place), b_matrix(place)}};
    else
      return {place, {}};
  }

  /// Copies a block of k of a tile to a stage; `barrier` counts its bytes. One thread calls it.
  __device__ __forceinline__ void load_stage(unsigned stage, const Tile& tile, int k,
                                             unsigned barrier) const {
    load_operand<a_operand, design.has_pointers>(
        ptx::cvta_shared(&shared_.a[stage]), params_.a,
        {.extent = first_of<design.a_major>(tile.place.row), .k = k, .matrix = a_of(tile)}, barrier,
        rank_);
    load_operand<b_operand, design.has_pointers>(
        ptx::cvta_shared(&shared_.b[stage]), params_.b,
        {.extent = first_of<design.b_major>(tile.place.column), .k = k, .matrix = b_of(tile)},
        barrier, rank_);
  }

 private:
  static constexpr TmaOperand a_operand{.major = design.a_major,
                                        .extent = design.tile_m,
                                        .atom = abi::atom_extent(design),
                                        .is_shared = design.cluster_n > 1};
  static constexpr TmaOperand b_operand{.major = design.b_major,
                                        .extent = design.tile_n,
                                        .atom = abi::atom_extent(design),
                                        .is_shared = design.cluster_m > 1};

  /// The coordinate of a tile's first row or column. Where these are adjacent, groups begin at
  /// whole units of 16 bytes, which is all that TMA takes; but at any element if K is 0, where all
  /// coordinates of k are beyond the map.
  template <abi::Major major>
  __device__ __forceinline__ static int first_of(unsigned extent) {
    constexpr unsigned unit = 16 / abi::bytes_of(design.a);
    if constexpr (design.has_groups && major != abi::Major::k) extent -= extent % unit;
    return static_cast<int>(extent);
  }

  using Matrix = MapMatrix<design.has_pointers>;

  __device__ __forceinline__ Matrix a_matrix(const OutputPlace& place) const {
    return find_in_map<design.has_pointers>(params_.a_array, place.batch * params_.a_batch_step);
  }
  __device__ __forceinline__ Matrix b_matrix(const OutputPlace& place) const {
    return find_in_map<design.has_pointers>(params_.b_array, place.batch * params_.b_batch_step);
  }
  __device__ __forceinline__ Matrix a_of(const Tile& tile) const {
    if constexpr (design.has_pointers)
      return tile.matrices.a;
    else
      return a_matrix(tile.place);
  }
  __device__ __forceinline__ Matrix b_of(const Tile& tile) const {
    if constexpr (design.has_pointers)
      return tile.matrices.b;
    else
      return b_matrix(tile.place);
  }

  /// Zeroes what no copy fills, once: an operand may be smaller than its tile. The loop has few
  /// iterations and is not unrolled: unrolled four times it was an eighth of a kernel's code.
  template <unsigned tile_bytes, int stages, int stage_bytes>
  __device__ static void clear_stages(char (&operand)[stages][stage_bytes], unsigned brought) {
    if (brought == tile_bytes) return;
    constexpr unsigned zeros[4] = {};
    constexpr unsigned step = abi::thread_count(design) * sizeof zeros;
#pragma unroll 1
    for (unsigned byte = brought + threadIdx.x * sizeof zeros; byte < tile_bytes; byte += step) {
#pragma unroll
      for (int stage = 0; stage < stages; ++stage)
        ptx::st_shared_v4(ptx::cvta_shared(&operand[stage]) + byte, zeros);
    }
    ptx::fence_proxy_async();
  }

  const abi::Sm90Params& params_;
  Shared& shared_;
  unsigned rank_;
};

}  // namespace gemmery::device
