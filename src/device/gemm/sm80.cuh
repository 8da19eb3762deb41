// SPDX-License-Identifier: Apache-2.0
// GEMM by mma.sync, on tensor cores of sm_80 and later: out = alpha * a b + beta * c, or what an
// emitted epilogue makes of a b.
//
//   A, B in global memory
//     | copy/chunked_operand: cp.async, `stages` blocks of k under way, zeros beyond edges
//   a[stage], b[stage] in shared memory, chunks of 16 bytes swizzled (abi/staged_operand)
//     | mma/fragments: ldmatrix, the next step's fragments while the present ones multiply
//   fragments in registers
//     | mma/warp_mma: mma.sync
//   accumulators in registers
//     | add_slices: where groups of warps split each block of k
//     | pipeline/tile_share: where blocks split the k of a tile
//     | epilogue/staged_tile: through shared memory into runs of adjacent columns
//   out in global memory
#pragma once

#include <device/abi/sm80_design.hpp>
#include <device/abi/sm80_params.hpp>
#include <device/copy/chunked_operand.cuh>
#include <device/epilogue/staged_tile.cuh>
#include <device/mma/fragments.cuh>
#include <device/mma/warp_mma.cuh>
#include <device/pipeline/tile_share.cuh>
#include <device/ptx/async_copy.cuh>
#include <device/tile/mma_accumulator.cuh>

namespace gemmery::device {

template <abi::Sm80Design design>
class Sm80Gemm {
  static constexpr abi::StagedOperand a = abi::staged_a(design);
  static constexpr abi::StagedOperand b = abi::staged_b(design);
  static constexpr int threads = abi::thread_count(design);
  static constexpr int step_k = abi::mma_shape(design).k;
  static constexpr int steps = abi::k_steps(design);
  using Blocks = WarpBlocks<design>;
  using Accumulator = MmaAccumulator<design>;
  using Number = typename Accumulator::Number;
  using Parts = TileParts<design>;
  using ReaderA = FragmentReader<a, Side::a, Blocks::rows, step_k>;
  using ReaderB = FragmentReader<b, Side::b, Blocks::columns, step_k>;

 public:
  /// `flag`: a word of shared memory.
  __device__ __forceinline__ Sm80Gemm(const abi::Sm80Params& params, char* shared, unsigned* flag)
      : params_(params),
        shared_(shared),
        address_(ptx::cvta_shared(shared)),
        place_(thread()),
        parts_(params, flag, thread()) {}

  /// Multiplies a share of a tile; true where this block has all of the tile's accumulators then.
  template <class Shares>
  __device__ __forceinline__ bool multiply_share(const Shares& shares, const TileShare& share) {
    accumulate(share);
    if constexpr (design.warps_k > 1) add_slices();
    if constexpr (design.split == abi::SplitMode::none) return true;
    return parts_.join(shares, share, sums_, holds_sums());
  }

  __device__ __forceinline__ void store(const TileShare& share) {
    const StagedLinearCombination<design> epilogue(params_);
    epilogue.store(TileStaging<design>(address_, thread()), sums_, corner_of(share.tile),
                   holds_sums());
  }

  template <class Epilogue, class EpilogueParams>
  __device__ __forceinline__ void store(const TileShare& share, const EpilogueParams& parameters) {
    StagedProgram<design, Epilogue> epilogue(params_, parameters, corner_of(share.tile), thread());
    epilogue.store(TileStaging<design>(address_, thread()), sums_, holds_sums());
    epilogue.reduce(shared_);
  }

 private:
  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ bool holds_sums() const { return design.warps_k == 1 || place_.slice == 0; }

  __device__ __forceinline__ TileCorner corner_of(unsigned tile) const {
    const abi::TilePosition position = abi::position_of<design.raster>(params_.order, tile);
    return {.batch = position.batch,
            .row = position.row * static_cast<unsigned>(design.tile_m),
            .column = position.column * static_cast<unsigned>(design.tile_n)};
  }

  template <abi::StagedOperand operand>
  __device__ __forceinline__ static PanelOfLines panel(const abi::Sm80Operand& matrix,
                                                       unsigned batch, unsigned extent,
                                                       unsigned extents, unsigned k) {
    const unsigned line = operand.is_k_adjacent ? extent : k;
    const unsigned along = operand.is_k_adjacent ? k : extent;
    const abi::Int64 element =
        static_cast<abi::Int64>(batch) * matrix.batch_stride + line * matrix.line_stride + along;
    constexpr int bytes = abi::bytes_of(operand.dtype);
    return {.data = static_cast<const char*>(matrix.data) + element * bytes,
            .line_bytes = matrix.line_stride * bytes,
            .extent_left = extents - extent};
  }

