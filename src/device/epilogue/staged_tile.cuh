// SPDX-License-Identifier: Apache-2.0
// Finishes the tile of out that an sm80 kernel's warps hold as fragments:
//
//   fragments in registers, 8 rows by 2 columns
//     | staging tile in shared memory, the rows of one mma of every warp at a time
//   runs of adjacent columns, a warp to a row or to several
//     | alpha, beta * c and rounding, or an emitted epilogue
//   out in global memory, in the widest accesses that its addresses allow; if rows of out are
//   found by indices, C and inputs of a program are read at the row of out
//
// Reductions of an emitted epilogue: shuffles reduce each row's part, shared memory the parts of
// columns and of the tile; epilogue/reduction.cuh does the rest.
#pragma once

#include <device/abi/sm80_design.hpp>
#include <device/abi/sm80_params.hpp>
#include <device/epilogue/lane_blocks.cuh>
#include <device/epilogue/operations.cuh>
#include <device/epilogue/program.cuh>
#include <device/epilogue/reduction.cuh>
#include <device/ptx/shared_memory.cuh>
#include <device/tile/batch.cuh>
#include <device/tile/element.cuh>
#include <device/tile/indexed_element.cuh>
#include <device/tile/mma_accumulator.cuh>

namespace gemmery::device {

/// A tile's first element in out.
struct TileCorner {
  unsigned batch;
  unsigned row;
  unsigned column;
};

template <const abi::Sm80Design& design>
class TileStaging {
 public:
  using Accumulator = MmaAccumulator<design>;
  using Number = typename Accumulator::Number;
  using Blocks = WarpBlocks<design>;
  static constexpr int columns = abi::finished_columns(design);
  using Run = Number[columns];

  __device__ __forceinline__ TileStaging(unsigned shared, int thread)
      : shared_(shared), thread_(thread) {}

  static constexpr int threads_per_row = abi::threads_per_row(design);
  static constexpr int rows_at_once = abi::thread_count(design) / threads_per_row;
  static constexpr int sweeps = (abi::staging_rows(design) + rows_at_once - 1) / rows_at_once;

  /// Writes block `index` of this warp's rows to the staging tile. Called by all threads, also by
  /// those without accumulators.
  template <class Sums>
  __device__ __forceinline__ void fill(const Sums& sums, int index, bool holds_sums) const {
    __syncthreads();  // waits until the previous contents have been read
    if (holds_sums) {
      // Register indices must be constants; the code after the staging exists once.
#pragma unroll
      for (int block = 0; block < Blocks::rows; ++block)
        if (block == index) write(sums, block);
    }
    __syncthreads();  // waits for all rows
  }

  /// The row of the tile that this thread finishes in a sweep, -1 for none.
  __device__ int row_of(int index, int sweep) const {
    constexpr int block = abi::staging_block_rows(design);
    const int row = sweep * rows_at_once + thread_ / threads_per_row;
    if (abi::staging_rows(design) % rows_at_once != 0 && row >= abi::staging_rows(design))
      return -1;
    return row / block * abi::warp_tile_m(design) + index * block + row % block;
  }
  __device__ int column() const { return thread_ % threads_per_row * columns; }

  __device__ __forceinline__ void read(Run& values, int sweep) const {
    const int row = sweep * rows_at_once + thread_ / threads_per_row;
    const unsigned first = shared_ + static_cast<unsigned>(row * abi::staging_pitch(design) +
                                                           column() * sizeof(Number));
#pragma unroll
    for (int at = 0; at < static_cast<int>(sizeof values); at += 16)
      reinterpret_cast<ptx::Registers<16>*>(values)[at / 16] =
          ptx::ld_shared_registers<16>(first + static_cast<unsigned>(at));
  }

 private:
  template <class Sums>
  __device__ __forceinline__ void write(const Sums& sums, int index) const {
    constexpr int pitch = abi::staging_pitch(design);
    const WarpPlace<design> place(thread_);
    const int row =
        place.row / abi::warp_tile_m(design) * abi::staging_block_rows(design) + place.lane / 4;
    const int column = place.column + place.lane % 4 * 2;
    const unsigned first =
        shared_ + static_cast<unsigned>(row * pitch + column * static_cast<int>(sizeof(Number)));
#pragma unroll
    for (int block = 0; block < Blocks::columns; ++block) {
      Number values[Accumulator::numbers];
      Accumulator::read(values, sums[index][block]);
#pragma unroll
      for (int half = 0; half < Accumulator::numbers / 2; ++half)
        put(first + static_cast<unsigned>(8 * half * pitch + 8 * block * sizeof(Number)),
            &values[2 * half]);
    }
  }

