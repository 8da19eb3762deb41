// SPDX-License-Identifier: Apache-2.0
// Functors with their operands in memory, and the kernels that serve them.
#include "describe/bound_problem.hpp"

#include <string>
#include <utility>

#include "describe/combinations.hpp"
#include "describe/described_kernel.hpp"
#include "describe/functor_program.hpp"
#include "describe/packed_operands.hpp"
#include "kernel/epilogue.hpp"

namespace gemmery::describe {

gemmery::GemmOptions bound_functor(const EpilogueFunctor& functor, const OperandViews& views,
                                   const OutputOp& output_op) {
  gemmery::GemmOptions options;
  if (functor.kind == EpilogueFunctor::Kind::visitor) {
    options.epilogue = EpilogueArguments(*functor.program, output_op.operands);
    return options;
  }
  if (is_default_program(functor)) {
    // With beta = 0, C is not read; if there is none, D takes its place.
    options.c = views.c ? *views.c : views.out;
    options.alpha = output_op.alpha;
    options.beta = output_op.beta;
    return options;
  }
  const bool reads_c = reads_source(functor, output_op, views.c);
  std::vector<EpilogueOperand> operands = functor_numbers(functor, output_op, reads_c);
  if (reads_c) operands.push_back({"C", *views.c});
  options.epilogue = EpilogueArguments(functor_program(functor, reads_c), std::move(operands));
  return options;
}

namespace {

// --- the operation's own problem ----------------------------------------------------------------

// Addresses that are never read, far apart and with exactly the described alignment.
class ImaginaryMemory {
 public:
  const void* next(std::size_t alignment_bytes) {
    begin_ += std::uintptr_t{1} << 40;
    return reinterpret_cast<const void*>(begin_ + alignment_bytes);  // NOLINT: never read
  }

 private:
  std::uintptr_t begin_ = 0;
};

std::size_t alignment_bytes(const TensorDescription& tensor) {
  return byte_width(storage_type(tensor.element)) * static_cast<std::size_t>(tensor.alignment);
}

constexpr std::int64_t imaginary_extent = 1024;
constexpr Device imaginary_device = Device::emulated(0);

Tensor imaginary_view(ImaginaryMemory& memory, const TensorDescription& tensor) {
  return packed_view(memory.next(alignment_bytes(tensor)), storage_type(tensor.element),
                     tensor.layout, {imaginary_extent, imaginary_extent}, 1, imaginary_device);
}

EpilogueOperand imaginary_operand(ImaginaryMemory& memory, const TensorDescription& C,
                                  const VisitorOperand& operand) {
  const DType dtype = storage_type(operand.element);
  const TensorDescription like_c{operand.element, C.layout, C.alignment};
  using Kind = VisitorOperand::Kind;
  switch (operand.kind) {
    case Kind::scalar:
      return {operand.name, 1.0};
    case Kind::tensor:
      return {operand.name, imaginary_view(memory, like_c)};
    case Kind::row:
      return {operand.name,
              Tensor(memory.next(16), dtype, {1, imaginary_extent}, imaginary_device)};
    case Kind::column:
      return {operand.name,
              Tensor(memory.next(16), dtype, {imaginary_extent, 1}, imaginary_device)};
  }
  return {operand.name, 0.0};
}

}  // namespace

bool reads_source(const EpilogueFunctor& functor, const OutputOp& output_op,
                  const std::optional<Tensor>& c) noexcept {
  return functor.kind != EpilogueFunctor::Kind::visitor && c.has_value() && output_op.beta != 0;
}

gemmery::GemmArguments bind_problem(const GemmDescription& description, const OperandViews& views,
                                    const OutputOp& output_op) {
  const Combination& combination = find_combination(description.tile_description.math_instruction);
  gemmery::GemmOptions options = bound_functor(description.epilogue_functor, views, output_op);
  options.math = combination.math;
  return gemmery::GemmArguments(views.a, views.b, views.out,
                                storage_type(combination.element_accumulator), options);
}

Step make_step(const StepRequest& request) {
  gemmery::GemmArguments arguments =
      bind_problem(request.description, request.views, request.output_op);
  const EpilogueId asked = arguments.problem().epilogue;
  OperandRules rules =
      rules_of(request.description, is_default_program(request.description.epilogue_functor));
  const bool is_across = request.is_bias && rules.has_c && rules.c.layout == LayoutRule::column;
  if (is_across)  // a bias along rows: all elements of a column are the same number
    rules.c = {rules.c.dtype, LayoutRule::any,
               static_cast<std::uint8_t>(byte_width(rules.c.dtype))};
  const bool serves = kernel::serves_epilogue(request.own.epilogue(), asked);
  const EpilogueId epilogue = serves ? request.own.epilogue() : asked;
  const KSlices slices = request.parallel_slices > 1
                             ? KSlices{KSplit::parallel, request.parallel_slices}
                             : KSlices{KSplit::serial, request.serial_slices};
  if (serves && !is_across && slices.slices < 2) return {request.own, std::move(arguments)};
  return {described_kernel(request.description, rules, {.slices = slices, .epilogue = epilogue}),
          std::move(arguments)};
}

EpilogueId own_epilogue(const GemmDescription& description) {
  if (is_default_program(description.epilogue_functor)) return default_epilogue;
  ImaginaryMemory memory;
  const OperandViews views{.a = imaginary_view(memory, description.A),
                           .b = imaginary_view(memory, description.B),
                           .c = imaginary_view(memory, description.C),
                           .out = imaginary_view(memory, description.C)};
  OutputOp output_op{.alpha = 1, .beta = 1};
  for (const VisitorOperand& operand : description.epilogue_functor.operands)
    output_op.operands.push_back(imaginary_operand(memory, description.C, operand));
  return bind_problem(description, views, output_op).problem().epilogue;
}

}  // namespace gemmery::describe
