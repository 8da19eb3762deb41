// SPDX-License-Identifier: Apache-2.0
// The main loop of an sm80 kernel: the products of consecutive blocks of k of one tile. While one
// block multiplies, the `stages - 1` behind it are on their way; while one step of k multiplies,
// the fragments of the next one are loaded.
#pragma once

#include <device/abi/sm80_design.hpp>
#include <device/copy/chunked_operand.cuh>
#include <device/mma/fragments.cuh>
#include <device/mma/warp_mma.cuh>
#include <device/ptx/async_copy.cuh>
#include <device/tile/mma_accumulator.cuh>

namespace gemmery::device {

template <abi::Sm80Design design>
class Sm80Mainloop {
  static constexpr abi::StagedOperand a = abi::staged_a(design);
  static constexpr abi::StagedOperand b = abi::staged_b(design);
  static constexpr int threads = abi::thread_count(design);
  static constexpr int step_k = abi::step_k(design);
  static constexpr int steps = abi::k_steps(design);
  static constexpr unsigned a_bytes = a.bytes();
  static constexpr unsigned bytes_of_stage = abi::stage_bytes(design);
  static constexpr bool is_async = a.is_async() && b.is_async();
  using Blocks = WarpBlocks<design>;
  // Rounds take a fifth of the other instructions out of a block of 64 mmas; of larger blocks they
  // are few anyway, and rounds would double the compile time. So they are beside three products,
  // whose parts and step sums take the registers that rounds would (52 to 68 bytes spilled in tiles
  // of 32x128 and 128x16; ptxas 13.0).
  static constexpr bool has_rounds =
      is_async && products_of(design.math) == 1 && Blocks::rows * Blocks::columns * steps <= 64;
  using ReaderA = FragmentReader<a, abi::Side::a, Blocks::rows, step_k>;
  using ReaderB = FragmentReader<b, abi::Side::b, Blocks::columns, step_k>;

 public:
  using Sums = typename MmaAccumulator<design>::Register[Blocks::rows][Blocks::columns]
                                                        [MmaAccumulator<design>::registers];

  /// `shared`: the address of the stages.
  __device__ __forceinline__ Sm80Mainloop(const PanelOfLines& panel_a, const PanelOfLines& panel_b,
                                          unsigned shared, int thread)
      : Sm80Mainloop(panel_a, panel_b, shared, thread, WarpPlace<design>(thread)) {}

  /// Adds the products of `k` elements of k, in so many blocks of which the last one may be partly
  /// beyond the matrix. Shared memory is free when it returns.
  __device__ __forceinline__ void run(Sums& sums, unsigned blocks, unsigned k) {
    blocks_ = blocks;
    k_ = k;
    whole_blocks_ = copy_a_.is_interior() && copy_b_.is_interior()
                        ? k / static_cast<unsigned>(design.tile_k)
                        : 0;
    constexpr unsigned ahead = design.stages - 1;
    unsigned free_stage = 0;  // that which the next block of k goes to
    unsigned stage = 0;       // that which multiplies
    // One loop, so that the copies at edges are in the code once: its first rounds only fetch.
#pragma unroll 1
    for (unsigned block = 0; block < blocks + ahead; ++block) {
      if constexpr (has_rounds) {
        if (block == ahead) {
#pragma unroll 1
          for (; block + design.stages <= whole_blocks_; block += design.stages)
            multiply_round(sums);
        }
      }
      fetch(block, free_stage);
      if (block < ahead) {
        store(block, free_stage);
        free_stage = next_stage(free_stage);
        if (block + 1 == ahead) {
          wait_for_block();
          load(0, 0, 0);
        }
        continue;
      }
      const unsigned next = next_stage(stage);
#pragma unroll
      for (int step = 0; step < steps; ++step) {
        if (step + 1 == steps) {
          store(block, free_stage);
          wait_for_block();
        }
        load_next(step, stage, next);
        multiply(sums, step);
      }
      free_stage = stage;  // read by all
      stage = next;
    }
    ptx::cp_async_wait_group<0>();
    __syncthreads();  // waits until all have read their last fragments, before the stages serve
                      // something else
  }

