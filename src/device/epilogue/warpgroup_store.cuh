// SPDX-License-Identifier: Apache-2.0
// From a warpgroup's accumulators to out. A finish computes D's values (here the default one,
// alpha * accumulator + beta * c; warpgroup_program.cuh has that of an emitted epilogue). They are
// rounded and written to staging tiles of 64 rows in shared memory. Each warp stores its 16 rows of
// a staging tile by one TMA store while it computes the next ones.
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/ptx/convert.cuh>
#include <device/ptx/fence.cuh>
#include <device/ptx/memory.cuh>
#include <device/ptx/shared_memory.cuh>
#include <device/ptx/tma.cuh>
#include <device/ptx/warp.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

/// Where a tile begins in out.
struct OutputPlace {
  unsigned row;
  unsigned column;
  unsigned batch;
};

/// Prefetches a share of a matrix into L2 during the mainloop, for the reads of the epilogue.
/// `first`: the share's first element; a row has `row_bytes` of it, of which `bytes_left` exist,
/// and `rows_left` rows exist. All threads of a warpgroup call it.
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

/// Where 16 bytes of a staging tile's row lie: TMA's swizzle of the pitch's width.
template <unsigned pitch>
__device__ __forceinline__ unsigned swizzled_chunk(unsigned row, unsigned chunk) {
  constexpr unsigned mask = pitch / 16 - 1;
  constexpr unsigned row_shift = pitch == 128 ? 0 : pitch == 64 ? 1 : 2;
  return row * pitch + ((chunk ^ (row >> row_shift & mask)) << 4);
}

/// In what the epilogue computes in.
template <class Compute>
__device__ __forceinline__ const Compute& alpha_of(const abi::Sm90Params& params) {
  if constexpr (sizeof(Compute) == sizeof(double))
    return params.wide_alpha;
  else
    return params.alpha;
}
template <class Compute>
__device__ __forceinline__ const Compute& beta_of(const abi::Sm90Params& params) {
  if constexpr (sizeof(Compute) == sizeof(double))
    return params.wide_beta;
  else
    return params.beta;
}

/// Adds beta * c to a thread's accumulators in a block of 64 rows: reads two adjacent columns at a
/// time, or one where C has any strides, and nothing beyond the matrix. Without a C it is empty.
template <abi::Sm90Design design, bool has_c = design.has_c>
class AddendReader {
 public:
  using Compute = typename ArithmeticOf<design.accumulator>::Compute;

  __device__ __forceinline__ AddendReader(const abi::Sm90Params& params, const OutputPlace& place,
                                          unsigned thread)
      : params_(params) {
    const unsigned row = place.row + thread / 32 * abi::sm90_warp_rows + thread % 32 / 4;
    const unsigned column = place.column + thread % 4 * 2;
    first_ = static_cast<const char*>(params.c.data) +
             (static_cast<abi::Int64>(place.batch) * params.c.batch_stride +
              row * params.c.row_stride + offset_of(column)) *
                 element_bytes;
    // With beta = 0, C is not read.
    const int columns =
        beta_of<Compute>(params) == 0 ? 0 : static_cast<int>(params.n) - static_cast<int>(column);
    columns_left_[0] = row < params.m ? columns : 0;
    columns_left_[1] = row + 8 < params.m ? columns : 0;
    if constexpr (!design.has_any_c) {
#pragma unroll
      for (int half = 0; half < 2; ++half) last_[half] = read_last(half);
    }
    ptx::pin(first_);  // else the compiler computes it again for every staging tile
  }

