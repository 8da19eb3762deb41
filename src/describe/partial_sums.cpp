// SPDX-License-Identifier: Apache-2.0
// The slices are a batch whose matrices lie one slice of k apart; a shorter last slice is a product
// by itself. Elementwise kernels add the partial sums.
#include "describe/partial_sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/arithmetic.hpp"
#include "describe/combinations.hpp"
#include "describe/described_kernel.hpp"
#include "describe/functor_program.hpp"
#include "describe/packed_operands.hpp"

namespace gemmery::describe {
namespace {

Stream default_stream(Device device) { return Stream::of(nullptr, device); }

// A view of `count` matrices that begin one slice of k apart, made from a view of one.
Tensor slices_of(const Tensor& view, int k_dimension, std::int64_t first_k, std::int64_t k,
                 std::int64_t count) {
  const auto bytes = static_cast<std::int64_t>(byte_width(view.dtype()));
  const std::int64_t k_stride = view.stride(k_dimension);
  std::array shape{count, view.extent(1), view.extent(2)};
  shape[static_cast<std::size_t>(k_dimension)] = k;
  const std::array strides{k * k_stride, view.stride(1), view.stride(2)};
  const auto* const data = static_cast<const std::byte*>(view.data()) + first_k * k_stride * bytes;
  return Tensor(data, view.dtype(), shape, strides, view.device());
}

// The rules of partial sums: accumulators stored in their own type, row-major.
OperandRules partial_rules(const GemmDescription& description, std::int64_t columns) {
  OperandRules rules = rules_of(description, false);
  const DType dtype = rules.accumulator;
  rules.out = {dtype, LayoutRule::row, static_cast<std::uint8_t>(row_alignment(columns, dtype))};
  return rules;
}

Step product_of_slices(const GemmDescription& description, const OperandRules& rules,
                       const Tensor& a, const Tensor& b, const Tensor& out) {
  gemmery::GemmOptions options;
  options.math = rules.math;
  return {described_kernel(description, rules),
          gemmery::GemmArguments(a, b, out, rules.accumulator, options)};
}

// --- sums ---------------------------------------------------------------------------------------

// The number of tensors that one elementwise kernel reads, leaving one operand for C.
constexpr std::int64_t most_terms = 15;

Tensor partial(const Partials& partials, std::int64_t slice) {
  const auto bytes = static_cast<std::int64_t>(byte_width(partials.dtype));
  const auto* const data = static_cast<const std::byte*>(partials.data) +
                           slice * partials.rows * partials.columns * bytes;
  return Tensor(data, partials.dtype, {1, partials.rows, partials.columns}, partials.device);
}

// Memory for an intermediate sum, at least as wide as the type in which it is computed.
Tensor scratch_sum(const Partials& partials, std::vector<Buffer>& scratch) {
  const DType dtype = bit_width(partials.dtype) < 32 ? DType::float32 : partials.dtype;
  scratch.emplace_back(packed_bytes("partial sums", {partials.rows, partials.columns}, dtype),
                       default_stream(partials.device));
  return Tensor(scratch.back().data(), dtype, {1, partials.rows, partials.columns},
                partials.device);
}

struct Terms {
  std::vector<EpilogueOperand> operands;
  epilogue::Expression sum = 0.0;
};

// `before` is the sum of all earlier terms, if there are any.
Terms terms_of(const Partials& partials, std::int64_t first, std::int64_t last,
               const std::optional<Tensor>& before) {
  Terms terms;
  const auto add = [&](std::string name, const Tensor& tensor) {
    const epilogue::Expression term = epilogue::operand(name);
    terms.sum = terms.operands.empty() ? term : terms.sum + term;
    terms.operands.push_back({std::move(name), tensor});
  };
  if (before) add("before", *before);
  for (std::int64_t slice = first; slice < last; ++slice)
    add(fmt::format("part{}", slice - first), partial(partials, slice));
  return terms;
}

}  // namespace

std::size_t row_alignment(std::int64_t columns, DType accumulator) noexcept {
  std::size_t alignment = byte_width(accumulator);
  while (alignment < 16 &&
         static_cast<std::size_t>(columns) * byte_width(accumulator) % (2 * alignment) == 0)
    alignment *= 2;
  return alignment;
}

PartialSums split_product(const GemmDescription& description, const GemmCoord& size,
                          const OperandViews& views, int slices) {
  const std::int64_t block = description.tile_description.threadblock_shape[2];
  const std::int64_t blocks =
      std::max(divide_up(divide_up(size.k, slices), block), std::int64_t{1});
  const std::int64_t per_slice = blocks * block;
  const std::int64_t count = std::max(divide_up(size.k, per_slice), std::int64_t{1});
  const std::int64_t whole = size.k / per_slice;
  const OperandRules rules = partial_rules(description, size.n);
  const Device device = views.out.device();
  const std::size_t bytes =
      packed_bytes("partial sums", {count, size.m, size.n}, rules.accumulator);
  PartialSums result{.memory = Buffer(bytes, default_stream(device)),
                     .partials = {.data = nullptr,
                                  .dtype = rules.accumulator,
                                  .slices = count,
                                  .rows = size.m,
                                  .columns = size.n,
                                  .device = device},
                     .steps = {}};
  result.partials.data = result.memory.data();
  const auto add = [&](std::int64_t first, std::int64_t k, std::int64_t batch) {
    if (batch == 0) return;
    auto* const data = static_cast<std::byte*>(result.partials.data) +
                       bytes / static_cast<std::size_t>(count) * static_cast<std::size_t>(first);
    result.steps.push_back(
        product_of_slices(description, rules, slices_of(views.a, 2, first * per_slice, k, batch),
                          slices_of(views.b, 1, first * per_slice, k, batch),
                          Tensor(data, rules.accumulator, {batch, size.m, size.n}, device)));
  };
  add(0, per_slice, whole);
  add(whole, size.k - whole * per_slice, count - whole);
  return result;
}

std::vector<Step> sum_partials(const SumRequest& request, std::vector<Buffer>& scratch) {
  const Partials& partials = request.partials;
  std::vector<Step> steps;
  std::optional<Tensor> before;
  std::int64_t first = 0;
  while (partials.slices - first > most_terms - (before ? 1 : 0)) {
    const std::int64_t last = first + most_terms - (before ? 1 : 0);
    Terms terms = terms_of(partials, first, last, before);
    if (!before) before = scratch_sum(partials, scratch);
    steps.push_back(elementwise_step(
        *before, {epilogue::Program{{"D", terms.sum}}, std::move(terms.operands)}));
    first = last;
  }
  Terms terms = terms_of(partials, first, partials.slices, before);
  const bool reads_c = reads_source(request.functor, request.output_op, request.c);
  std::ranges::move(functor_numbers(request.functor, request.output_op, reads_c),
                    std::back_inserter(terms.operands));
  if (reads_c) terms.operands.push_back({"C", *request.c});
  steps.push_back(elementwise_step(
      request.out,
      {functor_program(request.functor, reads_c, terms.sum), std::move(terms.operands)}));
  return steps;
}

}  // namespace gemmery::describe
