// SPDX-License-Identifier: Apache-2.0
// GEMM by mma.sync, on tensor cores of sm_80 and later: out = alpha * a b + beta * c, or an emitted
// epilogue of a b.
//
//   A, B in global memory
//     | copy/chunked_operand: cp.async, `stages - 1` blocks of k in flight, zeros beyond edges
//   a[stage], b[stage] in shared memory, chunks of 16 bytes swizzled (abi/staged_operand)
//     | gemm/sm80_mainloop, mma/fragments: ldmatrix loads the next step's fragments while the
//     | current step multiplies
//   fragments in registers
//     | mma/warp_mma: mma.sync
//   accumulators in registers
//     | add_slices: if groups of warps split each block of k
//     | pipeline/join_parts, pipeline/mma_parts: if blocks split the k of a tile
//     | epilogue/staged_tile: through shared memory into runs of adjacent columns
//   out in global memory
#pragma once

#include <device/abi/sm80_conv_params.hpp>
#include <device/abi/sm80_design.hpp>
#include <device/abi/sm80_faults.hpp>
#include <device/abi/sm80_params.hpp>
#include <device/epilogue/staged_tile.cuh>
#include <device/gemm/sm80_mainloop.cuh>
#include <device/pipeline/mma_parts.cuh>
#include <device/ptx/async_copy.cuh>
#include <device/ptx/warp.cuh>
#include <device/schedule/tile_share.cuh>
#include <device/tile/batch.cuh>
#include <device/tile/mma_accumulator.cuh>

namespace gemmery::device {

// If the mainloop takes all registers, values that are needed after it are read or computed there:
// kept across it, 4 to 28 bytes of them spilled (ptxas 13.0). So did the ends of groups, and, with
// 128 accumulators, up to 80 bytes of the shares of split tiles.
template <const abi::Sm80Design& design>
inline constexpr bool takes_all_registers =
    Sm80Mainloop<design>::takes_all_registers || design.groups != abi::GroupSchedule::none ||
    design.split != abi::SplitMode::none;

template <const abi::Sm80Design& design>
__device__ __forceinline__ unsigned block_count() {
  if constexpr (takes_all_registers<design>) return ptx::nctaid_x();
  return gridDim.x;
}
template <const abi::Sm80Design& design, class Shares>
__device__ __forceinline__ TileShare read_again(const Shares& shares, const TileShare& share) {
  if constexpr (takes_all_registers<design>) return shares.taken_again();
  return share;
}

/// The place of a group's tile in out, the begin of its group along k, and the group.
struct GroupedTilePlace {
  TileCorner corner;
  unsigned first_k;
  abi::RegionGroup group;
};

/// Where the rows of a tile are found by indices: which row of A and of out each is, no_element for
/// none.
struct RowsOfTile {
  int* of_a;
  int* of_out;
};

/// What operands have besides their elements: the windows of a convolution's, the scales of one
/// that is decoded; null for others.
struct Sm80Windows {
  const abi::WindowParams* a;
  const abi::WindowParams* b;
  const abi::GroupedCompanionsParams* scales = nullptr;  // of a decoded operand
};

template <const abi::Sm80Design& design>
class Sm80Gemm {
  static constexpr abi::StagedOperand a = abi::staged_a(design);
  static constexpr abi::StagedOperand b = abi::staged_b(design);
  static constexpr int threads = abi::thread_count(design);
  using Blocks = WarpBlocks<design>;
  using Accumulator = MmaAccumulator<design>;
  using Number = typename Accumulator::Number;
  using Parts = TileParts<design>;
  static constexpr bool has_groups = design.groups != abi::GroupSchedule::none;
  static constexpr bool has_own_corner = has_groups || design.has_phases;

 public:
  /// `flag`: a word of shared memory. `group`: for grouped products only; `params` then has the
  /// ends of the group's rows and columns, and its k. `rows`: rows of A and out that are found by
  /// indices. `windows`: for convolutions.
  __device__ __forceinline__ Sm80Gemm(const abi::Sm80Params& params, char* shared, unsigned* flag,
                                      const GroupedTilePlace& group = {},
                                      const RowsOfTile& rows = {}, const Sm80Windows& windows = {})
      : params_(params),
        windows_(windows),
        group_(group),
        rows_(rows),
        shared_(shared),
        address_(ptx::cvta_shared(shared)),
        place_(thread()),
        parts_(params, flag, thread()) {}

