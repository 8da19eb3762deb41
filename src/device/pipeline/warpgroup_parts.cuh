// SPDX-License-Identifier: Apache-2.0
// Exchanges a consumer's accumulators among sm90 blocks that split the k of a tile: to the
// workspace and back. Only consumers of the same number exchange accumulators, so each tile has a
// counter for each consumer. Accumulators stay in wgmma's registers.
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/pipeline/join_parts.cuh>
#include <device/ptx/fence.cuh>
#include <device/ptx/part_sums.cuh>

namespace gemmery::device {

/// The shared memory of the exchange; empty if no tile has parts.
template <const abi::Sm90Design& design>
struct WarpgroupPartsShared {
  unsigned flag[abi::consumer_count(design)];
};

/// Adds up the parts of a tile.
template <const abi::Sm90Design& design>
class WarpgroupParts {
 public:
  /// `consumer` of the block, `thread` of the warpgroup, `rank` of the block among those that share
  /// operands.
  __device__ __forceinline__ WarpgroupParts(const abi::Sm90Params& params,
                                            WarpgroupPartsShared<design>& shared, unsigned consumer,
                                            unsigned thread, unsigned rank)
      : counters_(static_cast<unsigned*>(params.workspace)),
        partials_(static_cast<char*>(params.workspace) + params.split.partials +
                  thread * vector_bytes),
        flag_(&shared.flag[consumer]),
        barrier_(1 + consumer),
        thread_(thread),
        part_(rank * consumers + (consumers == 1 ? 0 : consumer)) {}

  /// True if the share is the whole tile. This is known before the mainloop.
  __device__ static bool finishes_tile(const TileShare& share) {
    return device::finishes_tile<design.split>(share);
  }

  /// True if this consumer now has all accumulators of its share of the tile. All its threads call
  /// it; `rows`: the number of the share's rows that are within out.
  template <class Shares>
  __device__ __forceinline__ bool join(const Shares& shares, const TileShare& share,
                                       unsigned rows) const {
    return join_parts<design.split>(shares, share, counters_ + share.tile * parts + part_,
                                    Team{*this, blocks_with_rows(rows)});
  }

 private:
  static constexpr unsigned vector_bytes = 16;
  static constexpr unsigned row_of_vectors = vector_bytes * abi::warpgroup_threads;
  static constexpr unsigned consumers = abi::consumers_per_tile(design);
  /// Parts of a tile, over all blocks that share operands.
  static constexpr unsigned parts = abi::sharing_blocks(design) * consumers;
  static constexpr unsigned part_bytes =
      abi::accumulator_registers(design) * 4 * abi::warpgroup_threads;
  static constexpr int vector_registers = 4;
  static constexpr int most_registers = 16;  // of one asm statement
  static constexpr int blocks = abi::blocks_per_consumer(design);
  static constexpr int per_block = abi::accumulator_registers(design) / blocks;

  /// The threads of a consumer. Rows beyond out are neither stored nor added.
  struct Team {
    const WarpgroupParts& parts;
    int having_rows;  // blocks of 64 rows in which this warp has rows

    __device__ unsigned thread() const { return parts.thread_; }
    __device__ void sync() const { ptx::bar_sync<abi::warpgroup_threads>(parts.barrier_); }
    __device__ unsigned* flag() const { return parts.flag_; }

    __device__ __forceinline__ void leave(unsigned slot) const {
      for_each_vector(having_rows, Leave{parts.part_of(slot)});
    }
    __device__ __forceinline__ void add(unsigned slot) const {
      for_each_vector(having_rows, Add{parts.part_of(slot)});
    }
    __device__ __forceinline__ void clear() const { for_each_vector(having_rows, Clear{}); }
  };

  // Actions on vectors of four accumulators, or on several vectors at once. Register names are
  // constants.
  struct Leave {
    char* part;
    template <int row, int first, int count>
    __device__ __forceinline__ void visit() const {
      ptx::store_sums<count, row, first, offset_of(row, first), row_of_vectors>(part);
    }
  };
  struct Add {
    const char* part;
    template <int row, int first, int count>
    __device__ __forceinline__ void visit() const {
      ptx::add_to_sums<design.accumulator, count, row, first, offset_of(row, first),
                       row_of_vectors>(part);
    }
  };
  struct Clear {
    template <int row, int first, int count>
    __device__ __forceinline__ void visit() const {
      ptx::zero_sums<count, row, first>();
    }
  };

  /// Applies an action to all vectors of the first `rows` blocks of rows.
  template <int row = 0, int first = 0, class Action>
  __device__ __forceinline__ static void for_each_vector(int rows, const Action& action) {
    if (first == 0 && row >= rows) return;
    constexpr int count = per_block - first >= most_registers ? most_registers : vector_registers;
    action.template visit<row, first, count>();
    if constexpr (first + count < per_block)
      for_each_vector<row, first + count>(rows, action);
    else if constexpr (row + 1 < blocks)
      for_each_vector<row + 1>(rows, action);
  }

  /// A thread's first vector of a part; vectors lie [vector][thread].
  __device__ char* part_of(unsigned slot) const {
    return partials_ + static_cast<abi::UInt64>(slot * parts + part_) * part_bytes;
  }
  GEMMERY_HOST_DEVICE
  static constexpr int offset_of(int row, int first) {
    return (row * per_block + first) / vector_registers * static_cast<int>(row_of_vectors);
  }

  __device__ int blocks_with_rows(unsigned rows) const {
    const unsigned first = thread_ / 32 * abi::sm90_warp_rows;
    return rows > first
               ? static_cast<int>((rows - first + abi::sm90_block_rows - 1) / abi::sm90_block_rows)
               : 0;
  }

  unsigned* counters_;
  char* partials_;  // the thread's first vector of the first part
  unsigned* flag_;
  unsigned barrier_;
  unsigned thread_;
  unsigned part_;  // of a tile, the consumer's
};

}  // namespace gemmery::device
