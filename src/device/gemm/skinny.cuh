// SPDX-License-Identifier: Apache-2.0
// GEMM of few rows, out = alpha * a b + beta * c, or an emitted epilogue of a b. B is read once, at
// memory bandwidth, and multiplied in the registers to which it is loaded.
//
//   A in global memory                     B in global memory
//     | copy/row_panel: decoded to words     | copy/streamed_operand: vectors of up to 16 bytes,
//   panel of k in shared memory              | `slots` steps of `loads` vectors in flight
//     |                                    a ring of slots in each thread's registers
//     +------ gemm/skinny_multiplier --------+
//   rows x columns accumulators in each thread
//     | B adjacent along k: tile/lane_sums, lanes of a warp share columns
//     | B adjacent along columns: groups share columns, added up in shared memory
//     | pipeline/slice_parts: if blocks split k
//   accumulators of the tile, distributed over the first threads
//     | epilogue/linear_combination or epilogue/thread_tile, as in simt kernels
//   out in global memory
#pragma once

#include <device/abi/skinny_design.hpp>
#include <device/abi/skinny_params.hpp>
#include <device/copy/row_panel.cuh>
#include <device/copy/streamed_operand.cuh>
#include <device/epilogue/linear_combination.cuh>
#include <device/epilogue/thread_tile.cuh>
#include <device/gemm/skinny_multiplier.cuh>
#include <device/pipeline/slice_parts.cuh>
#include <device/schedule/tile_share.cuh>
#include <device/tile/lane_sums.cuh>

namespace gemmery::device {

template <const abi::SkinnyDesign& design>
class SkinnyGemm {
  static constexpr abi::SimtDesign finished = abi::finished_tile(design);
  using Sums = SkinnySums<design>;
  using Number = typename Sums::Number;
  using Word = typename ArithmeticOf<design.accumulator>::Word;
  using Stream = typename StreamOf<design>::Type;

 public:
  /// `flag`: a word of shared memory.
  __device__ __forceinline__ SkinnyGemm(const abi::SkinnyParams& params, char* shared,
                                        unsigned* flag)
      : params_(params), shared_(shared), parts_(params, flag, thread()) {}

  /// Multiplies a share of a tile; true if this block then has all of the tile's accumulators.
  template <class Shares>
  __device__ __forceinline__ bool multiply_share(const Shares& shares, const TileShare& share) {
    Sums sums{};
    accumulate(sums, share);
    leave(sums);
    __syncthreads();  // waits for the accumulators of all warps
    take();
    if constexpr (!design.splits_k) return true;
    return parts_.join(shares, share, sums_, is_finisher());
  }

  __device__ __forceinline__ void store(const TileShare& share) const {
    const abi::TilePosition tile = position_of(share);
    if (is_finisher())
      store_linear_combination<finished>(params_.gemm, sums_, tile.batch,
                                         static_cast<unsigned>(row()),
                                         first_column(tile) + static_cast<unsigned>(column()));
  }

  template <class Epilogue, class EpilogueParams>
  __device__ __forceinline__ void store(const TileShare& share,
                                        const EpilogueParams& epilogue) const {
    const abi::TilePosition tile = position_of(share);
    ThreadTileProgram<finished, Epilogue, abi::shared_bytes(design)> program(
        params_.gemm, epilogue,
        {.batch = tile.batch,
         .tile_row = 0,
         .tile_column = first_column(tile),
         .row = static_cast<unsigned>(row()),
         .column = static_cast<unsigned>(column())});
    if (is_finisher()) program.store(sums_);
    __syncthreads();  // waits until the parts of accumulators were read
    program.reduce(shared_, is_finisher(), thread());
  }

 private:
  __device__ static int thread() { return static_cast<int>(threadIdx.x); }

