// SPDX-License-Identifier: Apache-2.0
// How a warpgroup's sums become out: a finish makes D's values of them (the default one here,
// alpha * sum + beta * c; that of an emitted epilogue in slab_program.cuh), which are rounded into
// slabs of 64 rows in shared memory, each of which leaves by one TMA store while the next is
// filled.
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/ptx/convert.cuh>
#include <device/ptx/fence.cuh>
#include <device/ptx/memory.cuh>
#include <device/ptx/shared_memory.cuh>
#include <device/ptx/tma.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

/// Where a tile begins in out.
struct OutputPlace {
  unsigned row;
  unsigned column;
  unsigned batch;
};

/// Brings a share of a matrix to the second-level cache while its tile is multiplied, so that what
/// is read at the end is near. `first`: the share's first element; a row has `row_bytes` of it, of
/// which `bytes_left` exist, and `rows_left` rows exist. All threads of a warpgroup call it.
template <int rows, int row_bytes>
__device__ __forceinline__ void prefetch_share(const char* first, abi::Int64 step_bytes,
                                               unsigned rows_left, abi::Int64 bytes_left,
                                               unsigned thread) {
  constexpr unsigned line_bytes = 128;
  constexpr unsigned lines = (row_bytes + line_bytes - 1) / line_bytes;
#pragma unroll
  for (unsigned index = thread; index < rows * lines; index += abi::warpgroup_threads) {
    const unsigned row = index / lines;
    const unsigned byte = index % lines * line_bytes;
    if (row < rows_left && byte < bytes_left)
      ptx::prefetch_global_l2(first + row * step_bytes + byte);
  }
}

/// Where 16 bytes of a slab's row lie: TMA's swizzle of the pitch's width.
template <unsigned pitch>
__device__ __forceinline__ unsigned swizzled_chunk(unsigned row, unsigned chunk) {
  constexpr unsigned mask = pitch / 16 - 1;
  constexpr unsigned row_shift = pitch == 128 ? 0 : pitch == 64 ? 1 : 2;
  return row * pitch + ((chunk ^ (row >> row_shift & mask)) << 4);
}

/// beta * c, read where a thread's sums lie in a block of 64 rows: two adjacent columns at a time,
/// nothing beyond the matrix.
template <abi::Sm90Design design>
class AddendReader {
 public:
  __device__ __forceinline__ AddendReader(const abi::Sm90Params& params, const OutputPlace& place,
                                          unsigned thread)
      : params_(params) {
    const unsigned row = place.row + thread / 32 * 16 + thread % 32 / 4;
    const unsigned column = place.column + thread % 4 * 2;
    first_ = static_cast<const char*>(params.c.data) +
             (static_cast<abi::Int64>(place.batch) * params.c.batch_stride +
              row * params.c.row_stride + column) *
                 element_bytes;
    // With beta = 0, C is not read.
    const int columns =
        params.beta == 0.0F ? 0 : static_cast<int>(params.n) - static_cast<int>(column);
    columns_left_[0] = row < params.m ? columns : 0;
    columns_left_[1] = row + 8 < params.m ? columns : 0;
#pragma unroll
    for (int half = 0; half < 2; ++half) last_[half] = read_last(half);
  }

  /// values += beta * c; `eight` counts columns by 8, `half` is 1 for the lower 8 of 16 rows.
  __device__ __forceinline__ void add(float (&values)[2], int eight, int half) const {
    const char* const source = row_of(half) + 8 * eight * element_bytes;
    const int left = columns_left_[half] - 8 * eight;
    const auto pair =
        ptx::ld_global_if<2 * element_bytes>(left > 1, source, {{last_[half].words[0]}});
    values[0] += params_.beta * decode<design.c, float>(pair, 0);
    values[1] += params_.beta * decode<design.c, float>(pair, 1);
  }

 private:
  static constexpr int element_bytes = abi::bytes_of(design.c);

  __device__ __forceinline__ const char* row_of(int half) const {
    return first_ + half * (8 * params_.c.row_stride * element_bytes);
  }

