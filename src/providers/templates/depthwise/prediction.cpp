// SPDX-License-Identifier: Apache-2.0
// Loads and instructions of depthwise kernels, from their design. The model is not fitted to
// measurements: instructions are counted in the source, the memory rate is that of skinny kernels.
#include "providers/templates/depthwise/prediction.hpp"

#include <algorithm>
#include <cmath>

#include "model/streamed_gemm.hpp"
#include "operation/convolution.hpp"
#include "providers/templates/depthwise/wide_channels.hpp"
#include "providers/templates/epilogue_time.hpp"

namespace gemmery::templates {
namespace {

// The instructions for a loaded element in skinny kernels.
double decode_instructions(abi::DType dtype) noexcept {
  switch (dtype) {
    case abi::DType::float8_e4m3fn:
      return 6;
    case abi::DType::float8_e5m2:
      return 2;
    case abi::DType::float32:
    case abi::DType::float64:
      return 0;
    default:
      return 1.5;
  }
}

// The number of lines of taps for a strip: a filter's lines, or all taps if they are single.
double lines_of(const abi::DepthwiseDesign& design, const Convolution& convolution) {
  if (abi::is_wgrad(design))
    return static_cast<double>(tap_tiles(design, convolution)) * design.rows;
  double taps = 1;
  for (std::size_t d = 0; d < 3; ++d) taps *= convolution.filter[d];
  double met = taps;
  if (design.kind == abi::DepthwiseKind::strided_dgrad)
    for (const std::int32_t stride : convolution.stride) met /= stride;
  return met / design.taps;
}

// The ratio of pixels in strips to pixels in lines along width.
double strip_padding(const abi::DepthwiseDesign& design, const Convolution& convolution) {
  const bool is_dgrad = convolution.kind == ConvKind::dgrad;
  const double width = is_dgrad ? std::max<double>(convolution.image[2] / convolution.stride[2], 1)
                                : std::max<double>(convolution.output[2], 1);
  return std::ceil(width / design.pixels) * design.pixels / width;
}

}  // namespace

double depthwise_instructions(const abi::DepthwiseDesign& design, const Convolution& convolution,
                              bool is_wide) noexcept {
  constexpr double address = 3;  // address of a vector of channels, and the test for padding
  constexpr double line = 16;    // coordinates, tests and jumps
  const double channels = is_wide ? design.channels : 1;
  const double multiply = design.accumulator == abi::DType::float64 ? 2 : 1;
  const double products = design.pixels * design.taps * channels * multiply;
  const double source =
      abi::strip_span(design) * (address + channels * decode_instructions(design.a));
  const double reads = abi::is_wgrad(design) ? 0 : design.taps * std::ceil(channels / 4);
  const double of_line = products + source + reads + line;
  const double gradients =
      abi::is_wgrad(design)
          ? design.pixels * (address + channels * decode_instructions(design.a)) / design.rows
          : 0;
  const double stores = abi::is_wgrad(design) ? 0 : design.pixels * (2 * channels + 8);
  const double all = lines_of(design, convolution) * (of_line + gradients) + stores;
  return all * strip_padding(design, convolution) / (design.pixels * channels);
}

double predict_depthwise_us(const DepthwiseTile& tile, const OperandRules& rules,
                            const GemmProblem& problem, const DeviceInfo& device) {
  const Convolution& convolution = *problem.convolution;
  const abi::DepthwiseDesign design = depthwise_design(rules, tile);
  const DepthwiseWork work = depthwise_work(tile, design, convolution, device.multiprocessors);
  const bool is_wgrad = abi::is_wgrad(design);
  const double units = static_cast<double>(channel_tiles(design, convolution)) *
                       static_cast<double>(work.shares) *
                       (is_wgrad ? static_cast<double>(tap_tiles(design, convolution)) : 1);
  // Each chunk of a filter's taps reads both operands; from the second on from L2, at twice the
  // rate.
  const double passes =
      is_wgrad ? 0.5 + 0.5 * static_cast<double>(tap_tiles(design, convolution)) : 1;
  const double operands =
      operation::conv_bytes(problem, true) + (is_wgrad ? operation::conv_bytes(problem, false) : 0);
  const double streamed = operands * passes;
  const double pixels = static_cast<double>(is_wgrad ? problem.k : problem.m);
  const double channels = static_cast<double>(
      convolution.kind == ConvKind::dgrad ? convolution.channels : convolution.filters);
  const double instructions =
      depthwise_instructions(design, convolution, has_wide_channels(design, problem)) * pixels *
      channels *
      (convolution.kind == ConvKind::dgrad ? static_cast<double>(filters_of_channel(convolution))
                                           : 1.0);
  const double exchanged = is_wgrad && work.shares > 1
                               ? 2 * units * design.rows * design.taps *
                                     abi::tile_channels(design) *
                                     abi::depthwise_word_bytes(design.accumulator)
                               : 0;
  return model::predict_streamed(
             {.streamed_bytes = streamed,
              .other_bytes = std::max(problem.bytes() - operands, 0.0),
              .units = units,
              .bytes_under_way = static_cast<double>(abi::depthwise_threads) *
                                 abi::strip_span(design) * design.channels *
                                 abi::bytes_of(design.a),
              .blocks_per_multiprocessor = static_cast<double>(abi::depthwise_blocks(design)),
              .is_along_columns = true,
              .instructions_per_byte = instructions / std::max(streamed, 1.0),
              .slices = is_wgrad ? static_cast<double>(work.shares) : 1.0,
              .exchanged_bytes = exchanged},
             device)
             .total_us() +
         epilogue_us(problem, device);
}

}  // namespace gemmery::templates
