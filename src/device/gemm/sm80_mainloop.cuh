// SPDX-License-Identifier: Apache-2.0
// The mainloop of an sm80 kernel: the products of consecutive blocks of k of one tile. While one
// block is multiplied, the next `stages - 1` are being copied; while one step of k is multiplied,
// the fragments of the next one are loaded.
#pragma once

#include <device/abi/sm80_design.hpp>
#include <device/copy/chunked_operand.cuh>
#include <device/copy/windowed_operand.cuh>
#include <device/gemm/sm80_scales.cuh>
#include <device/mma/decoded_fragment.cuh>
#include <device/mma/fragments.cuh>
#include <device/mma/warp_mma.cuh>
#include <device/ptx/async_copy.cuh>
#include <device/tile/mma_accumulator.cuh>

namespace gemmery::device {

template <const abi::Sm80Design& design>
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
  static constexpr bool has_groups = design.groups != abi::GroupSchedule::none;
  static constexpr bool has_parts = products_of(design.math) == 3;
  static constexpr bool has_scales = design.scales.are_used();
  using Scales = typename ScalesOf<design>::Type;
  // float32 that is multiplied in 16 bits is converted block by block as it is loaded: with 128
  // accumulators there are no registers for the fragments of a whole step.
  static constexpr bool splits_loaded_blocks = abi::splits_to_16_bits(design.math);
  using ReaderA = FragmentReader<a, abi::Side::a, Blocks::rows, step_k>;
  using ReaderB = FragmentReader<b, abi::Side::b, Blocks::columns, step_k>;

  /// The fragments of a step, as the mmas take them.
  using FactorA =
      typename FactorOf<design, abi::Side::a, SplitFragment<design.math, ReaderA::registers>>::Type;
  using FactorB =
      typename FactorOf<design, abi::Side::b, SplitFragment<design.math, ReaderB::registers>>::Type;
  struct Factors {
    FactorA a[Blocks::rows];
    FactorB b[Blocks::columns];
  };

  // Registers of a thread: the limit; those of accumulators, including the separate ones of a step
  // of three products or of a group of k with a scale; and those of the fragments of two steps, as
  // loaded or as the mmas take them.
  static constexpr int most_registers = threads > 256 ? 65536 / threads : 255;
  static constexpr int sum_registers =
      Blocks::rows * Blocks::columns * MmaAccumulator<design>::registers *
      (design.accumulator == DType::float64 ? 2 : 1) * (has_parts || Scales::multiply ? 2 : 1);
  static constexpr int loaded_registers =
      Blocks::rows * ReaderA::registers + Blocks::columns * ReaderB::registers;
  static constexpr int factor_registers =
      Blocks::rows * FactorA::registers_in_all + Blocks::columns * FactorB::registers_in_all;
  static constexpr int ahead_registers =
      splits_loaded_blocks ? factor_registers + ReaderA::registers + ReaderB::registers
                           : loaded_registers;
  // The 16-bit factors of a step, if an mma of 8-bit floats converts them.
  static constexpr int widened_registers =
      !abi::is_mixed(design) && abi::is_float8(design.a) && ptx::widens_f8 ? 2 * factor_registers
                                                                           : 0;
  static constexpr int address_registers = 30;  // about

 public:
  // The fragments of a step are loaded while the previous step multiplies, if there are registers
  // for both.
  static constexpr int needed_registers =
      sum_registers + factor_registers + ahead_registers + widened_registers + address_registers;
  static constexpr bool loads_ahead = needed_registers <= most_registers;
  // True if values that can be recomputed after the mainloop should not be kept in registers.
  static constexpr bool takes_all_registers = !loads_ahead || (has_parts && sum_registers >= 128);

