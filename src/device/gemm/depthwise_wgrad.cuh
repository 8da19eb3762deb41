// SPDX-License-Identifier: Apache-2.0
// wgrad of a depthwise convolution: each tap of a channel's filter is a sum over all pixels of dy.
//
//   dy in global memory            x in global memory
//     | vectors of contiguous        | the same, zeros in padding; each pixel of a line once for
//     | channels                     | all taps of a strip
//   a strip's pixels of dy and of x, in registers
//     +---------- products of each tap's pixels in the strip
//   accumulators: some taps by contiguous channels
// | sums over strips of a warp by shuffles, over warps in shared memory, over blocks through the
//     | workspace: always in the same order
//   dw in global memory, by epilogue/channel_store
#pragma once

#include <device/abi/depthwise_design.hpp>
#include <device/abi/depthwise_params.hpp>
#include <device/copy/channel_vector.cuh>
#include <device/epilogue/channel_store.cuh>
#include <device/ptx/atomic.cuh>
#include <device/ptx/memory.cuh>
#include <device/tile/depthwise_strip.cuh>

namespace gemmery::device {

/// The part that a block computes: channels from the first one on, taps from these on, and a slice
/// of the pixels.
struct DepthwiseShare {
  unsigned first_channel;
  int tap[3];
  unsigned slice;
  unsigned tile;  // index of the tile of taps and channels
};

template <const abi::DepthwiseDesign& design>
__device__ __forceinline__ DepthwiseShare share_of(const abi::DepthwiseParams& params,
                                                   unsigned unit) {
  const unsigned above = params.channel_tiles.divide(unit);
  const unsigned channel_tile = unit - above * params.channel_tiles.divisor;
  const unsigned taps = params.slices.divide(above);
  const unsigned line = params.tap_tiles[2].divide(taps);
  const unsigned plane = params.tap_tiles[1].divide(line);
  return {.first_channel = channel_tile * abi::tile_channels(design),
          .tap = {static_cast<int>(plane),
                  static_cast<int>((line - plane * params.tap_tiles[1].divisor) * design.rows),
                  static_cast<int>((taps - line * params.tap_tiles[2].divisor) * design.taps)},
          .slice = above - taps * params.slices.divisor,
          .tile = taps * params.channel_tiles.divisor + channel_tile};
}

template <const abi::DepthwiseDesign& design>
class DepthwiseWgrad {
 public:
  using Number = typename ArithmeticOf<design.accumulator>::Accumulator;

  __device__ __forceinline__ DepthwiseWgrad(const abi::DepthwiseParams& params, char* shared,
                                            const DepthwiseShare& share)
      : params_(params),
        parts_(reinterpret_cast<Number*>(shared)),
        share_(share),
        lane_(static_cast<int>(threadIdx.x) % design.lanes),
        channel_(share.first_channel + static_cast<unsigned>(lane_ * design.channels)) {}

  /// Writes the sums of each warp to shared memory.
  __device__ __forceinline__ void accumulate() const {
    if (params_.is_wide != 0) {
      accumulate_channels<design.channels>(0);
      return;
    }
#pragma unroll 1
    for (int own = 0; own < design.channels; ++own) accumulate_channels<1>(own);
  }

  /// Stores the block's taps, or writes them to the workspace for the last block of the tile.
  template <class Finish>
  __device__ __forceinline__ void finish(unsigned* flag, const Finish& finish) const {
    const unsigned slices = params_.slices.divisor;
    if (slices > 1) {
      for_each_word([&](unsigned word) { *place_of(share_.slice, word) = sum_of_warps(word); });
      __syncthreads();  // waits until all parts are written
      unsigned* const counter = static_cast<unsigned*>(params_.workspace) + share_.tile;
      if (threadIdx.x == 0) *flag = ptx::atom_inc_acq_rel_gpu(counter, slices - 1);
      __syncthreads();  // waits for the count; what thread 0 has acquired, all may read
      if (*flag + 1 != slices) return;
    }
    for_each_word([&](unsigned word) {
      if (slices == 1) {
        store(word, sum_of_warps(word), finish);
        return;
      }
      Number sum{0};
#pragma unroll 1
      for (unsigned slice = 0; slice < slices; ++slice) sum += *place_of(slice, word);
      store(word, sum, finish);
    });
  }

 private:
  static constexpr int taps = design.rows * design.taps;
  static constexpr unsigned words = taps * abi::tile_channels(design);
  template <int width>
  using Sums = Number[design.rows][design.taps][width];

