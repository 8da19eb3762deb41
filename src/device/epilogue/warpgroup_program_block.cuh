// SPDX-License-Identifier: Apache-2.0
// The part of a warpgroup's program that computes one block of 64 rows: reads its inputs, finishes
// its staging tiles and reduces their values.
#pragma once

#include <device/epilogue/lane_blocks.cuh>
#include <device/epilogue/warpgroup_program.cuh>

namespace gemmery::device {

template <const abi::Sm90Design& design, class Epilogue>
class WarpgroupProgram<design, Epilogue>::Block {
 public:
  __device__ __forceinline__ Block(WarpgroupProgram& program, const OutputPlace& place, int index)
      : program_(program),
        index_(index),
        row_(place.row + program.first_row()),
        column_(place.column + program.lane() % 4 * 2),
        rows_(begin_rows(program, place, row_, column_)) {
    clear();
    read_ahead(0);
  }

  static constexpr bool states_results = false;  // the default epilogue's are stated
  __device__ static constexpr bool passes_accumulators() { return false; }

  /// Called before a staging tile is filled, before `finish` for its first columns.
  __device__ __forceinline__ void begin_staging(int staging) {
    if (staging == 0) hold();
    program_.staged_.wait_for_staging(index_ * staging_tiles + staging);
  }
  /// Called when all lanes of the warp have finished a staging tile, or if it is beyond out.
  __device__ __forceinline__ void end_staging(int staging) {
    program_.staged_.replace_staging(index_ * staging_tiles + staging, program_.tile_,
                                     column_end<design>(program_.params_, program_.tile_));
  }

  /// True if the program has reductions of blocks. They are complete before `finish` is called for
  /// the columns of a staging tile: all of these are reduced between begin_blocks and end_blocks.
  static constexpr bool reduces_blocks = has_blocks<Epilogue>();

  __device__ __forceinline__ void begin_blocks() { blocks_.clear(); }
  /// Adds two rows by two columns, and the same of the next eight columns. Reads the program's
  /// inputs, as `finish` does again: none stays in registers meanwhile.
  __device__ __forceinline__ void reduce(const Compute (&values)[2][2][2], int eight) {
    Patch patches[2];
    program_.staged_.read_staging(patches[0], patches[1], index_ * staging_tiles, eight);
#pragma unroll
    for (int at = 0; at < 2; ++at) {
      rows_.load(patches[at], 8 * (eight + at));
      program_.staged_.read_vectors(patches[at], eight + at);
      rows_.reduce(patches[at], values[at], 8 * (eight + at), blocks_);
    }
  }
  __device__ __forceinline__ void end_blocks() { blocks_.finish(); }

  /// Computes D of two rows by two columns; `eight` counts columns by 8, in ascending order.
  __device__ __forceinline__ void finish(Compute (&values)[2][2], int eight) {
    if (eight == 0 || (eight % near == 0 && !reads_vectors_ahead)) read_vectors(eight);
    if (eight % near == 0) read_staging(eight);
    Compute results[Epilogue::outputs + 1][2][2];
    rows_.apply(patches_[eight % ring], values, 8 * eight, results, blocks_);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      values[half][0] = results[0][half][0];
      values[half][1] = results[0][half][1];
    }
    take(results, eight);
    if (!reduces_whole_tiles && eight % collected == collected - 1) collect(eight + 1 - collected);
    if (eight % near == near - 1 && reads_vectors_ahead) read_vectors(eight + 1);
    if (eight % ahead == 0) read_ahead(eight + ahead);
  }

  __device__ __forceinline__ void end() {
    write_rows();
    add_to_whole();
  }

 private:
  __device__ __forceinline__ static Rows begin_rows(const WarpgroupProgram& program,
                                                    const OutputPlace& place, unsigned row,
                                                    unsigned column) {
    const auto batch = program_batch<Epilogue, design.has_pointers>(program.epilogue_, place.batch);
    const unsigned columns = column_end<design>(program.params_, place);
    if constexpr (has_named_rows)
      return Rows(program.epilogue_, batch, rows_of_out<8>(program.params_, place, row), column,
                  columns);
    else
      return Rows(program.epilogue_, batch, row, column, row_end<design>(program.params_, place),
                  columns);
  }

  static constexpr int staging_tiles = region_columns / abi::staging_columns(design);
  static constexpr int near = patches_together(true);    // read together from shared memory
  static constexpr int ahead = patches_together(false);  // read together from global memory
  static constexpr int ring = 2 * eights;

