// SPDX-License-Identifier: Apache-2.0
// The four functors and visitors: their construction and their programs.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "describe/functor_program.hpp"
#include "describe/refusal.hpp"

namespace gemmery::describe {
namespace {

using Kind = EpilogueFunctor::Kind;

bool is_whole(Element element) noexcept { return is_integer(storage_type(element)); }

Element accumulator_for(Element output) noexcept {
  if (output == Element::float64) return Element::float64;
  return is_whole(output) ? Element::int32 : Element::float32;
}

Element compute_for(Element accumulator) noexcept {
  return accumulator == Element::float64 ? Element::float64 : Element::float32;
}

EpilogueFunctor make_functor(Kind kind, Element output, int count,
                             std::optional<Element> accumulator, std::optional<Element> compute) {
  EpilogueFunctor functor;
  functor.kind = kind;
  functor.element_output = output;
  functor.epilogue_vector_length = count;
  functor.element_accumulator = accumulator.value_or(accumulator_for(output));
  functor.element_compute = compute.value_or(compute_for(functor.element_accumulator));
  return functor;
}

// 16-bit compute types are computed in float32, which is at least as accurate; int32 in float64,
// which represents it exactly.
DType compute_type(const EpilogueFunctor& functor) noexcept {
  switch (functor.element_compute) {
    case Element::float64:
    case Element::int32:
      return DType::float64;
    default:
      return DType::float32;
  }
}

bool computes_in(const EpilogueFunctor& functor) noexcept {
  const Element compute = functor.element_compute;
  switch (functor.element_accumulator) {
    case Element::float64:
      return compute == Element::float64;
    case Element::int32:
      return compute == Element::float32 || compute == Element::int32 ||
             compute == Element::float64;
    default:
      return compute == Element::float32 || compute == Element::float16 ||
             compute == Element::bfloat16;
  }
}

std::string_view compute_words(Element accumulator) noexcept {
  if (accumulator == Element::float64) return "float64";
  return accumulator == Element::int32 ? "float32, int32 or float64"
                                       : "float32, float16 or bfloat16";
}

epilogue::FunctorTypes types_of(const EpilogueFunctor& functor, bool reads_c) noexcept {
  return {.out = storage_type(functor.element_output),
          .count = functor.epilogue_vector_length,
          .accumulator = storage_type(functor.element_accumulator),
          .compute = compute_type(functor),
          .reads_c = reads_c};
}

std::size_t activation_count(const EpilogueFunctor& functor) noexcept {
  return functor.kind == Kind::linear_combination_generic &&
                 functor.activation == epilogue::Activation::leaky_relu
             ? 1
             : 0;
}

constexpr double default_leaky_alpha = 0.2;

void check_visitor(const EpilogueFunctor& functor) {
  for (const std::string& input : functor.program->inputs()) {
    if (std::ranges::find(functor.operands, input, &VisitorOperand::name) == functor.operands.end())
      refuse("epilogue_functor.operands", fmt::format("an entry for {}", input), "none");
  }
  const auto outputs = functor.program->outputs();
  for (const VisitorOperand& operand : functor.operands) {
    const auto& inputs = functor.program->inputs();
    if (operand.name == "D" || (std::ranges::find(inputs, operand.name) == inputs.end() &&
                                std::ranges::find(outputs, operand.name) == outputs.end()))
      refuse("epilogue_functor.operands", "names that the program reads, and results beside D",
             operand.name);
  }
}

}  // namespace

EpilogueFunctor LinearCombination(Element element_output, int epilogue_vector_length,
                                  std::optional<Element> element_accumulator,
                                  std::optional<Element> element_compute) {
  return make_functor(Kind::linear_combination, element_output, epilogue_vector_length,
                      element_accumulator, element_compute);
}

EpilogueFunctor LinearCombinationClamp(Element element_output, int epilogue_vector_length,
                                       std::optional<Element> element_accumulator,
                                       std::optional<Element> element_compute) {
  return make_functor(Kind::linear_combination_clamp, element_output, epilogue_vector_length,
                      element_accumulator, element_compute);
}

EpilogueFunctor FastLinearCombinationClamp(Element element_output, int epilogue_vector_length) {
  return make_functor(Kind::fast_linear_combination_clamp, element_output, epilogue_vector_length,
                      Element::int32, Element::float32);
}

EpilogueFunctor LinearCombinationGeneric(epilogue::Activation activation, Element element_output,
                                         int epilogue_vector_length,
                                         std::optional<Element> element_accumulator,
                                         std::optional<Element> element_compute) {
  EpilogueFunctor functor =
      make_functor(Kind::linear_combination_generic, element_output, epilogue_vector_length,
                   element_accumulator, element_compute);
  functor.activation = activation;
  return functor;
}

EpilogueFunctor EpilogueVisitTree(gemmery::epilogue::Program program,
                                  std::vector<VisitorOperand> operands, Element element_output,
                                  int epilogue_vector_length, Element element_accumulator) {
  EpilogueFunctor functor = make_functor(Kind::visitor, element_output, epilogue_vector_length,
                                         element_accumulator, std::nullopt);
  functor.program = std::move(program);
  functor.operands = std::move(operands);
  return functor;
}

void check_functor(const EpilogueFunctor& functor, Element element_accumulator,
                   const TensorDescription& C) {
  if (storage_type(functor.element_output) != storage_type(C.element))
    refuse("epilogue_functor.element_output", fmt::format("{}, the element of C", name(C.element)),
           std::string(name(functor.element_output)));
  if (functor.epilogue_vector_length != C.alignment)
    refuse("epilogue_functor.epilogue_vector_length",
           fmt::format("{}, the alignment of C", C.alignment),
           std::to_string(functor.epilogue_vector_length));
  if (functor.element_accumulator != element_accumulator)
    refuse("epilogue_functor.element_accumulator",
           fmt::format("{}, that of the math instruction", name(element_accumulator)),
           std::string(name(functor.element_accumulator)));
  if (functor.kind == Kind::visitor) return check_visitor(functor);
  if (!computes_in(functor))
    refuse_unsupported("epilogue_functor.element_compute",
                       fmt::format("{} for accumulators of {}", compute_words(element_accumulator),
                                   name(element_accumulator)),
                       std::string(name(functor.element_compute)));
  if (functor.kind == Kind::fast_linear_combination_clamp &&
      storage_type(functor.element_output) != DType::int8 &&
      storage_type(functor.element_output) != DType::uint8)
    refuse_unsupported("epilogue_functor.element_output", "int8 or uint8",
                       std::string(name(functor.element_output)),
                       "LinearCombinationClamp serves every type");
}

epilogue::Program functor_program(const EpilogueFunctor& functor, bool reads_c,
                                  const epilogue::Expression& accumulated) {
  const epilogue::FunctorTypes types = types_of(functor, reads_c);
  switch (functor.kind) {
    case Kind::linear_combination:
      return epilogue::linear_combination(types, accumulated);
    case Kind::linear_combination_clamp:
    case Kind::fast_linear_combination_clamp:
      return epilogue::linear_combination_clamp(types, accumulated);
    case Kind::linear_combination_generic:
      return epilogue::linear_combination_generic(functor.activation, types, accumulated);
    case Kind::visitor:
      break;
  }
  return *functor.program;
}

bool is_default_program(const EpilogueFunctor& functor) noexcept {
  if (functor.kind != Kind::linear_combination) return false;
  return functor.element_accumulator != Element::int32 || compute_type(functor) == DType::float64;
}

void check_output_op(const EpilogueFunctor& functor, const OutputOp& output_op) {
  const std::size_t most = activation_count(functor);
  const bool is_visitor = functor.kind == Kind::visitor;
  if (output_op.activation_args.size() > most)
    refuse("output_op.activation_args", most == 0 ? "none for this functor" : "at most leaky_alpha",
           fmt::format("{} numbers", output_op.activation_args.size()));
  if (is_visitor || output_op.operands.empty()) return;
  refuse("output_op.operands", "none but for a visitor",
         fmt::format("\"{}\"", output_op.operands.front().name));
}

OutputOp make_output_op(const EpilogueFunctor& functor, double alpha, double beta,
                        std::vector<double> activation_args) {
  OutputOp output_op{.alpha = alpha, .beta = beta, .activation_args = std::move(activation_args)};
  check_output_op(functor, output_op);
  return output_op;
}

std::vector<EpilogueOperand> functor_numbers(const EpilogueFunctor& functor,
                                             const OutputOp& output_op, bool reads_c) {
  std::vector<EpilogueOperand> numbers{{"alpha", output_op.alpha}};
  if (reads_c) numbers.push_back({"beta", output_op.beta});
  if (activation_count(functor) > 0)
    numbers.push_back({"leaky_alpha", output_op.activation_args.empty()
                                          ? default_leaky_alpha
                                          : output_op.activation_args.front()});
  return numbers;
}

}  // namespace gemmery::describe