  /// values += beta * c; `eight` counts columns by 8, `half` is 1 for the lower 8 of 16 rows.
  __device__ __forceinline__ void add(Compute (&values)[2], int eight, int half) const {
    const char* const source =
        row_of(half) + offset_of(static_cast<unsigned>(8 * eight)) * element_bytes;
    const int left = columns_left_[half] - 8 * eight;
    if constexpr (design.has_any_c) {
#pragma unroll
      for (int column = 0; column < 2; ++column) {
        const auto element = ptx::ld_global_if<element_bytes>(
            left > column, source + offset_of(static_cast<unsigned>(column)) * element_bytes, {});
        values[column] += params_.beta * decode<design.c, float>(element, 0);
      }
      return;
    }
    const auto pair =
        ptx::ld_global_if<2 * element_bytes>(left > 1, source, {{last_[half].words[0]}});
    values[0] += beta_of<Compute>(params_) * decode<design.c, Compute>(pair, 0);
    values[1] += beta_of<Compute>(params_) * decode<design.c, Compute>(pair, 1);
  }

 private:
  static constexpr int element_bytes = abi::bytes_of(design.c);

  /// Of columns, in elements.
  __device__ __forceinline__ abi::Int64 offset_of(unsigned columns) const {
    return design.has_any_c ? columns * params_.c.column_stride : columns;
  }

  __device__ __forceinline__ const char* row_of(int half) const {
    return first_ + half * (8 * params_.c.row_stride * element_bytes);
  }

  /// The last element of a row where it is half a pair of this thread's. It stands in for all pairs
  /// that are not read; the others of these lie beyond the matrix, and their results go nowhere.
  __device__ __forceinline__ ptx::Registers<element_bytes> read_last(int half) const {
    const int left = columns_left_[half];
    const char* const source = row_of(half) + (left - 1) * element_bytes;
    return ptx::ld_global_if<element_bytes>(
        left % 8 == 1 && left < abi::columns_per_consumer(design), source, {});
  }

  const abi::Sm90Params& params_;
  ptx::Registers<element_bytes> last_[2];  // 0 where there is none
  const char* first_;
  int columns_left_[2];  // from the thread's first column; 0 for a row beyond the matrix
};

template <abi::Sm90Design design>
class AddendReader<design, false> {
 public:
  __device__ AddendReader(const abi::Sm90Params&, const OutputPlace&, unsigned) {}
};

/// The default program, with the interface by which WarpgroupStore asks for D's values.
template <abi::Sm90Design design>
class WarpgroupLinearCombination {
 public:
  using Compute = typename ArithmeticOf<design.accumulator>::Compute;

  __device__ __forceinline__ WarpgroupLinearCombination(const abi::Sm90Params& params,
                                                        unsigned thread)
      : params_(params), thread_(thread) {}

  /// 64 rows of a tile.
  class Block {
   public:
    __device__ __forceinline__ Block(const abi::Sm90Params& params, const OutputPlace& place,
                                     unsigned thread)
        : alpha_(alpha_of<Compute>(params)), addend_(params, place, thread) {}
    /// True if out's values are the accumulators.
    __device__ __forceinline__ bool passes_accumulators() const {
      return !design.has_c && alpha_ == 1;
    }
    __device__ __forceinline__ void finish(Compute (&values)[2][2], int eight) const {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        values[half][0] *= alpha_;
        values[half][1] *= alpha_;
        if constexpr (design.has_c) addend_.add(values[half], eight, half);
      }
    }
    __device__ static void begin_staging(int) {}
    __device__ static void end_staging(int) {}
    __device__ static void end() {}

