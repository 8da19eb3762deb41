// SPDX-License-Identifier: Apache-2.0
// The loading phase of sm90 kernels: TMA copies A and B to the stages of the pipeline.
#pragma once

#include <device/abi/sm90_params.hpp>
#include <device/copy/conv_operand.cuh>
#include <device/copy/tma_operand.cuh>
#include <device/epilogue/listed_problem.cuh>
#include <device/epilogue/output_place.cuh>
#include <device/gemm/sm90_shared.cuh>
#include <device/ptx/async_copy.cuh>
#include <device/ptx/loops.cuh>
#include <device/ptx/shared_memory.cuh>

namespace gemmery::device {

/// Computed once per tile and kept for all of its stages: the matrices of a batch by pointers, or
/// the first pixels of the copies of a convolution's A. Otherwise empty.
template <const abi::Sm90Design& design>
struct TileSources {};
template <const abi::Sm90Design& design>
requires(design.has_pointers) struct TileSources<design> {
  MapMatrix<true> a;
  MapMatrix<true> b;
};
template <const abi::Sm90Design& design>
requires(abi::finds_rows(design)) struct TileSources<design> {
  static constexpr unsigned rows = abi::rows_per_copy(design.tile_m, design.cluster_n > 1);
  static constexpr unsigned copies = design.cluster_n > 1 ? 1 : design.tile_m / rows;
  FirstPixel<design.dimensions> pixels[copies];
};

template <const abi::Sm90Design& design>
class Sm90Load {
 public:
  using Shared = Sm90Shared<design>;

  /// `rank` of the block in its cluster.
  __device__ Sm90Load(const abi::Sm90Params& params, Shared& shared, unsigned rank)
      : params_(params), shared_(shared), rank_(rank) {}

  /// One thread calls it, before anything is loaded.
  __device__ __forceinline__ void prefetch_maps() const {
    if constexpr (design.has_list) return;  // each problem has its own
    if constexpr (!design.gathers_rows)
      ptx::prefetch_tensormap(design.has_phases ? with_phases(params_).images[0] : params_.a);
    ptx::prefetch_tensormap(params_.b);
  }

  /// Clears the bytes that no copy fills, since an operand may be smaller than its tile. All
  /// threads call it, before the first copy and a barrier of the block.
  __device__ __forceinline__ void clear_stages() const {
    constexpr unsigned a_bytes = design.gathers_rows ? 0 : abi::a_tile_bytes(design);
    constexpr unsigned b_bytes = abi::b_tile_bytes(design);
    const unsigned a_brought = design.gathers_rows ? 0 : params_.a_bytes;
    const unsigned b_brought = params_.b_bytes;
    if (a_brought + b_brought == a_bytes + b_bytes) return;
    const unsigned a = ptx::cvta_shared(&shared_.a) + a_brought;
    const unsigned b = ptx::cvta_shared(&shared_.b) + b_brought;
    clear<sizeof shared_.a[0]>(a, a_bytes - a_brought);
    clear<sizeof shared_.b[0]>(b, b_bytes - b_brought);
    ptx::fence_proxy_async();
  }

  struct Tile {
    OutputPlace place;
    TileSources<design> sources;
  };
  /// Called once per tile.
  __device__ __forceinline__ Tile find_tile(const OutputPlace& place) const {
    if constexpr (design.has_pointers)
      return {place, {a_matrix(place), b_matrix(place)}};
    else if constexpr (abi::finds_rows(design))
      return {place, find_pixels(place)};
    else
      return {place, {}};
  }

  /// Copies a block of k of a tile to a stage; `barrier` counts its bytes. One thread calls it.
  __device__ __forceinline__ void load_stage(unsigned stage, const Tile& tile, int k,
                                             unsigned barrier) const {
    const unsigned a = ptx::cvta_shared(&shared_.a[stage]);
    const unsigned b = ptx::cvta_shared(&shared_.b[stage]);
    if constexpr (abi::finds_rows(design)) {
      const abi::TmaWindow& window = window_of(tile.place);
      const abi::TmaFilters& filters = filters_of(tile.place);
      const auto tap = find_tap<design.dimensions>(window, filters, static_cast<unsigned>(k));
      const unsigned batch = tile.place.batch;
      load_operand<a_operand>(
          a,
          WindowRows<design.dimensions, TileSources<design>::copies>{
              images_of(tile.place), tile.sources.pixels, tap, first_channel(window, batch)},
          barrier, rank_);
      load_operand<b_operand>(
          b,
          FilterColumns<design.dimensions>{params_.b, tap, static_cast<int>(tile.place.column),
                                           static_cast<int>(batch * filters.batch_groups)},
          barrier, rank_);
    } else {
      // sm90_gather copies rows by index.
      if constexpr (!design.gathers_rows)
        load_operand<a_operand>(a, a_tile(tile, k), barrier, rank_);
      if constexpr (abi::finds_columns(design))
        load_operand<b_operand>(b,
                                WindowColumns<design.dimensions>{
                                    params_.b, with_windows(params_).window, tile.place.column,
                                    static_cast<unsigned>(k), tile.place.batch},
                                barrier, rank_);
      else
        load_operand<b_operand>(b, b_tile(tile, k), barrier, rank_);
    }
  }

