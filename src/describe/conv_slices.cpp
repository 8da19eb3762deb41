// SPDX-License-Identifier: Apache-2.0
// Each slice is a convolution of views with some of the channels, filters, images or rows of
// pixels.
#include "describe/conv_slices.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/arithmetic.hpp"
#include "describe/combinations.hpp"
#include "describe/conv_description.hpp"
#include "describe/described_kernel.hpp"
#include "describe/packed_operands.hpp"
#include "describe/refusal.hpp"
#include "operation/convolution.hpp"

namespace gemmery::describe {
namespace {

struct Range {
  std::int64_t first;
  std::int64_t count;
};

// At most `slices` ranges of whole blocks; one without elements if there are none.
std::vector<Range> ranges_of(std::int64_t extent, std::int64_t block, std::int64_t slices) {
  const std::int64_t blocks = std::max<std::int64_t>(divide_up(extent, block), 1);
  const std::int64_t each = divide_up(blocks, slices) * block;
  std::vector<Range> ranges;
  for (std::int64_t first = 0; first < std::max<std::int64_t>(extent, 1); first += each)
    ranges.push_back({first, std::min(each, extent - first)});
  return ranges;
}

// A part of a tensor of rank 4 along one dimension.
Tensor part_of(const Tensor& tensor, int dimension, const Range& range) {
  std::array shape{tensor.extent(0), tensor.extent(1), tensor.extent(2), tensor.extent(3)};
  const std::array strides{tensor.stride(0), tensor.stride(1), tensor.stride(2), tensor.stride(3)};
  shape[static_cast<std::size_t>(dimension)] = range.count;
  const auto bytes = static_cast<std::int64_t>(byte_width(tensor.dtype()));
  const auto* const data =
      static_cast<const std::byte*>(tensor.data()) + range.first * tensor.stride(dimension) * bytes;
  return Tensor(data, tensor.dtype(), shape, strides, tensor.device());
}

// Adds up the slices of one problem.
class Slicing {
 public:
  Slicing(const Conv2dDescription& description, const Conv2dProblemSize& size,
          const ConvProblem& problem, std::vector<Buffer>& scratch)
      : description_(description), size_(size), whole_(problem), scratch_(scratch) {}

  std::vector<ConvProblem> parts(int slices) {
    const std::int64_t block = description_.tile_description.threadblock_shape[2];
    std::vector<ConvProblem> parts;
    switch (whole_.kind) {
      case ConvKind::fprop:
        for (const Range& channels : ranges_of(size_.C, block, slices))
          parts.push_back(of_channels(channels));
        break;
      case ConvKind::dgrad:
        for (const Range& filters : ranges_of(size_.K, block, slices))
          parts.push_back(of_filters(filters));
        break;
      case ConvKind::wgrad:
        for (const Range& images : ranges_of(size_.N, 1, slices)) add_images(images, slices, parts);
        break;
    }
    return parts;
  }

  // Copies of filters.
  std::vector<Step> copies = {};

 private:
  ConvProblem of_channels(const Range& channels) {
    ConvProblem part = whole_;
    part.views.a = part_of(whole_.views.a, 3, channels);
    part.views.b = packed(part_of(whole_.views.b, 3, channels));
    return part;
  }

  ConvProblem of_filters(const Range& filters) const {
    ConvProblem part = whole_;
    part.views.a = part_of(whole_.views.a, 3, filters);
    part.views.b = part_of(whole_.views.b, 0, filters);
    return part;
  }

  // Images, or rows of pixels of a single one.
  void add_images(const Range& images, std::int64_t slices, std::vector<ConvProblem>& parts) const {
    const std::int64_t for_each = images.count == 1 ? slices / size_.N : 1;
    const std::int64_t rows = whole_.views.a.extent(1);
    if (for_each < 2 || !meets_image_everywhere()) return parts.push_back(of_images(images));
    for (const Range& some : ranges_of(rows, 1, for_each))
      parts.push_back(of_rows(of_images(images), some));
  }

  ConvProblem of_images(const Range& images) const {
    ConvProblem part = whole_;
    part.views.a = part_of(whole_.views.a, 0, images);
    part.views.b = part_of(whole_.views.b, 0, images);
    return part;
  }

  std::int64_t reach() const noexcept { return size_.dilation[0] * (size_.R - 1) + 1; }

  // True if the filter overlaps the image for every row of y.
  bool meets_image_everywhere() const noexcept {
    const PerDimension& upper = *whole_.settings.upper_padding;
    return whole_.settings.padding[0] < reach() && upper[0] < reach();
  }

