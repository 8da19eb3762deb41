// SPDX-License-Identifier: Apache-2.0
// Convolutions by their definition, one element at a time: all pairs of pixels and taps are tried.
// Shares only the conversion of single numbers with the library.
#pragma once

#include <gemmery/gemmery.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/number.hpp"

namespace gemmery::tests {

using Extents = std::vector<std::int64_t>;

// A convolution: one number of each list for every spatial dimension.
struct ConvCase {
  std::int64_t images = 1;
  Extents image;
  std::int64_t channels = 1;
  std::int64_t filters = 1;
  Extents filter, lower, upper, stride, dilation;
  std::int64_t groups = 1;
  ConvMode mode = ConvMode::cross_correlation;
  Extents output = {};  // empty: by the formula

  std::size_t dimensions() const { return image.size(); }
  std::int64_t output_of(std::size_t d) const {
    if (!output.empty()) return output[d];
    const std::int64_t left = image[d] + lower[d] + upper[d] - dilation[d] * (filter[d] - 1) - 1;
    return left < 0 ? 0 : left / stride[d] + 1;
  }
  ConvSettings settings() const {
    return {.stride = PerDimension(std::span<const std::int64_t>(stride)),
            .padding = PerDimension(std::span<const std::int64_t>(lower)),
            .upper_padding = PerDimension(std::span<const std::int64_t>(upper)),
            .dilation = PerDimension(std::span<const std::int64_t>(dilation)),
            .groups = groups,
            .mode = mode};
  }
  Extents x_shape() const { return shape_of(images, image, channels); }
  Extents w_shape() const { return shape_of(filters, filter, channels / groups); }
  Extents y_shape() const {
    Extents extents;
    for (std::size_t d = 0; d < dimensions(); ++d) extents.push_back(output_of(d));
    return shape_of(images, extents, filters);
  }

  static Extents shape_of(std::int64_t outer, const Extents& spatial, std::int64_t inner) {
    Extents shape{outer};
    shape.insert(shape.end(), spatial.begin(), spatial.end());
    shape.push_back(inner);
    return shape;
  }
};

// A tensor with its own memory; gaps between elements are NaN, or 0x55 for integers.
class HeldTensor {
 public:
  // Packed, with `pixel_gap` elements after the channels of each pixel.
  HeldTensor(DType dtype, Extents shape, std::int64_t pixel_gap = 0)
      : dtype_(dtype), shape_(std::move(shape)), strides_(shape_.size()) {
    std::int64_t step = 1;
    for (std::size_t d = shape_.size(); d-- > 0;) {
      strides_[d] = step;
      step *= shape_[d];
      if (d + 1 == shape_.size()) step += pixel_gap;
    }
    bytes_.resize(static_cast<std::size_t>(std::max<std::int64_t>(step, 1)) * byte_width(dtype));
    poison();
  }

  Tensor view() const {
    return Tensor(bytes_.data(), dtype_, std::span<const std::int64_t>(shape_),
                  std::span<const std::int64_t>(strides_));
  }
  DType dtype() const { return dtype_; }
  const Extents& shape() const { return shape_; }
  const Extents& strides() const { return strides_; }
  std::int64_t count() const {
    return std::accumulate(shape_.begin(), shape_.end(), std::int64_t{1}, std::multiplies<>());
  }
  Extents index_of(std::int64_t element) const {
    Extents index(shape_.size());
    for (std::size_t d = shape_.size(); d-- > 0; element /= shape_[d])
      index[d] = element % shape_[d];
    return index;
  }
  double operator[](const Extents& index) const {
    return number::load(dtype_, bytes_.data(), offset(index));
  }
  void set(const Extents& index, double value) {
    number::store(dtype_, bytes_.data(), offset(index), {value, 0});
  }
  void poison() { std::memset(bytes_.data(), is_floating(dtype_) ? 0xff : 0x55, bytes_.size()); }
  void fill(const std::function<double()>& draw) {
    for (std::int64_t element = 0; element < count(); ++element) set(index_of(element), draw());
  }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  std::int64_t offset(const Extents& index) const {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * strides_[d];
    return offset;
  }

