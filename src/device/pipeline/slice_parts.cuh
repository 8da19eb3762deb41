// SPDX-License-Identifier: Apache-2.0
// Exchanges the accumulators of a tile among blocks of a skinny kernel that split its k: to the
// workspace and back.
#pragma once

#include <device/abi/skinny_design.hpp>
#include <device/abi/skinny_params.hpp>
#include <device/pipeline/join_parts.cuh>
#include <device/ptx/memory.cuh>
#include <device/schedule/tile_share.cuh>

namespace gemmery::device {

template <const abi::SkinnyDesign& design>
class SliceParts {
 public:
  __device__ __forceinline__ SliceParts(const abi::SkinnyParams& params, unsigned* flag, int thread)
      : counters_(static_cast<unsigned*>(params.workspace)),
        partials_(static_cast<char*>(params.workspace) + params.split.partials),
        flag_(flag),
        thread_(thread) {}

  /// True if this block now has all of the tile. All threads call it; the first ones,
  /// `is_finisher`, hold accumulators.
  template <class Shares, class Number, int rows, int columns>
  __device__ __forceinline__ bool join(const Shares& shares, const TileShare& share,
                                       Number (&sums)[rows][columns], bool is_finisher) const {
    return join_parts<abi::SplitMode::parallel>(
        shares, share, counters_ + share.tile,
        Team<Number, rows, columns>{*this, sums, is_finisher});
  }

 private:
  /// The team of all threads of the block, the first of which hold accumulators.
  template <class Number, int rows, int columns>
  struct Team {
    const SliceParts& parts;
    Number (&sums)[rows][columns];
    bool is_finisher;

    __device__ int thread() const { return parts.thread_; }
    __device__ static void sync() { __syncthreads(); }
    __device__ unsigned* flag() const { return parts.flag_; }
    __device__ __forceinline__ void leave(unsigned slot) const {
      for_each([&](int at, Number& sum) {
        ptx::st_global(parts.place_of<Number>(slot, at),
                       *reinterpret_cast<const ptx::Registers<sizeof(Number)>*>(&sum));
      });
    }
    __device__ __forceinline__ void add(unsigned slot) const {
      for_each([&](int at, Number& sum) {
        const auto part = ptx::ld_global<sizeof(Number)>(parts.place_of<Number>(slot, at));
        sum += *reinterpret_cast<const Number*>(&part);
      });
    }
    __device__ __forceinline__ void clear() const {
      for_each([](int, Number& sum) { sum = Number{0}; });
    }

    template <class Visit>
    __device__ __forceinline__ void for_each(Visit&& visit) const {
      if (!is_finisher) return;
#pragma unroll
      for (int at = 0; at < rows * columns; ++at) visit(at, sums[at / columns][at % columns]);
    }
  };

  /// [slot][element of a thread][thread]
  template <class Number>
  __device__ __forceinline__ char* place_of(unsigned slot, int element) const {
    constexpr int finishers = abi::finisher_count(design);
    const unsigned vector = slot * static_cast<unsigned>(abi::elements_per_finisher(design)) +
                            static_cast<unsigned>(element);
    return partials_ + (static_cast<abi::UInt64>(vector) * finishers + thread_) * sizeof(Number);
  }

  unsigned* counters_;
  char* partials_;
  unsigned* flag_;  // in shared memory
  int thread_;
};

}  // namespace gemmery::device
