// SPDX-License-Identifier: Apache-2.0
// Arguments of a described convolution: checks the size and the pointers against the description,
// and makes the steps that compute D.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "describe/argument_checks.hpp"
#include "describe/conv_description.hpp"
#include "describe/conv_interleaved.hpp"
#include "describe/conv_slices.hpp"
#include "describe/conv_state.hpp"
#include "describe/described_kernel.hpp"
#include "describe/functor_program.hpp"
#include "describe/packed_operands.hpp"
#include "describe/refusal.hpp"
#include "kernel/epilogue.hpp"

namespace gemmery::describe {
namespace {

// --- checks -------------------------------------------------------------------------------------

void check_algorithm(const Conv2dDescription& description, const Conv2dProblemSize& size) {
  const std::string of_algorithm =
      fmt::format(" for iterator_algorithm {}", name(description.iterator_algorithm));
  if (description.iterator_algorithm == IteratorAlgorithm::optimized) {
    for (const auto& [field, taps] :
         {std::pair{"problem_size.R", size.R}, {"problem_size.S", size.S}}) {
      if (taps > 32)
        refuse_unsupported(field, "at most 32" + of_algorithm, std::to_string(taps),
                           "analytic takes every filter");
    }
  }
  if (description.iterator_algorithm == IteratorAlgorithm::fixed_channels &&
      size.C / size.groups != description.A.alignment)
    refuse("problem_size.C",
           fmt::format("{}, the alignment of A,{}", description.A.alignment, of_algorithm),
           std::to_string(size.C / size.groups), "few_channels takes multiples of it");
}

void check_stride(const Conv2dDescription& description, const Conv2dProblemSize& size) {
  const bool is_unity = size.stride == std::array<std::int64_t, 2>{1, 1};
  if (description.conv_kind != ConvKind::dgrad ||
      description.stride_support == StrideSupport::Strided || is_unity)
    return;
  refuse("problem_size.stride", "1 and 1 for a dgrad with stride_support Unity",
         fmt::format("{} and {}", size.stride[0], size.stride[1]),
         "describe the kernel with StrideSupport::Strided");
}

void check_split(const Conv2dOptions& options) {
  check_slices(options.split_k_slices);
  if (options.split_k_mode == SplitKMode::None_ && options.split_k_slices != 1)
    refuse("split_k_slices", "1 with SplitKMode::None_", std::to_string(options.split_k_slices));
}

// The channels of an operand in one group.
Adjacent channels_of(const Conv2dProblemSize& size, bool are_filters) {
  if (are_filters) return {size.groups > 1 ? "K / groups" : "K", size.K / size.groups};
  return {size.groups > 1 ? "C / groups" : "C", size.C / size.groups};
}

void check_channels(const Conv2dDescription& description, const Conv2dProblemSize& size) {
  const bool is_fprop = description.conv_kind == ConvKind::fprop;
  if (is_interleaved(description)) {
    for (const auto& [field, channels] :
         {std::pair{"problem_size.C", size.C}, {"problem_size.K", size.K}}) {
      if (channels % 32 != 0)
        refuse(field, "a multiple of 32 in interleaved layouts", std::to_string(channels));
    }
    if (size.groups != 1)
      refuse_unsupported("problem_size.groups", "1 in interleaved layouts",
                         std::to_string(size.groups));
    return;
  }
  check_multiple("A", description.A, channels_of(size, !is_fprop));
  check_multiple("B", description.B, channels_of(size, false));
  check_multiple("C", description.C, channels_of(size, is_fprop));
}

void check_memory(const Conv2dDescription& description, const Conv2dProblemSize& size,
                  const Conv2dPointers& pointers, const Conv2dOptions& options) {
  const GemmCoord product = implicit_gemm_problem_size(description.conv_kind, size);
  const bool has_out = product.m > 0 && product.n > 0;
  const bool has_products = has_out && product.k > 0;
  check_pointer("A", description.A, pointers.A, has_products);
  check_pointer("B", description.B, pointers.B, has_products);
  check_pointer("D", description.C, pointers.D, has_out);
  if (options.bias && description.conv_kind == ConvKind::wgrad)
    refuse_unsupported("bias", "false for wgrad, whose columns are taps and channels", "true");
  const bool reads_c = options.output_op.beta != 0 && has_out;
  if (reads_c && pointers.C == nullptr) refuse("C", "memory, since beta is not 0", "none");
  check_pointer("C", options.bias ? without_alignment(description.C) : description.C, pointers.C,
                reads_c);
}

void check_conv_arguments(const Conv2dDescription& description, const Conv2dProblemSize& size,
                          const Conv2dPointers& pointers, Device device,
                          const Conv2dOptions& options) {
  check_problem_size(size);
  check_algorithm(description, size);
  check_stride(description, size);
  check_split(options);
  check_device(description.compute_capability, device);
  check_output_op(description.epilogue_functor, options.output_op);
  check_channels(description, size);
  check_memory(description, size, pointers, options);
}

// --- steps --------------------------------------------------------------------------------------

// Kernels of the family sm80 split k themselves, except those of a dgrad with a stride.
bool splits_itself(const Conv2dDescription& description, const Conv2dProblemSize& size) {
  const bool is_strided = size.stride != std::array<std::int64_t, 2>{1, 1};
  return description.tile_description.math_instruction.opcode_class == OpcodeClass::TensorOp &&
         !(description.conv_kind == ConvKind::dgrad && is_strided);
}

void append(std::vector<Step>& steps, std::vector<Step> more) {
  std::ranges::move(more, std::back_inserter(steps));
}

// D or C as a matrix with the shape of partial sums.
Tensor as_matrix(const Tensor& tensor, const Partials& partials) {
  const MatrixShape shape{partials.rows, partials.columns};
  return tensor.rank() == 1 ? bias_view(tensor.data(), tensor.dtype(), shape, 1, tensor.device())
                            : packed_view(tensor.data(), tensor.dtype(), Layout::RowMajor, shape, 1,
                                          tensor.device());
}

void add_two_passes(Conv2dArguments::State& state) {
  const Conv2dDescription& description = state.operation.description();
  const OperandViews& views = state.problem->views;
  PartialSums sums = split_convolution(description, state.size, *state.problem,
                                       state.options.split_k_slices, state.staging);
  append(state.whole, std::move(sums.steps));
  append(state.whole, sum_partials({.partials = sums.partials,
                                    .functor = description.epilogue_functor,
                                    .output_op = state.options.output_op,
                                    .c = views.c ? std::optional(as_matrix(*views.c, sums.partials))
                                                 : std::nullopt,
                                    .out = as_matrix(views.out, sums.partials)},
                                   state.staging));
  state.staging.push_back(std::move(sums.memory));
}

// The operation's own epilogue if it supports the arguments.
EpilogueId epilogue_of(const Conv2dOperation& operation, const gemmery::GemmArguments& arguments) {
  const EpilogueId asked = arguments.problem().epilogue;
  return kernel::serves_epilogue(operation.epilogue(), asked) ? operation.epilogue() : asked;
}

void add_convolution(Conv2dArguments::State& state) {
  const Conv2dDescription& description = state.operation.description();
  const int slices = state.options.split_k_slices;
  if (slices > 1 && !splits_itself(description, state.size)) return add_two_passes(state);
  const bool is_parallel = state.options.split_k_mode == SplitKMode::Parallel;
  const bool has_c = is_default_program(description.epilogue_functor);
  const bool is_bias = state.options.bias && state.problem->views.c.has_value();
  gemmery::GemmArguments arguments =
      bind_convolution(description, *state.problem, state.options.output_op);
  const EpilogueId epilogue = epilogue_of(state.operation, arguments);
  state.whole.push_back(
      make_conv_step({.description = description,
                      .rules = conv_rules(description, has_c, is_bias),
                      .arguments = std::move(arguments),
                      .slices = {is_parallel ? KSplit::parallel : KSplit::serial, slices},
                      .epilogue = epilogue}));
}

// Copies of interleaved operands in plain layouts.
class PlainConvCopies {
 public:
  explicit PlainConvCopies(Conv2dArguments::State& state)
      : state_(state),
        description_(state.operation.description()),
        shapes_(shapes_of(description_.conv_kind, state.size)) {}

