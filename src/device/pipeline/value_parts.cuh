// SPDX-License-Identifier: Apache-2.0
// Exchanges accumulators that are C++ values, the sums of a cluster's blocks for the columns of one
// of them: to the workspace and back.
#pragma once

#include <device/pipeline/join_parts.cuh>
#include <device/pipeline/part_place.cuh>
#include <device/ptx/memory.cuh>

namespace gemmery::device {

/// A consumer's threads (join_parts.cuh). `Sums` are the accumulators of a block's stored_design.
template <const abi::Sm90Design& design, class Sums>
struct ValueTeam {
  const PartPlace<design>& place;
  int having_rows;  // blocks of 64 rows in which this warp has rows; others are not exchanged
  Sums& sums;

  __device__ unsigned thread() const { return place.thread(); }
  __device__ void sync() const { place.sync(); }
  __device__ unsigned* flag() const { return place.flag(); }

  __device__ __forceinline__ void leave(unsigned slot) const {
    char* const part = place.part_of(slot);
#pragma unroll
    for (int block = 0; block < Sums::blocks; ++block) {
      if (block >= having_rows) continue;
      for_each_vector_of(block, [&](int vector, Register* values) {
        ptx::st_global(part + vector * row_of_vectors, *reinterpret_cast<const Vector*>(values));
      });
    }
  }

  /// Sets the accumulators to the sum of all parts, in their order.
  template <class SlotOf>
  __device__ __forceinline__ void add_all(unsigned parts, SlotOf&& slot_of) const {
#pragma unroll
    for (int block = 0; block < Sums::blocks; ++block) {
      if (block >= having_rows) continue;
      for_each_vector_of(block, [](int, Register* values) {
#pragma unroll
        for (int index = 0; index < vector_registers; ++index) values[index] = 0;
      });
      for_each_part<parts_at_once(Sums::per_block)>(
          0, parts, [&](unsigned part) { add(block, place.part_of(slot_of(part))); });
    }
  }

 private:
  using Register = typename Sums::Register;
  using Vector = ptx::Registers<16>;
  static constexpr int vector_registers = 4;
  static constexpr int vectors_per_block = Sums::per_block / vector_registers;
  static constexpr int row_of_vectors = PartPlace<design>::row_of_vectors;
  static_assert(Sums::per_block % vector_registers == 0 &&
                Sums::blocks * Sums::per_block * 4 * abi::warpgroup_threads ==
                    abi::part_bytes(design));

  /// Calls visit(number of the vector, its four accumulators) for a block of 64 rows.
  template <class Visit>
  __device__ __forceinline__ void for_each_vector_of(int block, Visit&& visit) const {
#pragma unroll
    for (int vector = 0; vector < vectors_per_block; ++vector)
      visit(block * vectors_per_block + vector, &sums.block[block][vector * vector_registers]);
  }

  __device__ __forceinline__ void add(int block, const char* part) const {
    for_each_vector_of(block, [&](int vector, Register* values) {
      const Vector loaded = ptx::ld_global<16>(part + vector * row_of_vectors);
#pragma unroll
      for (int index = 0; index < vector_registers; ++index)
        values[index] += value_of(loaded.words[index]);
    });
  }
  __device__ static Register value_of(unsigned bits) {
    if constexpr (is_integer(design.accumulator))
      return static_cast<int>(bits);
    else
      return __uint_as_float(bits);
  }
};

}  // namespace gemmery::device
