// SPDX-License-Identifier: Apache-2.0
// An emitted epilogue on a warpgroup's sums: what comes between them and the slabs in which D
// leaves.
//
// A thread's patches are two rows, 8 apart, by two adjacent columns; a slab has one for every 8
// columns. What the program reads of a slab is under way while the slab before it is filled, as far
// as registers allow.
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/epilogue/operations.cuh>
#include <device/epilogue/program.cuh>
#include <device/epilogue/reduction.cuh>
#include <device/epilogue/slab_store.cuh>

namespace gemmery::device {

template <abi::Sm90Design design, class Epilogue>
class SlabProgram {
 public:
  using Params = EpilogueParamsOf<Epilogue, float>;
  class Block;

  /// `thread` of the warpgroup.
  __device__ __forceinline__ SlabProgram(const abi::Sm90Params& params, const Params& epilogue,
                                         unsigned thread)
      : params_(params), epilogue_(epilogue), thread_(thread) {}

  /// What the first patches read comes while the last sums are waited for.
  static constexpr bool reads_early = true;
  static constexpr bool prefetches = true;

  /// Tensors with an element for every sum come near while the tile, whose share for this consumer
  /// is at `place`, is multiplied.
  template <int input = 0>
  __device__ __forceinline__ void prefetch(const OutputPlace& place) const {
    if constexpr (input < Epilogue::inputs) {
      constexpr abi::EpilogueTensor tensor = Epilogue::input[input];
      if constexpr (tensor.varies_m && tensor.varies_n && tensor.vector_bytes > 0) {
        if (place.row < params_.m && place.column < params_.n) prefetch_input<input>(place);
      }
      prefetch<input + 1>(place);
    }
  }

  /// The consumer's share of a tile, its first row and column at `place`. False where it holds
  /// nothing of out: then nothing else is to be called.
  __device__ __forceinline__ bool begin_tile(const OutputPlace& place) {
    tile_ = place;
    clear();
    return place.row < params_.m && place.column < params_.n;
  }

  /// Its 64 rows at `place`, the index-th block of them.
  __device__ __forceinline__ Block begin_block(const OutputPlace& place, int index) {
    return Block(*this, place, index);
  }

  /// Hands the tile's parts of reductions over.
  template <int output = 0>
  __device__ __forceinline__ void end_tile() const {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_reduced<Epilogue, output>) {
        constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
        const Region region = this->region();
        if constexpr (!tensor.varies_m && !tensor.varies_n) {
          const float all = ReducerOf<Epilogue, output, float>::across_lanes(whole_[output], 1, 32);
          if (lane() == 0) *region.template part_of<output>(0, 0, warp()) = all;
        }
        region.template arrive<output>(lane());
      }
      end_tile<output + 1>();
    }
  }

 private:
  static constexpr int region_rows = abi::blocks_per_consumer(design) * abi::sm90_block_rows;
  static constexpr int region_columns = abi::columns_per_consumer(design);
  static constexpr int eights = abi::slab_columns(design) / 8;
  using Region = RegionReductions<Epilogue, float, region_rows, region_columns>;
  using Rows = ProgramRows<Epilogue, float, 2, 8>;
  using Patch = LoadedPatch<Epilogue, 2, 2>;

  /// 32-bit registers that one patch's reads come in.
  GEMMERY_HOST_DEVICE
  static constexpr int patch_registers() {
    int count = 0;
    for (int input = 0; input < Epilogue::inputs; ++input) {
      const abi::EpilogueTensor& tensor = Epilogue::input[input];
      if (!tensor.varies_n) continue;
      const int run_bytes = 2 * abi::bytes_of(tensor.dtype);
      count += (tensor.varies_m ? 2 : 1) * (run_bytes < 4 ? 1 : run_bytes / 4);
    }
    return count;
  }
  /// Patches that are read together: all of a slab where they fit 16 registers.
  GEMMERY_HOST_DEVICE
  static constexpr int patches_ahead() {
    int patches = eights;
    while (patches > 1 && patches * patch_registers() > 16) patches /= 2;
    return patches;
  }

  template <int output = 0>
  __device__ __forceinline__ void clear() {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_reduced<Epilogue, output>)
        whole_[output] = ReducerOf<Epilogue, output, float>::nothing();
      clear<output + 1>();
    }
  }

  template <int input>
  __device__ __forceinline__ void prefetch_input(const OutputPlace& place) const {
    constexpr abi::EpilogueTensor tensor = Epilogue::input[input];
    constexpr int bytes = abi::bytes_of(tensor.dtype);
    const abi::EpiloguePlace& matrix = epilogue_.input[input];
    const char* const first = static_cast<const char*>(matrix.data) +
                              (static_cast<abi::Int64>(place.batch) * matrix.batch_stride +
                               place.row * matrix.row_stride + place.column) *
                                  bytes;
    prefetch_share<region_rows, region_columns * bytes>(
        first, matrix.row_stride * bytes, params_.m - place.row,
        static_cast<abi::Int64>(params_.n - place.column) * bytes, thread_);
  }

  __device__ unsigned lane() const { return thread_ % 32; }
  __device__ unsigned warp() const { return thread_ / 32; }
  __device__ Region region() const {
    return Region(epilogue_, tile_.batch, tile_.row, tile_.column, params_.m, params_.n);
  }

  const abi::Sm90Params& params_;
  const Params& epilogue_;
  unsigned thread_;
  OutputPlace tile_{};
  float whole_[at_least_one(Epilogue::outputs)];  // of reductions to one value
};