  __device__ __forceinline__ static void put(unsigned address, const Number* pair) {
    const auto* const words = reinterpret_cast<const unsigned*>(pair);
    if constexpr (sizeof(Number) == 8) {
      const unsigned all[4] = {words[0], words[1], words[2], words[3]};
      ptx::st_shared_v4(address, all);
    } else {
      ptx::st_shared_v2(address, words[0], words[1]);
    }
  }

  unsigned shared_;
  int thread_;
};

/// Out or C in one matrix of the batch.
template <DType dtype>
class MatrixElements {
 public:
  __device__ __forceinline__ MatrixElements(const abi::SimtMatrix& matrix, unsigned batch)
      : matrix_(matrix), first_(matrix_of_batch<bytes>(matrix.data, matrix.batch_stride, batch)) {}

  __device__ __forceinline__ char* at(unsigned row, unsigned column) const {
    return first_ + (static_cast<abi::Int64>(row) * matrix_.row_stride +
                     static_cast<abi::Int64>(column) * matrix_.column_stride) *
                        bytes;
  }
  /// Bytes from an element to the next one of its row.
  __device__ __forceinline__ abi::Int64 step_bytes() const { return matrix_.column_stride * bytes; }

 private:
  static constexpr int bytes = abi::bytes_of(dtype);
  const abi::SimtMatrix& matrix_;
  char* first_;
};

/// out = alpha * accumulator + beta * c.
template <const abi::Sm80Design& design>
class StagedLinearCombination {
 public:
  using Staging = TileStaging<design>;
  using Compute = typename ArithmeticOf<design.accumulator>::Compute;

  /// `rows_of_out`: if the tile's rows are found by indices, the row of out for each.
  __device__ __forceinline__ StagedLinearCombination(const abi::Sm80Params& params,
                                                     const int* rows_of_out)
      : params_(params),
        rows_of_out_(rows_of_out),
        alpha_(static_cast<Compute>(params.alpha)),
        beta_(static_cast<Compute>(params.beta)),
        reads_c_(design.has_c && params.beta != 0.0) {}

  template <class Sums>
  __device__ __forceinline__ void store(const Staging& staging, const Sums& sums,
                                        const TileCorner& corner, bool holds_sums) const {
    const MatrixElements<design.out> out(params_.out, corner.batch);
    const MatrixElements<design.c> c(params_.c, corner.batch);
#pragma unroll 1
    for (int index = 0; index < Staging::Blocks::rows; ++index) {
      staging.fill(sums, index, holds_sums);
#pragma unroll 2
      for (int sweep = 0; sweep < Staging::sweeps; ++sweep) {
        const int tile_row = staging.row_of(index, sweep);
        unsigned row = corner.row + static_cast<unsigned>(tile_row);
        const unsigned column = corner.column + static_cast<unsigned>(staging.column());
        if (tile_row < 0 || row >= params_.m || column >= params_.n) continue;
        if constexpr (abi::finds_rows_of_out(design)) {
          const int row_of_out = rows_of_out_[tile_row];
          if (row_of_out == no_element) continue;
          row = static_cast<unsigned>(row_of_out);
        }
        typename Staging::Run sums_of_run;
        staging.read(sums_of_run, sweep);
        store_run_of(sums_of_run, out, c, row, column);
      }
    }
  }

 private:
  __device__ __forceinline__ void store_run_of(const typename Staging::Run& sums,
                                               const MatrixElements<design.out>& out,
                                               const MatrixElements<design.c>& c, unsigned row,
                                               unsigned column) const {
    constexpr int columns = Staging::columns;
    const int left = static_cast<int>(min(params_.n - column, static_cast<unsigned>(columns)));
    Compute values[columns];
#pragma unroll
    for (int at = 0; at < columns; ++at) values[at] = alpha_ * static_cast<Compute>(sums[at]);
    if constexpr (design.has_c) {
      if (reads_c_) add_c(values, c.at(row, column), left, c.step_bytes());
    }
    store_run<design.out, design.out_vector_bytes, columns>(out.at(row, column), values, left,
                                                            out.step_bytes());
  }

  __device__ __forceinline__ void add_c(Compute (&values)[Staging::columns], const char* first,
                                        int left, abi::Int64 step_bytes) const {
    const auto run =
        load_run<design.c, design.c_vector_bytes, Staging::columns>(first, left, step_bytes);
#pragma unroll
    for (int at = 0; at < Staging::columns; ++at)
      values[at] += beta_ * decode<design.c, Compute>(run, at);
  }

  const abi::Sm80Params& params_;
  const int* rows_of_out_;
  Compute alpha_;
  Compute beta_;
  bool reads_c_;
};

/// An emitted epilogue.
template <const abi::Sm80Design& design, class Epilogue>
class StagedProgram {
 public:
  using Staging = TileStaging<design>;
  using Compute = typename ArithmeticOf<design.accumulator>::Compute;
  using Params = EpilogueParamsOf<Epilogue, Compute>;

