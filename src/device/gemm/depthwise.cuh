// SPDX-License-Identifier: Apache-2.0
// fprop and dgrad of a depthwise convolution. Each channel has its own filters, so there is no
// matrix product, and memory bandwidth is the limit.
//
//   filters in global memory               source, x or dy, in global memory
//     | copy/channel_vector: decoded           | vectors of contiguous channels, zeros in padding:
//   [tap][channels of the tile]                | each pixel of a line once for a whole strip
//   in shared memory                         a strip's pixels along width, in registers
//     |                                        |
//     +----- products of each tap and the strip's pixels, line by line of taps
//   accumulators: pixels of the strip by contiguous channels
//     | epilogue/channel_store
//   out in global memory, by vectors of contiguous channels
//
// A block keeps one tile of channels and runs over adjacent tiles of strips, so that lines of the
// source that several strips read are in L1. If channels are not contiguous or aligned (filters
// of one channel, sliced tensors), a thread accesses its channels one by one. A dgrad with a stride
// runs phase by phase: pixels of dx with the same taps (abi/conv_phases).
#pragma once

#include <device/abi/depthwise_design.hpp>
#include <device/abi/depthwise_params.hpp>
#include <device/copy/channel_vector.cuh>
#include <device/epilogue/channel_store.cuh>
#include <device/tile/depthwise_strip.cuh>

namespace gemmery::device {

template <const abi::DepthwiseDesign& design>
class DepthwiseStrips {
 public:
  using Number = typename ArithmeticOf<design.accumulator>::Accumulator;

  __device__ __forceinline__ DepthwiseStrips(const abi::DepthwiseParams& params, char* shared,
                                             unsigned first_channel)
      : params_(params),
        filters_(shared),
        lane_(static_cast<int>(threadIdx.x) % design.lanes),
        channel_(first_channel + static_cast<unsigned>(lane_ * design.channels)) {}

  /// Computes the strip with this index among the pixels of the window.
  template <class Finish>
  __device__ __forceinline__ void compute(const abi::DepthwiseWindow& window, unsigned index,
                                          const Finish& finish) const {
    const DepthwiseStrip strip = find_strip<design>(params_, window, index);
    if (strip.pixels == 0) return;
    if (params_.is_wide != 0) {
      if (channel_ < params_.channels) compute_channels<design.channels>(window, strip, 0, finish);
      return;
    }
#pragma unroll 1
    for (int own = 0; own < design.channels; ++own)
      if (channel_ + own < params_.channels) compute_channels<1>(window, strip, own, finish);
  }

 private:
  template <int width>
  using Sums = Number[design.pixels][width];

  /// `own`: the first of the thread's channels.
  template <int width, class Finish>
  __device__ __forceinline__ void compute_channels(const abi::DepthwiseWindow& window,
                                                   const DepthwiseStrip& strip, int own,
                                                   const Finish& finish) const {
    const unsigned channel = channel_ + static_cast<unsigned>(own);
    const unsigned group = params_.group_channels.divide(channel);
    Sums<width> sums{};
#pragma unroll 1
    for (unsigned repeat = 0; repeat < params_.repeats; ++repeat)
      accumulate<width>(sums, window, strip, group * params_.repeats + repeat, own, repeat);
    const unsigned row = row_of_out(params_, window, strip);
#pragma unroll
    for (int pixel = 0; pixel < design.pixels; ++pixel) {
      if (pixel >= strip.pixels) continue;
      store_channels<design, width>(
          params_, finish, sums[pixel],
          {.batch = group,
           .row = row + static_cast<unsigned>(pixel) * params_.pixel_step[2],
           .column = channel - group * params_.group_channels.divisor},
          own);
    }
  }

  template <int width>
  __device__ __forceinline__ void accumulate(Sums<width>& sums, const abi::DepthwiseWindow& window,
                                             const DepthwiseStrip& strip, unsigned source_channel,
                                             int own, unsigned repeat) const {
    constexpr int bytes = abi::bytes_of(design.a);
    const abi::Int64(&strides)[4] = params_.a_strides.of;
    const char* const image =
        static_cast<const char*>(params_.a) + (strip.image * strides[0] + source_channel) * bytes;
    const int first_filter = static_cast<int>(repeat * params_.filter[0]);
#pragma unroll 1
    for (int t = 0; t < static_cast<int>(window.taps[0]); ++t) {
      const int depth = source_at(window, strip, 0, t);
      if (static_cast<unsigned>(depth) >= params_.extent[0]) continue;
      const int plane = (first_filter + tap_at(window, 0, t)) * static_cast<int>(params_.filter[1]);
#pragma unroll 1
      for (int r = 0; r < static_cast<int>(window.taps[1]); ++r) {
        const int height = source_at(window, strip, 1, r);
        if (static_cast<unsigned>(height) >= params_.extent[1]) continue;
        const char* const line = image + (depth * strides[1] + height * strides[2]) * bytes;
        const int taps = (plane + tap_at(window, 1, r)) * static_cast<int>(params_.filter[2]);
        multiply_line<width>(sums, window, strip, line, taps, own);
      }
    }
  }

  __device__ __forceinline__ static int source_at(const abi::DepthwiseWindow& window,
                                                  const DepthwiseStrip& strip, int d, int tap) {
    return strip.at[d] * window.step[d] + window.origin[d] + tap * window.tap_step[d];
  }
  __device__ __forceinline__ static int tap_at(const abi::DepthwiseWindow& window, int d, int tap) {
    return window.first_tap[d] + tap * window.tap_walk[d];
  }