  /// True if the reduction combines the columns of a row.
  GEMMERY_HOST_DEVICE
  static constexpr bool is_along_rows(const abi::EpilogueTensor& output) {
    return output.reduction != abi::Reduction::none && !output.varies_n;
  }
  /// The number of reductions along rows: to one value or, with `of_rows`, to one for each row.
  GEMMERY_HOST_DEVICE
  static constexpr int count_along_rows(bool of_rows) {
    int count = 0;
    for (int output = 0; output < Epilogue::outputs; ++output)
      if (is_along_rows(Epilogue::output[output]) && Epilogue::output[output].varies_m == of_rows)
        ++count;
    return count;
  }
  /// True if the results of 16 columns enter a reduction along rows together: one test decides if
  /// out has these columns (a test for each column costs half an instruction per element). The test
  /// also bounds how many chains of arithmetic are in flight; those of 16 columns slow wgmmas down
  /// less than those of a staging tile (amax, 8192x8192x1024: 3.6 to 1.6 % over the plain kernel,
  /// docs/performance.md). False for several reductions, whose values spilled while they waited for
  /// a shared test, and for a reduction of each row with many accumulators (up to 24 bytes; ptxas
  /// 13.0).
  GEMMERY_HOST_DEVICE
  static constexpr bool collects() {
    if (count_along_rows(true) + count_along_rows(false) != 1) return false;
    return count_along_rows(false) == 1 || abi::has_room_beside_sums(design);
  }
  /// Patches that are collected together.
  static constexpr int collected = collects() ? 2 : 1;

  /// Reads the inputs that do not vary with n, for the thread's rows.
  template <int input = 0>
  __device__ __forceinline__ void hold() {
    if constexpr (input < Epilogue::inputs) {
      if constexpr (!Epilogue::input[input].varies_n) {
        const unsigned row =
            static_cast<unsigned>(index_) * abi::sm90_block_rows + program_.first_row();
#pragma unroll
        for (int half = 0; half < 2; ++half)
          rows_.template hold<input>(half, program_.staged_.template read_held<input>(
                                               row + row_distance * static_cast<unsigned>(half)));
      }
      hold<input + 1>();
    }
  }

  /// Vectors of the next patches are read before a staging tile is stored; they arrive meanwhile.
  static constexpr bool reads_vectors_ahead = abi::has_room_beside_sums(design);

  /// Reads the vectors for `near` patches from `first` on.
  __device__ __forceinline__ void read_vectors(int first) {
    if (first * 8 >= region_columns) return;
#pragma unroll
    for (int patch = first; patch < first + near; ++patch)
      program_.staged_.read_vectors(patches_[patch % ring], patch);
  }

  /// Reads the staged full tensors for as many patches.
  __device__ __forceinline__ void read_staging(int first) {
#pragma unroll
    for (int patch = first; patch < first + near; patch += 2)
      program_.staged_.read_staging(patches_[patch % ring], patches_[(patch + 1) % ring],
                                    index_ * staging_tiles, patch);
  }

  /// Reads the other full tensors for `ahead` patches from `first` on.
  __device__ __forceinline__ void read_ahead(int first) {
    if (first * 8 >= region_columns) return;
#pragma unroll
    for (int patch = 0; patch < ahead; ++patch)
      rows_.load(patches_[(first + patch) % ring], 8 * (first + patch));
  }