 private:
  static constexpr TmaOperand a_operand{.major = design.a_major,
                                        .extent = design.tile_m,
                                        .atom = abi::atom_extent(design),
                                        .is_shared = design.cluster_n > 1,
                                        .line_bytes = abi::a_line_bytes(design)};
  static constexpr TmaOperand b_operand{.major = design.b_major,
                                        .extent = design.tile_n,
                                        .atom = abi::atom_extent(design),
                                        .is_shared = design.cluster_m > 1};

  /// The coordinate of a tile's first row or column. If these are adjacent in memory, TMA requires
  /// groups to begin at multiples of 16 bytes. If K is 0 they may begin at any element: the
  /// coordinate is rounded down, and all coordinates of k are out of bounds.
  template <abi::Major major>
  __device__ __forceinline__ static int first_of(unsigned extent) {
    constexpr unsigned unit = 16 / abi::bytes_of(design.b);
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
  /// Maps of codes count bytes along k.
  __device__ __forceinline__ MatrixTile<design.has_pointers> a_tile(const Tile& tile, int k) const {
    const int row = first_of<design.a_major>(tile.place.row);
    if constexpr (abi::decodes_a(design)) k = k * abi::bits_of(design.a) / 8;
    if constexpr (design.has_pointers)
      return {params_.a, row, k, tile.sources.a};
    else if constexpr (design.has_list)
      return {with_list<design>(params_).a[tile.place.batch], row, k, {}};
    else
      return {params_.a, row, k, a_matrix(tile.place)};
  }
  __device__ __forceinline__ MatrixTile<design.has_pointers> b_tile(const Tile& tile, int k) const {
    const int column = first_of<design.b_major>(tile.place.column);
    if constexpr (design.has_pointers)
      return {params_.b, column, k, tile.sources.b};
    else if constexpr (design.has_list)
      return {with_list<design>(params_).b[tile.place.batch], column, k, {}};
    else
      return {params_.b, column, k, b_matrix(tile.place)};
  }

  __device__ __forceinline__ const abi::TmaWindow& window_of(const OutputPlace& place) const {
    if constexpr (design.has_phases) return with_phases(params_).phases[place.batch].window;
    return with_windows(params_).window;
  }
  __device__ __forceinline__ const abi::TmaFilters& filters_of(const OutputPlace& place) const {
    if constexpr (design.has_phases) return with_phases(params_).phases[place.batch].filters;
    return with_windows(params_).filters;
  }
  __device__ __forceinline__ const abi::TensorMap& images_of(const OutputPlace& place) const {
    if constexpr (!design.has_phases) return params_.a;
    const abi::Sm90PhaseParams& all = with_phases(params_);
    return all.images[all.phases[place.batch].images];
  }

  /// This block copies the part of a shared tile that belongs to its rank.
  __device__ __forceinline__ TileSources<design> find_pixels(const OutputPlace& place) const {
    using Sources = TileSources<design>;
    const unsigned first = design.cluster_n > 1 ? rank_ * Sources::rows : 0;
    Sources sources;
#pragma unroll
    for (unsigned copy = 0; copy < Sources::copies; ++copy)
      sources.pixels[copy] = find_pixel<design.dimensions>(
          window_of(place), place.row + first + copy * Sources::rows, place.batch);
    return sources;
  }

  /// Clears bytes of every stage, which are `stage_bytes` apart; the block's threads share them.
  template <unsigned stage_bytes>
  __device__ __forceinline__ static void clear(unsigned shared, unsigned bytes) {
    constexpr unsigned chunk = 16;
    ptx::clear_shared<design.stages, stage_bytes, abi::thread_count(design) * chunk>(
        shared, threadIdx.x * chunk, bytes);
  }

  const abi::Sm90Params& params_;
  Shared& shared_;
  unsigned rank_;
};

}  // namespace gemmery::device
