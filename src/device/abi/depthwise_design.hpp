// SPDX-License-Identifier: Apache-2.0
// The design of a kernel for depthwise convolutions, and arithmetic that host and device code
// share.
#pragma once

#include <device/abi/dtype.hpp>
#include <device/abi/host_device.hpp>

namespace gemmery::abi {

enum class DepthwiseKind : unsigned char { fprop, dgrad, strided_dgrad, wgrad };

/// A thread computes a strip of `pixels` along width for `channels` contiguous channels.
struct DepthwiseDesign {
  DType a;
  DType b;
  DType c;
  DType out;
  DType accumulator;
  DepthwiseKind kind;
  int channels;
  int pixels;
  /// Rows of taps along height whose accumulators a thread of wgrad keeps; 1 for other kinds.
  int rows;
  /// Taps along width that share a strip's source pixels in registers: all of a filter's, or for
  /// wgrad as many at a time. 1: single taps, at any distance.
  int taps;
  /// Source pixels from pixel to pixel along width, if there are several taps.
  int stride;
  /// Threads of a block along channels.
  int lanes;
  bool has_c;
};

inline constexpr int depthwise_threads = 256;
inline constexpr int most_depthwise_shared_bytes = 96 * 1024;

GEMMERY_HOST_DEVICE
constexpr bool is_wgrad(const DepthwiseDesign& design) {
  return design.kind == DepthwiseKind::wgrad;
}

/// Bytes of a filter's tap in shared memory, and of an accumulator.
GEMMERY_HOST_DEVICE
constexpr int depthwise_word_bytes(DType accumulator) {
  return accumulator == DType::float64 ? 8 : 4;
}

/// Channels and strips of a block.
GEMMERY_HOST_DEVICE
constexpr int tile_channels(const DepthwiseDesign& design) {
  return design.lanes * design.channels;
}
GEMMERY_HOST_DEVICE
constexpr int tile_strips(const DepthwiseDesign& design) {
  return depthwise_threads / design.lanes;
}

/// Source pixels of a strip that are in registers at a time.
GEMMERY_HOST_DEVICE
constexpr int strip_span(const DepthwiseDesign& design) {
  return design.taps == 1 ? design.pixels : (design.pixels - 1) * design.stride + design.taps;
}

/// Words that a lane accesses at once: 16 bytes, so that eight lanes access all banks.
GEMMERY_HOST_DEVICE
constexpr int words_at_once(const DepthwiseDesign& design) {
  const int most = 16 / depthwise_word_bytes(design.accumulator);
  return design.channels < most ? design.channels : most;
}

/// The offset of a lane's channel in shared memory, in words: [tap][words at once][lane].
GEMMERY_HOST_DEVICE
constexpr int word_place(const DepthwiseDesign& design, int tap, int lane, int channel) {
  const int at_once = words_at_once(design);
  const int row = tap * (design.channels / at_once) + channel / at_once;
  return (row * design.lanes + lane) * at_once + channel % at_once;
}
/// The channel, in the block's tile, of the word at this offset in a tap.
GEMMERY_HOST_DEVICE
constexpr int channel_at(const DepthwiseDesign& design, int place) {
  const int at_once = words_at_once(design);
  const int row = place / at_once / design.lanes;
  return place / at_once % design.lanes * design.channels + row * at_once + place % at_once;
}

/// Accumulators of a thread.
GEMMERY_HOST_DEVICE
constexpr int depthwise_sums(const DepthwiseDesign& design) {
  return (is_wgrad(design) ? design.rows * design.taps : design.pixels) * design.channels;
}

/// Words in registers besides the accumulators: taps of fprop and dgrad, or dy of wgrad.
GEMMERY_HOST_DEVICE
constexpr int depthwise_held(const DepthwiseDesign& design) {
  return (is_wgrad(design) ? design.pixels : design.taps) * design.channels;
}

/// Blocks that the registers of a multiprocessor hold.
GEMMERY_HOST_DEVICE
constexpr int depthwise_blocks(const DepthwiseDesign& design) {
  const int source = strip_span(design) * design.channels * bits_of(design.a) / 32;
  const int words = depthwise_sums(design) + depthwise_held(design) + source;
  return words * depthwise_word_bytes(design.accumulator) / 4 > 72 ? 1 : 2;
}

/// Shared memory of a block: filters with this number of taps; for wgrad the sums of its warps.
GEMMERY_HOST_DEVICE
constexpr int depthwise_shared_bytes(const DepthwiseDesign& design, int taps) {
  const int of_tap = tile_channels(design) * depthwise_word_bytes(design.accumulator);
  return of_tap * (is_wgrad(design) ? depthwise_threads / 32 * design.rows * design.taps : taps);
}

/// Shared memory of one reduction of an epilogue: a value for each channel of each thread.
GEMMERY_HOST_DEVICE
constexpr int depthwise_reduction_bytes(const DepthwiseDesign& design) {
  const int compute_bytes =
      design.accumulator == DType::float64 || design.accumulator == DType::int32 ? 8 : 4;
  return depthwise_threads * design.channels * compute_bytes;
}

enum class DepthwiseFault : unsigned char { none, channels, pixels, rows, taps, stride, lanes };

GEMMERY_HOST_DEVICE
constexpr DepthwiseFault find_fault(const DepthwiseDesign& design) {
  const auto is_power = [](int number, int most) {
    return number >= 1 && number <= most && (number & (number - 1)) == 0;
  };
  const int wider = bits_of(design.a) > bits_of(design.b) ? bits_of(design.a) : bits_of(design.b);
  const int read = is_wgrad(design) ? wider : bits_of(design.a);
  if (!is_power(design.channels, 8) || design.channels * read > 128)
    return DepthwiseFault::channels;
  if (design.pixels < 1 || design.pixels > 8) return DepthwiseFault::pixels;
  if (design.taps < 1 || design.taps > 8) return DepthwiseFault::taps;
  if (design.rows < 1 || design.rows > 8 || (design.rows > 1 && !is_wgrad(design)))
    return DepthwiseFault::rows;
  if (design.stride < 1 || design.stride > 4 || (design.taps == 1 && design.stride > 1))
    return DepthwiseFault::stride;
  if (!is_power(design.lanes, 32)) return DepthwiseFault::lanes;
  const int words = depthwise_sums(design) + depthwise_held(design);
  if (words * depthwise_word_bytes(design.accumulator) > 4 * 112) return DepthwiseFault::taps;
  if (is_wgrad(design) && depthwise_shared_bytes(design, 0) > most_depthwise_shared_bytes)
    return DepthwiseFault::lanes;
  return DepthwiseFault::none;
}

GEMMERY_HOST_DEVICE
constexpr bool is_legal(const DepthwiseDesign& design) {
  return find_fault(design) == DepthwiseFault::none;
}

}  // namespace gemmery::abi
