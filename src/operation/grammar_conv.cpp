// SPDX-License-Identifier: Apache-2.0
#include "operation/grammar_conv.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "operation/convolution.hpp"

namespace gemmery::grammar {
namespace {

using operation::ConvExtents;
using operation::ConvTensor;
using operation::ConvTensors;
using operation::spatial_count;

constexpr std::string_view filter_names = "trs";
constexpr std::string_view output_names = "opq";

// --- words --------------------------------------------------------------------------------------

std::int64_t read_extent(const Word& word, std::string_view text) {
  const auto extent = read_integer(text);
  if (!extent || *extent < 0 || *extent > INT32_MAX)
    refuse(word, "a whole number from 0 to 2147483647");
  return *extent;
}

template <class Field, class Value>
void set_once(const Word& word, std::optional<Field>& field, Value&& value) {
  if (field) refuse(word, "each field once");
  field = std::forward<Value>(value);
}

// One value for all dimensions, or one for each.
template <class Set>
void for_each_dimension(const Word& word, std::string_view value, std::size_t dimensions,
                        const Set& set) {
  const auto parts = split(value, ',');
  if (parts.size() != 1 && parts.size() != dimensions)
    refuse(word, fmt::format("one number, or {} with commas between them", dimensions));
  for (std::size_t i = 0; i < dimensions; ++i)
    set(spatial_count - dimensions + i, parts[parts.size() == 1 ? 0 : i]);
}

Spatial read_spatial(const Word& word, std::string_view value, std::size_t dimensions) {
  Spatial spatial{1, 1, 1};
  for_each_dimension(word, value, dimensions, [&](std::size_t d, std::string_view text) {
    spatial[d] = static_cast<std::int32_t>(read_extent(word, text));
  });
  return spatial;
}

// "1", "1,2" or "1:2,0" with lower:upper.
void read_padding(const Word& word, std::string_view value, std::size_t dimensions,
                  ConvWords& words) {
  if (words.lower) refuse(word, "each field once");
  Spatial lower{}, upper{};
  for_each_dimension(word, value, dimensions, [&](std::size_t d, std::string_view text) {
    const auto sides = split(text, ':');
    if (sides.size() > 2) refuse(word, "LOWER:UPPER of each dimension");
    lower[d] = static_cast<std::int32_t>(read_extent(word, sides.front()));
    upper[d] = static_cast<std::int32_t>(read_extent(word, sides.back()));
  });
  words.lower = lower;
  words.upper = upper;
}

// The dimension that a letter of "trs" or "opq" names, of those that the convolution has.
std::optional<std::size_t> find_letter(std::string_view letters, std::string_view key) {
  const std::size_t at = key.size() == 1 ? letters.find(key[0]) : std::string_view::npos;
  if (at == std::string_view::npos) return std::nullopt;
  return at;
}

std::size_t require_dimension(const Word& word, std::size_t d, const ConvWords& words) {
  if (d + words.name->dimensions >= spatial_count) return d;
  refuse(word, fmt::format("no such field of a conv{}d", words.name->dimensions));
}

// --- operands -----------------------------------------------------------------------------------

constexpr double largest_reach = 0x1p40;

// Refuses a tensor that spans too many elements from first to last. In double, which does not
// overflow.
void check_reach(const OperandWords& operand, double elements) {
  if (std::abs(elements) > largest_reach)
    refuse(operand.word, "tensors of at most 2^40 elements", {}, ErrorKind::unsupported);
}

void check_tensor_words(const OperandWords& operand, bool is_out) {
  if (operand.layout == Layout::column || operand.dims)
    refuse(operand.word, "a tensor whose channels are last and adjacent");
  if (operand.has_pointers)
    refuse(operand.word, "one tensor", "batches by pointers are of gemm", ErrorKind::unsupported);
  if (operand.batch && !is_out) refuse(operand.word, "ld= or strides= for A and B");
  if (operand.leading && !operand.outer_strides.empty())
    refuse(operand.word, "either ld= or strides=");
}

std::uint8_t chosen_alignment(const OperandWords& operand, std::uint8_t natural) {
  if (!operand.alignment) return natural;
  const std::int64_t alignment = *operand.alignment;
  const auto width = static_cast<std::int64_t>(byte_width(operand.dtype));
  const bool is_power = alignment > 0 && (alignment & (alignment - 1)) == 0;
  if (!is_power || alignment < width || alignment > natural)
    refuse(operand.word,
           fmt::format("align= of a power of two from {} (its element) to {} (its strides)", width,
                       natural));
  return static_cast<std::uint8_t>(alignment);
}

std::array<std::int64_t, 4> read_strides(const OperandWords& operand, const ConvExtents& extents,
                                         std::size_t dimensions) {
  if (operand.outer_strides.empty()) {
    const std::int64_t pixel_stride = operand.leading.value_or(extents[4]);
    double elements = static_cast<double>(pixel_stride);
    for (std::size_t d = 0; d < 4; ++d) elements *= static_cast<double>(extents[d]);
    check_reach(operand, elements);
    return operation::packed_strides(extents, pixel_stride);
  }
  if (operand.outer_strides.size() != dimensions + 1)
    refuse(operand.word,
           fmt::format("strides= of {} numbers: of images (or filters), then of each spatial "
                       "dimension",
                       dimensions + 1));
  std::array<std::int64_t, 4> strides{};
  strides[0] = operand.outer_strides[0];
  for (std::size_t i = 0; i < dimensions; ++i)
    strides[spatial_count - dimensions + i + 1] = operand.outer_strides[i + 1];
  double elements = 0;
  for (std::size_t d = 0; d < 4; ++d)
    elements += std::abs(static_cast<double>(strides[d])) * static_cast<double>(extents[d]);
  check_reach(operand, elements);
  return operation::normalize_strides(strides, extents);
}

// The stride from row to row of a packed out.
std::int64_t packed_row(const GemmProblem& problem) {
  const Convolution& convolution = *problem.convolution;
  switch (convolution.kind) {
    case ConvKind::fprop:
      return convolution.filters;
    case ConvKind::dgrad:
      return convolution.channels;
    case ConvKind::wgrad:
      break;
  }
  return problem.n;
}

// The matrix of out with a row stride of `row`.
MatrixType out_matrix(const GemmProblem& problem, DType dtype, std::int64_t row,
                      std::optional<std::int64_t> batch) {
  const Convolution& convolution = *problem.convolution;
  const bool has_rows =
      convolution.batch == ConvBatch::images || convolution.kind == ConvKind::wgrad;
  const MatrixType matrix{.dtype = dtype,
                          .batch_stride = batch.value_or(has_rows ? problem.m * row : problem.n),
                          .row_stride = row,
                          .column_stride = 1};
  MatrixType kept = operation::normalize(matrix, {problem.l, problem.m, problem.n});
  kept.alignment = operation::alignment_of(0, kept);
  return kept;
}

void apply_out(const OperandWords& operand, GemmProblem& problem) {
  check_tensor_words(operand, true);
  if (!operand.outer_strides.empty())
    refuse(operand.word, "ld= for out: its pixels (filters of dw) are at one distance");
  const std::int64_t row = operand.leading.value_or(packed_row(problem));
  check_reach(operand, static_cast<double>(row) * static_cast<double>(problem.m));
  problem.out = out_matrix(problem, operand.dtype, row, operand.batch);
  problem.out.alignment = chosen_alignment(operand, problem.out.alignment);
}

// --- spelling -----------------------------------------------------------------------------------

// The numbers of the convolution's dimensions as text; one number if all are equal.
std::string numbers_text(const Spatial& numbers, std::size_t dimensions) {
  const auto first = numbers.end() - static_cast<std::ptrdiff_t>(dimensions);
  if (std::all_of(first, numbers.end(), [&](std::int32_t n) { return n == *first; }))
    return std::to_string(*first);
  return fmt::format("{}", fmt::join(first, numbers.end(), ","));
}

std::string padding_text(const Convolution& convolution) {
  if (convolution.lower == convolution.upper)
    return numbers_text(convolution.lower, convolution.dimensions);
  std::vector<std::string> sides;
  for (std::size_t d = spatial_count - convolution.dimensions; d < spatial_count; ++d)
    sides.push_back(convolution.lower[d] == convolution.upper[d]
                        ? std::to_string(convolution.lower[d])
                        : fmt::format("{}:{}", convolution.lower[d], convolution.upper[d]));
  return fmt::format("{}", fmt::join(sides, ","));
}

std::string alignment_text(std::uint8_t alignment, std::uint8_t natural) {
  return alignment == natural ? "" : fmt::format("/align={}", alignment);
}

}  // namespace

std::optional<ConvName> read_conv_name(std::string_view word) noexcept {
  constexpr std::string_view prefix = "conv";
  if (!word.starts_with(prefix) || word.size() < 8 || word[5] != 'd' || word[6] != '_')
    return std::nullopt;
  const char digit = word[prefix.size()];
  const auto kind = parse_conv_kind(word.substr(7));
  if (digit < '1' || digit > '3' || !kind) return std::nullopt;
  return ConvName{*kind, static_cast<std::uint8_t>(digit - '0')};
}

bool is_conv_field(std::string_view key) noexcept {
  constexpr std::array<std::string_view, 7> words{"k",      "pad",  "stride", "dilation",
                                                  "groups", "mode", "batch"};
  return std::ranges::find(words, key) != words.end() || find_letter(filter_names, key) ||
         find_letter(output_names, key);
}

void read_conv_field(const Word& word, std::string_view key, std::string_view value,
                     ConvWords& words) {
  const std::size_t dimensions = words.name->dimensions;
  if (key == "k") return set_once(word, words.filters, read_extent(word, value));
  if (key == "groups") return set_once(word, words.groups, read_extent(word, value));
  if (key == "pad") return read_padding(word, value, dimensions, words);
  if (key == "stride") return set_once(word, words.stride, read_spatial(word, value, dimensions));
  if (key == "dilation")
    return set_once(word, words.dilation, read_spatial(word, value, dimensions));
  if (key == "mode") {
    const auto mode = parse_conv_mode(value);
    if (!mode) refuse(word, "cross_correlation or convolution");
    return set_once(word, words.mode, *mode);
  }
  if (key == "batch") {
    const auto batch = parse_conv_batch(value);
    if (!batch) refuse(word, "groups or images");
    return set_once(word, words.batch, *batch);
  }
  const auto tap = find_letter(filter_names, key);
  auto& targets = tap ? words.filter : words.output;
  const std::size_t d = tap ? *tap : find_letter(output_names, key).value_or(0);
  set_once(word, targets[require_dimension(word, d, words)], read_extent(word, value));
}

void apply_convolution(const Word& kind, const Word& extents, const ConvWords& words,
                       GemmProblem& problem) {
  constexpr std::array<std::string_view, 3> forms{"NxWxC", "NxHxWxC", "NxDxHxWxC"};
  const std::size_t dimensions = words.name->dimensions;
  const auto parts = split(extents.text, 'x');
  if (parts.size() != dimensions + 2)
    refuse(extents, std::string(forms[dimensions - 1]) + ", the extents of the images",
           "for example conv2d_fprop 32x56x56x64 k=64 r=3 s=3 a=f16");
  if (!words.filters) refuse_missing(kind, "a field k= with the number of filters");
  Convolution convolution{.kind = words.name->kind,
                          .mode = words.mode.value_or(ConvMode::cross_correlation),
                          .batch = words.batch.value_or(ConvBatch::groups),
                          .dimensions = words.name->dimensions,
                          .groups = static_cast<std::int32_t>(words.groups.value_or(1)),
                          .images = read_extent(extents, parts.front()),
                          .channels = read_extent(extents, parts.back()),
                          .filters = *words.filters,
                          .stride = words.stride.value_or(Spatial{1, 1, 1}),
                          .dilation = words.dilation.value_or(Spatial{1, 1, 1}),
                          .lower = words.lower.value_or(Spatial{}),
                          .upper = words.upper.value_or(Spatial{})};
  for (std::size_t i = 0; i < dimensions; ++i) {
    const std::size_t d = spatial_count - dimensions + i;
    if (!words.filter[d])
      refuse_missing(kind, fmt::format("a field {}= with the filter's extent", filter_names[d]));
    convolution.image[d] = static_cast<std::int32_t>(read_extent(extents, parts[i + 1]));
    convolution.filter[d] = static_cast<std::int32_t>(*words.filter[d]);
    if (convolution.stride[d] > 0)
      convolution.output[d] = static_cast<std::int32_t>(
          words.output[d].value_or(operation::output_extent(convolution, d)));
  }
  operation::check_convolution(convolution);
  problem.convolution = convolution;
  operation::describe_product(problem);
}

void apply_operands(const ConvOperands& operands, GemmProblem& problem) {
  Convolution& convolution = *problem.convolution;
  const ConvTensors tensors = operation::tensors_of(convolution.kind);
  const auto strides_of = [&](const OperandWords& operand, ConvTensor tensor) {
    check_tensor_words(operand, false);
    return read_strides(operand, operation::extents_of(convolution, tensor),
                        convolution.dimensions);
  };
  convolution.a_strides = strides_of(operands.a, tensors.a);
  convolution.b_strides = strides_of(operands.b, tensors.b);
  problem.a.dtype = operands.a.dtype;
  problem.b.dtype = operands.b.dtype;
  operation::describe_product(problem);
  problem.a.alignment = chosen_alignment(operands.a, operation::conv_alignment(0, problem, true));
  problem.b.alignment = chosen_alignment(operands.b, operation::conv_alignment(0, problem, false));
  apply_out(operands.out, problem);
}

std::string convolution_text(const GemmProblem& problem) {
  const Convolution& convolution = *problem.convolution;
  const std::size_t dimensions = convolution.dimensions;
  std::string text =
      fmt::format("conv{}d_{} {}", dimensions, name(convolution.kind), convolution.images);
  for (std::size_t d = spatial_count - dimensions; d < spatial_count; ++d)
    text += fmt::format("x{}", convolution.image[d]);
  text += fmt::format("x{} k={}", convolution.channels, convolution.filters);
  for (std::size_t d = spatial_count - dimensions; d < spatial_count; ++d)
    text += fmt::format(" {}={}", filter_names[d], convolution.filter[d]);
  if (convolution.lower != Spatial{} || convolution.upper != Spatial{})
    text += " pad=" + padding_text(convolution);
  if (convolution.stride != Spatial{1, 1, 1})
    text += " stride=" + numbers_text(convolution.stride, dimensions);
  if (convolution.dilation != Spatial{1, 1, 1})
    text += " dilation=" + numbers_text(convolution.dilation, dimensions);
  if (convolution.groups != 1) text += fmt::format(" groups={}", convolution.groups);
  if (convolution.mode != ConvMode::cross_correlation)
    text += fmt::format(" mode={}", name(convolution.mode));
  if (convolution.batch != ConvBatch::groups)
    text += fmt::format(" batch={}", name(convolution.batch));
  for (std::size_t d = spatial_count - dimensions; d < spatial_count; ++d)
    if (convolution.output[d] != operation::output_extent(convolution, d))
      text += fmt::format(" {}={}", output_names[d], convolution.output[d]);
  return text;
}

std::string tensor_text(const GemmProblem& problem, bool is_a) {
  const Convolution& convolution = *problem.convolution;
  const ConvTensors tensors = operation::tensors_of(convolution.kind);
  const ConvExtents extents = operation::extents_of(convolution, is_a ? tensors.a : tensors.b);
  const auto& strides = is_a ? convolution.a_strides : convolution.b_strides;
  const MatrixType& matrix = is_a ? problem.a : problem.b;
  std::string text{alias(matrix.dtype)};
  if (strides != operation::packed_strides(extents, extents[4])) {
    std::int64_t innermost = 0;
    for (std::size_t d = 4; d-- > 1 && innermost == 0;) innermost = strides[d];
    if (innermost > 0 && strides == operation::packed_strides(extents, innermost)) {
      text += fmt::format("/ld={}", innermost);
    } else {
      text += fmt::format("/strides={}", strides[0]);
      for (std::size_t d = spatial_count - convolution.dimensions; d < spatial_count; ++d)
        text += fmt::format(",{}", strides[d + 1]);
    }
  }
  return text + alignment_text(matrix.alignment, operation::conv_alignment(0, problem, is_a));
}

std::string conv_out_text(const GemmProblem& problem) {
  const MatrixType& out = problem.out;
  std::string text{alias(out.dtype)};
  MatrixType spelled = out_matrix(problem, out.dtype, packed_row(problem), std::nullopt);
  if (spelled.row_stride != out.row_stride) {
    text += fmt::format("/ld={}", out.row_stride);
    spelled = out_matrix(problem, out.dtype, out.row_stride, std::nullopt);
  }
  if (spelled.batch_stride != out.batch_stride) {
    text += fmt::format("/batch={}", out.batch_stride);
    spelled = out_matrix(problem, out.dtype, spelled.row_stride, out.batch_stride);
  }
  return text + alignment_text(out.alignment, spelled.alignment);
}

}  // namespace gemmery::grammar