  template <class Visit>
  __device__ __forceinline__ static void for_each_word(Visit&& visit) {
#pragma unroll 1
    for (unsigned word = threadIdx.x; word < words; word += abi::depthwise_threads) visit(word);
  }

  template <int width>
  __device__ __forceinline__ void accumulate_channels(int own) const {
    const unsigned channel = channel_ + static_cast<unsigned>(own);
    Sums<width> sums{};
    if (channel < params_.channels) {
      const unsigned end = min((share_.slice + 1) * params_.tiles_per_unit, params_.tiles);
#pragma unroll 1
      for (unsigned tile = share_.slice * params_.tiles_per_unit; tile < end; ++tile)
        add_strip<width>(
            sums,
            find_strip<design>(params_, params_.window,
                               tile * abi::tile_strips(design) + threadIdx.x / design.lanes),
            channel);
    }
    leave<width>(sums, own);
  }

  template <int width>
  __device__ __forceinline__ void add_strip(Sums<width>& sums, const DepthwiseStrip& strip,
                                            unsigned channel) const {
    if (strip.pixels == 0) return;
    constexpr int bytes = abi::bytes_of(design.b);
    const abi::DepthwiseWindow& window = params_.window;
    const abi::Int64(&strides)[4] = params_.b_strides.of;
    const int depth =
        strip.at[0] * window.step[0] + window.origin[0] + share_.tap[0] * window.tap_step[0];
    if (static_cast<unsigned>(depth) >= params_.extent[0]) return;
    Number gradients[design.pixels][width];
    load_gradients<width>(gradients, strip, channel);
    const char* const image =
        static_cast<const char*>(params_.b) +
        (strip.image * strides[0] + depth * strides[1] + params_.group_channels.divide(channel)) *
            bytes;
    const int first =
        strip.at[2] * window.step[2] + window.origin[2] + share_.tap[2] * window.tap_step[2];
#pragma unroll
    for (int row = 0; row < design.rows; ++row) {
      const int height = strip.at[1] * window.step[1] + window.origin[1] +
                         (share_.tap[1] + row) * window.tap_step[1];
      if (static_cast<unsigned>(height) >= params_.extent[1]) continue;
      add_line<width>(sums[row], gradients, strip.pixels, image + height * strides[2] * bytes,
                      first);
    }
  }

  template <int width>
  __device__ __forceinline__ void load_gradients(Number (&gradients)[design.pixels][width],
                                                 const DepthwiseStrip& strip,
                                                 unsigned channel) const {
    constexpr int bytes = abi::bytes_of(design.a);
    const abi::Int64(&strides)[4] = params_.a_strides.of;
    const char* const first = static_cast<const char*>(params_.a) +
                              (strip.image * strides[0] + strip.at[0] * strides[1] +
                               strip.at[1] * strides[2] + strip.at[2] * strides[3] + channel) *
                                  bytes;
    ChannelVector<design.a, width> loaded[design.pixels];
#pragma unroll
    for (int pixel = 0; pixel < design.pixels; ++pixel)
      loaded[pixel].load(pixel < strip.pixels, first + pixel * strides[3] * bytes);
#pragma unroll
    for (int pixel = 0; pixel < design.pixels; ++pixel) loaded[pixel].decode_into(gradients[pixel]);
  }

  /// Multiplies the source pixels of a line from `first` on. Pixels that dy does not have are
  /// skipped, since x may be Inf there.
  template <int width>
  __device__ __forceinline__ void add_line(Number (&sums)[design.taps][width],
                                           const Number (&gradients)[design.pixels][width],
                                           int pixels, const char* line, int first) const {
    constexpr int span = abi::strip_span(design);
    const int step = design.taps > 1 ? 1 : params_.window.step[2];
    ChannelVector<design.b, width> source[span];
#pragma unroll
    for (int at = 0; at < span; ++at) {
      const int place = first + at * step;
      source[at].load(static_cast<unsigned>(place) < params_.extent[2],
                      line + place * params_.b_strides.of[3] * abi::bytes_of(design.b));
    }
#pragma unroll
    for (int at = 0; at < span; ++at) {
      Number values[width];
      source[at].decode_into(values);
#pragma unroll
      for (int pixel = 0; pixel < design.pixels; ++pixel) {
        const int tap = design.taps > 1 ? at - pixel * design.stride : at == pixel ? 0 : -1;
        if (tap < 0 || tap >= design.taps || pixel >= pixels) continue;
#pragma unroll
        for (int channel = 0; channel < width; ++channel)
          sums[tap][channel] += gradients[pixel][channel] * values[channel];
      }
    }
  }