template <abi::Sm90Design design, class Epilogue>
class SlabProgram<design, Epilogue>::Block {
 public:
  __device__ __forceinline__ Block(SlabProgram& program, const OutputPlace& place, int index)
      : program_(program),
        index_(index),
        row_(place.row + program.warp() * 16 + program.lane() / 4),
        column_(place.column + program.lane() % 4 * 2),
        rows_(program.epilogue_, place.batch, row_, column_, program.params_.m, program.params_.n) {
    clear();
    read_ahead(0);
  }

  /// Of sums of two rows by two columns makes those of D; `eight` counts columns by 8. In ascending
  /// order.
  __device__ __forceinline__ void finish(float (&values)[2][2], int eight) {
    float results[Epilogue::outputs + 1][2][2];
    rows_.apply(patches_[eight % (2 * ahead)], values, 8 * eight, results);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      values[half][0] = results[0][half][0];
      values[half][1] = results[0][half][1];
    }
    collect(results, eight);
    if (eight % ahead == 0) read_ahead(eight + ahead);
  }

  __device__ __forceinline__ void end() const { write_rows(); }

 private:
  static constexpr int ahead = patches_ahead();

  /// Reads the `ahead` patches that begin with one.
  __device__ __forceinline__ void read_ahead(int first) {
    if (first * 8 >= region_columns) return;
#pragma unroll
    for (int patch = 0; patch < ahead; ++patch)
      rows_.load(patches_[(first + patch) % (2 * ahead)], 8 * (first + patch));
  }

  __device__ __forceinline__ bool exists(int half, int eight, int column) const {
    return rows_.has_row(half) && rows_.columns_left(8 * eight) > column;
  }

  template <int output = 0>
  __device__ __forceinline__ void clear() {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_reduced<Epilogue, output>)
        of_row_[output][0] = of_row_[output][1] = ReducerOf<Epilogue, output, float>::nothing();
      clear<output + 1>();
    }
  }

  template <int output = 0>
  __device__ __forceinline__ void collect(const float (&results)[Epilogue::outputs + 1][2][2],
                                          int eight) {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_reduced<Epilogue, output>) add<output>(results[output + 1], eight);
      collect<output + 1>(results, eight);
    }
  }

  template <int output>
  __device__ __forceinline__ void add(const float (&results)[2][2], int eight) {
    constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
    using Reducer = ReducerOf<Epilogue, output, float>;
    float values[2][2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int column = 0; column < 2; ++column)
        values[half][column] =
            exists(half, eight, column) ? Reducer::of(results[half][column]) : Reducer::nothing();
    }
    if constexpr (tensor.varies_m && tensor.varies_n) {
      write_elements<output>(values, eight);
    } else if constexpr (tensor.varies_m) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
        of_row_[output][half] =
            Reducer::both(of_row_[output][half], Reducer::both(values[half][0], values[half][1]));
    } else if constexpr (tensor.varies_n) {
      write_columns<output>(Reducer::both(values[0][0], values[1][0]),
                            Reducer::both(values[0][1], values[1][1]), eight);
    } else {
      const float all = Reducer::both(Reducer::both(values[0][0], values[0][1]),
                                      Reducer::both(values[1][0], values[1][1]));
      program_.whole_[output] = Reducer::both(program_.whole_[output], all);
    }
  }

  /// Of the columns of the region.
  template <int output = 0>
  __device__ __forceinline__ void write_rows() const {
    if constexpr (output < Epilogue::outputs) {
      constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
      if constexpr (is_reduced<Epilogue, output> && tensor.varies_m && !tensor.varies_n) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float all =
              ReducerOf<Epilogue, output, float>::across_lanes(of_row_[output][half], 1, 4);
          if (program_.lane() % 4 == 0 && rows_.has_row(half))
            *program_.region().template part_of<output>(row_ + 8 * static_cast<unsigned>(half), 0,
                                                        0) = all;
        }
      }
      write_rows<output + 1>();
    }
  }

  /// Where batches alone are reduced, every element is a part by itself.
  template <int output>
  __device__ __forceinline__ void write_elements(const float (&values)[2][2], int eight) const {
    const Region region = program_.region();
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int column = 0; column < 2; ++column) {
        if (!exists(half, eight, column)) continue;
        *region.template part_of<output>(row_ + 8 * static_cast<unsigned>(half),
                                         column_ + static_cast<unsigned>(8 * eight + column), 0) =
            values[half][column];
      }
    }
  }

  /// Of the 16 rows of a warp.
  template <int output>
  __device__ __forceinline__ void write_columns(float first, float second, int eight) const {
    using Reducer = ReducerOf<Epilogue, output, float>;
    first = Reducer::across_lanes(first, 4, 32);
    second = Reducer::across_lanes(second, 4, 32);
    if (program_.lane() >= 4) return;
    float* const part = program_.region().template part_of<output>(
        0, column_ + 8 * static_cast<unsigned>(eight),
        static_cast<unsigned>(index_) * 4 + program_.warp());
    const int left = static_cast<int>(program_.params_.n) -
                     static_cast<int>(column_ + 8 * static_cast<unsigned>(eight));
    if (left > 0) part[0] = first;
    if (left > 1) part[1] = second;
  }

  SlabProgram& program_;
  int index_;
  unsigned row_;  // of the thread's first element in out
  unsigned column_;
  Rows rows_;
  Patch patches_[2 * ahead];
  float of_row_[at_least_one(Epilogue::outputs)][2];  // of reductions along rows
};

}  // namespace gemmery::device
