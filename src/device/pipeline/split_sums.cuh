// SPDX-License-Identifier: Apache-2.0
// Adds the accumulators of the blocks of a cluster that split k of one tile. Each block owns
// some of the tile's columns:
//
//   accumulators in registers, of all columns
//     | st.async: sends every block its columns; the warp of the same number there waits for them
//   slots in shared memory, one for each block
//     | added in the order of the blocks: equal inputs give equal bits
//   accumulators in registers, of the block's own columns
//
// A slot holds vectors of 16 bytes, [vector][thread]: accesses have no bank conflicts, and each
// thread reads what the threads of the same number wrote. Warps therefore synchronise only with the
// warps of their number, by two mbarriers: all values have arrived (full), all blocks have read
// (free).
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/pipeline/phase.cuh>
#include <device/ptx/async_copy.cuh>
#include <device/ptx/cluster.cuh>
#include <device/ptx/convert.cuh>
#include <device/ptx/shared_memory.cuh>

namespace gemmery::device {

/// The shared memory of the exchange.
template <const abi::Sm90Design& design>
struct SplitSumsShared {
  static constexpr int warps = abi::consumer_count(design) * abi::warps_per_consumer;
  static constexpr int slot_bytes =
      abi::accumulator_registers(design) / design.split_k * 4 * abi::warpgroup_threads;
  alignas(16) char slot[abi::consumer_count(design)][design.split_k][slot_bytes];
  abi::UInt64 full[warps];
  abi::UInt64 free[warps];
};
/// The view of one consumer warp. `Sums` are the accumulators of a design, `StoredSums` those of
/// its stored_design.
template <const abi::Sm90Design& design, class Sums, class StoredSums>
class SplitSums {
  static constexpr int split_k = design.split_k;

 public:
  using Shared = SplitSumsShared<design>;

  /// One thread calls it, before a barrier of the whole cluster.
  __device__ static void initialize(Shared& shared) {
    for (int warp = 0; warp < Shared::warps; ++warp) {
      ptx::mbarrier_init(ptx::cvta_shared(&shared.full[warp]), 1);
      ptx::mbarrier_init(ptx::cvta_shared(&shared.free[warp]), split_k);
    }
  }

  /// `thread` of the warpgroup, `rank` of the block in its cluster.
  __device__ __forceinline__ SplitSums(Shared& shared, unsigned consumer, unsigned thread,
                                       unsigned rank)
      : slots_(ptx::cvta_shared(&shared.slot[consumer]) + thread * vector_bytes),
        full_(ptx::cvta_shared(&shared.full[consumer * abi::warps_per_consumer + thread / 32])),
        free_(ptx::cvta_shared(&shared.free[consumer * abi::warps_per_consumer + thread / 32])),
        thread_(thread),
        rank_(rank) {}

  /// Adds the accumulators of all blocks for this block's columns. The consumer has `rows` rows;
  /// further rows are not sent, and their accumulators are 0.
  __device__ __forceinline__ StoredSums& collect(const Sums& sums, unsigned rows) {
    clear();
    const unsigned blocks = blocks_with_rows(rows);
    if (blocks == 0) return total_;
    if (lane() == 0)
      ptx::mbarrier_arrive_expect_tx(full_, (split_k - 1) * blocks * warp_block_bytes);
    wait_for_phase(free_, phase_ ^ 1U);
    send(sums, blocks);
    wait_for_phase(full_, phase_);
#pragma unroll
    for (unsigned source = 0; source < split_k; ++source) add(source, blocks);
    __syncwarp();  // waits until all lanes have read
    if (lane() < split_k) ptx::mbarrier_arrive_cluster(ptx::mapa(free_, lane()));
    phase_ ^= 1U;
    return total_;
  }

 private:
  static constexpr unsigned vector_bytes = 16;
  static constexpr unsigned row_of_vectors = vector_bytes * abi::warpgroup_threads;
  static constexpr unsigned registers = Sums::per_block / split_k;  // of a block of rows
  static constexpr unsigned vectors = registers / 4;
  static constexpr unsigned block_bytes = vectors * row_of_vectors;
  static constexpr unsigned warp_block_bytes = block_bytes / abi::warps_per_consumer;
  static constexpr unsigned slot_bytes = Sums::blocks * block_bytes;
  static_assert(registers % 4 == 0 && slot_bytes == Shared::slot_bytes);

