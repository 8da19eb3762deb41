// SPDX-License-Identifier: Apache-2.0
// Runs an emitted epilogue on a warpgroup's accumulators, to the values of D.
//
// A thread's patches are two rows, 8 apart or adjacent, by two adjacent columns; a staging tile has
// one for every 8 columns. How an input reaches the program depends on its form:
//
//   vectors            copied to shared memory before the mainloop, by the consumer's threads
//   the addend         likewise, a tile ahead, for a wgmma (wgmma_addend.cuh)
//   full tensors       by TMA into staging tiles like those of D, the first ones before the
//                      mainloop (abi/sm90_program.hpp says which tensors TMA can load)
//   other full ones    prefetched into L2 before the mainloop, loaded a few patches ahead of use
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/abi/sm90_program.hpp>
#include <device/abi/sm90_shared.hpp>
#include <device/epilogue/operations.cuh>
#include <device/epilogue/output_place.cuh>
#include <device/epilogue/program.cuh>
#include <device/epilogue/reduction.cuh>
#include <device/epilogue/scattered_rows.cuh>
#include <device/epilogue/staged_inputs.cuh>
#include <device/epilogue/warpgroup_reductions.cuh>
#include <device/epilogue/wgmma_addend.cuh>
#include <device/ptx/fence.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

template <const abi::Sm90Design& design, class Epilogue>
class WarpgroupProgram {
 public:
  using Compute = typename ArithmeticOf<design.accumulator>::Compute;
  using Params = EpilogueParamsOf<Epilogue, Compute>;
  using Staged = StagedInputs<design, Epilogue>;
  class Block;

  /// `maps`: of the inputs that TMA loads; `shared`: the address of the block's memory for
  /// programs; `thread` of the warpgroup.
  __device__ __forceinline__ WarpgroupProgram(const abi::Sm90Params& params, const Params& epilogue,
                                              const abi::TensorMap* maps, unsigned shared,
                                              unsigned consumer, unsigned thread)
      : params_(params),
        epilogue_(epilogue),
        staged_(params, epilogue, maps, shared, consumer, thread),
        consumer_(consumer),
        thread_(thread),
        reductions_(consumer, thread) {}

  /// All threads of the block call it before it is synchronised.
  __device__ static void initialize(const abi::TensorMap* maps, unsigned shared) {
    Staged::initialize(maps, shared);
  }

  /// Called by one warp of the producer's warpgroup, while tiles are multiplied.
  __device__ __forceinline__ static void open_results(const Params& epilogue, unsigned lane) {
    decltype(reductions_)::open(epilogue, lane);
  }

  /// The first patches are read while the last wgmmas are in flight.
  static constexpr bool reads_early = true;

  /// True if a wgmma adds the program's addend to the accumulators.
  static constexpr bool adds_vector = Staged::addend_input >= 0;

  /// True if a reduction covers whole tiles, beyond the edges of out, too. Accumulators and inputs
  /// there are 0, and the program maps zeros to zero, so the result is the same, and no row or
  /// column is tested. Only for the amax of everything, in rotation, where enough registers remain
  /// to keep all accumulators. With float32 results or a cluster of two 8 to 76 bytes spilled, with
  /// a sum 24 (ptxas 13.0).
  static constexpr bool reduces_whole_tiles =
      Epilogue::reduces_zeros_to_nothing && Epilogue::inputs == (adds_vector ? 1 : 0) &&
      Epilogue::outputs == 1 && Epilogue::output[0].reduction == abi::Reduction::amax &&
      abi::is_of_everything(Epilogue::output[0]) && design.schedule == abi::Schedule::rotation &&
      design.accumulator == DType::float32 && abi::cluster_size(design) == 1 &&
      abi::bytes_of(design.out) == 2;

  static constexpr bool is_dense =
      abi::is_dense(Epilogue::slow_results, Epilogue::inputs - (adds_vector ? 1 : 0),
                    abi::count_full(Epilogue::input, Epilogue::inputs),
                    Epilogue::outputs - (reduces_whole_tiles ? 1 : 0));

  /// Starts copying the inputs of the consumer's share of a tile, at `place`.
  __device__ __forceinline__ void begin_share(const OutputPlace& place) {
    // Waits until all have read the vectors of the previous share.
    if constexpr (Staged::has_vectors()) ptx::bar_sync<abi::warpgroup_threads>(1 + consumer_);
    if (!holds_output(place)) return;
    staged_.begin_share(place, row_end<design>(params_, place), column_end<design>(params_, place));
    prefetch(place);
  }

  /// Starts copying the addend of the consumer's next tile. A barrier of the warpgroup separates it
  /// from the wgmma that read the previous addend there.
  __device__ __forceinline__ void bring_next_addend(const OutputPlace& place) const {
    if (holds_output(place))
      staged_.bring_next_addend(place, row_end<design>(params_, place),
                                column_end<design>(params_, place));
  }
  /// Waits until this tile's addend and vectors are in shared memory, for the whole warpgroup.
  __device__ __forceinline__ const WgmmaAddend<design>& wait_for_addend() {
    staged_.wait_for_vectors();
    ptx::fence_proxy_async();
    ptx::bar_sync<abi::warpgroup_threads>(1 + consumer_);
    return staged_.next_addend();
  }