  DType dtype_;
  Extents shape_, strides_;
  std::vector<std::uint8_t> bytes_;
};

// The products for an element of out along one dimension: pairs of coordinates in A and in B.
using Meetings = std::vector<std::pair<std::int64_t, std::int64_t>>;

inline Meetings meetings(const ConvCase& c, ConvKind kind, std::size_t d, std::int64_t at) {
  Meetings found;
  const auto tap_of_w = [&](std::int64_t r) {
    return c.mode == ConvMode::convolution ? c.filter[d] - 1 - r : r;
  };
  for (std::int64_t p = 0; p < c.output_of(d); ++p)
    for (std::int64_t r = 0; r < c.filter[d]; ++r) {
      const std::int64_t h = p * c.stride[d] - c.lower[d] + r * c.dilation[d];
      if (h < 0 || h >= c.image[d]) continue;
      if (kind == ConvKind::fprop && p == at) found.emplace_back(h, tap_of_w(r));
      if (kind == ConvKind::dgrad && h == at) found.emplace_back(p, tap_of_w(r));
      if (kind == ConvKind::wgrad && tap_of_w(r) == at) found.emplace_back(p, h);
    }
  return found;
}

// The sum of products for an element of out, and their number.
struct NaiveSum {
  double value = 0;
  std::int64_t terms = 0;
};

inline NaiveSum naive_sum(const ConvCase& c, ConvKind kind, const HeldTensor& a,
                          const HeldTensor& b, const Extents& out_index) {
  std::vector<Meetings> along;
  for (std::size_t d = 0; d < c.dimensions(); ++d)
    along.push_back(meetings(c, kind, d, out_index[d + 1]));
  const std::int64_t outer = out_index.front();
  const std::int64_t inner = out_index.back();
  const std::int64_t channels = c.channels / c.groups;
  const std::int64_t filters = c.filters / c.groups;
  NaiveSum sum;
  Extents spatial_a(c.dimensions()), spatial_b(c.dimensions());
  const auto add = [&](std::int64_t a_outer, std::int64_t a_inner, std::int64_t b_outer,
                       std::int64_t b_inner) {
    sum.value += a[ConvCase::shape_of(a_outer, spatial_a, a_inner)] *
                 b[ConvCase::shape_of(b_outer, spatial_b, b_inner)];
    ++sum.terms;
  };
  const auto add_channels = [&] {
    if (kind == ConvKind::fprop)  // x[n, c] * w[k, c]
      for (std::int64_t channel = 0; channel < channels; ++channel)
        add(outer, inner / filters * channels + channel, inner, channel);
    if (kind == ConvKind::dgrad)  // dy[n, k] * w[k, c]
      for (std::int64_t filter = 0; filter < filters; ++filter) {
        const std::int64_t k = inner / channels * filters + filter;
        add(outer, k, k, inner % channels);
      }
    if (kind == ConvKind::wgrad)  // dy[n, k] * x[n, c]
      for (std::int64_t image = 0; image < c.images; ++image)
        add(image, outer, image, outer / filters * channels + inner);
  };
  const std::function<void(std::size_t)> walk = [&](std::size_t d) {
    if (d == c.dimensions()) return add_channels();
    for (const auto& [in_a, in_b] : along[d]) {
      spatial_a[d] = in_a;
      spatial_b[d] = in_b;
      walk(d + 1);
    }
  };
  walk(0);
  return sum;
}

// A, B and out of a case, by kind.
struct ConvOperands {
  HeldTensor a, b, out;
};
inline std::array<Extents, 3> shapes_of(const ConvCase& c, ConvKind kind) {
  switch (kind) {
    case ConvKind::fprop:
      return {c.x_shape(), c.w_shape(), c.y_shape()};
    case ConvKind::dgrad:
      return {c.y_shape(), c.w_shape(), c.x_shape()};
    case ConvKind::wgrad:
      break;
  }
  return {c.y_shape(), c.x_shape(), c.w_shape()};
}

}  // namespace gemmery::tests