  /// Multiplies a share of a tile; true if this block then has all of the tile's accumulators.
  template <class Shares>
  __device__ __forceinline__ bool multiply_share(const Shares& shares, const TileShare& share) {
    accumulate(share);
    if constexpr (design.warps_k > 1) add_slices();
    if constexpr (design.split == abi::SplitMode::none) return true;
    return parts_.join(shares, read_again<design>(shares, share), sums_, holds_sums());
  }

  /// Sets the group's tile again, so that its place need not stay in registers during the mainloop.
  __device__ __forceinline__ void move_to(const GroupedTilePlace& group) { group_ = group; }

  __device__ __forceinline__ void store(const TileShare& share) {
    const StagedLinearCombination<design> epilogue(params_, rows_.of_out);
    epilogue.store(TileStaging<design>(address_, thread_again()), sums_, corner_of(share.tile),
                   holds_sums());
  }

  template <class Epilogue, class EpilogueParams>
  __device__ __forceinline__ void store(const TileShare& share, const EpilogueParams& parameters) {
    StagedProgram<design, Epilogue> epilogue(params_, parameters, corner_of(share.tile),
                                             group_.group, thread(), rows_.of_out);
    epilogue.store(TileStaging<design>(address_, thread_again()), sums_, holds_sums());
    epilogue.reduce(shared_);
  }

 private:
  __device__ static int thread() {
    if constexpr (has_groups) return thread_again();
    return static_cast<int>(threadIdx.x);
  }
  __device__ static int thread_again() {
    if constexpr (takes_all_registers<design>) return static_cast<int>(ptx::tid_x());
    return static_cast<int>(threadIdx.x);
  }
  __device__ bool holds_sums() const { return design.warps_k == 1 || place_.slice == 0; }

  __device__ __forceinline__ TileCorner corner_of(unsigned tile) const {
    if constexpr (has_own_corner) return group_.corner;
    const abi::TilePosition position = abi::position_of<design.raster>(params_.order, tile);
    return {.batch = position.batch,
            .row = position.row * static_cast<unsigned>(design.tile_m),
            .column = position.column * static_cast<unsigned>(design.tile_n)};
  }

  __device__ __forceinline__ void accumulate(const TileShare& share) {
    clear();
    const TileCorner corner = corner_of(share.tile);
    // If operands have no elements, the beginning of a group or tensor may be misaligned for
    // copies.
    if constexpr (has_groups || design.convolution != abi::ConvolutionKind::none ||
                  design.scales.are_used())
      if (params_.k == 0) return;
    const unsigned first_k = share.first_k_block * design.tile_k;
    const unsigned all_k = min(params_.k - first_k, share.k_blocks * design.tile_k);
    const unsigned begin_k = has_groups ? group_.first_k : first_k;
    Sm80Mainloop<design> mainloop(panel_of_a(corner, begin_k), panel_of_b(corner, begin_k),
                                  address_, thread(), scaled_panel(corner, first_k));
    mainloop.run(sums_, max(share.k_blocks, 1U), all_k);  // a block of zeros if there is no k
  }

  __device__ __forceinline__ ScaledPanel scaled_panel(const TileCorner& corner, unsigned k) const {
    constexpr bool is_a = abi::decodes_a(design);
    return {.params = windows_.scales,
            .batch = corner.batch,
            .first = is_a ? corner.row : corner.column,
            .extent = is_a ? params_.m : params_.n,
            .first_k = k,
            .end_k = params_.k};
  }

  __device__ __forceinline__ PanelOfLines panel_of_a(const TileCorner& corner, unsigned k) const {
    if constexpr (abi::are_rows_pixels(design)) {
      char* const kept = shared_ + abi::kept_pixels_offset(design);
      reinterpret_cast<PixelRows<a, design.dimensions>*>(kept)->template find<threads>(
          *windows_.a, corner.row, thread());
      return found_panel<a>(params_.a, windows_.a, corner.batch, corner.row, params_.m, k, kept);
    }
    if constexpr (!design.has_indices)
      return panel<a>(params_.a, corner.batch, corner.row, params_.m, k);
    PanelOfLines of_a = panel<a>(params_.a, corner.batch, 0, params_.m - corner.row, k);
    of_a.lines = rows_.of_a;
    return of_a;
  }

