// SPDX-License-Identifier: Apache-2.0
// Each copy has four dimensions: blocks of 32 channels, images (or filters), pixels (or taps) and
// the 32 channels. Elementwise kernels have three, so there is one launch for each index of the
// shorter of the first two.
#include "describe/conv_interleaved.hpp"

#include "describe/packed_operands.hpp"

namespace gemmery::describe {
namespace {

struct Dimension {
  std::int64_t extent;
  std::int64_t interleaved;  // stride
  std::int64_t plain;
};

// Blocks of channels, then images or filters, then pixels or taps; 32 channels are contiguous.
using Dimensions = std::array<Dimension, 3>;

Dimensions dimensions_of(const InterleavedTensor& tensor) {
  const auto& [outer, height, width, channels] = tensor.extents;
  const std::int64_t inner = height * width;
  const std::int64_t blocks = channels / interleave;
  if (tensor.layout == Layout::TensorNC32HW32)
    return {{{blocks, inner * interleave, interleave},
             {outer, inner * channels, inner * channels},
             {inner, interleave, channels}}};
  return {{{blocks, outer * inner * interleave, interleave},
           {outer, interleave, inner * channels},
           {inner, outer * interleave, channels}}};
}

// The dimensions that one launch copies, and the dimension with one launch per index.
struct Launches {
  Dimension rows, batch, through;
};
Launches launches_of(const InterleavedTensor& tensor) {
  const auto [blocks, outer, inner] = dimensions_of(tensor);
  if (outer.extent <= blocks.extent) return {inner, blocks, outer};
  return {inner, outer, blocks};
}

Tensor view_of(const InterleavedTensor& tensor, const Launches& launches, std::int64_t at,
               bool is_plain) {
  const auto stride = [&](const Dimension& dimension) {
    return is_plain ? dimension.plain : dimension.interleaved;
  };
  const auto* const data =
      static_cast<const std::byte*>(is_plain ? tensor.plain : tensor.interleaved) +
      at * stride(launches.through) * static_cast<std::int64_t>(byte_width(tensor.dtype));
  return Tensor(
      data, tensor.dtype, std::array{launches.batch.extent, launches.rows.extent, interleave},
      std::array{stride(launches.batch), stride(launches.rows), std::int64_t{1}}, tensor.device);
}

std::vector<Step> copy(const InterleavedTensor& tensor, bool into_plain) {
  const Launches launches = launches_of(tensor);
  std::vector<Step> steps;
  for (std::int64_t at = 0; at < launches.through.extent; ++at)
    steps.push_back(elementwise_step(
        view_of(tensor, launches, at, into_plain),
        EpilogueArguments("D = source", {{"source", view_of(tensor, launches, at, !into_plain)}})));
  return steps;
}

}  // namespace

std::vector<Step> to_plain(const InterleavedTensor& tensor) { return copy(tensor, true); }
std::vector<Step> to_interleaved(const InterleavedTensor& tensor) { return copy(tensor, false); }

}  // namespace gemmery::describe
