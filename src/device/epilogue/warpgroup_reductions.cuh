// SPDX-License-Identifier: Apache-2.0
// A consumer warpgroup's reductions, from its threads' values to the parts that it writes. A
// reduction to one value is written once, after the last tile, as a part (group_reduction.cuh) or
// into the result itself (magnitude_reduction.cuh). A reduction per batch, like those of rows and
// columns, is written as a part after each tile (reduction.cuh). So is every reduction if blocks
// split k through the workspace, since the consumer that finishes a tile then depends on timing,
// and every reduction in float64 (int32 accumulators), since a group's word holds a float32.
#pragma once

#include <device/abi/epilogue.hpp>
#include <device/abi/sm90_design.hpp>
#include <device/epilogue/group_reduction.cuh>
#include <device/epilogue/magnitude_reduction.cuh>
#include <device/epilogue/output_place.cuh>
#include <device/epilogue/program.cuh>
#include <device/epilogue/reduction.cuh>
#include <device/ptx/fence.cuh>
#include <device/ptx/shared_memory.cuh>

namespace gemmery::device {

/// The region of a consumer's share of a tile.
template <const abi::Sm90Design& design, int rows, int columns>
struct WarpgroupRegion {
  using Type = RegionOf<design.has_groups, rows, columns>;

  __device__ __forceinline__ static Type at(const abi::Sm90Params& params,
                                            const OutputPlace& place) {
    if constexpr (design.has_groups)
      return {group_of(params, place), place.row, place.column};
    else
      return {place.batch, place.row, place.column, params.m, params.n};
  }
};

/// `Staged` is the program's StagedInputs, whose memory also has words for parts; `Region` is the
/// RegionReductions of a consumer's share of a tile.
template <const abi::Sm90Design& design, class Epilogue, class Staged, class Region>
class WarpgroupReductions {
 public:
  using Compute = typename ArithmeticOf<design.accumulator>::Compute;
  using Params = EpilogueParamsOf<Epilogue, Compute>;

  /// `thread` of the warpgroup.
  __device__ __forceinline__ WarpgroupReductions(unsigned consumer, unsigned thread)
      : consumer_(consumer), thread_(thread) {
    clear<true>();
  }

  __device__ __forceinline__ void begin_tile() { clear<false>(); }

  /// Adds a value to a reduction to one value.
  template <int output>
  __device__ __forceinline__ void add(Compute value) {
    values_[output] = ReducerOf<Epilogue, output, Compute>::both(values_[output], value);
  }

  /// Writes the tile's parts for `region`. Parts of rows and columns are written already; those of
  /// single values are written here.
  __device__ __forceinline__ void end_tile(const Region& region) const {
    if constexpr (!has_any_output<Epilogue>(is_of_tiles)) return;
    write_parts(region);
    ptx::bar_sync<abi::warpgroup_threads>(1 + consumer_);  // waits until all have written parts
    if (warp() == 0) arrive(region);
  }

  /// Called by one warp of the producer's warpgroup in every block, when the previous launches have
  /// ended: prepares the results that consumers update.
  __device__ __forceinline__ static void open(const Params& params, unsigned lane) {
    if constexpr (!has_any_output<Epilogue>(is_of_magnitude)) return;
    if (lane == 0) open_results(params);
    __syncwarp();  // lane 0 has acquired it for all lanes
#pragma unroll
    for (unsigned consumer = 0; consumer < abi::consumer_count(design); ++consumer)
      ptx::bar_arrive<opening_threads>(first_opening_barrier + consumer);
  }

  /// Writes reductions of all of out: to the results, or through the consumer's shared memory.
  __device__ __forceinline__ void finish(const Params& params, const Staged& staged) const {
    if constexpr (has_any_output<Epilogue>(is_of_magnitude)) {
      ptx::bar_sync<opening_threads>(first_opening_barrier + consumer_);  // waits for `open`
      put_magnitudes(params);
    }
    if constexpr (!has_any_output<Epilogue>(is_by_words)) return;
    share_parts(staged);
    ptx::bar_sync<abi::warpgroup_threads>(1 + consumer_);  // waits until all have left parts
    if (warp() != 0) return;
    leave_parts(params, staged);
    __syncwarp();  // otherwise lanes could wait for a word that lane 0 has not yet written
    if (blockIdx.x + 1 == gridDim.x && consumer_ == 0) finish_groups(params);
  }

 private:
  static constexpr int warps = abi::warps_per_consumer;

  static constexpr int opening_threads = abi::warpgroup_threads + 32;
  static constexpr unsigned first_opening_barrier = 4;  // of as many as consumers