  __device__ __forceinline__ PanelOfLines panel_of_b(const TileCorner& corner, unsigned k) const {
    if constexpr (abi::has_window_of_b(design))
      return found_panel<b>(params_.b, windows_.b, corner.batch, corner.column, params_.n, k,
                            nullptr);
    return panel<b>(params_.b, corner.batch, corner.column, params_.n, k);
  }

  /// For an operand whose elements are found by pixel and tap.
  template <const abi::StagedOperand& operand>
  __device__ __forceinline__ PanelOfLines found_panel(const abi::Sm80Operand& tensor,
                                                      const abi::WindowParams* window,
                                                      unsigned batch, unsigned extent,
                                                      unsigned extents, unsigned k,
                                                      char* pixels) const {
    return {.data = matrix_of_batch<abi::bytes_of(operand.dtype)>(tensor.data, tensor.batch_stride,
                                                                  batch),
            .line_bytes = 0,
            .extent_left = extents - extent,
            .window = window,
            .first_extent = extent,
            .first_k = k,
            .end_k = params_.k,
            .pixels = pixels};
  }

  template <const abi::StagedOperand& operand>
  __device__ __forceinline__ static PanelOfLines panel(const abi::Sm80Operand& matrix,
                                                       unsigned batch, unsigned extent,
                                                       unsigned extents, unsigned k) {
    const unsigned line = operand.is_k_adjacent ? extent : k;
    const unsigned along = operand.is_k_adjacent ? k : extent;
    constexpr int bits = abi::bits_of(operand.dtype);
    constexpr int bytes = bits / 8;
    const auto bytes_of = [](abi::Int64 elements) {
      return bits < 8 ? elements * bits / 8 : elements * bytes;
    };
    const abi::Int64 offset = operand.is_prepared() ? bytes_of(line * matrix.line_stride) +
                                                          operand.run_bytes(1) * abi::Int64{along}
                                                    : bytes_of(line * matrix.line_stride + along);
    return {.data = matrix_of_batch<bytes, bits>(matrix.data, matrix.batch_stride, batch) + offset,
            .line_bytes = bytes_of(matrix.line_stride) * operand.row_lines(),
            .extent_left = extents - extent};
  }

  __device__ __forceinline__ void clear() {
    for_each_block([](int, typename Parts::Block& block) {
      const Number nothing[Accumulator::numbers]{};
      Accumulator::write(block, nothing);
    });
  }

  /// Adds the accumulators of slices 1, 2, … to those of slice 0, in this order.
  __device__ __forceinline__ void add_slices() {
    constexpr int per_slice = threads / design.warps_k;
    Number* const staged = reinterpret_cast<Number*>(shared_) + thread() % per_slice;
#pragma unroll 1
    for (int slice = 1; slice < design.warps_k; ++slice) {
      if (place_.slice == slice) {
        for_each_block([&](int index, typename Parts::Block& block) {
          Number values[Accumulator::numbers];
          Accumulator::read(values, block);
#pragma unroll
          for (int at = 0; at < Accumulator::numbers; ++at)
            staged[(index * Accumulator::numbers + at) * per_slice] = values[at];
        });
      }
      __syncthreads();  // waits for the slice's accumulators
      if (place_.slice == 0) {
        for_each_block([&](int index, typename Parts::Block& block) {
          Number values[Accumulator::numbers];
          Accumulator::read(values, block);
#pragma unroll
          for (int at = 0; at < Accumulator::numbers; ++at)
            values[at] += staged[(index * Accumulator::numbers + at) * per_slice];
          Accumulator::write(block, values);
        });
      }
      __syncthreads();  // waits until they were read
    }
  }

  template <class Visit>
  __device__ __forceinline__ void for_each_block(Visit&& visit) {
#pragma unroll
    for (int row = 0; row < Blocks::rows; ++row) {
#pragma unroll
      for (int column = 0; column < Blocks::columns; ++column)
        visit(row * Blocks::columns + column, sums_[row][column]);
    }
  }

