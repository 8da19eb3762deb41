// SPDX-License-Identifier: Apache-2.0
// Contiguous channels of a pixel in registers, and filters of all channels in shared memory.
#pragma once

#include <device/abi/depthwise_design.hpp>
#include <device/abi/depthwise_params.hpp>
#include <device/ptx/memory.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

/// Loads the channels of a pixel; zeros unless it `exists`.
template <DType dtype, int channels>
struct ChannelVector {
  static constexpr int bytes = channels * abi::bytes_of(dtype);
  ptx::Registers<bytes> loaded;

  __device__ __forceinline__ void load(bool exists, const char* address) {
    loaded = ptx::ld_global_if<bytes>(exists, address, {});
  }
  template <class Number>
  __device__ __forceinline__ void decode_into(Number (&values)[channels]) const {
#pragma unroll
    for (int channel = 0; channel < channels; ++channel)
      values[channel] = decode<dtype, Number>(loaded, channel);
  }
};

/// Words of one tap that a lane accesses at once.
template <const abi::DepthwiseDesign& design, int width>
struct alignas(width < abi::words_at_once(design) ? abi::depthwise_word_bytes(design.accumulator)
                                                  : abi::depthwise_word_bytes(design.accumulator) *
                                                        abi::words_at_once(design)) LaneWords {
  static constexpr int count = width < abi::words_at_once(design) ? 1 : abi::words_at_once(design);
  typename ArithmeticOf<design.accumulator>::Accumulator of[count];
};

/// Words of one tap for `width` channels of a lane, from its channel `first` on, in shared memory.
template <const abi::DepthwiseDesign& design, int width, class Number>
__device__ __forceinline__ void load_words(Number (&values)[width], const Number* words, int tap,
                                           int lane, int first) {
  using Words = LaneWords<design, width>;
#pragma unroll
  for (int channel = 0; channel < width; channel += Words::count) {
    const Words loaded = *reinterpret_cast<const Words*>(
        words + abi::word_place(abi::value_of<design>(), tap, lane, first + channel));
#pragma unroll
    for (int word = 0; word < Words::count; ++word) values[channel + word] = loaded.of[word];
  }
}
template <const abi::DepthwiseDesign& design, int width, class Number>
__device__ __forceinline__ void store_words(Number* words, const Number (&values)[width], int tap,
                                            int lane, int first) {
  using Words = LaneWords<design, width>;
#pragma unroll
  for (int channel = 0; channel < width; channel += Words::count) {
    Words stored;
#pragma unroll
    for (int word = 0; word < Words::count; ++word) stored.of[word] = values[channel + word];
    *reinterpret_cast<Words*>(
        words + abi::word_place(abi::value_of<design>(), tap, lane, first + channel)) = stored;
  }
}

/// Filters of a block's channels, decoded: [tap][channels of the tile], by abi::word_place.
template <const abi::DepthwiseDesign& design>
class KeptFilters {
 public:
  using Number = typename ArithmeticOf<design.accumulator>::Accumulator;

  __device__ __forceinline__ explicit KeptFilters(char* shared)
      : words_(reinterpret_cast<Number*>(shared)) {}

  /// Called by all threads: stores the taps of all filters of the tile's channels.
  __device__ __forceinline__ void store(const abi::DepthwiseParams& params,
                                        unsigned first_channel) const {
    constexpr int channels = abi::tile_channels(design);
    const unsigned taps = params.filter[0] * params.filter[1] * params.filter[2];
#pragma unroll 1
    for (unsigned index = threadIdx.x; index < params.repeats * taps * channels;
         index += abi::depthwise_threads) {
      const unsigned own = index / channels;
      const int in_tile = static_cast<int>(index % channels);
      const unsigned channel = first_channel + abi::channel_at(abi::value_of<design>(), in_tile);
      words_[index] = channel < params.channels ? read(params, channel, own, taps) : Number{0};
    }
  }

  /// The words of one tap for `width` channels of a lane, from its channel `first` on.
  template <int width>
  __device__ __forceinline__ void load(Number (&values)[width], int tap, int lane,
                                       int first) const {
    load_words<design, width>(values, words_, tap, lane, first);
  }

 private:
  /// `own`: a tap of all filters of a channel of out; only dgrad has several.
  __device__ __forceinline__ static Number read(const abi::DepthwiseParams& params,
                                                unsigned channel, unsigned own, unsigned taps) {
    constexpr int bytes = abi::bytes_of(design.b);
    unsigned repeat = 0;
    unsigned tap = own;
    while (tap >= taps) {
      tap -= taps;
      ++repeat;
    }
    const unsigned line = params.filter_walk[1].divide(tap);
    const unsigned plane = params.filter_walk[0].divide(line);
    const abi::Int64(&strides)[4] = params.b_strides.of;
    const abi::Int64 element =
        static_cast<abi::Int64>(channel * params.repeats + repeat) * strides[0] +
        plane * strides[1] + (line - plane * params.filter[1]) * strides[2] +
        (tap - line * params.filter[2]) * strides[3];
    const auto loaded =
        ptx::ld_global_nc<bytes>(static_cast<const char*>(params.b) + element * bytes);
    return decode<design.b, Number>(loaded, 0);
  }

  Number* words_;
};

}  // namespace gemmery::device
