// SPDX-License-Identifier: Apache-2.0
#include "providers/host/onednn_conv.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include <gemmery/error.hpp>

#include "operation/convolution.hpp"
#include "providers/host/onednn_operands.hpp"
#include "providers/host/onednn_sums.hpp"
#include "providers/host/plain.hpp"

namespace gemmery::host {
namespace {

using onednn::ConvolutionShape;
using operation::ConvMemory;

// oneDNN may pass integer sums through float32 (onednn_gemm.cpp): with fewer products they are
// exact.
constexpr std::int64_t exact_products(DataType images) {
  return images == DataType::u8 ? (1 << 24) / (255 * 128) : (1 << 24) / (128 * 128);
}

ConvolutionShape::Numbers wide(const Spatial& numbers) {
  return {numbers[0], numbers[1], numbers[2]};
}

// The roles of A, B and out.
struct Roles {
  ConvolutionShape::Kind kind;
  DataType images, filters, outputs;
};
Roles roles_of(ConvKind kind, const ComputeTypes& types) {
  switch (kind) {
    case ConvKind::fprop:
      return {ConvolutionShape::Kind::forward, types.a, types.b, types.sum};
    case ConvKind::dgrad:
      return {ConvolutionShape::Kind::backward_data, types.sum, types.b, types.a};
    case ConvKind::wgrad:
      break;
  }
  return {ConvolutionShape::Kind::backward_weights, types.b, types.sum, types.a};
}

bool has_odd_channels(const Convolution& convolution) {
  return (convolution.channels / convolution.groups) % 2 != 0;
}

// bfloat16 is multiplied in pairs of channels. With an odd number of channels the last one would be
// paired with the element after it (onednn_gemm.cpp). In the first layer of a network, which has
// 3 channels, a channel of zeros is added to copies of both operands; elsewhere float32 is used. So
// it is for every wgrad: with bfloat16, oneDNN 2.6.3 and 3.2.0 give wrong sums for some small
// images with padding, such as conv2d_wgrad 3x13x2x8 k=6 r=5 s=2 pad=0,1 stride=1,5.
bool adds_channel(const Convolution& convolution, const ComputeTypes& types) {
  return types.a == DataType::bf16 && convolution.kind == ConvKind::fprop &&
         convolution.groups == 1 && has_odd_channels(convolution);
}
ComputeTypes trusted_types(const Convolution& convolution, const ComputeTypes& types) {
  const bool is_odd =
      has_odd_channels(convolution) || (convolution.filters / convolution.groups) % 2 != 0;
  const bool is_wgrad = convolution.kind == ConvKind::wgrad;
  const bool are_filters_even = convolution.filters % 2 == 0;
  if (types.a != DataType::bf16 || (!is_odd && !is_wgrad) ||
      (are_filters_even && adds_channel(convolution, types)))
    return types;
  return {DataType::f32, DataType::f32, DataType::f32};
}

ConvolutionShape shape_of(const Convolution& convolution, const ComputeTypes& types) {
  const Roles roles = roles_of(convolution.kind, types);
  return {.kind = roles.kind,
          .dimensions = convolution.dimensions,
          .images = roles.images,
          .filters = roles.filters,
          .outputs = roles.outputs,
          .groups = convolution.groups,
          .image_count = convolution.images,
          .channels = convolution.channels + (adds_channel(convolution, types) ? 1 : 0),
          .filter_count = convolution.filters,
          .image = wide(convolution.image),
          .filter = wide(convolution.filter),
          .output = wide(convolution.output),
          .stride = wide(convolution.stride),
          .dilation = wide(convolution.dilation),
          .lower = wide(convolution.lower),
          .upper = wide(convolution.upper)};
}

bool has_no_products(const GemmProblem& problem) {
  return problem.m == 0 || problem.n == 0 || problem.k == 0 || problem.l == 0;
}

Status check_geometry(const Convolution& convolution) {
  if (convolution.mode == ConvMode::convolution && convolution.filter != Spatial{1, 1, 1})
    return Status::fail("mode: expected cross_correlation, got convolution");
  for (std::size_t d = 0; d < operation::spatial_count; ++d) {
    if (convolution.output[d] != operation::output_extent(convolution, d))
      return Status::fail("dy: expected the extents of the formula, got others");
    // There oneDNN 2.6.3 sometimes gives wrong sums of wgrad, such as of
    // conv3d_wgrad 3x2x6x9x27 k=6 t=5 r=5 s=3 pad=4,0:2,0 stride=2,4,1 groups=3 a=f32.
    const std::int64_t reach =
        std::int64_t{convolution.dilation[d]} * (convolution.filter[d] - 1) + 1;
    if (reach > convolution.image[d])
      return Status::fail("filter: expected at most the image without its padding, " +
                          std::to_string(convolution.image[d]) + ", got a reach of " +
                          std::to_string(reach));
  }
  return Status::success();
}

Status check_integers(const GemmProblem& problem, DataType images) {
  if (problem.accumulator != DType::int32) return Status::success();
  if (problem.convolution->kind != ConvKind::fprop)
    return Status::fail("kind: expected fprop for integers, got " +
                        std::string(name(problem.convolution->kind)));
  // With groups oneDNN 2.6.3 and 3.2.0 give wrong sums for some, such as
  // conv1d_fprop 1x4x16 k=8 s=2 pad=1 dilation=4 groups=4.
  if (problem.convolution->groups > 1)
    return Status::fail("groups: expected 1 for integers, got " +
                        std::to_string(problem.convolution->groups));
  if (problem.k > exact_products(images))
    return Status::fail("k: expected at most " + std::to_string(exact_products(images)) +
                        " products of a sum of integers, got " + std::to_string(problem.k));
  if (!onednn::convolves_exactly(images))
    return Status::fail("unavailable: this oneDNN on this CPU has no exact integer sums");
  return Status::success();
}

Status check_implementation(const ConvolutionShape& shape) try {
  static_cast<void>(onednn::implementation_name(shape));
  return Status::success();
} catch (const Error& error) {
  return Status::fail("operation: expected a convolution that oneDNN has more for than its " +
                      std::string("reference, got one that it has not (") +
                      std::string(error.got()) + ")");
}

// --- memory -------------------------------------------------------------------------------------

struct Operand {
  Tensor view;  // (1, pixels, channels)
  bool is_packed;
};
Operand operand_of(const GemmArguments& arguments, bool is_a) {
  const ConvMemory memory = operation::memory_of(arguments.problem(), is_a);
  const Tensor& tensor = is_a ? arguments.a() : arguments.b();
  return {operation::make_view(tensor.data(), memory.type, memory.extents, tensor.device()),
          memory.extents.rows <= 1 || memory.type.row_stride == memory.extents.columns};
}

const void* present_packed(const Operand& operand, DataType compute, const Padding& padding,
                           const CopyPlace& place) {
  if (operand.is_packed && padding.is_none() && storage_type(operand.view.dtype()) == compute)
    return operand.view.data();
  return present_copy(operand.view, compute, padding, place).data;
}

// The places of each matrix's sums in a packed tensor.
SumsLayout packed_layout(const GemmProblem& problem) {
  const Convolution& convolution = *problem.convolution;
  if (convolution.kind == ConvKind::wgrad) return {problem.m * problem.n, problem.n};
  const std::int64_t row =
      convolution.kind == ConvKind::fprop ? convolution.filters : convolution.channels;
  return {convolution.batch == ConvBatch::images ? problem.m * row : problem.n, row};
}

bool is_written_directly(const GemmArguments& arguments, const SumsLayout& layout) {
  const GemmProblem& problem = arguments.problem();
  const MatrixType& out = problem.out;
  return is_plain_epilogue(arguments) && (problem.m <= 1 || out.row_stride == layout.row_stride) &&
         (problem.n <= 1 || out.column_stride == 1) &&
         (problem.l <= 1 || out.batch_stride == layout.batch_stride);
}

bool is_implemented(const ConvolutionShape& shape) try {
  static_cast<void>(onednn::implementation_name(shape));
  return true;
} catch (const Error&) {
  return false;
}

// The shape whose results are out itself: accumulators, or bfloat16 that oneDNN rounds them to.
std::optional<ConvolutionShape> direct_shape(const GemmArguments& arguments,
                                             const ComputeTypes& types, const SumsLayout& layout) {
  const GemmProblem& problem = arguments.problem();
  const DataType stored = storage_type(problem.out.dtype);
  if (!is_written_directly(arguments, layout)) return std::nullopt;
  if (stored != types.sum && (stored != DataType::bf16 || types.a != DataType::bf16))
    return std::nullopt;
  const ConvolutionShape shape = shape_of(*problem.convolution, {types.a, types.b, stored});
  if (stored == types.sum || is_implemented(shape)) return shape;
  return std::nullopt;
}

void convolve(const GemmArguments& arguments, const ConvolutionShape& shape,
              const ComputeTypes& types, void* out) {
  static thread_local Scratch a_scratch;
  static thread_local Scratch b_scratch;
  const Padding padding{.columns = adds_channel(*arguments.problem().convolution, types) ? 1 : 0};
  const void* const a =
      present_packed(operand_of(arguments, true), types.a, padding, {a_scratch, "A"});
  const void* const b =
      present_packed(operand_of(arguments, false), types.b, padding, {b_scratch, "B"});
  switch (shape.kind) {
    case ConvolutionShape::Kind::forward:
      return onednn::convolve(shape, {.images = a, .filters = b, .outputs = out});
    case ConvolutionShape::Kind::backward_data:
      return onednn::convolve(shape, {.images = out, .filters = b, .outputs = a});
    case ConvolutionShape::Kind::backward_weights:
      return onednn::convolve(shape, {.images = b, .filters = out, .outputs = a});
  }
}

}  // namespace

Status onednn_serves_convolution(const GemmProblem& problem) {
  const Convolution& convolution = *problem.convolution;
  const ComputeTypes types =
      trusted_types(convolution, compute_types(problem.a.dtype, problem.b.dtype));
  if (has_no_products(problem)) return Status::success();
  if (Status status = check_geometry(convolution); !status) return status;
  if (Status status = check_integers(problem, types.a); !status) return status;
  for (const bool is_a : {true, false})
    if (operation::memory_of(problem, is_a).has_gaps)
      return Status::fail(std::string(is_a ? "A" : "B") +
                          ": expected pixels (or taps) at one distance, got other strides");
  return check_implementation(shape_of(convolution, types));
}

void run_onednn_convolution(const GemmArguments& arguments) {
  const GemmProblem& problem = arguments.problem();
  // Nothing to multiply: only the epilogue is left, which the plain path runs.
  if (arguments.alpha() == 0 || has_no_products(problem)) return run_plain(arguments);
  static thread_local Scratch scratch;
  const Convolution& convolution = *problem.convolution;
  const ComputeTypes types = trusted_types(
      convolution,
      compute_types_of(operand_of(arguments, true).view, operand_of(arguments, false).view));
  const SumsLayout layout = packed_layout(problem);
  if (const auto direct = direct_shape(arguments, types, layout))
    return convolve(arguments, *direct, types, arguments.out().data());
  auto* const sums =
      scratch.reserve<std::int32_t>(problem.l * problem.m * problem.n, "out", "accumulators");
  convolve(arguments, shape_of(convolution, types), types, sums);
  if (types.sum == DataType::s32) return write_from_sums(arguments, sums, layout);
  write_from_sums(arguments, reinterpret_cast<const float*>(sums), layout);
}

}  // namespace gemmery::host