  __device__ unsigned lane() const { return thread_ % 32; }

  /// The number of the consumer's blocks of 64 rows in which this warp has rows; they are the first
  /// ones.
  __device__ unsigned blocks_with_rows(unsigned rows) const {
    const unsigned first = thread_ / 32 * abi::sm90_warp_rows;
    const unsigned blocks =
        rows > first ? (rows - first + abi::sm90_block_rows - 1) / abi::sm90_block_rows : 0;
    return min(blocks, static_cast<unsigned>(Sums::blocks));
  }

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (unsigned block = 0; block < Sums::blocks; ++block) {
#pragma unroll
      for (int index = 0; index < StoredSums::per_block; ++index) total_.block[block][index] = 0;
    }
  }

  /// Sends each block, from the owner-th on, its columns: into this block's slot in that block.
  template <unsigned owner = 0>
  __device__ __forceinline__ void send(const Sums& sums, unsigned blocks) const {
    if constexpr (owner < split_k) {
      const unsigned own = slots_ + rank_ * slot_bytes;
      if (owner == rank_) {
        for_each_vector<owner>(sums, blocks, [&](unsigned offset, const unsigned(&values)[4]) {
          ptx::st_shared_v4(own + offset, values);
        });
      } else {
        const unsigned slot = ptx::mapa(own, owner);
        const unsigned barrier = ptx::mapa(full_, owner);
        for_each_vector<owner>(sums, blocks, [&](unsigned offset, const unsigned(&values)[4]) {
          ptx::st_async_v4(slot + offset, values, barrier);
        });
      }
      send<owner + 1>(sums, blocks);
    }
  }

  /// Calls visit(offset in a slot, four registers) for all registers of a block's columns that this
  /// thread has.
  template <unsigned owner, class Visit>
  __device__ __forceinline__ static void for_each_vector(const Sums& sums, unsigned blocks,
                                                         Visit&& visit) {
#pragma unroll
    for (unsigned block = 0; block < Sums::blocks; ++block) {
      if (block >= blocks) continue;
#pragma unroll
      for (unsigned vector = 0; vector < vectors; ++vector) {
        unsigned values[4];
#pragma unroll
        for (unsigned index = 0; index < 4; ++index)
          values[index] = bits(sums.block[block][owner * registers + 4 * vector + index]);
        visit(block * block_bytes + vector * row_of_vectors, values);
      }
    }
  }

  /// Adds the accumulators that block `source` has sent for this block's columns.
  __device__ __forceinline__ void add(unsigned source, unsigned blocks) {
#pragma unroll
    for (unsigned block = 0; block < Sums::blocks; ++block) {
      if (block >= blocks) continue;
#pragma unroll
      for (unsigned vector = 0; vector < vectors; ++vector) {
        unsigned values[4];
        ptx::ld_shared_v4(
            values, slots_ + source * slot_bytes + block * block_bytes + vector * row_of_vectors);
#pragma unroll
        for (unsigned index = 0; index < 4; ++index)
          add(total_.block[block], 4 * vector + index, values[index]);
      }
    }
  }

  template <class Total, int count>
  __device__ __forceinline__ static void add(Total (&totals)[count], unsigned index,
                                             unsigned value) {
    if constexpr (design.accumulator == DType::int32) {
      totals[index] += static_cast<int>(value);
    } else if constexpr (design.accumulator == DType::float16) {
      totals[2 * index] += ptx::cvt_f32_f16(static_cast<unsigned short>(value));
      totals[2 * index + 1] += ptx::cvt_f32_f16(static_cast<unsigned short>(value >> 16));
    } else {
      totals[index] += __uint_as_float(value);
    }
  }

  __device__ static unsigned bits(float value) { return ptx::mov_b32(value); }
  __device__ static unsigned bits(unsigned value) { return value; }
  __device__ static unsigned bits(int value) { return static_cast<unsigned>(value); }

  unsigned slots_;  // of this consumer: the thread's first vector
  unsigned full_;
  unsigned free_;
  unsigned thread_;
  unsigned rank_;
  unsigned phase_ = 0;
  StoredSums total_;
};

}  // namespace gemmery::device
