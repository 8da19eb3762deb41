// SPDX-License-Identifier: Apache-2.0
// The tensors of a convolution in oneDNN's order of dimensions: (N, C, …), (g, K, C, …).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "providers/host/onednn.hpp"
#include "providers/host/onednn_api.hpp"

namespace gemmery::host::onednn {

struct TensorExtents {
  DataType type{};
  int count = 0;
  std::array<std::int64_t, most_dimensions> dimensions{};
  std::array<std::int64_t, most_dimensions> strides{};

  void add(std::int64_t extent, std::int64_t stride) {
    dimensions[static_cast<std::size_t>(count)] = extent;
    strides[static_cast<std::size_t>(count++)] = stride;
  }
};

// Adds the spatial dimensions; channels are innermost.
inline void add_spatial(const ConvolutionShape& shape, const ConvolutionShape::Numbers& extents,
                        std::int64_t channels, TensorExtents& tensor) {
  const auto first = static_cast<std::size_t>(3 - shape.dimensions);
  for (std::size_t d = first; d < 3; ++d) {
    std::int64_t stride = channels;
    for (std::size_t inner = d + 1; inner < 3; ++inner) stride *= extents[inner];
    tensor.add(extents[d], stride);
  }
}

inline std::int64_t pixels_of(const ConvolutionShape::Numbers& extents) {
  return extents[0] * extents[1] * extents[2];
}

// A tensor with a number for each pixel and channel of every image.
inline TensorExtents pixel_extents(const ConvolutionShape& shape, DataType type,
                                   const ConvolutionShape::Numbers& pixels, std::int64_t channels) {
  TensorExtents tensor{.type = type};
  tensor.add(shape.image_count, pixels_of(pixels) * channels);
  tensor.add(channels, 1);
  add_spatial(shape, pixels, channels, tensor);
  return tensor;
}
inline TensorExtents image_extents(const ConvolutionShape& shape) {
  return pixel_extents(shape, shape.images, shape.image, shape.channels);
}
inline TensorExtents output_extents(const ConvolutionShape& shape) {
  return pixel_extents(shape, shape.outputs, shape.output, shape.filter_count);
}

inline TensorExtents filter_extents(const ConvolutionShape& shape) {
  TensorExtents tensor{.type = shape.filters};
  const std::int64_t channels = shape.channels / shape.groups;
  const std::int64_t filters = shape.filter_count / shape.groups;
  const std::int64_t step = pixels_of(shape.filter) * channels;
  if (shape.groups > 1) tensor.add(shape.groups, filters * step);
  tensor.add(filters, step);
  tensor.add(channels, 1);
  add_spatial(shape, shape.filter, channels, tensor);
  return tensor;
}

// Strides, dilations (0: neighbouring pixels) and padding of the convolution's dimensions.
struct ConvolutionNumbers {
  explicit ConvolutionNumbers(const ConvolutionShape& shape) {
    const auto first = static_cast<std::size_t>(3 - shape.dimensions);
    for (std::size_t d = first; d < 3; ++d) {
      strides[d - first] = shape.stride[d];
      dilations[d - first] = shape.dilation[d] - 1;
      lower[d - first] = shape.lower[d];
      upper[d - first] = shape.upper[d];
    }
  }
  std::int64_t strides[3]{}, dilations[3]{}, lower[3]{}, upper[3]{};
};

}  // namespace gemmery::host::onednn