 private:
  __device__ __forceinline__ Sm80Mainloop(const PanelOfLines& panel_a, const PanelOfLines& panel_b,
                                          unsigned shared, int thread,
                                          const WarpPlace<design>& place)
      : shared_(shared),
        copy_a_(panel_a, shared, thread),
        copy_b_(panel_b, shared + a_bytes, thread),
        read_a_(place.row, place.slice * abi::warp_tile_k(design), place.lane),
        read_b_(place.column, place.slice * abi::warp_tile_k(design), place.lane) {}

  /// Whole blocks, one for each stage: where stages lie is constant then, and pointers move once.
  __device__ __forceinline__ void multiply_round(Sums& sums) {
#pragma unroll
    for (int turn = 0; turn < design.stages; ++turn) {
      const unsigned free_stage = (turn + design.stages - 1) % design.stages * bytes_of_stage;
      copy_a_.fetch_whole(free_stage, turn);
      copy_b_.fetch_whole(free_stage, turn);
      ptx::cp_async_commit_group();
#pragma unroll
      for (int step = 0; step < steps; ++step) {
        if (step + 1 == steps) wait_for_block();
        load_next(step, turn * bytes_of_stage, (turn + 1) % design.stages * bytes_of_stage);
        multiply(sums, step);
      }
    }
    copy_a_.advance(design.stages);
    copy_b_.advance(design.stages);
  }

  /// Begins to bring a block of k, if there is one.
  __device__ __forceinline__ void fetch(unsigned block, unsigned stage) {
    if (block < blocks_) {
      const unsigned k_left = k_ - block * design.tile_k;
      const bool is_whole = block < whole_blocks_;
      copy_a_.fetch(stage, k_left, is_whole);
      copy_b_.fetch(stage, k_left, is_whole);
    }
    ptx::cp_async_commit_group();
  }

  /// Puts what came through registers into the stage.
  __device__ __forceinline__ void store(unsigned block, unsigned stage) const {
    if constexpr (!is_async) {
      if (block >= blocks_) return;
      copy_a_.store(stage);
      copy_b_.store(stage);
    }
  }

  /// Stages are told apart by their offset in bytes.
  __device__ static unsigned next_stage(unsigned stage) {
    return stage == (design.stages - 1) * bytes_of_stage ? 0 : stage + bytes_of_stage;
  }

  /// Waits until the oldest block of k that is still under way lies in shared memory, of all
  /// threads, and its predecessor was read by all.
  __device__ static void wait_for_block() {
    ptx::cp_async_wait_group<design.stages - 2>();
    __syncthreads();
  }

  __device__ __forceinline__ void load(int index, unsigned stage, int step) {
    read_a_.load(a_fragments_[index], shared_ + stage, step);
    read_b_.load(b_fragments_[index], shared_ + stage + a_bytes, step);
  }
  /// The fragments of the step behind this one, which may be the first of the next block.
  __device__ __forceinline__ void load_next(int step, unsigned stage, unsigned next) {
    load((step + 1) % 2, step + 1 == steps ? next : stage, (step + 1) % steps);
  }

  __device__ __forceinline__ void multiply(Sums& sums, int step) const {
    SplitFragment<design.math, ReaderB::registers> of_b[Blocks::columns];
#pragma unroll
    for (int column = 0; column < Blocks::columns; ++column)
      of_b[column].split(b_fragments_[step % 2][column]);
#pragma unroll
    for (int row = 0; row < Blocks::rows; ++row) {
      SplitFragment<design.math, ReaderA::registers> of_a;
      of_a.split(a_fragments_[step % 2][row]);
#pragma unroll
      for (int turn = 0; turn < Blocks::columns; ++turn) {
        // Back and forth, so that consecutive mmas share a fragment of B in the reuse cache.
        const int column = row % 2 == 0 ? turn : Blocks::columns - 1 - turn;
        WarpMma<design>::multiply(sums[row][column], of_a, of_b[column]);
      }
    }
  }

  unsigned shared_;
  unsigned blocks_;
  unsigned k_;
  unsigned whole_blocks_;  // that need no look at edges; all others come behind them
  typename OperandCopyOf<a, threads>::Type copy_a_;
  typename OperandCopyOf<b, threads>::Type copy_b_;
  const ReaderA read_a_;
  const ReaderB read_b_;
  typename ReaderA::Fragments a_fragments_[2];  // of this step and of the next one
  typename ReaderB::Fragments b_fragments_[2];
};

}  // namespace gemmery::device