  __device__ __forceinline__ abi::TilePosition position_of(const TileShare& share) const {
    return abi::position_of<abi::simt_raster>(params_.gemm.order, share.tile);
  }
  __device__ static unsigned first_column(const abi::TilePosition& tile) {
    return tile.column * static_cast<unsigned>(abi::tile_columns(design));
  }

  /// The mainloop: while the panel's part of one slot is multiplied, the loads of all other slots
  /// are in flight, also across the ends of panels.
  __device__ __forceinline__ void accumulate(Sums& sums, const TileShare& share) const {
    const abi::TilePosition tile = position_of(share);
    const unsigned first_k = share.first_k_block * static_cast<unsigned>(abi::split_unit(design));
    const unsigned k = min(params_.gemm.k - first_k,
                           share.k_blocks * static_cast<unsigned>(abi::split_unit(design)));
    Word* const panel = reinterpret_cast<Word*>(shared_);
    RowPanel<design> rows(params_.gemm.a, tile.batch, params_.gemm.m, first_k, k, panel, thread());
    const SkinnyMultiplier<design> multiplier(panel, thread());
    Stream stream(params_.gemm.b,
                  {.batch = tile.batch,
                   .column = first_column(tile),
                   .columns = params_.gemm.n,
                   .first_k = first_k,
                   .k = k},
                  thread());
    StreamSlot<design> ring[design.slots];
#pragma unroll
    for (int slot = 0; slot < design.slots; ++slot) stream.fetch(ring[slot], slot);
    constexpr unsigned panel_k = abi::panel_k(design);
    // One loop, so that the code of the copies exists once: its first iteration only copies.
#pragma unroll 1
    for (unsigned at = 0;; at += panel_k) {
      rows.fetch(at);
      if (at > 0) multiply_panel(sums, ring, stream, multiplier, at - panel_k, k);
      if (at >= k) break;
      __syncthreads();  // waits until all have read the previous panel
      rows.store(at);
      __syncthreads();  // waits for the panel
    }
    if constexpr (design.b_major == abi::Major::k && abi::load_elements(design) > 1)
      if (k > 0) multiplier.multiply_rest(sums, stream, (k - 1) / panel_k * panel_k);
    __syncthreads();  // waits until all have read the last panel
  }

  /// Multiplies the panel that begins at element `first` of the slice's k, which has `k` elements.
  __device__ __forceinline__ static void multiply_panel(Sums& sums,
                                                        StreamSlot<design> (&ring)[design.slots],
                                                        Stream& stream,
                                                        const SkinnyMultiplier<design>& multiplier,
                                                        unsigned first, unsigned k) {
    constexpr unsigned panel_steps = abi::panel_k(design) / abi::step_k(design);
    const unsigned first_step = first / abi::step_k(design);
    const unsigned steps = min(abi::tiles_along(k - first, abi::step_k(design)), panel_steps);
#pragma unroll 1
    for (unsigned step = 0; step < steps; step += design.slots) {
#pragma unroll
      for (unsigned slot = 0; slot < design.slots; ++slot) {
        const unsigned of_stream = first_step + step + slot;
        multiplier.multiply(sums, ring[slot], stream, of_stream, step + slot);
        stream.fetch(ring[slot], of_stream + design.slots);
      }
    }
  }

  /// Stores a warp's or a thread's accumulators to shared memory: [part][row][column of the tile].
  __device__ __forceinline__ void leave(Sums& sums) const {
    Number* const parts = reinterpret_cast<Number*>(shared_);
    if constexpr (design.b_major == abi::Major::k) {
      const unsigned lane = threadIdx.x % 32;
      const int warp = thread() / 32;
      constexpr int count = design.rows * design.loads;
      constexpr int left = count > 32 ? count / 32 : 1;
      constexpr int sharers = count < 32 ? 32 / count : 1;
      auto& values = reinterpret_cast<Number(&)[count]>(sums.of);
      sum_over_lanes<count>(values, lane);
      if (lane % sharers != 0) return;
#pragma unroll
      for (int at = 0; at < left; ++at) {
        const int value = static_cast<int>(lane) / sharers * left + at;
        parts[value / design.loads * columns + warp * design.loads + value % design.loads] =
            values[at];
      }
    } else {
      const int first = thread() % design.lanes * Sums::columns;
#pragma unroll
      for (int row = 0; row < design.rows; ++row) {
#pragma unroll
        for (int at = 0; at < Sums::columns; ++at)
          parts[(thread() / design.lanes * design.rows + row) * columns + first + at] =
              sums.of[row][at];
      }
    }
  }

