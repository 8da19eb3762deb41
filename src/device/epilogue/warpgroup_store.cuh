// SPDX-License-Identifier: Apache-2.0
// Stores a warpgroup's accumulators to out. A `Finish` computes D's values
// (warpgroup_combination.cuh: alpha * accumulator + beta * c; warpgroup_program.cuh: an emitted
// epilogue). They are rounded and written to staging tiles of 64 rows in shared memory
// (staging_writer.cuh). Each warp stores its 16 rows of a staging tile by one TMA store while it
// computes the next ones, or by its threads (thread_store.cuh). If the rows of out are adjacent in
// memory, threads store them directly (row_pair_store.cuh).
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/abi/sm90_shared.hpp>
#include <device/copy/conv_operand.cuh>
#include <device/copy/map_matrix.cuh>
#include <device/epilogue/output_place.cuh>
#include <device/epilogue/staging_writer.cuh>
#include <device/epilogue/thread_store.cuh>
#include <device/ptx/fence.cuh>
#include <device/ptx/tma.cuh>
#include <device/ptx/warp.cuh>

namespace gemmery::device {

/// Defined in row_pair_store.cuh, which the source of a kernel includes if rows are adjacent.
template <const abi::Sm90Design& design>
class RowPairStore;

/// Each warp fills and stores its own rows of every staging tile and waits for no other warp.
/// Barriers of a warpgroup, and fences directly after the writes, took longer than the arithmetic
/// between them (docs/performance.md).
template <const abi::Sm90Design& design>
class WarpgroupStore {
 public:
  /// `staging`: the shared address of all consumers' staging tiles. `thread` of the warpgroup.
  __device__ WarpgroupStore(const abi::Sm90Params& params, unsigned staging, unsigned consumer,
                            unsigned thread)
      : params_(params),
        first_row_(ptx::same_in_warp(thread / 32) * abi::sm90_warp_rows),
        map_(ptx::same_in_warp(&params.out)),
        staging_(ptx::same_in_warp(staging +
                                   consumer * abi::staging_tiles_per_consumer * staging_bytes +
                                   first_row_ * pitch)),
        lane_(thread % 32),
        chunk_(staging_ + Writer::first_chunk(thread % 32)) {
    if constexpr (!abi::is_crowded(design))
      ptx::pin(chunk_);  // otherwise it is recomputed for every staging tile
  }

  /// Stores the consumer's index-th block of 64 rows, whose first row is that of `place`. `sums`
  /// are all accumulators of the consumer (WarpgroupSums or WgmmaSums); `block` comes from a
  /// `Finish`. The last staging tile of the previous block is stored now, that of this block later.
  template <class Sums, class Block>
  __device__ __forceinline__ void store(const Sums& sums, int index, const OutputPlace& place,
                                        Block& block) {
    if (index == 0) find_matrix(place);
    OutputPlace corner = place;
    corner.row += first_row_;
    int target = no_element;
    if constexpr (design.scatters_rows) target = by_threads().find_target(corner);
#pragma unroll
    for (int staging = 0; staging < staging_tiles; ++staging) {
      if (corner.column < column_end<design>(params_, place)) {
        block.begin_staging(staging);
        if constexpr (design.has_adjacent_rows) {
          pass(sums, index, staging, block, corner);
        } else {
          fill(sums, index, staging, block);
          filled_ = corner;
          if constexpr (design.scatters_rows) target_ = target;
          if constexpr (design.has_groups && stores_by_tma) store_ragged();
        }
      }
      block.end_staging(staging);
      corner.column += columns;
    }
    block.end();
    if (stores_by_tma && !design.has_groups && place.column < params_.n) store_ragged();
  }

  /// Stores the last staging tile of a tile, whose first column is that of `place`.
  __device__ __forceinline__ void flush(const OutputPlace& place) const {
    if (design.has_adjacent_rows || place.column >= column_end<design>(params_, place)) return;
    if constexpr (!stores_by_tma) return store_by_threads();
    complete_writes();
    if (sends_by_all || ptx::elect_sync()) send();
  }

  /// Waits until the stores no longer read shared memory.
  __device__ __forceinline__ void finish() const {
    if constexpr (!stores_by_tma) return;
    if (sends_by_all || ptx::elect_sync()) ptx::bulk_wait_group_read<0>();
  }