   private:
    const Compute& alpha_;
    const AddendReader<design> addend_;
  };

  /// The epilogue reads nothing before the accumulators are complete: that would cost registers.
  static constexpr bool reads_early = false;
  static constexpr bool adds_vector = false;
  static constexpr bool reduces_whole_tiles = false;
  // Not beside more accumulators: 176 spilled 5 registers, 192 up to 15, 208 12 (ptxas 13.0).
  static constexpr bool prefetches =
      design.has_c && !design.has_any_c && abi::accumulator_registers(design) <= 160;

  /// Prefetches C during the mainloop; `place` is this consumer's share of the tile.
  __device__ __forceinline__ void begin_share(const OutputPlace& place) const {
    if constexpr (prefetches) {
      constexpr int element_bytes = abi::bytes_of(design.c);
      if (beta_of<Compute>(params_) == 0 || place.row >= params_.m || place.column >= params_.n)
        return;
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

/// Each warp fills and stores its own rows of every staging tile and waits for no other warp.
/// Barriers of a warpgroup, and fences right behind the writes for which they wait, took longer
/// than the arithmetic between them (docs/performance.md).
template <abi::Sm90Design design>
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
        chunk_(staging_ + first_chunk(thread % 32)) {
    if constexpr (!is_crowded)
      ptx::pin(chunk_);  // else it is computed again for every staging tile
  }

  /// The consumer's index-th block of 64 rows, the first of them at `place`; `sums` are all
  /// accumulators of the consumer (WarpgroupSums or WgmmaSums), `block` comes from a finish. The
  /// last staging tile of the block before is stored now, that of this block later.
  template <int index, class Sums, class Block>
  __device__ __forceinline__ void store(const Sums& sums, const OutputPlace& place, Block& block) {
    OutputPlace corner = place;
    corner.row += first_row_;
#pragma unroll
    for (int staging = 0; staging < staging_tiles; ++staging) {
      if (corner.column < params_.n) {
        block.begin_staging(staging);
        fill<index>(sums, staging, block, index > 0 || staging > 0);
        filled_ = corner;
      }
      block.end_staging(staging);
      corner.column += columns;
    }
    block.end();
    if (stores_by_tma && place.column < params_.n) store_ragged();
  }

  /// Stores the last staging tile of a tile, whose first column is that of `place`.
  __device__ __forceinline__ void flush(const OutputPlace& place) const {
    if (place.column >= params_.n) return;
    if constexpr (!stores_by_tma) return store_by_threads();
    complete_writes();
    if (sends_by_all || ptx::elect_sync()) send();
  }

  /// Waits until shared memory is no longer read: it must outlive the stores.
  __device__ __forceinline__ void finish() const {
    if constexpr (!stores_by_tma) return;
    if (sends_by_all || ptx::elect_sync()) ptx::bulk_wait_group_read<0>();
  }

 private:
  static constexpr bool stores_by_tma = abi::stores_by_tma(design);
  static constexpr int columns = abi::staging_columns(design);
  static constexpr int staging_tiles = abi::columns_per_consumer(design) / columns;
  static constexpr unsigned pitch = abi::staging_pitch_bytes(design);
  static constexpr unsigned staging_bytes = abi::staging_bytes(design);
  static constexpr bool is_wide = abi::bytes_of(design.out) == 4;
  static constexpr bool is_narrow = abi::bytes_of(design.out) == 1;
  using Compute = typename ArithmeticOf<design.accumulator>::Compute;
  static constexpr int sixteens = columns / 16;
  /// Registers of a thread's accumulators in a staging tile.
  static constexpr int staging_registers = columns / (design.accumulator == DType::float16 ? 4 : 2);
  /// True if the accumulators leave too few registers for C.
  static constexpr bool is_crowded = design.has_c && abi::accumulator_registers(design) > 160;
  /// How many groups of 16 columns are computed before any is written. All of a staging tile as a
  /// rule: then no access to memory separates the arithmetic of different columns, and one hides
  /// the latency of the other. One beside many accumulators and a C, whose elements would all be
  /// waited for at once. One in rotation: two warpgroups are in their epilogues at a time, and
  /// arithmetic of few columns slows wgmmas down less (8192x4096x512: gelu 7.6 to 5.8 % over the
  /// plain kernel, with amax 21 to 16; docs/performance.md).
  static constexpr int together = is_crowded || design.schedule == abi::Schedule::rotation ? 1
                                  : sixteens > 4                                           ? 4
                                                 : sixteens;

  /// Words of a thread's results in 16 columns, in the order of writing: narrower results than of
  /// 32 bits are packed in pairs, rows 0-7 and 8-15 of 8 columns, then of the next 8.
  static constexpr int words = is_wide ? 8 : 4;

  /// True if TMA can store a staging tile that begins at this column.
  __device__ bool is_whole(unsigned column) const {
    return static_cast<int>(column) <= params_.last_whole_staging;
  }

  __device__ unsigned filled_staging() const { return staging_ + (next_ ^ staging_bytes); }

  /// Stores the staging tile that was filled last if TMA cannot: it is the only such one of a
  /// block.
  __device__ __forceinline__ void store_ragged() const {
    if (is_whole(filled_.column)) return;
    __syncwarp();  // waits until it is filled by all
    store_by_elements(filled_staging(), filled_);
  }

  /// For rows of out that end within 16 bytes. Rare and small, so the loop is not unrolled.
  __device__ __forceinline__ void store_by_elements(unsigned source,
                                                    const OutputPlace& corner) const {
    constexpr unsigned element_bytes = abi::bytes_of(design.out);
    char* const first =
        static_cast<char*>(const_cast<void*>(params_.out_rows.data)) +
        (static_cast<abi::Int64>(corner.batch) * params_.out_rows.batch_stride + corner.column) *
            element_bytes;
#pragma unroll 1
    for (unsigned element = lane_; element < abi::sm90_warp_rows * columns; element += 32) {
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

  /// Stores the staging tile that was filled last where TMA cannot store any. The lanes have read
  /// it before they fill the same buffer again: they wait for each other before the one between.
  __device__ __forceinline__ void store_by_threads() const {
    __syncwarp();  // waits until it is filled by all
    if constexpr (design.out_access == 0)
      store_at_any_strides(filled_staging(), filled_);
    else
      store_by_vectors(filled_staging(), filled_);
  }

  /// Rows of out that are aligned to `out_access` bytes. Lanes of a warp store adjacent vectors.
  __device__ __forceinline__ void store_by_vectors(unsigned source,
                                                   const OutputPlace& corner) const {
    constexpr unsigned element_bytes = abi::bytes_of(design.out);
    constexpr int access = design.out_access == 0 ? element_bytes : design.out_access;
    constexpr unsigned elements = access / element_bytes;
    constexpr unsigned vectors = columns / elements;
    char* const first = first_of(corner);
#pragma unroll 1
    for (unsigned index = lane_; index < abi::sm90_warp_rows * vectors; index += 32) {
      const unsigned row = index / vectors;
      const unsigned column = index % vectors * elements;
      if (corner.row + row >= params_.m) continue;
      const auto vector = read_staging<access>(source, row, column);
      char* const target =
          first + (row * params_.out_rows.row_stride + column) * static_cast<int>(element_bytes);
      const int left = static_cast<int>(params_.n - corner.column) - static_cast<int>(column);
      if (left >= static_cast<int>(elements)) {
        ptx::st_global<access>(target, vector);
      } else if constexpr (elements > 1) {
#pragma unroll
        for (int element = 0; element < static_cast<int>(elements) - 1; ++element)
          if (element < left)
            ptx::st_global<element_bytes>(target + element * static_cast<int>(element_bytes),
                                          {{extract<element_bytes>(vector, element)}});
      }
    }
  }

  /// Lanes of a warp walk along the columns of out, or along its rows where these are closer.
  __device__ __forceinline__ void store_at_any_strides(unsigned source,
                                                       const OutputPlace& corner) const {
    constexpr unsigned element_bytes = abi::bytes_of(design.out);
    const abi::Int64 row_stride = params_.out_rows.row_stride;
    const abi::Int64 column_stride = params_.out_rows.column_stride;
    const auto distance = [](abi::Int64 stride) { return stride < 0 ? -stride : stride; };
    const bool walks_rows = distance(row_stride) < distance(column_stride);
    char* const first = first_of(corner);
#pragma unroll 1
    for (unsigned index = lane_; index < abi::sm90_warp_rows * columns; index += 32) {
      const unsigned row = walks_rows ? index % abi::sm90_warp_rows : index / columns;
      const unsigned column = walks_rows ? index / abi::sm90_warp_rows : index % columns;
      if (corner.row + row >= params_.m || corner.column + column >= params_.n) continue;
      ptx::st_global<element_bytes>(
          first + (row * row_stride + column * column_stride) * static_cast<int>(element_bytes),
          read_staging<element_bytes>(source, row, column));
    }
  }

  /// The element of out where a staging tile begins.
  __device__ __forceinline__ char* first_of(const OutputPlace& corner) const {
    const abi::RowMajorMatrix& out = params_.out_rows;
    return static_cast<char*>(const_cast<void*>(out.data)) +
           (static_cast<abi::Int64>(corner.batch) * out.batch_stride + corner.row * out.row_stride +
            corner.column * out.column_stride) *
               abi::bytes_of(design.out);
  }

  template <int access>
  __device__ __forceinline__ static ptx::Registers<access> read_staging(unsigned source,
                                                                        unsigned row,
                                                                        unsigned column) {
    const unsigned byte = column * abi::bytes_of(design.out);
    return ptx::ld_shared_registers<access>(source + swizzled_chunk<pitch>(row, byte / 16) +
                                            byte % 16);
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

  /// Stores the staging tile that was filled last. A ragged one is stored already; its bulk group
  /// is empty, so that groups count staging tiles.
  __device__ __forceinline__ void send() const {
    const ptx::BoxPlace place{.adjacent = static_cast<int>(filled_.column),
                              .row = static_cast<int>(filled_.row),
                              .batch = static_cast<int>(filled_.batch)};
    if constexpr (sends_by_all) {
      ptx::tma_store_by_one(*map_, place, filled_staging(), params_.last_whole_staging);
    } else if (is_whole(filled_.column)) {
      ptx::tma_store(*map_, place, filled_staging());
    }
    ptx::bulk_commit_group();
  }

  /// Makes room for the next staging tile: stores the one that was filled last, if that is still to
  /// do, and waits until the store before it has read its buffer. The wait is short: arithmetic
  /// comes between.
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

  template <int index, class Sums, class Block>
  __device__ __forceinline__ void fill(const Sums& sums, int staging, Block& block, bool sends) {
    typename Sums::Register registers[staging_registers];
    sums.template read<index>(registers, staging);
#pragma unroll
    for (int first = 0; first < sixteens; first += together) {
      unsigned results[together][words];
#pragma unroll
      for (int at = 0; at < together; ++at)
        finish_sixteen(results[at], registers, first + at, staging * sixteens, block);
      if (first == 0) make_room(sends);
#pragma unroll
      for (int at = 0; at < together; ++at)
        write(chunk_ + next_, static_cast<unsigned>(first + at), results[at]);
    }
    next_ ^= staging_bytes;
  }

  /// Where a lane writes its first chunk, from the warp's first row of a staging tile on. Others of
  /// the same row, or of that 8 rows below, are swizzled alike: their addresses differ as their
  /// numbers do.
  __device__ static unsigned first_chunk(unsigned lane) {
    if constexpr (is_wide) return swizzled_chunk<pitch>(lane / 4, lane % 4 / 2) + lane % 2 * 8;
    if constexpr (is_narrow) return swizzled_chunk<pitch>(lane / 4, 0) + lane % 4 * 2;
    return swizzled_chunk<pitch>(lane % 16, lane / 16);
  }

  /// `chunk`: the address of the lane's first one; `sixteen` counts the staging tile's columns
  /// by 16.
  __device__ __forceinline__ static void write(unsigned chunk, unsigned sixteen,
                                               const unsigned (&results)[words]) {
    if constexpr (is_wide) {
#pragma unroll
      for (unsigned pair = 0; pair < words / 2; ++pair) {
        const unsigned number = 4 * sixteen + pair / 2 * 2;
        ptx::st_shared_v2((chunk ^ number << 4) + pair % 2 * 8 * pitch, results[2 * pair],
                          results[2 * pair + 1]);
      }
    } else if constexpr (is_narrow) {
#pragma unroll
      for (unsigned pair = 0; pair < words; ++pair)
        ptx::st_shared<2>((chunk ^ sixteen << 4) + pair / 2 * 8 + pair % 2 * 8 * pitch,
                          {{results[pair]}});
    } else {
      ptx::stmatrix_x4(chunk ^ 2 * sixteen << 4, results);
    }
  }

  /// Two adjacent results of a row and of that 8 rows below, of 8 columns and of the next 8.
  /// `sixteen` counts the staging tile's columns by 16, before which there are `sixteens_before`.
  template <class Register, class Block>
  __device__ __forceinline__ static void finish_sixteen(unsigned (&results)[words],
                                                        const Register (&sums)[staging_registers],
                                                        int sixteen, int sixteens_before,
                                                        Block& block) {
    if constexpr (design.accumulator == DType::int32 && design.out == DType::int32) {
      if (block.passes_accumulators()) return pass_sixteen(results, sums, sixteen);
    }
#pragma unroll
    for (int eight = 0; eight < 2; ++eight) {
      Compute values[2][2];
      const int first = 4 * sixteen + 2 * eight;  // pair of sums
      read_pair(values[0], sums, first);
      read_pair(values[1], sums, first + 1);
      block.finish(values, 2 * (sixteens_before + sixteen) + eight);
#pragma unroll
      for (int half = 0; half < 2; ++half) put(results, 2 * eight + half, values[half]);
    }
  }

  /// Accumulators of int32 as they are: integers of 64-bit floats would take a unit that converts
  /// 16 a clock.
  template <class Register>
  __device__ __forceinline__ static void pass_sixteen(unsigned (&results)[words],
                                                      const Register (&sums)[staging_registers],
                                                      int sixteen) {
#pragma unroll
    for (int word = 0; word < words; ++word)
      results[word] = static_cast<unsigned>(sums[words * sixteen + word]);
  }

  __device__ __forceinline__ static void put(unsigned (&results)[words], int pair,
                                             const Compute (&values)[2]) {
    if constexpr (is_wide) {
      results[2 * pair] = encode<design.out>(values[0]);
      results[2 * pair + 1] = encode<design.out>(values[1]);
    } else if constexpr (is_narrow) {
      results[pair] = encode<design.out>(values[0]) | encode<design.out>(values[1]) << 8;
    } else {
      results[pair] = pack(values);
    }
  }

  template <class Register>
  __device__ __forceinline__ static void read_pair(Compute (&values)[2],
                                                   const Register (&sums)[staging_registers],
                                                   int pair) {
    if constexpr (design.accumulator == DType::float16) {
      values[0] = ptx::cvt_f32_f16(static_cast<unsigned short>(sums[pair]));
      values[1] = ptx::cvt_f32_f16(static_cast<unsigned short>(sums[pair] >> 16));
    } else if constexpr (design.accumulator == DType::int32) {
      values[0] = widen(sums[2 * pair]);
      values[1] = widen(sums[2 * pair + 1]);
    } else {
      values[0] = sums[2 * pair];
      values[1] = sums[2 * pair + 1];
    }
  }

  /// An int32 as the low bits of 2^52 + 2^31 + value, less these: an addition is faster than a
  /// conversion.
  __device__ __forceinline__ static double widen(int value) {
    return __hiloint2double(0x43300000, value ^ static_cast<int>(0x80000000U)) - (0x1p52 + 0x1p31);
  }

  __device__ static unsigned pack(const float (&values)[2]) {
    if constexpr (design.out == DType::bfloat16) {
      return ptx::cvt_rn_bf16x2_f32(values[1], values[0]);
    } else {
      return ptx::cvt_rn_f16x2_f32(values[1], values[0]);
    }
  }

  const abi::Sm90Params& params_;
  unsigned first_row_;  // of the warp, in a block
  // The same in a warp, so that TMA takes them from uniform registers, for every staging tile.
  const abi::TensorMap* map_;  // of out
  unsigned staging_;           // the warp's rows of the consumer's
  unsigned lane_;
  unsigned chunk_;        // where the lane writes first
  unsigned next_ = 0;     // offset of the next one of the two staging tiles; kept across tiles
  OutputPlace filled_{};  // place in out of the staging tile that was filled last
};

}  // namespace gemmery::device
