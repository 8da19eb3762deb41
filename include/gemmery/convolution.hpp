// SPDX-License-Identifier: Apache-2.0
// The convolution of a problem: a GEMM whose operands are addressed by pixel and filter tap.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include <gemmery/export.hpp>

namespace gemmery {

// x[N, H, W, C] are images, w[K, R, S, C/g] filters, y[N, P, Q, K] outputs.
enum class ConvKind : std::uint8_t {
  fprop,  // y from x and w
  dgrad,  // dx from dy and w
  wgrad,  // dw from dy and x
};
GEMMERY_API std::string_view name(ConvKind kind) noexcept;
GEMMERY_API std::optional<ConvKind> parse_conv_kind(std::string_view word) noexcept;

// `convolution` reverses the taps of the filter.
enum class ConvMode : std::uint8_t { cross_correlation, convolution };
GEMMERY_API std::string_view name(ConvMode mode) noexcept;
GEMMERY_API std::optional<ConvMode> parse_conv_mode(std::string_view word) noexcept;

// The matrices of a problem's batch: one per group of channels (a single one without
// groups), or one per image.
enum class ConvBatch : std::uint8_t { groups, images };
GEMMERY_API std::string_view name(ConvBatch batch) noexcept;
GEMMERY_API std::optional<ConvBatch> parse_conv_batch(std::string_view word) noexcept;

// A number for each spatial dimension: depth, height, width. A convolution of fewer dimensions uses
// the last ones; the others have extents, strides and dilations of 1, and no padding.
using Spatial = std::array<std::int32_t, 3>;

// As a GEMM of each group, with taps before channels in k and in the columns of dw:
//
//             M                       N               K
//   fprop     pixels of y             filters / g     taps * channels / g
//   dgrad     pixels of x             channels / g    taps * filters / g
//   wgrad     filters / g             taps * C / g    pixels of y
//
// dx(h) is the sum over the taps r for which h + lower - r * dilation is a multiple of the stride
// and its quotient a row of dy. A dx that no tap reaches is epilogue(0).
struct Convolution {
  ConvKind kind = ConvKind::fprop;
  ConvMode mode = ConvMode::cross_correlation;
  ConvBatch batch = ConvBatch::groups;
  std::uint8_t dimensions = 2;  // spatial ones: 1, 2 or 3
  std::int32_t groups = 1;
  std::int64_t images = 0;    // N
  std::int64_t channels = 0;  // C, of all groups
  std::int64_t filters = 0;   // K, of all groups
  Spatial image{1, 1, 1};     // D, H, W
  Spatial filter{1, 1, 1};    // T, R, S
  Spatial output{1, 1, 1};    // O, P, Q
  Spatial stride{1, 1, 1};
  Spatial dilation{1, 1, 1};  // 1: taps read adjacent pixels
  Spatial lower{0, 0, 0};     // padding before the first pixel
  Spatial upper{0, 0, 0};     // padding after the last pixel
  // In elements, from image to image (of w from filter to filter), then along depth, height and
  // width; those of extents 0 and 1 are 0. Channels are adjacent.
  std::array<std::int64_t, 4> a_strides{};
  std::array<std::int64_t, 4> b_strides{};

  friend bool operator==(const Convolution&, const Convolution&) = default;
};

}  // namespace gemmery