  __device__ __forceinline__ StagedProgram(const abi::Sm80Params& params, const Params& epilogue,
                                           const TileCorner& corner, const abi::RegionGroup& group,
                                           int thread, const int* rows_of_out)
      : params_(params),
        epilogue_(epilogue),
        rows_of_out_(rows_of_out),
        corner_(corner),
        group_(group),
        out_(params.out, corner.batch),
        batch_(epilogue, corner.batch),
        thread_(thread) {}

  template <class Sums>
  __device__ __forceinline__ void store(const Staging& staging, const Sums& sums, bool holds_sums) {
    clear();
    const unsigned column = corner_.column + static_cast<unsigned>(staging.column());
#pragma unroll 1
    for (int index = 0; index < Staging::Blocks::rows; ++index) {
      staging.fill(sums, index, holds_sums);
#pragma unroll 1
      for (int sweep = 0; sweep < Staging::sweeps; ++sweep) {
        const int tile_row = staging.row_of(index, sweep);
        const unsigned row = corner_.row + static_cast<unsigned>(tile_row);
        // All lanes take part: those of a row reduce it together.
        finish_run(staging, sweep, tile_row < 0 ? params_.m : row, column);
      }
    }
  }

  /// Called by all threads; `shared` is free.
  template <int output = 0>
  __device__ __forceinline__ void reduce(char* shared) const {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_reduced<Epilogue, output>) {
        Compute* const staged = reinterpret_cast<Compute*>(shared);
        __syncthreads();  // waits until the staging tile, or the previous output, has been read
        stage<output>(staged);
        __syncthreads();  // waits for all threads' values, and for parts of rows
        if (thread_ < 32) finish<output>(staged, static_cast<unsigned>(thread_));
      }
      reduce<output + 1>(shared);
    }
  }

 private:
  static constexpr int columns = Staging::columns;
  static constexpr int threads_per_row = Staging::threads_per_row;
  static constexpr int rows_at_once = Staging::rows_at_once;
  static constexpr bool has_groups = design.groups != abi::GroupSchedule::none;
  using Region = RegionOf<has_groups, design.tile_m, design.tile_n, design.has_indices>;
  using Reductions = RegionReductions<Epilogue, Compute, Region>;
  using Program = ProgramRows<Epilogue, Compute, 1, 1>;

  /// A thread's values of an output over all its rows: one for each of its columns, or a single
  /// one. Values of rows are stored at once.
  GEMMERY_HOST_DEVICE
  static constexpr int kept(const abi::EpilogueTensor& tensor) {
    return tensor.varies_n ? columns : 1;
  }

  GEMMERY_HOST_DEVICE
  static constexpr bool reduces_to_rows(const abi::EpilogueTensor& output) {
    return output.reduction != abi::Reduction::none && output.varies_m;
  }

  template <int output = 0>
  __device__ __forceinline__ void clear() {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_reduced<Epilogue, output>) {
#pragma unroll
        for (int at = 0; at < columns; ++at)
          collected_[output][at] = ReducerOf<Epilogue, output, Compute>::nothing();
      }
      clear<output + 1>();
    }
  }

  /// A row of out, before `end` if there is one.
  struct RowOfOut {
    unsigned row;
    unsigned end;
  };
  __device__ __forceinline__ RowOfOut find_row(unsigned row) const {
    if constexpr (!abi::finds_rows_of_out(design)) return {row, params_.m};
    static_assert(!design.has_phases || !has_any_output<Epilogue>(reduces_to_rows),
                  "reductions to rows need adjacent rows");
    const int row_of_out = row < params_.m ? rows_of_out_[row - corner_.row] : no_element;
    if (row_of_out == no_element) return {0, 0};
    return {static_cast<unsigned>(row_of_out), static_cast<unsigned>(row_of_out) + 1};
  }

  __device__ __forceinline__ void finish_run(const Staging& staging, int sweep, unsigned row,
                                             unsigned column) {
    const RowOfOut target = find_row(row);
    Program program(epilogue_, batch_, target.row, column, target.end, params_.n);
    LoadedPatch<Epilogue, 1, columns> loaded;
    program.load(loaded, 0);
    typename Staging::Run sums;
    if (row < params_.m) staging.read(sums, sweep);
    Compute values[1][columns];
#pragma unroll
    for (int at = 0; at < columns; ++at)
      values[0][at] = row < params_.m ? static_cast<Compute>(sums[at]) : Compute{0};
    Compute results[Epilogue::outputs + 1][1][columns];
    if constexpr (has_blocks<Epilogue>()) {
      LaneBlocks<Epilogue, Compute, RunOfLane<columns>> blocks;
      program.reduce(loaded, values, 0, blocks);
      blocks.finish();
      program.apply(loaded, values, 0, results, blocks);
    } else {
      program.apply(loaded, values, 0, results);
    }
    const int left = program.has_row(0) ? program.columns_left(0) : 0;
    if (left > 0)
      store_run<design.out, design.out_vector_bytes, columns>(
          out_.at(target.row, column), results[0][0], left, out_.step_bytes());
    collect(results, left, row, column);
  }

  template <int output = 0>
  __device__ __forceinline__ void collect(
      const Compute (&results)[Epilogue::outputs + 1][1][columns], int left, unsigned row,
      unsigned column) {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_reduced<Epilogue, output>)
        collect_one<output>(results[output + 1][0], left, row, column);
      collect<output + 1>(results, left, row, column);
    }
  }

  template <int output>
  __device__ __forceinline__ void collect_one(const Compute (&values)[columns], int left,
                                              unsigned row, unsigned column) {
    constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
    using Reducer = ReducerOf<Epilogue, output, Compute>;
    if constexpr (tensor.varies_m && tensor.varies_n) {
#pragma unroll
      for (int at = 0; at < columns; ++at)
        if (at < left)
          *reductions().template part_of<output>(row, column + static_cast<unsigned>(at), 0) =
              Reducer::both(Reducer::nothing(), Reducer::of(values[at]));
    } else if constexpr (tensor.varies_m) {
      Compute value = Reducer::nothing();
#pragma unroll
      for (int at = 0; at < columns; ++at)
        if (at < left) value = Reducer::both(value, Reducer::of(values[at]));
      value = Reducer::across_lanes(value, 1, threads_per_row);
      if (left > 0 && thread_ % threads_per_row == 0)
        *reductions().template part_of<output>(row, 0, 0) = value;
    } else {
#pragma unroll
      for (int at = 0; at < columns; ++at) {
        Compute& kept_value = collected_[output][tensor.varies_n ? at : 0];
        if (at < left) kept_value = Reducer::both(kept_value, Reducer::of(values[at]));
      }
    }
  }

  /// [row of threads][column of the tile], or [thread].
  template <int output>
  __device__ __forceinline__ void stage(Compute* staged) const {
    constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
    if constexpr (!tensor.varies_m && tensor.varies_n) {
#pragma unroll
      for (int at = 0; at < columns; ++at) staged[thread_ * columns + at] = collected_[output][at];
    } else if constexpr (!tensor.varies_m) {
      staged[thread_] = collected_[output][0];
    }
  }

  /// The first warp combines the tile's parts and stores them.
  template <int output>
  __device__ __forceinline__ void finish(const Compute* staged, unsigned lane) const {
    constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
    using Reducer = ReducerOf<Epilogue, output, Compute>;
    const Reductions reductions = this->reductions();
    if constexpr (!tensor.varies_m && !tensor.varies_n) {
      Compute value = Reducer::nothing();
      for (unsigned at = lane; at < static_cast<unsigned>(abi::thread_count(design)); at += 32)
        value = Reducer::both(value, staged[at]);
      value = Reducer::across_lanes(value, 1, 32);
      if (lane == 0) *reductions.template part_of<output>(0, 0, 0) = value;
    } else if constexpr (!tensor.varies_m) {
#pragma unroll 1
      for (unsigned at = lane; at < static_cast<unsigned>(design.tile_n); at += 32) {
        Compute value = Reducer::nothing();
        for (unsigned row = 0; row < static_cast<unsigned>(rows_at_once); ++row)
          value = Reducer::both(value, staged[row * design.tile_n + at]);
        const unsigned column = corner_.column + at;
        if (column < params_.n) *reductions.template part_of<output>(0, column, 0) = value;
      }
    }
    reductions.template arrive<output>(lane);
  }

  __device__ __forceinline__ Reductions reductions() const {
    if constexpr (design.has_indices)
      return {epilogue_, {{group_, corner_.row, corner_.column}, rows_of_out_}};
    else if constexpr (has_groups)
      return {epilogue_, {group_, corner_.row, corner_.column}};
    else if constexpr (design.has_phases)  // rows count in one phase
      return {epilogue_, {corner_.batch, group_.begin, corner_.column, params_.m, params_.n}};
    else
      return {epilogue_, {corner_.batch, corner_.row, corner_.column, params_.m, params_.n}};
  }

  static_assert(sizeof(Compute) * columns * abi::thread_count(design) ==
                    static_cast<unsigned>(abi::reduction_bytes(design)),
                "reduction_bytes of the design");

  const abi::Sm80Params& params_;
  const Params& epilogue_;
  const int* rows_of_out_;
  const TileCorner corner_;
  const abi::RegionGroup group_;  // the tile's; only in grouped products
  const MatrixElements<design.out> out_;
  const ProgramBatch<Epilogue> batch_;
  int thread_;
  Compute collected_[at_least_one(Epilogue::outputs)][columns];
};

}  // namespace gemmery::device