  template <int output = 0>
  __device__ __forceinline__ void clear() {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_reduced<Epilogue, output>)
        of_row_[output][0] = of_row_[output][1] = ReducerOf<Epilogue, output, Compute>::nothing();
      clear<output + 1>();
    }
  }

  /// Adds the results of 8 columns to the reductions, or keeps them for `collect`.
  template <int output = 0>
  __device__ __forceinline__ void take(const Compute (&results)[Epilogue::outputs + 1][2][2],
                                       int eight) {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_reduced<Epilogue, output>) take_output<output>(results[output + 1], eight);
      take<output + 1>(results, eight);
    }
  }

  template <int output>
  __device__ __forceinline__ void take_output(const Compute (&results)[2][2], int eight) {
    constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
    using Reducer = ReducerOf<Epilogue, output, Compute>;
    if constexpr (reduces_whole_tiles) {
      Compute of_rows[2];
#pragma unroll
      for (int half = 0; half < 2; ++half)
        of_rows[half] = Reducer::both(Reducer::of(results[half][0]), Reducer::of(results[half][1]));
      of_row_[output][0] = Reducer::of_three(of_row_[output][0], of_rows[0], of_rows[1]);
    } else if constexpr (is_along_rows(tensor)) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
#pragma unroll
        for (int column = 0; column < 2; ++column)
          kept_[output][eight % collected][half][column] = Reducer::of(results[half][column]);
      }
    } else if constexpr (tensor.varies_m) {
      write_elements<output>(results, eight);
    } else {
      Compute both[2];
#pragma unroll
      for (int column = 0; column < 2; ++column)
        both[column] = Reducer::both(in_row<Reducer>(results[0][column], 0),
                                     in_row<Reducer>(results[1][column], 1));
      write_columns<output>(both[0], both[1], eight);
    }
  }

  /// Adds the `collected` patches from `first` on to the reductions.
  __device__ __forceinline__ void collect(int first) {
    const bool has_all_columns = rows_.columns_left(8 * (first + collected - 1)) > 1;
    if (collected > 1 && has_all_columns)
      add_kept<true>(first);
    else
      add_kept<false>(first);
  }

  /// `is_whole`: out has all of their columns. Rows beyond out are masked at the end.
  template <bool is_whole, int output = 0>
  __device__ __forceinline__ void add_kept(int first) {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_along_rows(Epilogue::output[output])) {
        using Reducer = ReducerOf<Epilogue, output, Compute>;
#pragma unroll
        for (int eight = first; eight < first + collected; ++eight) {
#pragma unroll
          for (int column = 0; column < 2; ++column) {
            if (!is_whole && rows_.columns_left(8 * eight) <= column) continue;
#pragma unroll
            for (int half = 0; half < 2; ++half)
              of_row_[output][half] = Reducer::both(of_row_[output][half],
                                                    kept_[output][eight % collected][half][column]);
          }
        }
      }
      add_kept<is_whole, output + 1>(first);
    }
  }

  /// The value, or the neutral element if out does not have its row.
  template <class Reducer>
  __device__ __forceinline__ Compute in_row(Compute value, int half) const {
    return rows_.has_row(half) ? Reducer::of(value) : Reducer::nothing();
  }

  /// Writes the reductions over the columns of the region.
  template <int output = 0>
  __device__ __forceinline__ void write_rows() const {
    if constexpr (output < Epilogue::outputs) {
      constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
      if constexpr (is_reduced<Epilogue, output> && tensor.varies_m && !tensor.varies_n) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const Compute all =
              ReducerOf<Epilogue, output, Compute>::across_lanes(of_row_[output][half], 1, 4);
          if (program_.lane() % 4 == 0 && rows_.has_row(half))
            *program_.reductions().template part_of<output>(
                row_ + row_distance * static_cast<unsigned>(half), 0, 0) = all;
        }
      }
      write_rows<output + 1>();
    }
  }

  /// Adds the values of this block of rows to the reductions to one value.
  template <int output = 0>
  __device__ __forceinline__ void add_to_whole() {
    if constexpr (output < Epilogue::outputs) {
      constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
      if constexpr (is_reduced<Epilogue, output> && !tensor.varies_m && !tensor.varies_n) {
        using Reducer = ReducerOf<Epilogue, output, Compute>;
        if constexpr (reduces_whole_tiles) {
          program_.reductions_.template add<output>(of_row_[output][0]);
        } else {
#pragma unroll
          for (int half = 0; half < 2; ++half)
            program_.reductions_.template add<output>(rows_.has_row(half) ? of_row_[output][half]
                                                                          : Reducer::nothing());
        }
      }
      add_to_whole<output + 1>();
    }
  }

  /// If only batches are reduced, every element is a part by itself.
  template <int output>
  __device__ __forceinline__ void write_elements(const Compute (&values)[2][2], int eight) const {
    const Reductions reductions = program_.reductions();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int column = 0; column < 2; ++column) {
        if (!rows_.has_row(half) || rows_.columns_left(8 * eight) <= column) continue;
        *reductions.template part_of<output>(row_ + row_distance * static_cast<unsigned>(half),
                                             column_ + static_cast<unsigned>(8 * eight + column),
                                             0) =
            ReducerOf<Epilogue, output, Compute>::of(values[half][column]);
      }
    }
  }

  /// Writes the reductions over the 16 rows of a warp.
  template <int output>
  __device__ __forceinline__ void write_columns(Compute first, Compute second, int eight) const {
    using Reducer = ReducerOf<Epilogue, output, Compute>;
    first = Reducer::across_lanes(first, 4, 32);
    second = Reducer::across_lanes(second, 4, 32);
    if (program_.lane() >= 4) return;
    Compute* const part = program_.reductions().template part_of<output>(
        0, column_ + 8 * static_cast<unsigned>(eight),
        static_cast<unsigned>(index_) * 4 + program_.warp());
    const int left = static_cast<int>(column_end<design>(program_.params_, program_.tile_)) -
                     static_cast<int>(column_ + 8 * static_cast<unsigned>(eight));
    if (left > 0) part[0] = first;
    if (left > 1) part[1] = second;
  }

  WarpgroupProgram& program_;
  int index_;
  unsigned row_;  // of the thread's first element in out
  unsigned column_;
  Rows rows_;
  Patch patches_[ring];
  /// Reductions along rows, for each of the two rows; of whole tiles the first is for both.
  Compute of_row_[at_least_one(Epilogue::outputs)][2];
  Compute kept_[at_least_one(Epilogue::outputs)][collected][2][2];  // not yet added to of_row_
  typename BlocksOf<Epilogue, Compute, PairsOfLane<8 * eights>>::Type blocks_;
};

}  // namespace gemmery::device
