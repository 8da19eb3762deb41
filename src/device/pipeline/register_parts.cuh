// SPDX-License-Identifier: Apache-2.0
// Exchanges accumulators that stay in wgmma's registers: to the workspace and back.
#pragma once

#include <device/pipeline/join_parts.cuh>
#include <device/pipeline/part_place.cuh>
#include <device/ptx/part_sums.cuh>

namespace gemmery::device {

/// A consumer's threads (join_parts.cuh).
template <const abi::Sm90Design& design>
struct RegisterTeam {
  const PartPlace<design>& place;
  int having_rows;  // blocks of 64 rows in which this warp has rows; others are not exchanged

  /// Accumulators are found by the names of their registers.
  template <class Sums>
  __device__ __forceinline__ RegisterTeam(const PartPlace<design>& place, int having_rows,
                                          const Sums&)
      : place(place), having_rows(having_rows) {}

  __device__ unsigned thread() const { return place.thread(); }
  __device__ void sync() const { place.sync(); }
  __device__ unsigned* flag() const { return place.flag(); }

  __device__ __forceinline__ void leave(unsigned slot) const {
    for_each_vector(having_rows, Leave{place.part_of(slot)});
  }
  __device__ __forceinline__ void add(unsigned slot) const {
    for_each_vector(having_rows, Add{place.part_of(slot)});
  }
  /// Sets the accumulators to the sum of all parts, in their order.
  template <class SlotOf>
  __device__ __forceinline__ void add_all(unsigned parts, SlotOf&& slot_of) const {
    for_each_vector(having_rows, Clear{});
    add_rows(parts, slot_of);
  }

 private:
  static constexpr int row_of_vectors = PartPlace<design>::row_of_vectors;
  static constexpr int vector_registers = 4;
  static constexpr int most_registers = 16;  // of one asm statement
  static constexpr int blocks = abi::blocks_per_consumer(design);
  static constexpr int per_block = abi::accumulator_registers(design) / blocks;
  /// With sixteen parts of 320x32 at a time 24 bytes spilled beside nine products (ptxas 13.0).
  static constexpr bool has_few_registers =
      blocks == 5 && per_block == 8 && abi::splits_operands(design.math);
  static constexpr unsigned most_at_once = has_few_registers ? 8 : parts_at_once(per_block);

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
  template <int row = 0, class Action>
  __device__ __forceinline__ static void for_each_vector(int rows, const Action& action) {
    if (row >= rows) return;
    for_each_vector_of_row<row>(action);
    if constexpr (row + 1 < blocks) for_each_vector<row + 1>(rows, action);
  }
  template <int row, int first = 0, class Action>
  __device__ __forceinline__ static void for_each_vector_of_row(const Action& action) {
    constexpr int count = per_block - first >= most_registers ? most_registers : vector_registers;
    action.template visit<row, first, count>();
    if constexpr (first + count < per_block) for_each_vector_of_row<row, first + count>(action);
  }

  /// Adds all parts of a block of rows, then those of the next block.
  template <int row = 0, class SlotOf>
  __device__ __forceinline__ void add_rows(unsigned parts, const SlotOf& slot_of) const {
    if (row >= having_rows) return;
    for_each_part<most_at_once>(0, parts, [&](unsigned part) {
      for_each_vector_of_row<row>(Add{place.part_of(slot_of(part))});
    });
    if constexpr (row + 1 < blocks) add_rows<row + 1>(parts, slot_of);
  }

  GEMMERY_HOST_DEVICE
  static constexpr int offset_of(int row, int first) {
    return (row * per_block + first) / vector_registers * row_of_vectors;
  }
};

}  // namespace gemmery::device