 private:
  using Writer = StagingWriter<design>;
  static constexpr bool stores_by_tma = abi::stores_by_tma(design);
  static constexpr int columns = abi::staging_columns(design);
  static constexpr int staging_tiles = abi::columns_per_consumer(design) / columns;
  static constexpr unsigned pitch = abi::staging_pitch_bytes(design);
  static constexpr unsigned staging_bytes = abi::staging_bytes(design);
  static constexpr int sixteens = columns / 16;
  static constexpr int together = abi::sixteens_together(design);
  static constexpr int groups = sixteens / together;  // of a staging tile
  static constexpr int registers_together = Writer::staging_registers / groups;

  /// True if TMA can store the last filled staging tile: it clips at the edges of out, but not at
  /// those of a group.
  __device__ bool is_whole() const {
    const bool ends_whole = static_cast<int>(filled_.column) <= params_.last_whole_staging;
    if constexpr (design.has_groups) {
      return filled_.row + abi::sm90_warp_rows <= filled_.row_end &&
             (ends_whole || filled_.column + columns <= filled_.column_end);
    }
    return ends_whole;
  }

  __device__ unsigned filled_staging() const { return staging_ + (next_ ^ staging_bytes); }

  __device__ __forceinline__ ThreadStore<design> by_threads() const { return {params_, lane_}; }

  /// Stores the last filled staging tile if TMA cannot. A block has at most one such tile, except
  /// at the end of a group.
  __device__ __forceinline__ void store_ragged() const {
    if (is_whole()) return;
    __syncwarp();  // waits until it is filled by all
    by_threads().store_by_elements(filled_staging(), filled_);
  }

  /// Stores the last filled staging tile by threads if the design does not store by TMA. Lanes read
  /// it before they fill the same buffer again: they synchronise for the tile in between.
  __device__ __forceinline__ void store_by_threads() const {
    __syncwarp();  // waits until it is filled by all
    if constexpr (design.scatters_rows)
      by_threads().store_scattered(filled_staging(), filled_, target_);
    else if constexpr (design.out_access == 0)
      by_threads().store_at_any_strides(filled_staging(), filled_);
    else
      by_threads().store_by_vectors(filled_staging(), filled_);
  }

  /// Makes the writes of all lanes visible to TMA.
  __device__ __forceinline__ static void complete_writes() {
    ptx::fence_proxy_async();
    __syncwarp();
  }

  /// In rotation all lanes execute the store of a staging tile and the wait for one; a predicate
  /// picks the lane. Without a branch the compiler may reorder across it. Other schedules become
  /// slower by it at K = 1024 (docs/performance.md).
  static constexpr bool sends_by_all = design.schedule == abi::Schedule::rotation;

  /// Reads the address of the matrix in a batch by pointers. It is read here because arithmetic
  /// precedes the first store.
  __device__ __forceinline__ void find_matrix(const OutputPlace& place) {
    if constexpr (design.has_pointers && stores_by_tma)
      matrix_ = find_in_map<true>(array_of(params_.out_rows.data, params_.out_rows.batch_stride),
                                  place.batch);
  }
  __device__ MapMatrix<design.has_pointers> matrix() const {
    if constexpr (design.has_pointers)
      return matrix_;
    else if constexpr (design.has_groups)
      return {static_cast<int>(filled_.batch * with_groups(params_).out_batch_step)};
    else
      return {static_cast<int>(filled_.batch)};
  }

  /// Stores the last filled staging tile by TMA. A ragged one is stored already; its bulk group is
  /// empty, so that groups count staging tiles.
  __device__ __forceinline__ void send() const {
    if constexpr (design.has_phases) return send_pixels();
    if constexpr (design.has_tap_columns) return send_tap();
    const auto place =
        box_at(static_cast<int>(filled_.column), static_cast<int>(filled_.row), matrix());
    if constexpr (sends_by_all) {
      ptx::tma_store_by_one(*map_, place, filled_staging(), params_.last_whole_staging);
    } else if (is_whole()) {
      ptx::tma_store(*map_, place, filled_staging());
    }
    ptx::bulk_commit_group();
  }

  /// The same for a phase of pixels.
  __device__ __forceinline__ void send_pixels() const {
    const abi::DgradPhase& phase = with_phases(params_).phases[filled_.batch];
    const auto first = count_pixels<design.dimensions>(phase.window, filled_.row);
    ptx::tma_store(
        phase.out,
        pixel_place(first, TapPlace<design.dimensions>{}, static_cast<int>(filled_.column)),
        filled_staging());
    ptx::bulk_commit_group();
  }