  /// The last element of a row where it is half a pair of this thread's. It stands in for all pairs
  /// that are not read; the others of these lie beyond the matrix, and their results go nowhere.
  __device__ __forceinline__ ptx::Registers<element_bytes> read_last(int half) const {
    const int left = columns_left_[half];
    const char* const source = row_of(half) + (left - 1) * element_bytes;
    return ptx::ld_global_if<element_bytes>(left % 8 == 1 && left < design.tile_n, source, {});
  }

  const abi::Sm90Params& params_;
  ptx::Registers<element_bytes> last_[2];  // 0 where there is none
  const char* first_;
  int columns_left_[2];  // from the thread's first column; 0 for a row beyond the matrix
};

/// The default program, in the terms in which SlabStore asks for D's values.
template <abi::Sm90Design design>
class SlabLinearCombination {
 public:
  __device__ __forceinline__ SlabLinearCombination(const abi::Sm90Params& params, unsigned thread)
      : params_(params), thread_(thread) {}

  /// 64 rows of a tile.
  class Block {
   public:
    __device__ __forceinline__ Block(const abi::Sm90Params& params, const OutputPlace& place,
                                     unsigned thread)
        : alpha_(params.alpha), addend_(params, place, thread) {}
    __device__ __forceinline__ void finish(float (&values)[2][2], int eight) const {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        values[half][0] *= alpha_;
        values[half][1] *= alpha_;
        if constexpr (design.has_c) addend_.add(values[half], eight, half);
      }
    }
    __device__ static void begin_slab(int) {}
    __device__ static void end_slab(int) {}
    __device__ static void end() {}

   private:
    const float& alpha_;
    const AddendReader<design> addend_;
  };

  /// Sums are waited for first: what is read beside them would cost registers.
  static constexpr bool reads_early = false;
  // Not beside so many sums: 176 spilled 5 registers, 192 up to 15, 208 12 (ptxas 13.0).
  static constexpr bool prefetches = design.has_c && abi::accumulator_registers(design) <= 160;

  /// C comes near while the tile, whose share for this consumer is at `place`, is multiplied.
  __device__ __forceinline__ void begin_share(const OutputPlace& place) const {
    if constexpr (prefetches) {
      constexpr int element_bytes = abi::bytes_of(design.c);
      if (params_.beta == 0.0F || place.row >= params_.m || place.column >= params_.n) return;
      const char* const first = static_cast<const char*>(params_.c.data) +
                                (static_cast<abi::Int64>(place.batch) * params_.c.batch_stride +
                                 place.row * params_.c.row_stride + place.column) *
                                    element_bytes;
      prefetch_share<abi::blocks_per_consumer(design) * abi::sm90_block_rows,
                     abi::columns_per_consumer(design) * element_bytes>(
          first, params_.c.row_stride * element_bytes, params_.m - place.row,
          static_cast<abi::Int64>(params_.n - place.column) * element_bytes, thread_);
    }
  }

  __device__ static constexpr bool begin_tile(const OutputPlace&) { return true; }
  __device__ __forceinline__ Block begin_block(const OutputPlace& place, int) const {
    return Block(params_, place, thread_);
  }
  __device__ static void end_tile() {}
  __device__ static void finish() {}

 private:
  const abi::Sm90Params& params_;
  unsigned thread_;
};

template <abi::Sm90Design design>
class SlabStore {
 public:
  /// `slabs`: the shared address of all consumers' slabs. `thread` of the warpgroup.
  __device__ SlabStore(const abi::Sm90Params& params, unsigned slabs, unsigned consumer,
                       unsigned thread)
      : params_(params),
        slabs_(slabs + consumer * abi::slabs_per_consumer * slab_bytes),
        barrier_(1 + consumer),
        thread_(thread) {}