  /// The main loop: while one block of k multiplies, the `stages - 1` behind it are on their way.
  __device__ __forceinline__ void accumulate(const TileShare& share) {
    constexpr unsigned ahead = design.stages - 1;
    constexpr unsigned a_bytes = a.bytes();
    clear();
    if (params_.k == 0) return;
    const TileCorner corner = corner_of(share.tile);
    const unsigned first_k = share.first_k_block * design.tile_k;
    unsigned k_left = min(params_.k - first_k, share.k_blocks * design.tile_k);  // not yet fetched
    typename OperandCopyOf<a, threads>::Type copy_a(
        panel<a>(params_.a, corner.batch, corner.row, params_.m, first_k), address_, thread());
    typename OperandCopyOf<b, threads>::Type copy_b(
        panel<b>(params_.b, corner.batch, corner.column, params_.n, first_k), address_ + a_bytes,
        thread());
    const bool is_interior = copy_a.is_interior() && copy_b.is_interior();
    unsigned fetch_stage = 0;

    const auto fetch = [&] {
      if (is_interior && k_left >= design.tile_k) {
        copy_a.fetch_whole(fetch_stage);
        copy_b.fetch_whole(fetch_stage);
      } else if (k_left > 0) {
        copy_a.fetch_edge(fetch_stage, k_left);
        copy_b.fetch_edge(fetch_stage, k_left);
      }
      ptx::cp_async_commit_group();
    };
    const auto store = [&] {
      if (k_left > 0) {
        copy_a.store(fetch_stage);
        copy_b.store(fetch_stage);
      }
      k_left -= min(k_left, static_cast<unsigned>(design.tile_k));
      fetch_stage = next_stage(fetch_stage);
    };

    const int slice_k = place_.slice * abi::warp_tile_k(design);
    const ReaderA read_a(address_, place_.row, slice_k, place_.lane);
    const ReaderB read_b(address_ + a_bytes, place_.column, slice_k, place_.lane);
    typename ReaderA::Fragments a_fragments[2];
    typename ReaderB::Fragments b_fragments[2];
    unsigned stage = 0;
#pragma unroll 1
    for (unsigned block = 0; block < ahead; ++block) {
      fetch();
      store();
    }
    wait_for_block();
    read_a.load(a_fragments[0], stage, 0);
    read_b.load(b_fragments[0], stage, 0);
#pragma unroll 1
    for (unsigned block = 0; block < share.k_blocks; ++block) {
      fetch();
#pragma unroll
      for (int step = 0; step < steps; ++step) {
        if (step + 1 == steps) {
          store();
          wait_for_block();
          stage = next_stage(stage);
        }
        read_a.load(a_fragments[(step + 1) % 2], stage, (step + 1) % steps);
        read_b.load(b_fragments[(step + 1) % 2], stage, (step + 1) % steps);
        multiply(a_fragments[step % 2], b_fragments[step % 2]);
      }
    }
    ptx::cp_async_wait_group<0>();
    __syncthreads();  // waits until all have read their last fragments, before the stages serve
                      // something else
  }

  /// Stages are told apart by their offset in bytes.
  __device__ static unsigned next_stage(unsigned stage) {
    constexpr unsigned bytes = abi::stage_bytes(design);
    return stage == (design.stages - 1) * bytes ? 0 : stage + bytes;
  }

  /// Waits until the oldest block of k that is still under way lies in shared memory, of all
  /// threads, and its predecessor was read by all.
  __device__ static void wait_for_block() {
    ptx::cp_async_wait_group<design.stages - 2>();
    __syncthreads();
  }

  __device__ __forceinline__ void multiply(const typename ReaderA::Fragments& a_fragments,
                                           const typename ReaderB::Fragments& b_fragments) {
    using PartA = SplitFragment<design.math, ReaderA::registers>;
    using PartB = SplitFragment<design.math, ReaderB::registers>;
#pragma unroll
    for (int row = 0; row < Blocks::rows; ++row) {
      const PartA of_a(a_fragments[row]);
#pragma unroll
      for (int turn = 0; turn < Blocks::columns; ++turn) {
        // Back and forth, so that consecutive mmas share a fragment of B in the reuse cache.
        const int column = row % 2 == 0 ? turn : Blocks::columns - 1 - turn;
        WarpMma<design>::multiply(sums_[row][column], of_a, PartB(b_fragments[column]));
      }
    }
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
  char* shared_;
  unsigned address_;
  const WarpPlace<design> place_;
  Parts parts_;
  typename Parts::Sums sums_;
};

/// Calls finish(gemm, share) for every tile that this block has all accumulators of.
template <abi::Sm80Design design, class Finish>
__device__ __forceinline__ void for_each_sm80_tile(const abi::Sm80Params& params, Finish&& finish) {
  static_assert(abi::find_fault(design) == abi::Sm80Fault::none,
                "find_fault names the field of the design to change");
  extern __shared__ __align__(128) char shared[];
  __shared__ unsigned flag;
#pragma unroll 1
  for (unsigned unit = blockIdx.x; unit < params.split.units; unit += gridDim.x) {
    UnitShares<design.split> shares(params.split, params.k_blocks, unit);
#pragma unroll 1
    while (!shares.is_done()) {
      const TileShare share = shares.take();
      Sm80Gemm<design> gemm(params, shared, &flag);
      if (gemm.multiply_share(shares, share)) finish(gemm, share);
      __syncthreads();  // waits until shared memory is free for the next tile
    }
  }
}

/// The kernel: abi::thread_count(design) threads and abi::shared_bytes(design) dynamic shared bytes
/// per block, any grid along x.
template <abi::Sm80Design design>
__device__ inline void sm80_gemm(const abi::Sm80Params& params) {
  for_each_sm80_tile<design>(
      params, [](Sm80Gemm<design>& gemm, const TileShare& share) { gemm.store(share); });
}

/// The same with an emitted epilogue.
template <abi::Sm80Design design, class Epilogue, class EpilogueParams>
__device__ inline void sm80_gemm(
    const abi::ProgramParams<abi::Sm80Params, EpilogueParams>& params) {
  for_each_sm80_tile<design>(params.gemm, [&](Sm80Gemm<design>& gemm, const TileShare& share) {
    gemm.template store<Epilogue>(share, params.epilogue);
  });
}

}  // namespace gemmery::device
