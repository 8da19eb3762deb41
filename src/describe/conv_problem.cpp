// SPDX-License-Identifier: Apache-2.0
// Extents, padding and views of a problem size.
#include "describe/conv_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>

#include "core/arithmetic.hpp"
#include "describe/combinations.hpp"
#include "describe/refusal.hpp"

namespace gemmery::describe {
namespace {

using Shape = std::array<std::int64_t, 4>;

// One spatial dimension of a size.
struct Along {
  std::int64_t image;
  std::int64_t filter;
  std::int64_t lower;
  std::int64_t upper;
  std::int64_t stride;
  std::int64_t dilation;
};

Along along(const Conv2dProblemSize& size, std::size_t d) noexcept {
  return {.image = d == 0 ? size.H : size.W,
          .filter = d == 0 ? size.R : size.S,
          .lower = size.padding[2 * d],
          .upper = size.padding[2 * d + 1],
          .stride = size.stride[d],
          .dilation = size.dilation[d]};
}

std::int64_t reach(const Along& it) noexcept { return it.dilation * (it.filter - 1) + 1; }

std::int64_t output_of(const Conv2dProblemSize& size, std::size_t d) noexcept {
  if (size.output) return (*size.output)[d];
  const Along it = along(size, d);
  const std::int64_t left = it.image + it.lower + it.upper - reach(it);
  return left < 0 || it.stride < 1 ? 0 : left / it.stride + 1;
}

constexpr std::array<const char*, 2> image_names{"H", "W"};
constexpr std::array<const char*, 2> output_names{"P", "Q"};

// The padding after the last pixel that gives the output, and the pixels that the output reads.
struct End {
  std::int64_t upper;
  std::int64_t pixels;
};
End end_of(ConvKind kind, const Conv2dProblemSize& size, std::size_t d) {
  const Along it = along(size, d);
  if (!size.output) return {it.upper, it.image};
  const std::int64_t needed = (output_of(size, d) - 1) * it.stride + reach(it) - it.lower;
  if (needed >= it.image || kind == ConvKind::dgrad)
    return {std::max<std::int64_t>(needed - it.image, 0), it.image};
  if (needed < 1)
    refuse_unsupported(fmt::format("problem_size.{}", output_names[d]),
                       "an output that reaches the image", std::to_string(output_of(size, d)),
                       "use less padding");
  return {0, needed};
}

}  // namespace

std::int64_t Conv2dProblemSize::P() const noexcept { return output_of(*this, 0); }
std::int64_t Conv2dProblemSize::Q() const noexcept { return output_of(*this, 1); }

namespace {

// The largest number if the product is larger.
std::int64_t product_of(std::initializer_list<std::int64_t> extents) noexcept {
  std::optional<std::int64_t> product = 1;
  for (const std::int64_t extent : extents)
    product = product ? checked_multiply(*product, extent) : std::nullopt;
  return product.value_or(std::numeric_limits<std::int64_t>::max());
}

}  // namespace

GemmCoord implicit_gemm_problem_size(ConvKind kind, const Conv2dProblemSize& size) noexcept {
  const std::int64_t pixels = product_of({size.N, size.P(), size.Q()});
  const std::int64_t channels = size.C / std::max<std::int64_t>(size.groups, 1);
  switch (kind) {
    case ConvKind::fprop:
      return {pixels, size.K, product_of({size.R, size.S, channels})};
    case ConvKind::dgrad:
      return {product_of({size.N, size.H, size.W}), size.C, product_of({size.R, size.S, size.K})};
    case ConvKind::wgrad:
      break;
  }
  return {size.K, product_of({size.R, size.S, channels}), pixels};
}

ConvShapes shapes_of(ConvKind kind, const Conv2dProblemSize& size) noexcept {
  const Shape image{size.N, size.H, size.W, size.C};
  const Shape filter{size.K, size.R, size.S, size.C / std::max<std::int64_t>(size.groups, 1)};
  const Shape output{size.N, size.P(), size.Q(), size.K};
  switch (kind) {
    case ConvKind::fprop:
      return {image, filter, output};
    case ConvKind::dgrad:
      return {output, filter, image};
    case ConvKind::wgrad:
      break;
  }
  return {output, image, filter};
}

void check_problem_size(const Conv2dProblemSize& size) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const auto require = [&](std::string field, std::int64_t value, std::int64_t least) {
    if (value >= least && value <= most) return;
    refuse("problem_size." + field, fmt::format("from {} to {}", least, most),
           std::to_string(value));
  };
  require("N", size.N, 0);
  require("H", size.H, 1);
  require("W", size.W, 1);
  require("C", size.C, 0);
  require("K", size.K, 0);
  require("R", size.R, 1);
  require("S", size.S, 1);
  require("groups", size.groups, 1);
  for (std::size_t side = 0; side < size.padding.size(); ++side)
    require(fmt::format("padding[{}]", side), size.padding[side], 0);
  for (std::size_t d = 0; d < 2; ++d) {
    require(fmt::format("stride[{}]", d), size.stride[d], 1);
    require(fmt::format("dilation[{}]", d), size.dilation[d], 1);
    if (size.output) require(output_names[d], (*size.output)[d], 1);
  }
  for (std::size_t d = 0; d < 2; ++d) {
    if (output_of(size, d) > 0) continue;
    const Along it = along(size, d);
    refuse(fmt::format("problem_size.{}", image_names[d]),
           fmt::format("an image that holds the filter, {} with its padding", reach(it)),
           std::to_string(it.image + it.lower + it.upper));
  }
  if (size.C % size.groups != 0 || size.K % size.groups != 0)
    refuse("problem_size.groups",
           fmt::format("a divisor of {} channels and {} filters", size.C, size.K),
           std::to_string(size.groups));
}