  Conv2dPointers add(const Conv2dPointers& pointers) {
    Conv2dPointers plain = pointers;
    plain.A = copy_in(pointers.A, description_.A, shapes_.a);
    plain.B = copy_in(pointers.B, description_.B, shapes_.b);
    if (pointers.C != nullptr && !state_.options.bias)
      plain.C = copy_in(pointers.C, description_.C, shapes_.out);
    plain.D = reserve(description_.C, shapes_.out);
    return plain;
  }

  void add_result(const void* plain, const void* interleaved) {
    append(state_.whole,
           to_interleaved(tensor_of(plain, interleaved, description_.C, shapes_.out)));
  }

 private:
  using Shape = std::array<std::int64_t, 4>;

  void* reserve(const TensorDescription& tensor, const Shape& shape) {
    const std::size_t bytes =
        packed_bytes("interleaved operands", {shape[0], shape[1], shape[2], shape[3]},
                     storage_type(tensor.element));
    return state_.staging.emplace_back(bytes, Stream::of(nullptr, state_.device)).data();
  }

  InterleavedTensor tensor_of(const void* plain, const void* interleaved,
                              const TensorDescription& tensor, const Shape& shape) const {
    return {.layout = tensor.layout,
            .interleaved = interleaved,
            .plain = plain,
            .dtype = storage_type(tensor.element),
            .extents = shape,
            .device = state_.device};
  }