  /// One block of 64 rows, the first of them at `place`; `sums` as WarpgroupSums has them, `block`
  /// as a finish makes it.
  template <class Sums, class Block>
  __device__ __forceinline__ void store(const Sums& sums, const OutputPlace& place, Block& block) {
    OutputPlace corner = place;
#pragma unroll
    for (int slab = 0; slab < slab_count; ++slab) {
      if (corner.column < params_.n) {
        const unsigned target = slabs_ + (turn_++ & 1U) * slab_bytes;
        fill_slab(target, sums, slab, block);
        if (is_whole(corner.column) && thread_ == 0) {
          ptx::tma_store(params_.out,
                         {.adjacent = static_cast<int>(corner.column),
                          .row = static_cast<int>(corner.row),
                          .batch = static_cast<int>(corner.batch)},
                         target);
          ptx::bulk_commit_group();
        }
      }
      block.end_slab(slab);
      corner.column += columns;
    }
    block.end();
    store_ragged(place);
  }

  /// Waits until shared memory is no longer read: it must outlive the stores.
  __device__ __forceinline__ void finish() const {
    if (thread_ == 0) ptx::bulk_wait_group_read<0>();
  }

 private:
  static constexpr int columns = abi::slab_columns(design);
  static constexpr int slab_count = abi::columns_per_consumer(design) / columns;
  static constexpr unsigned pitch = abi::slab_pitch_bytes(design);
  static constexpr unsigned slab_bytes = abi::slab_bytes(design);
  /// Of 16 columns, those that are finished before any is stored: the whole slab's, so that no
  /// access to memory stands between the arithmetic of different columns, which then fills each
  /// other's latencies. Beside many sums and a C whose elements would all be waited for at once,
  /// one.
  static constexpr int together =
      design.has_c && abi::accumulator_registers(design) > 160 ? 1 : columns / 16;

  /// Whether TMA can store a slab that begins there.
  __device__ bool is_whole(unsigned column) const {
    return column + columns <= params_.whole_columns;
  }

  /// The slab that was filled last, if TMA could not store it: no other is such.
  __device__ __forceinline__ void store_ragged(const OutputPlace& place) const {
    if (place.column >= params_.n) return;
    const unsigned columns_left = min(params_.n - place.column, unsigned{slab_count * columns});
    OutputPlace corner = place;
    corner.column += (columns_left - 1) / columns * columns;
    if (is_whole(corner.column)) return;
    store_by_elements(slabs_ + (turn_ - 1 & 1U) * slab_bytes, corner);
    if (thread_ == 0) ptx::bulk_commit_group();  // an empty one: groups count slabs
  }

  /// Where a row of out ends within 16 bytes. Rare and small, so the loop stays a loop.
  __device__ __forceinline__ void store_by_elements(unsigned source,
                                                    const OutputPlace& corner) const {
    constexpr unsigned element_bytes = abi::bytes_of(design.out);
    char* const first =
        static_cast<char*>(const_cast<void*>(params_.out_rows.data)) +
        (static_cast<abi::Int64>(corner.batch) * params_.out_rows.batch_stride + corner.column) *
            element_bytes;
#pragma unroll 1
    for (unsigned element = thread_; element < abi::sm90_block_rows * columns;
         element += abi::warpgroup_threads) {
      const unsigned row = element / columns;
      const unsigned column = element % columns;
      if (corner.row + row >= params_.m || corner.column + column >= params_.n) continue;
      const unsigned byte = column * element_bytes;
      const unsigned bits =
          ptx::ld_shared<element_bytes>(source + swizzled_chunk<pitch>(row, byte / 16) + byte % 16);
      ptx::st_global<element_bytes>(
          first + ((corner.row + row) * params_.out_rows.row_stride + column) * element_bytes,
          {{bits}});
    }
  }

  /// Fills a slab when its last store has read it; all have, when this returns.
  template <class Sums, class Block>
  __device__ __forceinline__ void fill_slab(unsigned target, const Sums& sums, int slab,
                                            Block& block) const {
    if (thread_ == 0) ptx::bulk_wait_group_read<1>();  // of the store from this slab, two ago
    ptx::bar_sync<abi::warpgroup_threads>(barrier_);
    block.begin_slab(slab);
    fill(target, sums, slab, block);
    ptx::fence_proxy_async();
    ptx::bar_sync<abi::warpgroup_threads>(barrier_);  // waits until the slab is filled by all
  }

