// SPDX-License-Identifier: Apache-2.0
// The finishing phase of sm90 kernels: a consumer's share of a tile goes through an epilogue to
// out. An epilogue is a `Finish` (epilogue/warpgroup_combination, warpgroup_program).
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/epilogue/output_place.cuh>
#include <device/epilogue/warpgroup_store.cuh>
#include <device/mma/wgmma.cuh>

namespace gemmery::device {

template <const abi::Sm90Design& design>
class Sm90Finish {
 public:
  using Store = WarpgroupStore<abi::stored_of<design>()>;
  using StoredSums = WarpgroupSums<abi::stored_of<design>()>;
  using Sums = ConsumerSums<design>;

  /// True if accumulator registers are freed while the epilogue reads them. The compiler keeps all
  /// of them alive until a wgmma that does not read them; so the first stage is multiplied outside
  /// the loop, by wgmmas that begin at zero. With 192 live accumulators a program had registers for
  /// two chains of arithmetic only and took a third longer (bias + gelu 32 clocks an element, now
  /// 23: docs/performance.md). If registers are free anyway, the additional code gains nothing. In
  /// rotation two warpgroups are in their epilogues at a time and fill each other's stalls; there a
  /// dense program in few chains does not slow down the wgmmas, in many chains it does by a fifth.
  template <class Finish>
  __device__ static constexpr bool frees_sums() {
    if constexpr (!Finish::reads_early || abi::has_room_beside_sums(design)) {
      return false;
    } else {
      return design.schedule != abi::Schedule::rotation || !Finish::is_dense;
    }
  }

  /// True if the first block of rows begins before all accumulators are complete: then inputs that
  /// it reads early arrive in time. If blocks exchange accumulators, which are then C++ values, it
  /// also keeps fewer registers live (some designs spilled otherwise).
  template <class Finish>
  static constexpr bool begins_early = Finish::reads_early || design.split_k > 1;

  /// Stores this consumer's share of a tile, whose first block of rows has begun.
  template <class Results, class Finish, class Block>
  __device__ __forceinline__ static void store_tile(Store& output, const Results& sums,
                                                    const OutputPlace& place, Finish& finish,
                                                    Block& first) {
    store_blocks<0>(output, sums, place, finish, first);
    end_tile(output, place, finish);
  }
  /// The same if none has begun.
  template <class Results, class Finish>
  __device__ __forceinline__ static void store_tile(Store& output, const Results& sums,
                                                    const OutputPlace& place, Finish& finish) {
    if constexpr (begins_early<Finish>) {
      auto first = finish.begin_block(place, 0);
      store_tile(output, sums, place, finish, first);
    } else {
      if constexpr (StoredSums::blocks == 1)
        store_block(output, sums, 0, place, finish);
      else
        store_blocks(output, sums, place, finish);
      end_tile(output, place, finish);
    }
  }

  /// Sets accumulators beyond the edges of out to 0: a wgmma may have added a vector to them, which
  /// an infinity in A turns into NaN. Rare: at out's edges only.
  __device__ __forceinline__ static void clear_beyond(const abi::Sm90Params& params, Sums& sums,
                                                      const OutputPlace& place) {
    const int rows = static_cast<int>(row_end<design>(params, place)) - static_cast<int>(place.row);
    const int columns =
        static_cast<int>(column_end<design>(params, place)) - static_cast<int>(place.column);
    if (rows >= static_cast<int>(rows_per_consumer) &&
        columns >= static_cast<int>(columns_per_consumer))
      return;
    const unsigned warp = threadIdx.x % abi::warpgroup_threads / 32;
    const unsigned lane = threadIdx.x % 32;
    sums.clear_beyond(rows - static_cast<int>(warp * abi::sm90_warp_rows + lane / 4),
                      columns - static_cast<int>(lane % 4 * 2));
  }

 private:
  static constexpr unsigned rows_per_consumer =
      abi::blocks_per_consumer(design) * abi::sm90_block_rows;
  static constexpr unsigned columns_per_consumer = abi::columns_per_consumer(design);

  template <class Finish>
  __device__ __forceinline__ static void end_tile(Store& output, const OutputPlace& place,
                                                  Finish& finish) {
    output.flush(place);
    finish.end_tile();
  }

  /// Stores a consumer's blocks of 64 rows in a loop, which NVVM unrolls late: it takes less time
  /// than a recursion.
  template <class Results, class Finish>
  __device__ __forceinline__ static void store_blocks(Store& output, const Results& sums,
                                                      OutputPlace place, Finish& finish) {
#pragma unroll
    for (int index = 0; index < StoredSums::blocks; ++index) {
      store_block(output, sums, index, place, finish);
      place.row += abi::sm90_block_rows;
    }
  }
  template <class Results, class Finish>
  __device__ __forceinline__ static void store_block(Store& output, const Results& sums, int index,
                                                     const OutputPlace& place, Finish& finish) {
    auto block = finish.begin_block(place, index);
    output.store(sums, index, place, block);
  }

  /// Stores a consumer's blocks of 64 rows from the index-th on, which has begun. The next one
  /// begins before this one is stored if its reads may come early.
  template <int index, class Results, class Finish, class Block>
  __device__ __forceinline__ static void store_blocks(Store& output, const Results& sums,
                                                      const OutputPlace& place, Finish& finish,
                                                      Block& block) {
    if constexpr (index + 1 < StoredSums::blocks) {
      OutputPlace next_place = place;
      next_place.row += abi::sm90_block_rows;
      if constexpr (Finish::reads_early) {
        auto next = finish.begin_block(next_place, index + 1);
        output.store(sums, index, place, block);
        store_blocks<index + 1>(output, sums, next_place, finish, next);
      } else {
        output.store(sums, index, place, block);
        auto next = finish.begin_block(next_place, index + 1);
        store_blocks<index + 1>(output, sums, next_place, finish, next);
      }
    } else {
      output.store(sums, index, place, block);
    }
  }
};

}  // namespace gemmery::device