  const abi::Sm80Params& params_;
  const Sm80Windows windows_;
  GroupedTilePlace group_;
  const RowsOfTile rows_;
  char* shared_;
  unsigned address_;
  const WarpPlace<design> place_;
  Parts parts_;
  typename Parts::Sums sums_;
};

/// Calls finish(gemm, share) for every tile of which this block has all accumulators.
template <const abi::Sm80Design& design, class Finish>
__device__ __forceinline__ void for_each_sm80_tile(const abi::Sm80Params& params, Finish&& finish,
                                                   const Sm80Windows& windows = {}) {
  static_assert(abi::find_fault(design) == abi::Sm80Fault::none,
                "find_fault names the field of the design to change");
  extern __shared__ __align__(128) char shared[];
  __shared__ unsigned flag;
#pragma unroll 1
  for (unsigned unit = blockIdx.x; unit < params.split.units; unit += block_count<design>()) {
    UnitShares<design.split> shares(params.split, params.k_blocks, unit);
#pragma unroll 1
    while (!shares.is_done()) {
      const TileShare share = shares.take();
      Sm80Gemm<design> gemm(params, shared, &flag, {}, {}, windows);
      if (gemm.multiply_share(shares, share)) finish(gemm, read_again<design>(shares, share));
      __syncthreads();  // waits until shared memory is free for the next tile
    }
  }
}

/// The kernel: abi::thread_count(design) threads and abi::shared_bytes(design) dynamic shared bytes
/// per block, any grid along x.
template <const abi::Sm80Design& design>
__device__ inline void sm80_gemm(const abi::Sm80Params& params) {
  for_each_sm80_tile<design>(
      params, [](Sm80Gemm<design>& gemm, const TileShare& share) { gemm.store(share); });
}

/// The same with an emitted epilogue.
template <const abi::Sm80Design& design, class Epilogue, class EpilogueParams>
__device__ inline void sm80_gemm(
    const abi::ProgramParams<abi::Sm80Params, EpilogueParams>& params) {
  for_each_sm80_tile<design>(params.gemm, [&](Sm80Gemm<design>& gemm, const TileShare& share) {
    gemm.template store<Epilogue>(share, params.epilogue);
  });
}

/// The kernel of a decoded operand with scales: as above.
template <const abi::Sm80Design& design>
__device__ inline void sm80_scaled_gemm(const abi::Sm80ScaledParams& params) {
  for_each_sm80_tile<design>(
      params.gemm, [](Sm80Gemm<design>& gemm, const TileShare& share) { gemm.store(share); },
      {nullptr, nullptr, &params.scales});
}

template <const abi::Sm80Design& design, class Epilogue, class EpilogueParams>
__device__ inline void sm80_scaled_gemm(
    const abi::ProgramParams<abi::Sm80ScaledParams, EpilogueParams>& params) {
  for_each_sm80_tile<design>(params.gemm.gemm,
                             [&](Sm80Gemm<design>& gemm, const TileShare& share) {
                               gemm.template store<Epilogue>(share, params.epilogue);
                             },
                             {nullptr, nullptr, &params.gemm.scales});
}

/// The kernel of convolutions: as above.
template <const abi::Sm80Design& design>
__device__ inline void sm80_conv_gemm(const abi::Sm80ConvParams& params) {
  for_each_sm80_tile<design>(
      params.gemm, [](Sm80Gemm<design>& gemm, const TileShare& share) { gemm.store(share); },
      {&params.a, &params.b});
}

template <const abi::Sm80Design& design, class Epilogue, class EpilogueParams>
__device__ inline void sm80_conv_gemm(
    const abi::ProgramParams<abi::Sm80ConvParams, EpilogueParams>& params) {
  for_each_sm80_tile<design>(params.gemm.gemm,
                             [&](Sm80Gemm<design>& gemm, const TileShare& share) {
                               gemm.template store<Epilogue>(share, params.epilogue);
                             },
                             {&params.gemm.a, &params.gemm.b});
}

}  // namespace gemmery::device