  template <int width>
  __device__ __forceinline__ void multiply_line(Sums<width>& sums,
                                                const abi::DepthwiseWindow& window,
                                                const DepthwiseStrip& strip, const char* line,
                                                int taps, int own) const {
    if constexpr (design.taps > 1) {
      multiply_taps<width>(sums, window, line, source_at(window, strip, 2, 0), taps, 0, own);
    } else {
#pragma unroll 1
      for (int s = 0; s < static_cast<int>(window.taps[2]); ++s)
        multiply_taps<width>(sums, window, line, source_at(window, strip, 2, s), taps, s, own);
    }
  }

  /// Multiplies the taps from `first_tap` on by a strip's source pixels from `first` on.
  template <int width>
  __device__ __forceinline__ void multiply_taps(Sums<width>& sums,
                                                const abi::DepthwiseWindow& window,
                                                const char* line, int first, int taps,
                                                int first_tap, int own) const {
    constexpr int span = abi::strip_span(design);
    const int step = design.taps > 1 ? 1 : window.step[2];
    ChannelVector<design.a, width> source[span];
#pragma unroll
    for (int at = 0; at < span; ++at) {
      const int place = first + at * step;
      source[at].load(static_cast<unsigned>(place) < params_.extent[2],
                      line + place * params_.a_strides.of[3] * abi::bytes_of(design.a));
    }
    Number words[design.taps][width];
#pragma unroll
    for (int tap = 0; tap < design.taps; ++tap)
      filters_.template load<width>(words[tap], taps + tap_at(window, 2, first_tap + tap), lane_,
                                    own);
#pragma unroll
    for (int at = 0; at < span; ++at) {
      Number values[width];
      source[at].decode_into(values);
#pragma unroll
      for (int pixel = 0; pixel < design.pixels; ++pixel) {
        const int tap = design.taps > 1 ? at - pixel * design.stride : at == pixel ? 0 : -1;
        if (tap < 0 || tap >= design.taps) continue;
#pragma unroll
        for (int channel = 0; channel < width; ++channel)
          sums[pixel][channel] += values[channel] * words[tap][channel];
      }
    }
  }

  const abi::DepthwiseParams& params_;
  const KeptFilters<design> filters_;
  const int lane_;
  const unsigned channel_;
};

/// The window of a tile; that of a phase is stored in `kept`, and `tile` becomes the index within
/// the phase.
template <const abi::DepthwiseDesign& design>
__device__ __forceinline__ const abi::DepthwiseWindow& window_of_tile(
    const abi::DepthwiseParams& params, abi::DepthwiseWindow& kept, unsigned& tile) {
  if constexpr (design.kind != abi::DepthwiseKind::strided_dgrad) return params.window;
  const unsigned in_phase = params.phase_count.divide(tile);
  __syncthreads();  // waits until all have read the window before
  if (threadIdx.x == 0) find_window(params, tile - in_phase * params.phase_count.divisor, kept);
  __syncthreads();  // waits for the window
  tile = in_phase;
  return kept;
}

/// `epilogue`: the parameters of Finish.
template <const abi::DepthwiseDesign& design, class Finish, class EpilogueParams>
__device__ __forceinline__ void run_depthwise(const abi::DepthwiseParams& params,
                                              const EpilogueParams& epilogue) {
  static_assert(abi::find_fault(design) == abi::DepthwiseFault::none,
                "find_fault names the field of the design to change");
  extern __shared__ __align__(16) char shared[];
  __shared__ abi::DepthwiseWindow kept;
  const Finish finish(params, epilogue, shared + params.reductions);
#pragma unroll 1
  for (unsigned unit = blockIdx.x; unit < params.units; unit += gridDim.x) {
    const unsigned share = params.channel_tiles.divide(unit);
    const unsigned first_channel =
        (unit - share * params.channel_tiles.divisor) * abi::tile_channels(design);
    __syncthreads();  // waits until all have read the filters before
    finish.begin();
    KeptFilters<design>(shared).store(params, first_channel);
    __syncthreads();  // waits for the filters
    const DepthwiseStrips<design> strips(params, shared, first_channel);
    const unsigned end = min((share + 1) * params.tiles_per_unit, params.tiles);
#pragma unroll 1
    for (unsigned at = share * params.tiles_per_unit; at < end; ++at) {
      unsigned tile = at;
      const abi::DepthwiseWindow& window = window_of_tile<design>(params, kept, tile);
      strips.compute(window, tile * abi::tile_strips(design) + threadIdx.x / design.lanes, finish);
    }
    finish.reduce(first_channel, share);
  }
}

/// The kernel: abi::depthwise_threads threads, dynamic shared memory for the filters
/// (abi::depthwise_shared_bytes), any grid along x.
template <const abi::DepthwiseDesign& design>
__device__ inline void depthwise(const abi::DepthwiseParams& params) {
  run_depthwise<design, LinearChannels<design>>(params, params);
}

/// The same with an emitted epilogue.
template <const abi::DepthwiseDesign& design, class Epilogue, class EpilogueParams>
__device__ inline void depthwise(
    const abi::ProgramParams<abi::DepthwiseParams, EpilogueParams>& params) {
  run_depthwise<design, ProgramChannels<design, Epilogue>>(params.gemm, params.epilogue);
}

}  // namespace gemmery::device