  /// True if a reduction is kept across tiles.
  GEMMERY_HOST_DEVICE
  static constexpr bool is_kept(const abi::EpilogueTensor& output) {
    return abi::is_of_everything(output) && abi::reduces_by_groups(design);
  }
  /// True if one of these is an atomic maximum (magnitude_reduction.cuh).
  GEMMERY_HOST_DEVICE
  static constexpr bool is_of_magnitude(const abi::EpilogueTensor& output) {
    return is_kept(output) && is_by_magnitude(output);
  }
  /// True if one of these uses words (group_reduction.cuh).
  GEMMERY_HOST_DEVICE
  static constexpr bool is_by_words(const abi::EpilogueTensor& output) {
    return is_kept(output) && !is_by_magnitude(output);
  }
  /// True if one is written after each tile.
  GEMMERY_HOST_DEVICE
  static constexpr bool is_of_tiles(const abi::EpilogueTensor& output) {
    return output.reduction != abi::Reduction::none && !is_kept(output);
  }

  template <int output = 0>
  __device__ __forceinline__ static void open_results(const Params& params) {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_of_magnitude(Epilogue::output[output]))
        MagnitudeReduction<Epilogue, output>(params).open();
      open_results<output + 1>(params);
    }
  }

  template <int output = 0>
  __device__ __forceinline__ void put_magnitudes(const Params& params) const {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_of_magnitude(Epilogue::output[output]))
        MagnitudeReduction<Epilogue, output>(params).put(values_[output], lane());
      put_magnitudes<output + 1>(params);
    }
  }

  /// Initial values for each tile, or values kept across tiles.
  template <bool of_all, int output = 0>
  __device__ __forceinline__ void clear() {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_reduced<Epilogue, output> && is_kept(Epilogue::output[output]) == of_all)
        values_[output] = ReducerOf<Epilogue, output, Compute>::nothing();
      clear<of_all, output + 1>();
    }
  }

  /// The warp's parts of a value of all of out, or per batch.
  template <int output = 0>
  __device__ __forceinline__ void write_parts(const Region& region) const {
    if constexpr (output < Epilogue::outputs) {
      constexpr abi::EpilogueTensor tensor = Epilogue::output[output];
      if constexpr (is_of_tiles(tensor) && !tensor.varies_m && !tensor.varies_n) {
        const Compute all =
            ReducerOf<Epilogue, output, Compute>::across_lanes(values_[output], 1, 32);
        if (lane() == 0) *region.template part_of<output>(0, 0, warp()) = all;
      }
      write_parts<output + 1>(region);
    }
  }

  /// The warps' parts of values that use words, into the consumer's shared memory.
  template <int output = 0, int place = 0>
  __device__ __forceinline__ void share_parts(const Staged& staged) const {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_by_words(Epilogue::output[output])) {
        const Compute all =
            ReducerOf<Epilogue, output, Compute>::across_lanes(values_[output], 1, 32);
        if (lane() == 0)
          ptx::st_shared<4>(staged.parts() + (place * warps + warp()) * 4,
                            {{__float_as_uint(all)}});
        share_parts<output + 1, place + 1>(staged);
      } else {
        share_parts<output + 1, place>(staged);
      }
    }
  }

  /// Writes the consumer's parts of these values to global memory.
  template <int output = 0, int place = 0>
  __device__ __forceinline__ void leave_parts(const Params& params, const Staged& staged) const {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_by_words(Epilogue::output[output])) {
        using Reducer = ReducerOf<Epilogue, output, Compute>;
        Compute part = Reducer::nothing();
#pragma unroll
        for (int warp = 0; warp < warps; ++warp)
          part = Reducer::both(
              part,
              __uint_as_float(ptx::ld_shared<4>(staged.parts() + (place * warps + warp) * 4)));
        const unsigned group = blockIdx.x * abi::consumer_count(design) + consumer_;
        if (lane() == 0) GroupReduction<Epilogue, output>(params).leave(group, part);
        leave_parts<output + 1, place + 1>(params, staged);
      } else {
        leave_parts<output + 1, place>(params, staged);
      }
    }
  }

  template <int output = 0>
  __device__ __forceinline__ void finish_groups(const Params& params) const {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_by_words(Epilogue::output[output]))
        GroupReduction<Epilogue, output>(params).finish(lane());
      finish_groups<output + 1>(params);
    }
  }

  template <int output = 0>
  __device__ __forceinline__ void arrive(const Region& region) const {
    if constexpr (output < Epilogue::outputs) {
      if constexpr (is_of_tiles(Epilogue::output[output])) region.template arrive<output>(lane());
      arrive<output + 1>(region);
    }
  }

  __device__ unsigned lane() const { return thread_ % 32; }
  __device__ unsigned warp() const { return thread_ / 32; }

  unsigned consumer_;
  unsigned thread_;
  Compute values_[at_least_one(Epilogue::outputs)];  // of reductions to one value
};

}  // namespace gemmery::device