 private:
  // True if few registers are left: blocks of k that are whole are recognised by k, not counted.
  static constexpr bool has_few_registers = has_groups || !loads_ahead;
  // Lines that are found by indices have a pointer each: with rounds and eight lines a thread took
  // 252 registers instead of 158 (128x64x64 of bf16, ptxas 13.0).
  static constexpr bool has_few_lines = !design.has_indices || ChunkShares<a, threads>::passes <= 4;
  // With groups and many copies in parts of a chunk, rounds spilled 120 to 330 bytes (64x128x32 of
  // tf32 aligned to 4 bytes, ptxas 13.0).
  static constexpr int copies_of_block =
      ChunkShares<a, threads>::passes * (abi::chunk_bytes / a.vector_bytes) +
      ChunkShares<b, threads>::passes * (abi::chunk_bytes / b.vector_bytes);
  static constexpr bool has_few_copies = !has_groups || copies_of_block <= 32;
  // A fprop finds the taps of its rows block by block, also in a round: without rounds it took 0.95
  // to 1.01 of the time (21 kernels on an H200), and 0.6 of the compile time.
  static constexpr bool finds_taps = design.convolution == abi::ConvolutionKind::fprop;
  // A round is the mainloop unrolled by the stages: it multiplies one block of k per stage. In
  // blocks of up to 64 mmas rounds save a fifth of the other instructions. Larger blocks have few
  // of these, and rounds would double the compile time. Split products, float32 that is multiplied
  // in 16 bits and 8-bit floats that are converted would spill with rounds (8 to 68 bytes, ptxas
  // 13.0).
  static constexpr bool has_rounds = is_async && loads_ahead && !has_parts && has_few_lines &&
                                     has_few_copies && !finds_taps && !has_scales &&
                                     !splits_loaded_blocks && widened_registers == 0 &&
                                     Blocks::rows * Blocks::columns * steps <= 64;

 public:
  using Sums = typename MmaAccumulator<design>::Register[Blocks::rows][Blocks::columns]
                                                        [MmaAccumulator<design>::registers];

  /// `shared`: the address of the stages.
  __device__ __forceinline__ Sm80Mainloop(const PanelOfLines& panel_a, const PanelOfLines& panel_b,
                                          unsigned shared, int thread,
                                          const ScaledPanel& scaled = {})
      : Sm80Mainloop(panel_a, panel_b, shared, scaled, thread, WarpPlace<design>(thread)) {}

  /// Adds the products of `k` elements of k, in `blocks` blocks, the last of which may lie partly
  /// beyond the matrix. Shared memory is free when it returns.
  __device__ __forceinline__ void run(Sums& sums, unsigned blocks, unsigned k) {
    blocks_ = blocks;
    k_ = k;
    if constexpr (Scales::multiply) clear_group();
    whole_blocks_ = copy_a_.is_interior() && copy_b_.is_interior()
                        ? k / static_cast<unsigned>(design.tile_k)
                        : 0;
    constexpr unsigned ahead = design.stages - 1;
    unsigned free_stage = 0;  // the stage that the next block of k is copied to
    unsigned stage = 0;       // the stage that is multiplied
    // One loop, so that the code of the copies at edges exists once: its first iterations only
    // copy.
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
          if constexpr (loads_ahead) load(0, 0, 0);
        }
        continue;
      }
      const unsigned next = next_stage(stage);
