// SPDX-License-Identifier: Apache-2.0
// Arguments of a described GEMM: checks sizes and pointers against the description, and makes the
// steps that compute D.
#include <fmt/format.h>
#include <gemmery/discovery.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <variant>

#include "core/arithmetic.hpp"
#include "describe/argument_checks.hpp"
#include "describe/arguments_state.hpp"
#include "describe/bound_problem.hpp"
#include "describe/described_kernel.hpp"
#include "describe/functor_program.hpp"
#include "describe/interleaved.hpp"
#include "describe/packed_operands.hpp"
#include "describe/refusal.hpp"

namespace gemmery::describe {
namespace {

// --- checks -------------------------------------------------------------------------------------

void check_sizes(const GemmCoord& size, const GemmOptions& options) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  for (const auto& [name, extent] :
       {std::pair{"m", size.m}, std::pair{"n", size.n}, std::pair{"k", size.k}}) {
    if (extent < 0 || extent > most)
      refuse(fmt::format("problem_size.{}", name), fmt::format("from 0 to {}", most),
             std::to_string(extent));
  }
  if (options.batch < 1) refuse("batch", "at least 1", std::to_string(options.batch));
  check_slices(options.split_k_slices);
  const bool is_batched = options.gemm_mode == Mode::Batched || options.gemm_mode == Mode::Array;
  if (is_batched && options.split_k_slices != 1)
    refuse("split_k_slices", fmt::format("1 in mode {}", name(options.gemm_mode)),
           std::to_string(options.split_k_slices));
  if (!is_batched && options.batch != 1)
    refuse("batch", fmt::format("1 in mode {}", name(options.gemm_mode)),
           std::to_string(options.batch), "use Mode::Batched or Mode::Array");
}

void check_extents(const GemmDescription& description, const GemmCoord& size) {
  if (is_interleaved(description)) {
    for (const auto& [name, extent] : {std::pair{"n", size.n}, std::pair{"k", size.k}}) {
      if (extent % 32 != 0)
        refuse(fmt::format("problem_size.{}", name), "a multiple of 32 in interleaved layouts",
               std::to_string(extent));
    }
    return;
  }
  const auto is_row = [](const TensorDescription& tensor) {
    return tensor.layout == Layout::RowMajor;
  };
  const Adjacent m{"M", size.m};
  const Adjacent n{"N", size.n};
  const Adjacent k{"K", size.k};
  check_multiple("A", description.A, is_row(description.A) ? k : m);
  check_multiple("B", description.B, is_row(description.B) ? n : k);
  check_multiple("C", description.C, is_row(description.C) ? n : m);
}

template <class Pointer>
void check_pointers(std::string_view operand, const TensorDescription& tensor,
                    const std::vector<Pointer>& pointers, std::size_t expected, bool has_elements) {
  if (pointers.size() != expected)
    refuse(operand, fmt::format("{} pointer{}", expected, expected == 1 ? "" : "s"),
           std::to_string(pointers.size()));
  for (const auto* const data : pointers) check_pointer(operand, tensor, data, has_elements);
}

void check_memory(const GemmDescription& description, const GemmCoord& size,
                  const GemmPointers& pointers, const GemmOptions& options) {
  const std::size_t count =
      options.gemm_mode == Mode::Array ? static_cast<std::size_t>(options.batch) : 1;
  const bool has_out = size.m > 0 && size.n > 0;
  check_pointers("A", description.A, pointers.A, count, has_out && size.k > 0);
  check_pointers("B", description.B, pointers.B, count, has_out && size.k > 0);
  check_pointers("D", description.C, pointers.D, count, has_out);
  const bool reads_c = options.output_op.beta != 0 &&
                       description.epilogue_functor.kind != EpilogueFunctor::Kind::visitor;
  if (pointers.C.empty() && reads_c && has_out) refuse("C", "memory, since beta is not 0", "none");
  if (pointers.C.empty()) return;
  // The alignment of C applies to a matrix; a bias needs only the alignment of an element.
  check_pointers("C", options.bias ? without_alignment(description.C) : description.C, pointers.C,
                 count, reads_c && has_out);
}

// --- views --------------------------------------------------------------------------------------

// The matrices of one operand: packed one after the other, or by pointers.
struct OperandMemory {
  const void* data = nullptr;  // the first of them, or an array of their addresses
  int pointer_alignment = 0;   // bytes that divide these addresses; 0 for packed ones
};

// The operands of `batch` products, with plain layouts.
struct PlainMemory {
  OperandMemory a;
  OperandMemory b;
  std::optional<OperandMemory> c;
  OperandMemory d;
  std::int64_t batch;
};

Tensor by_pointers_or_packed(const Tensor& packed, const OperandMemory& memory) {
  if (memory.pointer_alignment == 0) return packed;
  const PointerArray pointers{static_cast<const void* const*>(memory.data),
                              memory.pointer_alignment};
  return Tensor(pointers, packed.dtype(), {packed.extent(0), packed.extent(1), packed.extent(2)},
                {packed.stride(1), packed.stride(2)}, packed.device());
}

OperandViews views_of(const GemmDescription& description, const GemmCoord& size,
                      const PlainMemory& memory, Device device, bool is_bias) {
  const auto view = [&](const OperandMemory& operand, const TensorDescription& tensor,
                        const MatrixShape& shape) {
    return by_pointers_or_packed(packed_view(operand.data, storage_type(tensor.element),
                                             tensor.layout, shape, memory.batch, device),
                                 operand);
  };
  const MatrixShape of_d{size.m, size.n};
  OperandViews views{.a = view(memory.a, description.A, {size.m, size.k}),
                     .b = view(memory.b, description.B, {size.k, size.n}),
                     .c = std::nullopt,
                     .out = view(memory.d, description.C, of_d)};
  if (!memory.c) return views;
  const DType dtype = storage_type(description.C.element);
  views.c = is_bias ? by_pointers_or_packed(
                          bias_view(memory.c->data, dtype, of_d, memory.batch, device), *memory.c)
                    : view(*memory.c, description.C, of_d);
  return views;
}

// --- steps --------------------------------------------------------------------------------------

// Appends the steps of its mode to a state. Layouts are plain.
class StepPlan {
 public:
  StepPlan(GemmArguments::State& state, const GemmDescription& description)
      : state_(state), description_(description) {}

