// SPDX-License-Identifier: Apache-2.0
// An emitted epilogue on a tile of out that a block of the simt family holds, thread_m by thread_n
// accumulators per thread. Reductions use the shared memory of the stages.
#pragma once

#include <device/abi/simt_design.hpp>
#include <device/abi/simt_params.hpp>
#include <device/epilogue/linear_combination.cuh>
#include <device/epilogue/operations.cuh>
#include <device/epilogue/program.cuh>
#include <device/epilogue/reduction.cuh>
#include <device/epilogue/tile_blocks.cuh>
#include <device/tile/spread.cuh>

namespace gemmery::device {

/// A thread's place in its tile.
struct ThreadTilePlace {
  unsigned batch;
  unsigned tile_row;  // of the tile's first element in out
  unsigned tile_column;
  unsigned row;  // of the thread's first element in the tile
  unsigned column;
};

/// `shared_bytes`: the block's shared memory for reductions. `Region`: their region, a tile.
template <const abi::SimtDesign& design, class Epilogue,
          int shared_bytes = abi::shared_bytes(design),
          class Region = MatrixRegion<design.tile_m, design.tile_n>>
class ThreadTileProgram {
 public:
  using Compute = typename ArithmeticOf<design.accumulator>::Compute;
  using Params = EpilogueParamsOf<Epilogue, Compute>;

  __device__ __forceinline__ ThreadTileProgram(const abi::SimtParams& params,
                                               const Params& epilogue, const ThreadTilePlace& place,
                                               const Region& region)
      : params_(params), epilogue_(epilogue), place_(place), reductions_(epilogue, region) {}
  /// For out as one matrix of a batch.
  __device__ __forceinline__ ThreadTileProgram(const abi::SimtParams& params,
                                               const Params& epilogue, const ThreadTilePlace& place)
      : ThreadTileProgram(
            params, epilogue, place,
            Region{place.batch, place.tile_row, place.tile_column, params.m, params.n}) {}

  /// Reduces the blocks of a program that has any, before `store`. Called by all threads of the
  /// block; `shared` is free, and is not until `store` is done.
  template <class Number>
  __device__ __forceinline__ void reduce_blocks(
      char* shared, bool has_sums, int thread,
      const Number (&sums)[design.thread_m][design.thread_n]) {
    static_assert(Blocks::bytes() <= shared_bytes,
                  "more blocks than shared memory has keys for: larger blocks");
    const Blocks blocks = blocks_in(shared);
    blocks.clear(thread, abi::thread_count(design));
    __syncthreads();  // waits until all keys are 0
    if (has_sums) collect_blocks(sums, blocks);
    __syncthreads();  // waits for the values of all threads
  }

  /// Stores all results of the thread's elements that are not reductions. `shared`: the reduced
  /// blocks of a program that has any.
  template <class Number>
  __device__ __forceinline__ void store(const Number (&sums)[design.thread_m][design.thread_n],
                                        [[maybe_unused]] char* shared = nullptr) {
    clear();
    const MatrixCorner<design.out, design.out_contiguity> out(params_.out, place_.batch,
                                                              place_.tile_row + place_.row,
                                                              place_.tile_column + place_.column);
    visit_patches(sums, [&](const PatchRows& program, const LoadedInputs& loaded,
                            const PatchValues& values, const PatchPlace& patch) {
      Compute results[Epilogue::outputs + 1][patch_rows][patch_columns];
      if constexpr (has_blocks<Epilogue>())
        program.apply(loaded, values, patch.tile_column, results, blocks_in(shared));
      else
        program.apply(loaded, values, patch.tile_column, results);
      store_patch(out, program, results[0], patch.tile_row, patch.tile_column);
      collect(program, results, patch.thread_row, patch.thread_column, patch.tile_column);
    });
  }

