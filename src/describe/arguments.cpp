// SPDX-License-Identifier: Apache-2.0
// Arguments of a described GEMM: sizes and pointers held against the description, and the steps
// that compute D.
#include <fmt/format.h>
#include <gemmery/discovery.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <variant>

#include "core/arithmetic.hpp"
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
  if (options.split_k_slices < 1 || options.split_k_slices > 65535)
    refuse("split_k_slices", "from 1 to 65535", std::to_string(options.split_k_slices));
  const bool is_batched = options.gemm_mode == Mode::Batched || options.gemm_mode == Mode::Array;
  if (is_batched && options.split_k_slices != 1)
    refuse("split_k_slices", fmt::format("1 in mode {}", name(options.gemm_mode)),
           std::to_string(options.split_k_slices));
  if (!is_batched && options.batch != 1)
    refuse("batch", fmt::format("1 in mode {}", name(options.gemm_mode)),
           std::to_string(options.batch), "use Mode::Batched or Mode::Array");
}

// The extent along which elements of a packed operand are neighbours.
struct Adjacent {
  const char* extent_name;
  std::int64_t extent;
};

void check_multiple(std::string_view operand, const TensorDescription& tensor,
                    const Adjacent& adjacent) {
  if (adjacent.extent % tensor.alignment == 0) return;
  refuse(operand,
         fmt::format("{} a multiple of {}, the alignment of {} ({})", adjacent.extent_name,
                     tensor.alignment, operand, name(tensor.layout)),
         std::to_string(adjacent.extent), "describe the kernel with a smaller alignment");
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

void check_pointer(std::string_view operand, const TensorDescription& tensor, const void* data,
                   bool has_elements) {
  const auto bytes =
      byte_width(storage_type(tensor.element)) * static_cast<std::size_t>(tensor.alignment);
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  if (data == nullptr && has_elements) refuse(operand, "memory", "a null pointer");
  if (address % bytes != 0)
    refuse(operand, fmt::format("an address that is a multiple of {} bytes", bytes),
           fmt::format("{:#x}", address), "describe the kernel with a smaller alignment");
}

template <class Pointer>
void check_pointers(std::string_view operand, const TensorDescription& tensor,
                    const std::vector<Pointer>& pointers, std::size_t expected, bool has_elements) {
  if (pointers.size() != expected)
    refuse(operand, fmt::format("{} pointer{}", expected, expected == 1 ? "" : "s"),
           std::to_string(pointers.size()));
  for (const auto* const data : pointers) check_pointer(operand, tensor, data, has_elements);
}

TensorDescription without_alignment(TensorDescription tensor) {
  tensor.alignment = 1;
  return tensor;
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
  // One row of a bias may begin wherever its elements may.
  check_pointers("C", options.bias ? without_alignment(description.C) : description.C, pointers.C,
                 count, reads_c && has_out);
}

void check_device(const GemmDescription& description, Device device) {
  if (device.is_cpu())
    refuse("device", "a GPU, or an emulated device such as emulated:a100", "cpu",
           "gemmery::get_kernels finds kernels of the CPU");
  const DeviceInfo& info = device_info(device);
  if (info.target.architecture >= description.compute_capability) return;
  refuse_unsupported(
      "compute_capability",
      fmt::format("at most {}, that of {}", info.target.architecture, to_string(device)),
      std::to_string(description.compute_capability));
}

// --- views --------------------------------------------------------------------------------------

// Operands as plain memory, of `batch` products one behind the other.
struct PlainMemory {
  const void* a;
  const void* b;
  const void* c;  // null where there is none
  void* d;
  std::int64_t batch;
};

ProblemViews views_of(const GemmDescription& description, const GemmCoord& size,
                      const PlainMemory& memory, Device device, bool is_bias) {
  const auto view = [&](const void* data, const TensorDescription& tensor,
                        const MatrixShape& shape) {
    return packed_view(data, storage_type(tensor.element), tensor.layout, shape, memory.batch,
                       device);
  };
  const MatrixShape of_d{size.m, size.n};
  ProblemViews views{.a = view(memory.a, description.A, {size.m, size.k}),
                     .b = view(memory.b, description.B, {size.k, size.n}),
                     .c = std::nullopt,
                     .out = view(memory.d, description.C, of_d)};
  if (memory.c == nullptr) return views;
  views.c =
      is_bias ? bias_view(memory.c, storage_type(description.C.element), of_d, memory.batch, device)
              : view(memory.c, description.C, of_d);
  return views;
}

// --- steps --------------------------------------------------------------------------------------

// An operand of a visitor that has a matrix, row or column for each product, of one product.
EpilogueOperand of_product(EpilogueOperand operand, std::int64_t product, std::int64_t batch) {
  auto* const tensor = std::get_if<Tensor>(&operand.value);
  if (tensor == nullptr || tensor->rank() != 3 || tensor->extent(0) != batch) return operand;
  const auto width = static_cast<std::int64_t>(byte_width(tensor->dtype()));
  const auto* const data =
      static_cast<const std::byte*>(tensor->data()) + product * tensor->stride(0) * width;
  const std::array<std::int64_t, 3> shape{1, tensor->extent(1), tensor->extent(2)};
  *tensor = Tensor(data, tensor->dtype(), shape, tensor->strides(), tensor->device());
  return operand;
}

OutputOp of_product(OutputOp op, std::int64_t product, std::int64_t batch) {
  for (EpilogueOperand& operand : op.operands)
    operand = of_product(std::move(operand), product, batch);
  return op;
}

// Adds to a state the steps of its mode. Layouts are plain.
class StepPlan {
 public:
  StepPlan(GemmArguments::State& state, const GemmDescription& description)
      : state_(state), description_(description) {}

  void add(const PlainMemory& memory) {
    const ProblemViews views =
        views_of(description_, state_.size, memory, state_.device, state_.options.bias);
    const int slices = state_.options.split_k_slices;
    const bool is_parallel = state_.options.gemm_mode == Mode::GemmSplitKParallel;
    if (is_parallel) state_.views = views;
    if (slices > 1 && is_simt()) return add_two_passes(views);
    const OutputOp op =
        state_.options.gemm_mode == Mode::Array
            ? of_product(state_.options.output_op, products_++, state_.options.batch)
            : state_.options.output_op;
    state_.whole.push_back(make_step({.own = state_.operation,
                                      .description = description_,
                                      .views = views,
                                      .output_op = op,
                                      .is_bias = state_.options.bias,
                                      .serial_slices = is_parallel ? 1 : slices,
                                      .parallel_slices = is_parallel ? slices : 1}));
  }

 private:
  bool is_simt() const {
    return description_.tile_description.math_instruction.opcode_class == OpcodeClass::Simt;
  }

  void add_two_passes(const ProblemViews& views) {
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
  std::int64_t products_ = 0;  // so far
};

const void* pointer_of(const std::vector<const void*>& pointers, std::size_t product) {
  return pointers.empty() ? nullptr : pointers[product];
}

// --- interleaved operands -----------------------------------------------------------------------

// Plain copies of the operands of one product.
class PlainCopies {
 public:
  PlainCopies(GemmArguments::State& state, const GemmDescription& described)
      : state_(state), described_(described) {}

  // The steps that fill the copies, those of the product, the one that takes D out.
  void add(StepPlan& plan, const GemmPointers& pointers, std::size_t product) {
    const auto& [m, n, k] = std::tie(state_.size.m, state_.size.n, state_.size.k);
    const auto batch = state_.options.gemm_mode == Mode::Batched ? state_.options.batch : 1;
    PlainMemory plain{.a = reserve(described_.A, m, k, batch),
                      .b = reserve(described_.B, n, k, batch),
                      .c = nullptr,
                      .d = reserve(described_.C, m, n, batch),
                      .batch = batch};
    copy_in(pointers.A[product], plain.a, described_.A, m, k, batch);
    copy_in(pointers.B[product], plain.b, described_.B, n, k, batch);
    if (const void* const c = pointer_of(pointers.C, product)) {
      plain.c = state_.options.bias ? c : reserve(described_.C, m, n, batch);
      if (!state_.options.bias) copy_in(c, plain.c, described_.C, m, n, batch);
    }
    plan.add(plain);
    for (std::int64_t at = 0; at < batch; ++at)
      state_.whole.push_back(
          out_of_lines(operand(pointers.D[product], plain.d, described_.C, m, n, at)));
  }

 private:
  void* reserve(const TensorDescription& tensor, std::int64_t lines, std::int64_t length,
                std::int64_t batch) {
    const DType dtype = storage_type(tensor.element);
    state_.staging.emplace_back(packed_bytes("interleaved operands", {batch, lines, length}, dtype),
                                Stream::of(nullptr, state_.device));
    return state_.staging.back().data();
  }

  void copy_in(const void* from, const void* to, const TensorDescription& tensor,
               std::int64_t lines, std::int64_t length, std::int64_t batch) {
    for (std::int64_t at = 0; at < batch; ++at)
      state_.whole.push_back(into_lines(operand(from, to, tensor, lines, length, at)));
  }

  InterleavedOperand operand(const void* interleaved, const void* plain,
                             const TensorDescription& tensor, std::int64_t lines,
                             std::int64_t length, std::int64_t product) const {
    const DType dtype = storage_type(tensor.element);
    const auto offset = static_cast<std::size_t>(product * lines * length) * byte_width(dtype);
    return {.interleaved = static_cast<const std::byte*>(interleaved) + offset,
            .plain = static_cast<const std::byte*>(plain) + offset,
            .dtype = dtype,
            .lines = lines,
            .length = length,
            .device = state_.device};
  }

  GemmArguments::State& state_;
  const GemmDescription& described_;
};

void plan_steps(GemmArguments::State& state, const GemmPointers& pointers) {
  const GemmDescription& described = state.operation.description();
  const GemmDescription plain = with_plain_layouts(described);
  StepPlan plan(state, plain);
  PlainCopies copies(state, described);
  const std::int64_t batch = state.options.gemm_mode == Mode::Batched ? state.options.batch : 1;
  for (std::size_t product = 0; product < pointers.D.size(); ++product) {
    if (is_interleaved(described)) {
      copies.add(plan, pointers, product);
    } else {
      plan.add({.a = pointers.A[product],
                .b = pointers.B[product],
                .c = pointer_of(pointers.C, product),
                .d = pointers.D[product],
                .batch = batch});
    }
  }
}

}  // namespace

GemmArguments::GemmArguments(const GemmOperationUniversal& operation, const GemmCoord& problem_size,
                             const GemmPointers& pointers, Device device,
                             const GemmOptions& options) {
  const GemmDescription& description = operation.description();
  check_sizes(problem_size, options);
  check_device(description, device);
  check_output_op(description.epilogue_functor, options.output_op);
  check_extents(description, problem_size);
  check_memory(description, problem_size, pointers, options);
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