  const void* copy_in(const void* interleaved, const TensorDescription& tensor,
                      const Shape& shape) {
    const void* const plain = reserve(tensor, shape);
    append(state_.whole, to_plain(tensor_of(plain, interleaved, tensor, shape)));
    return plain;
  }

  Conv2dArguments::State& state_;
  const Conv2dDescription& description_;
  ConvShapes shapes_;
};

void bind_problem(Conv2dArguments::State& state, const Conv2dPointers& pointers) {
  const Conv2dDescription& description = state.operation.description();
  state.problem = conv_problem(description.conv_kind, state.size, pointers, description,
                               state.device, state.options.bias);
}

void plan_steps(Conv2dArguments::State& state, const Conv2dPointers& pointers) {
  if (!is_interleaved(state.operation.description())) {
    bind_problem(state, pointers);
    return add_convolution(state);
  }
  PlainConvCopies copies(state);
  const Conv2dPointers plain = copies.add(pointers);
  bind_problem(state, plain);
  add_convolution(state);
  copies.add_result(plain.D, pointers.D);
}

}  // namespace

Conv2dArguments::Conv2dArguments(const Conv2dOperation& operation,
                                 const Conv2dProblemSize& problem_size,
                                 const Conv2dPointers& pointers, Device device,
                                 const Conv2dOptions& options) {
  check_conv_arguments(operation.description(), problem_size, pointers, device, options);
  state_ = std::make_shared<State>(operation, problem_size, device, options);
  plan_steps(*state_, pointers);
}

const Conv2dProblemSize& Conv2dArguments::problem_size() const noexcept { return state_->size; }
Device Conv2dArguments::device() const noexcept { return state_->device; }

std::vector<Kernel> Conv2dArguments::kernels() const {
  std::vector<Kernel> kernels;
  for (const Step& step : state_->steps()) kernels.push_back(step.kernel);
  return kernels;
}

Partials Conv2dArguments::partials() const {
  State& state = *state_;
  const Conv2dDescription& description = state.operation.description();
  if (state.options.split_k_mode != SplitKMode::Parallel)
    refuse("split_k_mode", "Parallel for partial sums",
           std::string(name(state.options.split_k_mode)));
  if (is_interleaved(description))
    refuse_unsupported("C.layout", "TensorNHWC for partial sums of the caller's",
                       std::string(name(description.C.layout)));
  const std::lock_guard lock(state.mutex);
  if (!state.partial_sums)
    state.partial_sums = split_convolution(description, state.size, *state.problem,
                                           state.options.split_k_slices, state.staging);
  return state.partial_sums->partials;
}

}  // namespace gemmery::describe
