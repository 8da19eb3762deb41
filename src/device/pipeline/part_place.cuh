// SPDX-License-Identifier: Apache-2.0
// The places of a consumer's parts of tiles in the workspace of sm90 kernels, and what its threads
// need to exchange them. Only consumers of the same number, in blocks of the same rank, exchange
// accumulators, so each tile has a counter for each of them.
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/ptx/fence.cuh>

namespace gemmery::device {

/// The shared memory of the exchange.
template <const abi::Sm90Design& design>
struct WarpgroupPartsShared {
  alignas(16) unsigned flag[abi::consumer_count(design)];
};

template <const abi::Sm90Design& design>
class PartPlace {
 public:
  /// A thread's accumulators lie as vectors of 16 bytes, [vector][thread].
  static constexpr unsigned vector_bytes = 16;
  static constexpr unsigned row_of_vectors = vector_bytes * abi::warpgroup_threads;

  /// `consumer` of the block, `thread` of the warpgroup, `rank` of the block in its cluster.
  __device__ __forceinline__ PartPlace(const abi::Sm90Params& params,
                                       WarpgroupPartsShared<design>& shared, unsigned consumer,
                                       unsigned thread, unsigned rank)
      : counters_(static_cast<unsigned*>(params.workspace)),
        partials_(static_cast<char*>(params.workspace) + params.split.partials +
                  thread * vector_bytes),
        flag_(&shared.flag[consumer]),
        barrier_(1 + consumer),
        thread_(thread),
        part_(rank * consumers + (consumers == 1 ? 0 : consumer)) {}

  __device__ unsigned* counter_of(unsigned tile) const { return counters_ + tile * parts + part_; }
  /// A thread's first vector of a part.
  __device__ char* part_of(unsigned slot) const {
    return partials_ + static_cast<abi::UInt64>(slot * parts + part_) * abi::part_bytes(design);
  }

  /// The number of the consumer's blocks of 64 rows in which this warp has rows, if the consumer
  /// has `rows` rows; they are the first ones.
  __device__ int blocks_with_rows(unsigned rows) const {
    const unsigned first = thread_ / 32 * abi::sm90_warp_rows;
    return rows > first
               ? static_cast<int>((rows - first + abi::sm90_block_rows - 1) / abi::sm90_block_rows)
               : 0;
  }

  // What a team of join_parts.cuh needs.
  __device__ unsigned thread() const { return thread_; }
  __device__ void sync() const { ptx::bar_sync<abi::warpgroup_threads>(barrier_); }
  __device__ unsigned* flag() const { return flag_; }

 private:
  static constexpr unsigned consumers = abi::consumers_per_tile(design);
  static constexpr unsigned parts = abi::parts_per_share(design);

  unsigned* counters_;
  char* partials_;  // the thread's first vector of the first part
  unsigned* flag_;
  unsigned barrier_;
  unsigned thread_;
  unsigned part_;  // of a tile, the consumer's
};

}  // namespace gemmery::device