  /// Called before `take`.
  __device__ __forceinline__ void begin() { clear(); }
  /// Collects the values that are reduced of `left` adjacent columns of one row, if elements of out
  /// are found by indices. `results` as ProgramRows::apply returns them.
  template <int columns, int output = 0>
  __device__ __forceinline__ void take(const Compute (&results)[Epilogue::outputs + 1][1][columns],
                                       int left, int thread_row, int thread_column) {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_reduced<Epilogue, output>) {
#pragma unroll
        for (int at = 0; at < columns; ++at)
          if (at < left) add<output>(results[output + 1][0][at], thread_row, thread_column + at);
      }
      take<columns, output + 1>(results, left, thread_row, thread_column);
    }
  }

  /// Called by all threads of the block, with and without elements; `shared` is free.
  template <int output = 0>
  __device__ __forceinline__ void reduce(char* shared, bool has_sums, int thread) const {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_reduced<Epilogue, output>) {
        Compute* const staged = reinterpret_cast<Compute*>(shared);
        if (has_sums) stage<output>(staged);
        __syncthreads();  // waits for all threads' values
        if (thread < 32) finish<output>(staged, static_cast<unsigned>(thread));
        __syncthreads();  // waits until it was read
      }
      reduce<output + 1>(shared, has_sums, thread);
    }
  }

 private:
  static constexpr int patch_rows = row_spread(design).chunk;
  static constexpr int patch_columns = column_spread(design).chunk;
  using PatchRows = ProgramRows<Epilogue, Compute, patch_rows, 1>;
  using LoadedInputs = LoadedPatch<Epilogue, patch_rows, patch_columns>;
  using PatchValues = Compute[patch_rows][patch_columns];
  // The first element of a patch: among the thread's, and in the tile.
  struct PatchPlace {
    int thread_row;
    int thread_column;
    int tile_row;
    int tile_column;
  };
  static constexpr int threads_m = design.tile_m / design.thread_m;
  static constexpr int threads_n = design.tile_n / design.thread_n;
  using Reductions = RegionReductions<Epilogue, Compute, Region>;
  using Run = OutputRun<design>;

  /// A thread's values of one output: one for each of its rows, of its columns, or a single one.
  GEMMERY_HOST_DEVICE
  static constexpr int kept(const abi::EpilogueTensor& tensor) {
    return (tensor.varies_m ? design.thread_m : 1) * (tensor.varies_n ? design.thread_n : 1);
  }
  GEMMERY_HOST_DEVICE
  static constexpr int most_kept() {
    int most = 1;
    for (int output = 0; output < Epilogue::outputs; ++output)
      if (Epilogue::output[output].reduction != abi::Reduction::none &&
          kept(Epilogue::output[output]) > most)
        most = kept(Epilogue::output[output]);
    return most;
  }

  using Blocks = TileBlocks<Epilogue, Compute, design.tile_m, design.tile_n>;
  __device__ Blocks blocks_in(char* shared) const {
    return Blocks(shared, place_.tile_row, place_.tile_column);
  }

  template <class Number>
  __device__ __forceinline__ void collect_blocks(
      const Number (&sums)[design.thread_m][design.thread_n], const Blocks& blocks) const {
    visit_patches(sums, [&](const PatchRows& program, const LoadedInputs& loaded,
                            const PatchValues& values, const PatchPlace& patch) {
      program.reduce(loaded, values, patch.tile_column, blocks);
    });
  }

  /// Calls visit(program, loaded inputs, accumulators, PatchPlace) for each patch of the thread.
  template <class Number, class Visit>
  __device__ __forceinline__ void visit_patches(
      const Number (&sums)[design.thread_m][design.thread_n], Visit&& visit) const {
    const unsigned first_row = place_.tile_row + place_.row;
    const unsigned first_column = place_.tile_column + place_.column;
    const ProgramBatch<Epilogue> batch(epilogue_, place_.batch);
#pragma unroll
    for (int thread_row = 0; thread_row < design.thread_m; thread_row += patch_rows) {
      const int tile_row = row_spread(design).offset(thread_row);
      const PatchRows program(epilogue_, batch, first_row + static_cast<unsigned>(tile_row),
                              first_column, params_.m, params_.n);
#pragma unroll
      for (int thread_column = 0; thread_column < design.thread_n; thread_column += patch_columns) {
        const int tile_column = column_spread(design).offset(thread_column);
        LoadedInputs loaded;
        program.load(loaded, tile_column);
        PatchValues values;
        patch_of(sums, thread_row, thread_column, values);
        visit(program, loaded, values,
              PatchPlace{thread_row, thread_column, tile_row, tile_column});
      }
    }
  }

  template <class Number>
  __device__ __forceinline__ static void patch_of(
      const Number (&sums)[design.thread_m][design.thread_n], int thread_row, int thread_column,
      Compute (&values)[patch_rows][patch_columns]) {
#pragma unroll
    for (int row = 0; row < patch_rows; ++row) {
#pragma unroll
      for (int column = 0; column < patch_columns; ++column)
        values[row][column] = static_cast<Compute>(sums[thread_row + row][thread_column + column]);
    }
  }

  template <int output = 0>
  __device__ __forceinline__ void clear() {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_reduced<Epilogue, output>) {
#pragma unroll
        for (int at = 0; at < kept(Epilogue::output[output]); ++at)
          collected_[output][at] = ReducerOf<Epilogue, output, Compute>::nothing();
      }
      clear<output + 1>();
    }
  }

  template <class Program>
  __device__ __forceinline__ void store_patch(
      const MatrixCorner<design.out, design.out_contiguity>& out, const Program& program,
      const Compute (&values)[patch_rows][patch_columns], int tile_row, int tile_column) const {
#pragma unroll
    for (int row = 0; row < patch_rows; row += Run::rows) {
#pragma unroll
      for (int column = 0; column < patch_columns; column += Run::columns) {
        if (!program.has_row(row) || program.columns_left(tile_column + column) <= 0) continue;
        ptx::Registers<Run::length * abi::bytes_of(design.out)> stored{};
#pragma unroll
        for (int at = 0; at < Run::length; ++at)
          place<design.out>(
              stored, at,
              values[row + (Run::is_along_row ? 0 : at)][column + (Run::is_along_row ? at : 0)]);
        ptx::st_global(out.at(tile_row + row, tile_column + column), stored);
      }
    }
  }

  template <int output = 0, class Program>
  __device__ __forceinline__ void collect(
      const Program& program,
      const Compute (&results)[Epilogue::outputs + 1][patch_rows][patch_columns], int thread_row,
      int thread_column, int tile_column) {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_reduced<Epilogue, output>) {
#pragma unroll
        for (int row = 0; row < patch_rows; ++row) {
#pragma unroll
          for (int column = 0; column < patch_columns; ++column) {
            if (program.has_row(row) && program.columns_left(tile_column + column) > 0)
              add<output>(results[output + 1][row][column], thread_row + row,
                          thread_column + column);
          }
        }
      }
      collect<output + 1>(program, results, thread_row, thread_column, tile_column);
    }
  }

  template <int output>
  __device__ __forceinline__ void add(Compute value, int thread_row, int thread_column) {
    constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
    using Reducer = ReducerOf<Epilogue, output, Compute>;
    const int at = (tensor.varies_m ? thread_row : 0) * (tensor.varies_n ? design.thread_n : 1) +
                   (tensor.varies_n ? thread_column : 0);
    collected_[output][at] = Reducer::both(collected_[output][at], Reducer::of(value));
  }

  /// Threads that share final values are adjacent: [thread][final value of the tile].
  template <int output>
  __device__ __forceinline__ void stage(Compute* staged) const {
    constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
    const int thread_m = static_cast<int>(place_.row) / patch_rows;
    const int thread_n = static_cast<int>(place_.column) / patch_columns;
    if constexpr (tensor.varies_m && tensor.varies_n) {
      write_parts<output>();
    } else if constexpr (tensor.varies_m) {
#pragma unroll
      for (int row = 0; row < design.thread_m; ++row)
        staged[thread_n * design.tile_m + place_.row + row_spread(design).offset(row)] =
            collected_[output][row];
    } else if constexpr (tensor.varies_n) {
#pragma unroll
      for (int column = 0; column < design.thread_n; ++column)
        staged[thread_m * design.tile_n + place_.column + column_spread(design).offset(column)] =
            collected_[output][column];
    } else {
      staged[thread_m * threads_n + thread_n] = collected_[output][0];
    }
  }

  /// If only batches are reduced, every element is a part by itself.
  template <int output>
  __device__ __forceinline__ void write_parts() const {
#pragma unroll
    for (int thread_row = 0; thread_row < design.thread_m; ++thread_row) {
#pragma unroll
      for (int thread_column = 0; thread_column < design.thread_n; ++thread_column) {
        const unsigned row = place_.tile_row + place_.row + row_spread(design).offset(thread_row);
        const unsigned column =
            place_.tile_column + place_.column + column_spread(design).offset(thread_column);
        if (row < params_.m && column < params_.n)
          *reductions_.template part_of<output>(row, column, 0) =
              collected_[output][thread_row * design.thread_n + thread_column];
      }
    }
  }

  /// The first warp combines the tile's parts and stores them.
  template <int output>
  __device__ __forceinline__ void finish(const Compute* staged, unsigned lane) const {
    constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
    using Reducer = ReducerOf<Epilogue, output, Compute>;
    if constexpr (!tensor.varies_m && !tensor.varies_n) {
      Compute value = Reducer::nothing();
      for (unsigned at = lane; at < threads_m * threads_n; at += 32)
        value = Reducer::both(value, staged[at]);
      value = Reducer::across_lanes(value, 1, 32);
      if (lane == 0) *reductions_.template part_of<output>(0, 0, 0) = value;
    } else if constexpr (!(tensor.varies_m && tensor.varies_n)) {
      constexpr unsigned finals = tensor.varies_m ? design.tile_m : design.tile_n;
      constexpr unsigned parts = tensor.varies_m ? threads_n : threads_m;
      const unsigned first = tensor.varies_m ? place_.tile_row : place_.tile_column;
      const unsigned end = tensor.varies_m ? params_.m : params_.n;
#pragma unroll 1
      for (unsigned at = lane; at < finals; at += 32) {
        Compute value = Reducer::nothing();
        for (unsigned part = 0; part < parts; ++part)
          value = Reducer::both(value, staged[part * finals + at]);
        if (first + at < end)
          *reductions_.template part_of<output>(first + at, first + at, 0) = value;
      }
    }
    reductions_.template arrive<output>(lane);
  }

  GEMMERY_HOST_DEVICE
  static constexpr int staged_values() {
    const int rows = threads_n * design.tile_m;
    const int columns = threads_m * design.tile_n;
    return rows > columns ? rows : columns;
  }
  static_assert(!has_reductions<Epilogue>() ||
                    staged_values() * static_cast<int>(sizeof(Compute)) <= shared_bytes,
                "more shared memory than the stages have: fewer threads");

  const abi::SimtParams& params_;
  const Params& epilogue_;
  const ThreadTilePlace place_;
  const Reductions reductions_;
  Compute collected_[at_least_one(Epilogue::outputs)][most_kept()];
};

}  // namespace gemmery::device