  /// False if the share lies beyond out; then nothing else may be called for it.
  __device__ __forceinline__ bool begin_tile(const OutputPlace& place) {
    tile_ = place;
    reductions_.begin_tile();
    if constexpr (Staged::has_vectors() && !adds_vector) {
      staged_.wait_for_vectors();
      ptx::bar_sync<abi::warpgroup_threads>(1 + consumer_);
    }
    return holds_output(place);
  }

  /// Begins the index-th block of 64 rows, at `place`.
  __device__ __forceinline__ Block begin_block(const OutputPlace& place, int index) {
    return Block(*this, place, index);
  }

  /// Writes the tile's partial results of reductions.
  __device__ __forceinline__ void end_tile() const { reductions_.end_tile(reductions()); }
  /// Writes reductions that are kept across tiles. All consumers call it, also those without one.
  __device__ __forceinline__ void finish() const { reductions_.finish(epilogue_, staged_); }

 private:
  static constexpr int region_rows = abi::blocks_per_consumer(design) * abi::sm90_block_rows;
  static constexpr int region_columns = abi::columns_per_consumer(design);
  static constexpr int eights = abi::staging_columns(design) / 8;
  using Region = WarpgroupRegion<design, region_rows, region_columns>;
  using Reductions = RegionReductions<Epilogue, Compute, typename Region::Type>;
  /// True if rows of full tensors, or of further results, are found by indices.
  static constexpr bool has_named_rows =
      design.scatters_rows &&
      (abi::count_full(Epilogue::input, Epilogue::inputs) > 0 || Epilogue::outputs > 0);
  static constexpr int row_distance = abi::second_row_distance(design);
  using Rows = ProgramRows<Epilogue, Compute, 2, has_named_rows ? rows_by_index : row_distance,
                           DirectInputs<design, Epilogue>>;
  using Patch = LoadedPatch<Epilogue, 2, 2>;

  __device__ __forceinline__ bool holds_output(const OutputPlace& place) const {
    return place.row < row_end<design>(params_, place) &&
           place.column < column_end<design>(params_, place);
  }

  /// 32-bit registers for the inputs of one patch: of those that are staged, or of the others.
  GEMMERY_HOST_DEVICE
  static constexpr int patch_registers(bool is_staged) {
    int count = 0;
    for (int input = 0; input < Epilogue::inputs; ++input) {
      const abi::EpilogueTensor& tensor = Epilogue::input[input];
      if (!tensor.varies_n || Staged::is_staged(input) != is_staged) continue;
      const int run_bytes = 2 * abi::bytes_of(tensor.dtype);
      count += (tensor.varies_m ? 2 : 1) * (run_bytes < 4 ? 1 : run_bytes / 4);
    }
    return count;
  }
  /// Patches that are read together: all of a staging tile if they fit 16 registers.
  GEMMERY_HOST_DEVICE
  static constexpr int patches_together(bool is_staged) {
    const int least = is_staged ? 2 : 1;  // ldmatrix loads 16 columns at once
    int patches = eights;
    while (patches > least && patches * patch_registers(is_staged) > 16) patches /= 2;
    return patches;
  }

  /// Prefetches full tensors that are read by plain loads into L2.
  template <int input = 0>
  __device__ __forceinline__ void prefetch(const OutputPlace& place) const {
    if constexpr (input < Epilogue::inputs) {
      constexpr abi::EpilogueTensor tensor = Epilogue::input[input];
      if constexpr (tensor.varies_m && tensor.varies_n && tensor.vector_bytes > 0 &&
                    !design.scatters_rows)
        prefetch_input<input>(place);
      prefetch<input + 1>(place);
    }
  }

  template <int input>
  __device__ __forceinline__ void prefetch_input(const OutputPlace& place) const {
    constexpr abi::EpilogueTensor tensor = Epilogue::input[input];
    constexpr int bytes = abi::bytes_of(tensor.dtype);
    const abi::EpiloguePlace& matrix = epilogue_.input[input];
    constexpr bool may_be_array = design.has_pointers && tensor.varies_l;
    const MatrixStart start =
        start_of_batch<may_be_array>(matrix.data, matrix.batch_stride, place.batch);
    const char* const first =
        start.address + (start.elements + place.row * matrix.row_stride + place.column) * bytes;
    prefetch_share<region_rows, region_columns * bytes>(
        first, matrix.row_stride * bytes, row_end<design>(params_, place) - place.row,
        static_cast<abi::Int64>(column_end<design>(params_, place) - place.column) * bytes,
        thread_);
  }

  __device__ unsigned lane() const { return thread_ % 32; }
  __device__ unsigned warp() const { return thread_ / 32; }
  /// The thread's first row in a block of 64.
  __device__ unsigned first_row() const {
    return warp() * abi::sm90_warp_rows + abi::first_row_of_lane(abi::value_of<design>(), lane());
  }
  __device__ Reductions reductions() const { return {epilogue_, Region::at(params_, tile_)}; }

  const abi::Sm90Params& params_;
  const Params& epilogue_;
  Staged staged_;
  unsigned consumer_;
  unsigned thread_;
  OutputPlace tile_{};
  WarpgroupReductions<design, Epilogue, Staged, Reductions> reductions_;
};

}  // namespace gemmery::device