  template <class Sums, class Block>
  __device__ __forceinline__ void fill(unsigned target, const Sums& sums, int slab,
                                       Block& block) const {
    if constexpr (abi::bytes_of(design.out) == 2) {
      fill_by_matrices(target, sums, slab, block);
    } else {
      fill_by_pairs(target, sums, slab, block);
    }
  }

  template <class Sums, class Block>
  __device__ __forceinline__ void fill_by_matrices(unsigned target, const Sums& sums, int slab,
                                                   Block& block) const {
    const unsigned lane = thread_ % 32;
    const unsigned row = thread_ / 32 * 16 + lane % 16;
#pragma unroll
    for (int first = 0; first < columns / 16; first += together) {
      constexpr int eights = columns / 8;
      unsigned packed[together][4];  // rows 0-7 and 8-15 of 8 columns, then of the next 8
#pragma unroll
      for (int eight = 0; eight < 2 * together; ++eight) {
        float values[2][2];
        finish_eight(values, sums, slab * eights + 2 * first + eight, block);
        packed[eight / 2][eight % 2 * 2] = pack(values[0]);
        packed[eight / 2][eight % 2 * 2 + 1] = pack(values[1]);
      }
#pragma unroll
      for (int sixteen = 0; sixteen < together; ++sixteen) {
        const unsigned chunk = 2 * static_cast<unsigned>(first + sixteen) + lane / 16;
        ptx::stmatrix_x4(target + swizzled_chunk<pitch>(row, chunk), packed[sixteen]);
      }
    }
  }

  template <class Sums, class Block>
  __device__ __forceinline__ void fill_by_pairs(unsigned target, const Sums& sums, int slab,
                                                Block& block) const {
#pragma unroll
    for (int eight = 0; eight < columns / 8; ++eight) {
      float values[2][2];
      finish_eight(values, sums, slab * (columns / 8) + eight, block);
      store_pairs(target, values, 2 * static_cast<unsigned>(eight));
    }
  }

  /// float32 results of 8 columns, which begin with a chunk.
  __device__ __forceinline__ void store_pairs(unsigned target, const float (&values)[2][2],
                                              unsigned first_chunk) const {
    const unsigned lane = thread_ % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const unsigned row = thread_ / 32 * 16 + static_cast<unsigned>(half) * 8 + lane / 4;
      ptx::st_shared_v2(
          target + swizzled_chunk<pitch>(row, first_chunk + lane % 4 / 2) + lane % 2 * 8,
          __float_as_uint(values[half][0]), __float_as_uint(values[half][1]));
    }
  }

  /// A thread's results in 8 columns: two adjacent ones of a row and of that 8 rows below.
  template <class Sums, class Block>
  __device__ __forceinline__ static void finish_eight(float (&values)[2][2], const Sums& sums,
                                                      int eight, Block& block) {
    read_pair(values[0], sums, 2 * eight);
    read_pair(values[1], sums, 2 * eight + 1);
    block.finish(values, eight);
  }

  template <class Sums>
  __device__ __forceinline__ static void read_pair(float (&values)[2], const Sums& sums, int pair) {
    if constexpr (design.accumulator == DType::float16) {
      values[0] = ptx::cvt_f32_f16(static_cast<unsigned short>(sums[pair]));
      values[1] = ptx::cvt_f32_f16(static_cast<unsigned short>(sums[pair] >> 16));
    } else {
      values[0] = sums[2 * pair];
      values[1] = sums[2 * pair + 1];
    }
  }

  __device__ static unsigned pack(const float (&values)[2]) {
    if constexpr (design.out == DType::bfloat16) {
      return ptx::cvt_rn_bf16x2_f32(values[1], values[0]);
    } else {
      return ptx::cvt_rn_f16x2_f32(values[1], values[0]);
    }
  }

  const abi::Sm90Params& params_;
  unsigned slabs_;
  unsigned barrier_;
  unsigned thread_;
  unsigned turn_ = 0;  // runs on across tiles: a tile may have an odd number of slabs
};

}  // namespace gemmery::device