  /// Adds up the parts of this thread's elements of the tile.
  __device__ __forceinline__ void take() {
    if (!is_finisher()) return;
    const Number* const parts = reinterpret_cast<const Number*>(shared_);
#pragma unroll
    for (int row = 0; row < finished.thread_m; ++row) {
#pragma unroll
      for (int column = 0; column < finished.thread_n; ++column) {
        const int place = (this->row() + row_spread(finished).offset(row)) * columns +
                          this->column() + column_spread(finished).offset(column);
        Number sum = parts[place];
#pragma unroll
        for (int part = 1; part < abi::parts_of_tile(design); ++part)
          sum += parts[part * design.rows * columns + place];
        sums_[row][column] = sum;
      }
    }
  }

  // --- the first threads' elements of the tile ---

  static constexpr int columns = abi::tile_columns(design);
  static constexpr int threads_along_columns = columns / finished.thread_n;

  __device__ static bool is_finisher() {
    return abi::finisher_count(design) == design.threads || thread() < abi::finisher_count(design);
  }
  __device__ static int row() {
    return thread() / threads_along_columns * row_spread(finished).chunk;
  }
  __device__ static int column() {
    return thread() % threads_along_columns * column_spread(finished).chunk;
  }

  const abi::SkinnyParams& params_;
  char* shared_;
  const SliceParts<design> parts_;
  Number sums_[finished.thread_m][finished.thread_n];
};

/// Calls finish(gemm, share) for every tile of which this block has all accumulators.
template <const abi::SkinnyDesign& design, class Finish>
__device__ __forceinline__ void for_each_skinny_tile(const abi::SkinnyParams& params,
                                                     Finish&& finish) {
  static_assert(abi::find_fault(design) == abi::SkinnyFault::none,
                "find_fault names the field of the design to change");
  constexpr auto mode = design.splits_k ? abi::SplitMode::parallel : abi::SplitMode::none;
  extern __shared__ __align__(16) char shared[];
  __shared__ unsigned flag;
#pragma unroll 1
  for (unsigned unit = blockIdx.x; unit < params.split.units; unit += gridDim.x) {
    UnitShares<mode> shares(params.split, params.k_blocks, unit);
    const TileShare share = shares.take();
    SkinnyGemm<design> gemm(params, shared, &flag);
    // The next share's first barrier waits until finish has used shared memory.
    if (gemm.multiply_share(shares, share)) finish(gemm, share);
  }
}

/// The kernel: design.threads threads and abi::shared_bytes(design) dynamic shared bytes per block,
/// any grid along x.
template <const abi::SkinnyDesign& design>
__device__ inline void skinny_gemm(const abi::SkinnyParams& params) {
  for_each_skinny_tile<design>(
      params, [](SkinnyGemm<design>& gemm, const TileShare& share) { gemm.store(share); });
}

/// The same with an emitted epilogue.
template <const abi::SkinnyDesign& design, class Epilogue, class EpilogueParams>
__device__ inline void skinny_gemm(
    const abi::ProgramParams<abi::SkinnyParams, EpilogueParams>& params) {
  for_each_skinny_tile<design>(params.gemm, [&](SkinnyGemm<design>& gemm, const TileShare& share) {
    gemm.template store<Epilogue>(share, params.epilogue);
  });
}

}  // namespace gemmery::device