#pragma unroll
      for (int step = 0; step < steps; ++step) {
        if constexpr (!loads_ahead) load(step % 2, stage, step);
        if (step + 1 == steps) {
          store(block, free_stage);
          wait_for_block();
        }
        if constexpr (Scales::are_of_codes) scales_.load_ahead(next_k(block - ahead, step));
        multiply(summed(sums), step, stage, next);
        if constexpr (Scales::are_of_codes)
          scales_.take_loaded();
        else if constexpr (design.scales.varies_by_block())
          end_step(sums, block - ahead, step);
      }
      free_stage = stage;  // read by all
      stage = next;
    }
    ptx::cp_async_wait_group<0>();
    __syncthreads();  // waits until all have read their last fragments; the stages are reused for
                      // other data
  }

 private:
  __device__ __forceinline__ Sm80Mainloop(const PanelOfLines& panel_a, const PanelOfLines& panel_b,
                                          unsigned shared, const ScaledPanel& scaled, int thread,
                                          const WarpPlace<design>& place)
      : shared_(shared),
        copy_a_(panel_a, shared, thread),
        copy_b_(panel_b, shared + a_bytes, thread),
        read_a_(place.row, place.slice * abi::warp_tile_k(design), place.lane),
        read_b_(place.column, place.slice * abi::warp_tile_k(design), place.lane),
        scales_(scaled, place) {}

  /// The accumulators of mmas: those of a group of k, if it has a scale.
  __device__ __forceinline__ Sums& summed(Sums& sums) {
    if constexpr (Scales::multiply)
      return group_sums_.sums;
    else
      return sums;
  }
  __device__ __forceinline__ void clear_group() {
#pragma unroll
    for (int row = 0; row < Blocks::rows; ++row) {
#pragma unroll
      for (int column = 0; column < Blocks::columns; ++column) {
#pragma unroll
        for (int at = 0; at < MmaAccumulator<design>::registers; ++at)
          group_sums_.sums[row][column][at] = 0;
      }
    }
  }
  /// The first k of the step after this one, from the beginning of the share.
  __device__ static unsigned next_k(unsigned block, int step) {
    return step + 1 == steps ? (block + 1) * design.tile_k
                             : block * design.tile_k + static_cast<unsigned>((step + 1) * step_k);
  }
  /// After a step of a block of k.
  __device__ __forceinline__ void end_step(Sums& sums, unsigned block, int step) {
    const bool is_last = step + 1 == steps && block + 1 == blocks_;
    scales_.end_step(sums, summed(sums), next_k(block, step), is_last);
  }

  /// Multiplies whole blocks of k, one for each stage: stage addresses are constants then, and
  /// pointers advance once.
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
        multiply(sums, step, turn * bytes_of_stage, (turn + 1) % design.stages * bytes_of_stage);
      }
    }
    copy_a_.advance(design.stages);
    copy_b_.advance(design.stages);
  }

  // With groups, whose k is at least 1, both are computed from k: one register instead of three,
  // which spilled with 128 accumulators of tf32 (4 to 20 bytes, ptxas 13.0).
  __device__ bool is_there(unsigned block) const {
    return has_groups ? block * design.tile_k < k_ : block < blocks_;
  }
  __device__ bool is_whole_block(unsigned block, unsigned k_left) const {
    if constexpr (has_few_registers)
      return copy_a_.is_interior() && copy_b_.is_interior() && k_left >= design.tile_k;
    return block < whole_blocks_;
  }

  /// Starts copying a block of k, if there is one.
  __device__ __forceinline__ void fetch(unsigned block, unsigned stage) {
    if (is_there(block)) {
      const unsigned k_left = k_ - block * design.tile_k;
      const bool is_whole = is_whole_block(block, k_left);
      copy_a_.template fetch<has_groups>(stage, k_left, is_whole);
      copy_b_.template fetch<has_groups>(stage, k_left, is_whole);
    }
    ptx::cp_async_commit_group();
  }

  /// Stores what was loaded to registers into the stage.
  __device__ __forceinline__ void store(unsigned block, unsigned stage) const {
    if constexpr (!is_async) {
      if (block >= blocks_) return;
      copy_a_.store(stage);
      copy_b_.store(stage);
    }
  }

  /// Stages are identified by their offset in bytes.
  __device__ static unsigned next_stage(unsigned stage) {
    return stage == (design.stages - 1) * bytes_of_stage ? 0 : stage + bytes_of_stage;
  }

  /// Waits until the oldest block of k in flight is in shared memory for all threads, and all have
  /// read its predecessor.
  __device__ static void wait_for_block() {
    ptx::cp_async_wait_group<design.stages - 2>();
    __syncthreads();
  }

  __device__ __forceinline__ void load(int index, unsigned stage, int step) {
    if constexpr (splits_loaded_blocks) {
#pragma unroll
      for (int row = 0; row < Blocks::rows; ++row) load_row(factors_[index], row, stage, step);
    } else {
      read_a_.load(a_fragments_[index], shared_ + stage, step);
      read_b_.load(b_fragments_[index], shared_ + stage + a_bytes, step);
    }
  }
  /// Loads a block of A, and its share of the blocks of B.
  __device__ __forceinline__ void load_row(Factors& factors, int row, unsigned stage, int step) {
    typename ReaderA::Block of_a;
    read_a_.load_block(of_a, shared_ + stage, step, row);
    factors.a[row].split(of_a);
#pragma unroll
    for (int column = row * Blocks::columns / Blocks::rows;
         column < (row + 1) * Blocks::columns / Blocks::rows; ++column) {
      typename ReaderB::Block of_b;
      read_b_.load_block(of_b, shared_ + stage + a_bytes, step, column);
      factors.b[column].split(of_b);
    }
  }

  /// Multiplies a step of k in this stage, and loads the fragments of the next step, which may be
  /// the first of the next block.
  __device__ __forceinline__ void multiply(Sums& sums, int step, unsigned stage, unsigned next) {
    const unsigned stage_behind = step + 1 == steps ? next : stage;
    const int step_behind = (step + 1) % steps;
    if constexpr (splits_loaded_blocks) {
#pragma unroll
      for (int row = 0; row < Blocks::rows; ++row) {
        if constexpr (loads_ahead)
          load_row(factors_[(step + 1) % 2], row, stage_behind, step_behind);
        multiply_row(sums, factors_[step % 2], row);
      }
    } else {
      if constexpr (loads_ahead) load((step + 1) % 2, stage_behind, step_behind);
      Factors factors;
      split(factors, step % 2);
#pragma unroll
      for (int row = 0; row < Blocks::rows; ++row) multiply_row(sums, factors, row);
    }
  }
  __device__ __forceinline__ void split(Factors& factors, int index) const {
#pragma unroll
    for (int column = 0; column < Blocks::columns; ++column)
      split_one<abi::decodes_b(design)>(factors.b[column], b_fragments_[index][column], column);
#pragma unroll
    for (int row = 0; row < Blocks::rows; ++row)
      split_one<abi::decodes_a(design)>(factors.a[row], a_fragments_[index][row], row);
  }
  template <bool has_codes, class Factor, class Block>
  __device__ __forceinline__ void split_one(Factor& factor, const Block& values, int block) const {
    if constexpr (has_codes && design.scales.has_table) {
      factor.split(values, scales_.table());
    } else if constexpr (has_codes && design.scales.has_zero_point) {
      unsigned minus_zeros[abi::decodes_a(design) ? 2 : 1];
      scales_.minus_zeros(minus_zeros, block);
      factor.split(values, minus_zeros);
    } else {
      factor.split(values);
    }
    if constexpr (has_codes && Scales::are_of_codes) {
      unsigned scales[abi::decodes_a(design) ? 2 : 1];
      scales_.scales_of(scales, block);
      scale_codes(factor, scales);
    }
  }
  __device__ __forceinline__ static void multiply_row(Sums& sums, const Factors& factors, int row) {
#pragma unroll
    for (int turn = 0; turn < Blocks::columns; ++turn) {
      // Back and forth, so that consecutive mmas share a fragment of B in the reuse cache.
      const int column = row % 2 == 0 ? turn : Blocks::columns - 1 - turn;
      WarpMma<design>::multiply(sums[row][column], factors.a[row], factors.b[column]);
    }
  }

  unsigned shared_;
  unsigned blocks_;
  unsigned k_;
  unsigned whole_blocks_;  // blocks that need no edge test; all others follow them
  // With a pointer for each of a thread's chunks and the ends of groups, float32 kernels spilled 8
  // to 52 bytes (ptxas 13.0); split wgrads, with 128 accumulators and pixels to walk, 36 to 120.
  static constexpr int pointer_registers =
      2 * (ChunkShares<a, threads>::passes + ChunkShares<b, threads>::passes);
  static constexpr bool is_split_wgrad =
      design.convolution == abi::ConvolutionKind::wgrad && design.split != abi::SplitMode::none;
  static constexpr int left_registers = most_registers - needed_registers - pointer_registers;
  static constexpr bool keeps_one_pointer =
      (has_groups && left_registers <= 8) || (is_split_wgrad && left_registers <= 24);
  static constexpr ChunkPointers pointers =
      keeps_one_pointer ? ChunkPointers::first : ChunkPointers::each;
  static constexpr ChunkPointers pointers_of_a =
      design.has_indices ? ChunkPointers::indexed : pointers;
  static constexpr WindowLines window_of_a =
      abi::are_rows_pixels(design) ? WindowLines::pixels : WindowLines::none;
  static constexpr WindowLines window_of_b =
      design.convolution == abi::ConvolutionKind::dgrad   ? WindowLines::taps
      : design.convolution == abi::ConvolutionKind::wgrad ? WindowLines::pixels
                                                          : WindowLines::none;
  typename ConvCopyOf<a, threads, window_of_a, design.dimensions, pointers_of_a>::Type copy_a_;
  typename ConvCopyOf<b, threads, window_of_b, design.dimensions, pointers>::Type copy_b_;
  const ReaderA read_a_;
  const ReaderB read_b_;
  Scales scales_;
  typename GroupSumsOf<Sums, Scales::multiply>::Type group_sums_;
  // The fragments of the current and the next step, in one of two forms: as loaded, or as factors.
  typename ReaderA::Fragments a_fragments_[2];
  typename ReaderB::Fragments b_fragments_[2];
  Factors factors_[2];
};

}  // namespace gemmery::device