  /// The same for the channels of one tap, in a map of channels, taps, rows and groups.
  __device__ __forceinline__ void send_tap() const {
    const abi::FastDivisor& channels = with_windows(params_).window.taps[2];
    const unsigned tap = channels.divide(filled_.column);
    const ptx::FarBoxPlace place{
        .adjacent = static_cast<int>(filled_.column - tap * channels.divisor),
        .row = static_cast<int>(tap),
        .near = static_cast<int>(filled_.row),
        .far = static_cast<int>(filled_.batch)};
    ptx::tma_store(*map_, place, filled_staging());
    ptx::bulk_commit_group();
  }

  /// Makes room for the next staging tile: stores the last filled one, if that is not yet done, and
  /// waits until the previous store has read its buffer. The wait is short because arithmetic
  /// precedes it.
  __device__ __forceinline__ void make_room(bool sends) const {
    if constexpr (!stores_by_tma) {
      if (sends) store_by_threads();
      return;
    }
    if (sends) complete_writes();
    if (sends_by_all || ptx::elect_sync()) {
      if (sends) send();
      ptx::bulk_wait_group_read<abi::staging_tiles_per_consumer - 1>();
    }
    __syncwarp();
  }

  /// Stores the columns of a staging tile directly from registers.
  template <class Sums, class Block>
  __device__ __forceinline__ void pass(const Sums& sums, int index, int staging, Block& block,
                                       const OutputPlace& corner) const {
    typename Sums::Register registers[Writer::staging_registers];
    sums.read(registers, index, staging);
    if constexpr (Block::reduces_blocks) Writer::reduce(registers, staging, block);
    const RowPairStore<design> rows(params_, corner, lane_);
#pragma unroll
    for (int sixteen = 0; sixteen < sixteens; ++sixteen) {
      unsigned results[Writer::words];
      Writer::finish_sixteen(results, registers, sixteen, staging * sixteens, block);
      rows.write(results, sixteen);
    }
  }

  template <class Sums, class Block>
  __device__ __forceinline__ void fill(const Sums& sums, int index, int staging, Block& block) {
    constexpr bool states_results =
        abi::states_results(design) && Sums::are_registers && Block::states_results;
    [[maybe_unused]] typename Sums::Register registers[Writer::staging_registers];
    if constexpr (!states_results) sums.read(registers, index, staging);
    if constexpr (Block::reduces_blocks) Writer::reduce(registers, staging, block);
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      const int first = group * together;
      unsigned results[together][Writer::words];
      if constexpr (states_results) {
        state_results<Sums::first_block>(results,
                                         (index * staging_tiles + staging) * groups + group, block);
      } else {
#pragma unroll
        for (int at = 0; at < together; ++at)
          Writer::finish_sixteen(results[at], registers, first + at, staging * sixteens, block);
      }
      if (first == 0) make_room(index > 0 || staging > 0);
#pragma unroll
      for (int at = 0; at < together; ++at)
        Writer::write(chunk_ + next_, static_cast<unsigned>(first + at), results[at]);
    }
    next_ ^= staging_bytes;
  }

  /// Computes the results of a group of columns in one statement. Groups count through all blocks
  /// of rows; PTX text names registers, so one candidate remains once loops are unrolled.
  template <int first_block, int candidate = 0, class Block>
  __device__ __forceinline__ static void state_results(unsigned (&results)[together][Writer::words],
                                                       int group, const Block& block) {
    constexpr int per_block = staging_tiles * groups;
    if (group == candidate) {
      constexpr int of_block = candidate % per_block;
      block.template state_results<first_block + candidate / per_block,
                                   of_block * registers_together, of_block * together * 16>(
          &results[0][0]);
    } else if constexpr (candidate + 1 < per_block * abi::blocks_per_consumer(design)) {
      state_results<first_block, candidate + 1>(results, group, block);
    }
  }

  const abi::Sm90Params& params_;
  unsigned first_row_;  // of the warp, in a block
  // Uniform in a warp, so that TMA takes them from uniform registers for every staging tile.
  const abi::TensorMap* map_;  // of out
  unsigned staging_;           // the warp's rows of the consumer's
  unsigned lane_;
  unsigned chunk_;           // where the lane writes its first chunk
  unsigned next_ = 0;        // offset of the next one of the two staging tiles; kept across tiles
  OutputPlace filled_{};     // place in out of the staging tile that was filled last
  int target_ = no_element;  // of a scatter: the row of out for the lane's row of that staging tile
  MapMatrix<design.has_pointers> matrix_{};  // of the tile, in batches by pointers
};

}  // namespace gemmery::device
