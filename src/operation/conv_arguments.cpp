// SPDX-License-Identifier: Apache-2.0
// Validates the tensors of convolutions and turns them into arguments of a GEMM.
#include <gemmery/conv_arguments.hpp>
#include <gemmery/error.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "operation/convolution.hpp"
#include "operation/shapes.hpp"

namespace gemmery {
namespace {

using operation::ConvExtents;
using operation::ConvTensor;
using operation::ConvTensors;
using operation::shape_text;
using operation::spatial_count;

// The arguments of the constructor.
struct Given {
  ConvKind kind;
  const Tensor& a;
  const Tensor& b;
  const Tensor& out;
  const ConvSettings& settings;

  int dimensions() const { return out.rank() - 2; }
  [[noreturn]] void refuse(std::string_view operand, std::string expected, std::string got,
                           std::string hint = {},
                           ErrorKind error = ErrorKind::invalid_argument) const {
    throw Error({.kind = error,
                 .operand = fmt::format("conv{}d_{}: {}", std::clamp(dimensions(), 1, 3),
                                        name(kind), operand),
                 .expected = std::move(expected),
                 .got = std::move(got),
                 .hint = std::move(hint)});
  }
};

std::string text_of(std::span<const std::int64_t> numbers) {
  std::string text = "(";
  for (std::size_t i = 0; i < numbers.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
  return text + ")";
}

std::string operand_text(const Given& given, std::string_view name, ConvTensor tensor) {
  return fmt::format("{} ({})", name, operation::symbol(given.kind, tensor));
}

// --- tensors ------------------------------------------------------------------------------------

std::string_view form_of(ConvTensor tensor) {
  switch (tensor) {
    case ConvTensor::image:
      return "(N, W, C), (N, H, W, C) or (N, D, H, W, C)";
    case ConvTensor::filter:
      return "(K, S, C/g), (K, R, S, C/g) or (K, T, R, S, C/g)";
    case ConvTensor::output:
      break;
  }
  return "(N, Q, K), (N, P, Q, K) or (N, O, P, Q, K)";
}

void check_rank(const Given& given, std::string_view operand, const Tensor& tensor,
                ConvTensor role) {
  const std::string name = operand_text(given, operand, role);
  if (tensor.has_pointers())
    given.refuse(name, "one tensor", "a batch by pointers", {}, ErrorKind::unsupported);
  if (tensor.rank() < 3 || tensor.rank() > 5)
    given.refuse(name, "a tensor " + std::string(form_of(role)), "shape " + shape_text(tensor),
                 tensor.rank() == 2 ? "add a dimension of 1 for the images" : "");
  if (tensor.rank() != given.out.rank())
    given.refuse(name, fmt::format("rank {}, as out has", given.out.rank()),
                 "shape " + shape_text(tensor));
}

// Channels are adjacent: NHWC and KRSC.
void check_layout(const Given& given, std::string_view operand, const Tensor& tensor,
                  ConvTensor role) {
  const int last = tensor.rank() - 1;
  if (tensor.element_count() == 0 || tensor.extent(last) <= 1 || tensor.stride(last) == 1) return;
  given.refuse(
      operand_text(given, operand, role), "channels last: adjacent channels",
      fmt::format("shape {} with strides {}", shape_text(tensor), text_of(tensor.strides())),
      "copy it to channels last, torch's memory_format=torch.channels_last (or "
      "channels_last_3d), and give its shape as " +
          std::string(form_of(role)),
      ErrorKind::unsupported);
}

// Taps of dw are columns of a matrix and must be adjacent. If a group has one channel, adjacent
// channels do not imply that.
void check_taps_of_result(const Given& given) {
  const Tensor& dw = given.out;
  const int last = dw.rank() - 1;
  if (given.kind != ConvKind::wgrad || dw.element_count() == 0 || dw.extent(last) > 1) return;
  for (int d = last - 1; d > 0; --d) {
    if (dw.extent(d) == 1) continue;
    if (dw.stride(d) == 1) return;
    given.refuse(operand_text(given, "out", ConvTensor::filter), "adjacent taps of one channel",
                 fmt::format("shape {} with strides {}", shape_text(dw), text_of(dw.strides())),
                 "give a packed tensor, and copy it", ErrorKind::unsupported);
  }
}

// The tensor with leading spatial extents of 1.
Tensor with_five_dimensions(const Tensor& tensor) {
  ConvExtents extents{tensor.extent(0), 1, 1, 1, tensor.extent(tensor.rank() - 1)};
  ConvExtents strides{tensor.stride(0), 0, 0, 0, 1};
  for (int d = 1; d < tensor.rank() - 1; ++d) {
    const auto at = static_cast<std::size_t>(d + 5 - tensor.rank());
    extents[at] = tensor.extent(d);
    strides[at] = tensor.stride(d);
  }
  return Tensor(tensor.data(), tensor.dtype(), extents, strides, tensor.device());
}

// --- numbers ------------------------------------------------------------------------------------

std::int32_t narrowed(const Given& given, std::string_view what, std::int64_t value) {
  if (value >= std::numeric_limits<std::int32_t>::min() &&
      value <= std::numeric_limits<std::int32_t>::max())
    return static_cast<std::int32_t>(value);
  given.refuse(what, "a number of at most 2147483647", std::to_string(value), {},
               ErrorKind::unsupported);
}

void set_numbers(const Given& given, std::string_view what, const PerDimension& numbers,
                 Spatial& spatial) {
  const auto count = static_cast<std::size_t>(given.dimensions());
  if (numbers.count() != 1 && numbers.count() != count)
    given.refuse(what, fmt::format("1 number, or {}, one for each spatial dimension", count),
                 fmt::format("{} numbers", numbers.count()));
  for (std::size_t d = 0; d < count; ++d)
    spatial[spatial_count - count + d] = narrowed(given, what, numbers[d]);
}

// The tensor with a role, and its name.
struct GivenOperand {
  std::string_view operand;
  const Tensor& tensor;
};
GivenOperand find(const Given& given, ConvTensor tensor) {
  const ConvTensors tensors = operation::tensors_of(given.kind);
  if (tensors.a == tensor) return {"A", given.a};
  if (tensors.b == tensor) return {"B", given.b};
  return {"out", given.out};
}

void set_extents(const Given& given, ConvTensor tensor, Spatial& spatial) {
  const auto [operand, view] = find(given, tensor);
  const auto count = static_cast<std::size_t>(given.dimensions());
  for (std::size_t d = 0; d < count; ++d)
    spatial[spatial_count - count + d] =
        narrowed(given, operand_text(given, operand, tensor), view.extent(1 + static_cast<int>(d)));
}

void require_equal(const Given& given, ConvTensor tensor, int dimension, std::string_view what,
                   std::int64_t expected, ConvTensor owner) {
  const auto [operand, view] = find(given, tensor);
  const int at = dimension < 0 ? view.rank() + dimension : dimension;
  if (view.extent(at) == expected) return;
  given.refuse(
      operand_text(given, operand, tensor),
      fmt::format("{} {} (as {} has)", expected, what, operation::symbol(given.kind, owner)),
      fmt::format("{}, in shape {}", view.extent(at), shape_text(view)));
}

// A filter must have the channels of one group.
void check_channels(const Given& given, std::int64_t channels) {
  const std::int64_t groups = given.settings.groups;
  if (groups < 1 || channels % groups != 0)
    given.refuse("groups", fmt::format("a divisor of the {} channels", channels),
                 std::to_string(groups));
  const std::string what =
      groups == 1 ? "channels" : fmt::format("channels of each of {} groups", groups);
  require_equal(given, ConvTensor::filter, -1, what, channels / groups, ConvTensor::image);
}

void check_tensors(const Given& given) {
  const ConvTensors tensors = operation::tensors_of(given.kind);
  check_rank(given, "out", given.out, tensors.out);
  check_rank(given, "A", given.a, tensors.a);
  check_rank(given, "B", given.b, tensors.b);
  check_layout(given, "A", given.a, tensors.a);
  check_layout(given, "B", given.b, tensors.b);
  check_layout(given, "out", given.out, tensors.out);
  check_taps_of_result(given);
}

Convolution describe(const Given& given) {
  check_tensors(given);
  const Tensor& image = find(given, ConvTensor::image).tensor;
  const Tensor& filter = find(given, ConvTensor::filter).tensor;
  const std::int64_t channels = image.extent(image.rank() - 1);
  require_equal(given, ConvTensor::output, 0, "images", image.extent(0), ConvTensor::image);
  require_equal(given, ConvTensor::output, -1, "filters", filter.extent(0), ConvTensor::filter);
  check_channels(given, channels);
  Convolution convolution{.kind = given.kind,
                          .mode = given.settings.mode,
                          .dimensions = static_cast<std::uint8_t>(given.dimensions()),
                          .groups = narrowed(given, "groups", given.settings.groups),
                          .images = image.extent(0),
                          .channels = channels,
                          .filters = filter.extent(0)};
  set_extents(given, ConvTensor::image, convolution.image);
  set_extents(given, ConvTensor::filter, convolution.filter);
  set_extents(given, ConvTensor::output, convolution.output);
  const ConvSettings& settings = given.settings;
  set_numbers(given, "stride", settings.stride, convolution.stride);
  set_numbers(given, "dilation", settings.dilation, convolution.dilation);
  set_numbers(given, "padding", settings.padding, convolution.lower);
  set_numbers(given, "upper_padding", settings.upper_padding.value_or(settings.padding),
              convolution.upper);
  operation::check_convolution(convolution);
  return convolution;
}

std::array<std::int64_t, 4> strides_of(const Tensor& view) {
  const ConvExtents extents{view.extent(0), view.extent(1), view.extent(2), view.extent(3),
                            view.extent(4)};
  return operation::normalize_strides(
      {view.stride(0), view.stride(1), view.stride(2), view.stride(3)}, extents);
}

// --- the epilogue -------------------------------------------------------------------------------

// C and the tensors of an epilogue.
std::vector<std::pair<std::string, const Tensor*>> tensors_of(const GemmOptions& options) {
  std::vector<std::pair<std::string, const Tensor*>> tensors;
  if (options.c) tensors.emplace_back("C", &*options.c);
  if (!options.epilogue) return tensors;
  for (const EpilogueOperand& operand : options.epilogue->operands())
    if (const auto* const tensor = std::get_if<Tensor>(&operand.value))
      tensors.emplace_back("epilogue operand " + operand.name, tensor);
  return tensors;
}

// NumPy's rule, with a hint for a vector of torch's (K, 1, 1).
void check_broadcast(const Given& given, std::string_view operand, const Tensor& tensor) {
  const int missing = given.out.rank() - tensor.rank();
  bool fits = missing >= 0 && !tensor.has_pointers();
  for (int d = 0; fits && d < tensor.rank(); ++d)
    fits = tensor.extent(d) == 1 || tensor.extent(d) == given.out.extent(d + missing);
  if (fits) return;
  given.refuse(operand, "a shape that broadcasts to out's " + shape_text(given.out),
               tensor.has_pointers() ? "a batch by pointers" : shape_text(tensor),
               "channels come last: (K,) is a number for each");
}

bool are_matrices(const Given& given, const GemmOptions& options, const Convolution& convolution) {
  const auto is_matrix = [&](const Tensor& tensor) {
    return operation::view_as_matrices(tensor, convolution).has_value();
  };
  return is_matrix(given.out) && std::ranges::all_of(tensors_of(options), [&](const auto& named) {
           return is_matrix(*named.second);
         });
}

// Chooses one matrix of all pixels, or one per image if only that can express every tensor.
void choose_batch(const Given& given, const GemmOptions& options, Convolution& convolution) {
  if (are_matrices(given, options, convolution)) return;
  if (convolution.groups > 1 || convolution.kind == ConvKind::wgrad) return;
  convolution.batch = ConvBatch::images;
  if (!are_matrices(given, options, convolution)) convolution.batch = ConvBatch::groups;
}

Tensor matrices_of(const Given& given, std::string_view operand, const Tensor& tensor,
                   const Convolution& convolution) {
  if (const auto view = operation::view_as_matrices(tensor, convolution)) return *view;
  const bool is_out = &tensor == &given.out;
  given.refuse(
      operand,
      is_out ? "pixels (of dw: taps) at one distance from each other"
             : "a tensor that repeats along all pixels or none (of dw: taps and channels)",
      fmt::format("shape {} with strides {}", shape_text(tensor), text_of(tensor.strides())),
      is_out ? "write to a packed tensor" : "expand it to the shape of out",
      ErrorKind::unsupported);
}

GemmOptions with_matrices(const Given& given, const GemmOptions& options,
                          const Convolution& convolution) {
  GemmOptions views = options;
  if (options.c) views.c = matrices_of(given, "C", *options.c, convolution);
  if (!options.epilogue) return views;
  std::vector<EpilogueOperand> operands = options.epilogue->operands();
  for (EpilogueOperand& operand : operands)
    if (auto* const tensor = std::get_if<Tensor>(&operand.value))
      *tensor = matrices_of(given, "epilogue operand " + operand.name, *tensor, convolution);
  views.epilogue.emplace(options.epilogue->program(), std::move(operands));
  return views;
}

GemmArguments make_arguments(const Given& given, DType accumulator, const GemmOptions& options) {
  Convolution convolution = describe(given);
  for (const auto& [operand, tensor] : tensors_of(options))
    check_broadcast(given, operand, *tensor);
  choose_batch(given, options, convolution);
  const Tensor a = with_five_dimensions(given.a);
  const Tensor b = with_five_dimensions(given.b);
  convolution.a_strides = strides_of(a);
  convolution.b_strides = strides_of(b);
  return operation::ConvolutionBinder::bind(
      convolution, a, b, matrices_of(given, "out", given.out, convolution), accumulator,
      with_matrices(given, options, convolution));
}

}  // namespace

ConvArguments::ConvArguments(ConvKind kind, const Tensor& A, const Tensor& B, const Tensor& out,
                             DType accumulator_type, const ConvSettings& settings,
                             const GemmOptions& options)
    : gemm_(make_arguments({kind, A, B, out, settings}, accumulator_type, options)) {}

ConvArguments::ConvArguments(ConvKind kind, const Tensor& A, const Tensor& B, const Tensor& out,
                             const ConvSettings& settings, const GemmOptions& options)
    : ConvArguments(kind, A, B, out, default_accumulator(A.dtype(), B.dtype()), settings, options) {
}

}  // namespace gemmery