namespace {

// The first pixels of an image, with unchanged strides.
Tensor cropped(const Tensor& image, const Shape& extents) {
  const std::array strides{image.stride(0), image.stride(1), image.stride(2), image.stride(3)};
  return Tensor(image.data(), image.dtype(), extents, strides, image.device());
}

}  // namespace

ConvProblem conv_problem(ConvKind kind, const Conv2dProblemSize& size,
                         const Conv2dPointers& pointers, const Conv2dDescription& description,
                         Device device, bool is_bias) {
  const ConvShapes shapes = shapes_of(kind, size);
  const auto view = [&](const void* data, const TensorDescription& tensor, const Shape& shape) {
    return Tensor(data, storage_type(tensor.element), shape, device);
  };
  OperandViews views{.a = view(pointers.A, description.A, shapes.a),
                     .b = view(pointers.B, description.B, shapes.b),
                     .c = std::nullopt,
                     .out = view(pointers.D, description.C, shapes.out)};
  if (pointers.C != nullptr && is_bias)
    views.c =
        Tensor(pointers.C, storage_type(description.C.element), std::array{shapes.out[3]}, device);
  else if (pointers.C != nullptr)
    views.c = view(pointers.C, description.C, shapes.out);
  const End height = end_of(kind, size, 0);
  const End width = end_of(kind, size, 1);
  if (Tensor* const image = kind == ConvKind::fprop   ? &views.a
                            : kind == ConvKind::wgrad ? &views.b
                                                      : nullptr)
    *image = cropped(*image, {size.N, height.pixels, width.pixels, size.C});
  return {.kind = kind,
          .views = std::move(views),
          .settings = {.stride = {size.stride[0], size.stride[1]},
                       .padding = {size.padding[0], size.padding[2]},
                       .upper_padding = PerDimension{height.upper, width.upper},
                       .dilation = {size.dilation[0], size.dilation[1]},
                       .groups = size.groups,
                       .mode = size.mode}};
}

gemmery::GemmArguments bind_convolution(const Conv2dDescription& description,
                                        const ConvProblem& problem, const OutputOp& output_op) {
  const Combination& combination = find_combination(description.tile_description.math_instruction);
  gemmery::GemmOptions options =
      bound_functor(description.epilogue_functor, problem.views, output_op);
  options.math = combination.math;
  return ConvArguments(problem.kind, problem.views.a, problem.views.b, problem.views.out,
                       storage_type(combination.element_accumulator), problem.settings, options)
      .as_gemm();
}

}  // namespace gemmery::describe
