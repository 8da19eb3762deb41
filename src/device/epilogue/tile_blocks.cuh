// SPDX-License-Identifier: Apache-2.0
// Reductions of blocks of a tile that a block of threads holds, whose blocks divide the tile: every
// value is a key in shared memory, an integer that is ordered like it, and threads combine keys by
// atomic maxima, whose order does not matter.
#pragma once

#include <device/abi/epilogue.hpp>
#include <device/epilogue/math.cuh>
#include <device/epilogue/program.cuh>

namespace gemmery::device {

/// Keys of values: 0 is below all; NaN is above all.
template <class Compute>
struct BlockKey;

template <>
struct BlockKey<float> {
  using Key = unsigned;
  static constexpr Key sign = 1U << 31;
  static constexpr Key nan = 0x7fc00000U;
  __device__ static Key bits_of(float value) { return __float_as_uint(value); }
  __device__ static float value_of(Key bits) { return __uint_as_float(bits); }
};
template <>
struct BlockKey<double> {
  using Key = unsigned long long;
  static constexpr Key sign = 1ULL << 63;
  static constexpr Key nan = 0x7ff8000000000000ULL;
  __device__ static Key bits_of(double value) {
    return static_cast<Key>(__double_as_longlong(value));
  }
  __device__ static double value_of(Key bits) {
    return __longlong_as_double(static_cast<long long>(bits));
  }
};

/// A minimum is the negated maximum of negated values.
template <abi::Reduction reduction, class Compute>
__device__ __forceinline__ typename BlockKey<Compute>::Key block_key(Compute value) {
  using Form = BlockKey<Compute>;
  if constexpr (reduction == abi::Reduction::amax) return Form::bits_of(math::abs(value));
  if (value != value) return ~typename Form::Key{0};
  const auto bits = Form::bits_of(reduction == abi::Reduction::min ? -value : value);
  return (bits & Form::sign) != 0 ? ~bits : bits | Form::sign;
}
template <abi::Reduction reduction, class Compute>
__device__ __forceinline__ Compute value_of_key(typename BlockKey<Compute>::Key key) {
  using Form = BlockKey<Compute>;
  if constexpr (reduction == abi::Reduction::amax) return Form::value_of(key);
  if (key == ~typename Form::Key{0}) return Form::value_of(Form::nan);
  const Compute value = Form::value_of((key & Form::sign) != 0 ? key ^ Form::sign : ~key);
  return reduction == abi::Reduction::min ? -value : value;
}

/// The reductions of a tile's blocks.
template <class Epilogue, class Compute, int tile_rows, int tile_columns>
class TileBlocks {
 public:
  using Key = typename BlockKey<Compute>::Key;

  /// The number of keys before those of a reduction.
  GEMMERY_HOST_DEVICE
  static constexpr int keys_before(int block) {
    int keys = 0;
    for (int at = 0; at < block; ++at)
      keys += tile_rows / static_cast<int>(Epilogue::block[at].rows) *
              (tile_columns / static_cast<int>(Epilogue::block[at].columns));
    return keys;
  }
  GEMMERY_HOST_DEVICE
  static constexpr int bytes() {
    return keys_before(Epilogue::blocks) * static_cast<int>(sizeof(Key));
  }

  __device__ TileBlocks(char* shared, unsigned tile_row, unsigned tile_column)
      : keys_(reinterpret_cast<Key*>(shared)), tile_row_(tile_row), tile_column_(tile_column) {}

  __device__ __forceinline__ void clear(int thread, int threads) const {
#pragma unroll 1
    for (int at = thread; at < keys_before(Epilogue::blocks); at += threads) keys_[at] = 0;
  }

  template <int block = 0>
  __device__ __forceinline__ void add(const Compute (&values)[Epilogue::blocks],
                                      const BlockElement& at) const {
    if constexpr (block < Epilogue::blocks) {
      constexpr abi::Reduction reduction = Epilogue::block[block].reduction;
      atomicMax(key_at<block>(at), block_key<reduction>(values[block]));
      add<block + 1>(values, at);
    }
  }

  template <int block = 0>
  __device__ __forceinline__ void read(Compute (&values)[Epilogue::blocks],
                                       const BlockElement& at) const {
    if constexpr (block < Epilogue::blocks) {
      constexpr abi::Reduction reduction = Epilogue::block[block].reduction;
      values[block] = value_of_key<reduction, Compute>(*key_at<block>(at));
      read<block + 1>(values, at);
    }
  }

 private:
  template <int block>
  __device__ __forceinline__ Key* key_at(const BlockElement& at) const {
    constexpr abi::EpilogueBlock of = Epilogue::block[block];
    static_assert(tile_rows % of.rows == 0 && tile_columns % of.columns == 0,
                  "blocks that divide the tile: another tile, or a smaller block");
    constexpr unsigned columns = tile_columns / of.columns;
    return keys_ + keys_before(block) + (at.row - tile_row_) / of.rows * columns +
           (at.column - tile_column_) / of.columns;
  }

  Key* keys_;
  unsigned tile_row_;
  unsigned tile_column_;
};

}  // namespace gemmery::device