  void add(const PlainMemory& memory) {
    const OperandViews views =
        views_of(description_, state_.size, memory, state_.device, state_.options.bias);
    const int slices = state_.options.split_k_slices;
    const bool is_parallel = state_.options.gemm_mode == Mode::GemmSplitKParallel;
    if (is_parallel) state_.views = views;
    if (slices > 1 && is_simt()) return add_two_passes(views);
    state_.whole.push_back(make_step({.own = state_.operation,
                                      .description = description_,
                                      .views = views,
                                      .output_op = state_.options.output_op,
                                      .is_bias = state_.options.bias,
                                      .serial_slices = is_parallel ? 1 : slices,
                                      .parallel_slices = is_parallel ? slices : 1}));
  }

 private:
  bool is_simt() const {
    return description_.tile_description.math_instruction.opcode_class == OpcodeClass::Simt;
  }

  void add_two_passes(const OperandViews& views) {
    if (description_.visitor)
      refuse_unsupported("split_k_slices", "1 for a visitor in Simt",
                         std::to_string(state_.options.split_k_slices), "TensorOp splits k there");
    PartialSums sums =
        split_product(description_, state_.size, views, state_.options.split_k_slices);
    state_.whole = std::move(sums.steps);
    auto finish = sum_partials({.partials = sums.partials,
                                .functor = description_.epilogue_functor,
                                .output_op = state_.options.output_op,
                                .c = views.c,
                                .out = views.out},
                               state_.staging);
    std::ranges::move(finish, std::back_inserter(state_.whole));
    state_.staging.push_back(std::move(sums.memory));
  }

  GemmArguments::State& state_;
  const GemmDescription& description_;
};

// --- where operands lie -------------------------------------------------------------------------

// The operand of a single product, or of all products by pointers, which are copied to an array on
// the device.
template <class Pointer>
OperandMemory memory_of(const std::vector<Pointer>& pointers, GemmArguments::State& state) {
  if (pointers.size() == 1) return {.data = pointers.front()};
  const Stream stream = Stream::of(nullptr, state.device);
  std::uintptr_t bits = 16;
  for (const auto* const pointer : pointers) bits |= reinterpret_cast<std::uintptr_t>(pointer);
  const std::size_t bytes = pointers.size() * sizeof(void*);
  const Buffer& array = state.staging.emplace_back(bytes, stream);
  copy(array.data(), state.device, pointers.data(), Device::cpu(), bytes, stream);
  synchronize(stream);
  return {.data = array.data(), .pointer_alignment = 1 << std::countr_zero(bits)};
}

PlainMemory memory_of(const GemmPointers& pointers, GemmArguments::State& state) {
  PlainMemory memory{.a = memory_of(pointers.A, state),
                     .b = memory_of(pointers.B, state),
                     .c = std::nullopt,
                     .d = memory_of(pointers.D, state),
                     .batch = state.options.batch};
  if (!pointers.C.empty() && pointers.C.front() != nullptr) memory.c = memory_of(pointers.C, state);
  return memory;
}

// --- interleaved operands -----------------------------------------------------------------------

// The matrix of one product as lines of interleaved elements.
struct Lines {
  std::int64_t count;
  std::int64_t length;
};

// Plain copies of the operands of all products, one after the other.
class PlainCopies {
 public:
  PlainCopies(GemmArguments::State& state, const GemmDescription& described)
      : state_(state), described_(described), batch_(state.options.batch) {}