  /// Adds up the strips of a warp; its first lanes store their channels: [warp][tap][channel].
  template <int width>
  __device__ __forceinline__ void leave(const Sums<width>& sums, int own) const {
    const int warp = static_cast<int>(threadIdx.x) / 32;
#pragma unroll
    for (int tap = 0; tap < taps; ++tap) {
      Number totals[width];
#pragma unroll
      for (int channel = 0; channel < width; ++channel) {
        Number sum = sums[tap / design.taps][tap % design.taps][channel];
#pragma unroll
        for (int distance = design.lanes; distance < 32; distance *= 2)
          sum += __shfl_xor_sync(0xffffffffU, sum, distance);
        totals[channel] = sum;
      }
      if (threadIdx.x % 32 < design.lanes)
        store_words<design, width>(parts_, totals, warp * taps + tap, lane_, own);
    }
  }

  __device__ __forceinline__ Number sum_of_warps(unsigned word) const {
    Number sum = parts_[word];
#pragma unroll
    for (unsigned warp = 1; warp < abi::depthwise_threads / 32; ++warp)
      sum += parts_[warp * words + word];
    return sum;
  }

  __device__ __forceinline__ Number* place_of(unsigned slice, unsigned word) const {
    auto* const all =
        reinterpret_cast<Number*>(static_cast<char*>(params_.workspace) + params_.partials);
    return all + (static_cast<abi::UInt64>(share_.tile) * params_.slices.divisor + slice) * words +
           word;
  }

  template <class Finish>
  __device__ __forceinline__ void store(unsigned word, Number sum, const Finish& finish) const {
    const abi::DepthwiseWindow& window = params_.window;
    const auto of_tap = static_cast<int>(word) / abi::tile_channels(design);
    const unsigned channel =
        share_.first_channel + abi::channel_at(abi::value_of<design>(),
                                               static_cast<int>(word) % abi::tile_channels(design));
    const int own[3] = {share_.tap[0], share_.tap[1] + of_tap / design.taps,
                        share_.tap[2] + of_tap % design.taps};
    if (channel >= params_.channels || own[1] >= static_cast<int>(params_.filter[1]) ||
        own[2] >= static_cast<int>(params_.filter[2]))
      return;
    int column = 0;
#pragma unroll
    for (int d = 0; d < 3; ++d)
      column = column * static_cast<int>(params_.filter[d]) + window.first_tap[d] +
               own[d] * window.tap_walk[d];
    const unsigned group = params_.group_channels.divide(channel);
    const Number sums[1] = {sum};
    store_channels<design, 1>(params_, finish, sums,
                              {.batch = group,
                               .row = channel - group * params_.group_channels.divisor,
                               .column = static_cast<unsigned>(column)});
  }

  const abi::DepthwiseParams& params_;
  Number* const parts_;
  const DepthwiseShare share_;
  const int lane_;
  const unsigned channel_;
};

/// `epilogue`: the parameters of Finish.
template <const abi::DepthwiseDesign& design, class Finish, class EpilogueParams>
__device__ __forceinline__ void run_depthwise_wgrad(const abi::DepthwiseParams& params,
                                                    const EpilogueParams& epilogue) {
  static_assert(abi::find_fault(design) == abi::DepthwiseFault::none,
                "find_fault names the field of the design to change");
  extern __shared__ __align__(16) char shared[];
  __shared__ unsigned flag;
  const Finish finish(params, epilogue, nullptr);
#pragma unroll 1
  for (unsigned unit = blockIdx.x; unit < params.units; unit += gridDim.x) {
    const DepthwiseWgrad<design> block(params, shared, share_of<design>(params, unit));
    __syncthreads();  // waits until all have read the parts before
    block.accumulate();
    __syncthreads();  // waits for the parts of all warps
    block.finish(&flag, finish);
  }
}

/// The kernel: abi::depthwise_threads threads, abi::depthwise_shared_bytes dynamic shared bytes,
/// any grid along x.
template <const abi::DepthwiseDesign& design>
__device__ inline void depthwise_wgrad(const abi::DepthwiseParams& params) {
  run_depthwise_wgrad<design, LinearChannels<design>>(params, params);
}

/// The same with an emitted epilogue.
template <const abi::DepthwiseDesign& design, class Epilogue, class EpilogueParams>
__device__ inline void depthwise_wgrad(
    const abi::ProgramParams<abi::DepthwiseParams, EpilogueParams>& params) {
  run_depthwise_wgrad<design, ProgramChannels<design, Epilogue>>(params.gemm, params.epilogue);
}

}  // namespace gemmery::device