  // The rows of y, and the rows of the image that they read.
  ConvProblem of_rows(ConvProblem part, const Range& rows) const {
    const std::int64_t begin = rows.first * size_.stride[0] - whole_.settings.padding[0];
    const std::int64_t end = begin + (rows.count - 1) * size_.stride[0] + reach();
    const std::int64_t first = std::max<std::int64_t>(begin, 0);
    const std::int64_t last = std::min(end, whole_.views.b.extent(1));
    part.views.a = part_of(part.views.a, 1, rows);
    part.views.b = part_of(part.views.b, 1, {first, last - first});
    part.settings.padding = {first - begin, whole_.settings.padding[1]};
    part.settings.upper_padding = PerDimension{end - last, (*whole_.settings.upper_padding)[1]};
    return part;
  }

  // A packed copy of filters: (K, R, S, some channels).
  Tensor packed(const Tensor& filters) {
    const std::array shape{filters.extent(0), filters.extent(1), filters.extent(2),
                           filters.extent(3)};
    const std::int64_t taps = shape[0] * shape[1] * shape[2];
    const Device device = filters.device();
    const Buffer& memory =
        scratch_.emplace_back(packed_bytes("slices of filters", {taps, shape[3]}, filters.dtype()),
                              Stream::of(nullptr, device));
    const std::array matrix{std::int64_t{1}, taps, shape[3]};
    const std::array strides{std::int64_t{0}, filters.stride(2), std::int64_t{1}};
    copies.push_back(elementwise_step(
        Tensor(memory.data(), filters.dtype(), matrix, device),
        EpilogueArguments("D = source", {{"source", Tensor(filters.data(), filters.dtype(), matrix,
                                                           strides, device)}})));
    return Tensor(memory.data(), filters.dtype(), shape, device);
  }

  const Conv2dDescription& description_;
  const Conv2dProblemSize& size_;
  const ConvProblem& whole_;
  std::vector<Buffer>& scratch_;
};

// Rules for partial sums, which are stored in the accumulators' type.
OperandRules partial_rules(const Conv2dDescription& description, std::int64_t columns) {
  OperandRules rules = conv_rules(description, false);
  const DType dtype = rules.accumulator;
  rules.out =
      row_alignment(columns, dtype) == 16
          ? OperandRule{dtype, LayoutRule::row, 16}
          : OperandRule{dtype, LayoutRule::any, static_cast<std::uint8_t>(byte_width(dtype))};
  return rules;
}

}  // namespace

Step make_conv_step(const ConvStepRequest& request) {
  const GemmProblem& problem = request.arguments.problem();
  KernelForm form{.slices = request.slices, .epilogue = request.epilogue};
  if (!operation::as_plain_gemm(problem)) form.convolution = problem.convolution;
  const Kernel kernel = described_kernel(as_gemm(request.description), request.rules, form);
  if (const Status status = kernel.supports(request.arguments); !status)
    throw Error({.kind = ErrorKind::unsupported, .operand = "problem_size", .got = status.error()});
  return {kernel, request.arguments};
}

PartialSums split_convolution(const Conv2dDescription& description, const Conv2dProblemSize& size,
                              const ConvProblem& problem, int slices,
                              std::vector<Buffer>& scratch) {
  if (size.groups != 1)
    refuse_unsupported("problem_size.groups", "1 for partial sums in memory",
                       std::to_string(size.groups));
  Slicing slicing(description, size, problem, scratch);
  const std::vector<ConvProblem> parts = slicing.parts(slices);
  const Device device = problem.views.out.device();
  const GemmCoord product = implicit_gemm_problem_size(problem.kind, size);
  const OperandRules rules = partial_rules(description, product.n);
  const auto count = static_cast<std::int64_t>(parts.size());
  const std::size_t bytes =
      packed_bytes("partial sums", {count, product.m, product.n}, rules.accumulator);
  PartialSums result{.memory = Buffer(bytes, Stream::of(nullptr, device)),
                     .partials = {.data = nullptr,
                                  .dtype = rules.accumulator,
                                  .slices = count,
                                  .rows = product.m,
                                  .columns = product.n,
                                  .device = device},
                     .steps = std::move(slicing.copies)};
  result.partials.data = result.memory.data();
  const auto shape = shapes_of(problem.kind, size).out;
  gemmery::GemmOptions options;
  options.math = rules.math;
  for (std::size_t slice = 0; slice < parts.size(); ++slice) {
    auto* const data = static_cast<std::byte*>(result.partials.data) + bytes / parts.size() * slice;
    const auto& [kind, views, settings] = parts[slice];
    result.steps.push_back(
        make_conv_step({.description = description,
                        .rules = rules,
                        .arguments = ConvArguments(kind, views.a, views.b,
                                                   Tensor(data, rules.accumulator, shape, device),
                                                   rules.accumulator, settings, options)
                                         .as_gemm()}));
  }
  return result;
}

}  // namespace gemmery::describe