  // Adds the steps that fill the copies, those of the product, and those that copy D back.
  void add(StepPlan& plan, const GemmPointers& pointers) {
    const auto& [m, n, k] = std::tie(state_.size.m, state_.size.n, state_.size.k);
    const Lines of_d{m, n};
    PlainMemory plain{.a = copy_in(pointers.A, described_.A, {m, k}),
                      .b = copy_in(pointers.B, described_.B, {n, k}),
                      .c = std::nullopt,
                      .d = {.data = reserve(described_.C, of_d)},
                      .batch = batch_};
    if (!pointers.C.empty() && pointers.C.front() != nullptr)
      plain.c = state_.options.bias ? memory_of(pointers.C, state_)
                                    : copy_in(pointers.C, described_.C, of_d);
    plan.add(plain);
    for (std::int64_t product = 0; product < batch_; ++product)
      state_.whole.push_back(
          out_of_lines(operand(pointers.D, plain.d.data, described_.C, of_d, product)));
  }

 private:
  const void* reserve(const TensorDescription& tensor, const Lines& lines) {
    const DType dtype = storage_type(tensor.element);
    state_.staging.emplace_back(
        packed_bytes("interleaved operands", {batch_, lines.count, lines.length}, dtype),
        Stream::of(nullptr, state_.device));
    return state_.staging.back().data();
  }

  OperandMemory copy_in(const std::vector<const void*>& from, const TensorDescription& tensor,
                        const Lines& lines) {
    const void* const plain = reserve(tensor, lines);
    for (std::int64_t product = 0; product < batch_; ++product)
      state_.whole.push_back(into_lines(operand(from, plain, tensor, lines, product)));
    return {.data = plain};
  }

  template <class Pointer>
  InterleavedOperand operand(const std::vector<Pointer>& interleaved, const void* plain,
                             const TensorDescription& tensor, const Lines& lines,
                             std::int64_t product) const {
    const DType dtype = storage_type(tensor.element);
    const auto offset =
        static_cast<std::size_t>(product * lines.count * lines.length) * byte_width(dtype);
    const bool is_array = interleaved.size() > 1;
    const void* const first = interleaved[is_array ? static_cast<std::size_t>(product) : 0];
    return {.interleaved = static_cast<const std::byte*>(first) + (is_array ? 0 : offset),
            .plain = static_cast<const std::byte*>(plain) + offset,
            .dtype = dtype,
            .lines = lines.count,
            .length = lines.length,
            .device = state_.device};
  }

  GemmArguments::State& state_;
  const GemmDescription& described_;
  std::int64_t batch_;
};

void plan_steps(GemmArguments::State& state, const GemmPointers& pointers) {
  const GemmDescription& described = state.operation.description();
  const GemmDescription plain = with_plain_layouts(described);
  StepPlan plan(state, plain);
  if (is_interleaved(described))
    PlainCopies(state, described).add(plan, pointers);
  else
    plan.add(memory_of(pointers, state));
}

}  // namespace

void check_arguments(const GemmDescription& description, const GemmCoord& size,
                     const GemmPointers& pointers, Device device, const GemmOptions& options) {
  check_sizes(size, options);
  check_device(description.compute_capability, device);
  check_output_op(description.epilogue_functor, options.output_op);
  check_extents(description, size);
  check_memory(description, size, pointers, options);
}

GemmArguments::GemmArguments(const GemmOperationUniversal& operation, const GemmCoord& problem_size,
                             const GemmPointers& pointers, Device device,
                             const GemmOptions& options) {
  check_arguments(operation.description(), problem_size, pointers, device, options);
  state_ = std::make_shared<State>(operation, problem_size, device, options);
  plan_steps(*state_, pointers);
}

const GemmCoord& GemmArguments::problem_size() const noexcept { return state_->size; }
Device GemmArguments::device() const noexcept { return state_->device; }
Mode GemmArguments::gemm_mode() const noexcept { return state_->options.gemm_mode; }

std::vector<Kernel> GemmArguments::kernels() const {
  std::vector<Kernel> kernels;
  for (const Step& step : state_->steps()) kernels.push_back(step.kernel);
  return kernels;
}

Partials GemmArguments::partials() const {
  State& state = *state_;
  if (state.options.gemm_mode != Mode::GemmSplitKParallel)
    refuse("gemm_mode", "GemmSplitKParallel for partial sums",
           std::string(name(state.options.gemm_mode)));
  const GemmDescription& description = state.operation.description();
  if (is_interleaved(description))
    refuse_unsupported("C.layout", "RowMajor or ColumnMajor for partial sums of the caller's",
                       std::string(name(description.C.layout)));
  const std::lock_guard lock(state.mutex);
  if (!state.partial_sums)
    state.partial_sums =
        split_product(description, state.size, state.views, state.options.split_k_slices);
  return state.partial_sums->partials;
}

}  // namespace gemmery::describe
