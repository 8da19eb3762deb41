// SPDX-License-Identifier: Apache-2.0
#include "operation/operand_programs.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "core/number.hpp"
#include "epilogue/graph.hpp"
#include "epilogue/operand_program.hpp"
#include "operation/groups.hpp"
#include "operation/overlap.hpp"
#include "operation/refusal.hpp"
#include "operation/shapes.hpp"
#include "operation/types.hpp"

namespace gemmery::operation {
namespace {

// Floats that an instruction multiplies.
bool is_multiplied(DType dtype) noexcept {
  return is_floating(dtype) && bit_width(dtype) >= 8 && dtype != DType::float8_e8m0fnu;
}

// The type of an outermost cast to such a type.
std::optional<DType> stated_type(EpilogueId program) noexcept {
  const epilogue::Graph& graph = rules_of(program).program.graph();
  const epilogue::Node& root = graph.nodes[graph.outputs.front().value];
  if (root.kind != epilogue::NodeKind::cast || !is_multiplied(root.cast.dtype)) return std::nullopt;
  return root.cast.dtype;
}

void check_element_type(const std::string& name, DType dtype) {
  if (number::is_host_number(dtype)) return;
  refuse(name, "an element type that is a number by itself", std::string(gemmery::name(dtype)), "",
         ErrorKind::unsupported);
}

std::string operand_shape(bool is_a) { return is_a ? "A's (L, M, K)" : "B's (L, K, N)"; }

// Broadcast to `shape`.
Tensor view_input(const std::string& name, bool is_a, const Tensor& tensor,
                  const std::array<std::int64_t, 3>& shape) {
  std::array<std::int64_t, 3> strides{};
  bool fits = tensor.rank() <= 3;
  for (int d = 0; fits && d < 3; ++d) {
    const int own = d - (3 - tensor.rank());
    const std::int64_t extent = own < 0 ? 1 : tensor.extent(own);
    const auto at = static_cast<std::size_t>(d);
    fits = extent == 1 || extent == shape[at];
    strides[at] = own < 0 || extent == 1 ? 0 : tensor.stride(own);
  }
  if (!fits)
    refuse(name,
           fmt::format("a shape that broadcasts to {}, here ({}, {}, {})", operand_shape(is_a),
                       shape[0], shape[1], shape[2]),
           operation::shape_text(tensor),
           is_a ? "(M, 1) is a value for every row, (K,) one for every k"
                : "(K, 1) is a value for every k, (N,) one for every column");
  return with_strides(tensor, shape, strides);
}

// Names that the text form could not tell from the element and the value.
void check_names(const epilogue::Program& program, bool is_a) {
  for (const std::string& input : program.inputs())
    if (input == (is_a ? "a" : "b") || input == (is_a ? "A" : "B"))
      refuse(epilogue::program_name(product_operand(is_a)),
             "tensors and numbers with other names than the element's and the value's", input,
             "rename it in the program");
}

void check_operand(const GemmProblem& problem, bool is_a) {
  const std::string_view name = epilogue::program_name(product_operand(is_a));
  const OperandCompanions& companions = is_a ? problem.a_companions : problem.b_companions;
  check_names(rules_of(companions.program->id).program, is_a);
  if (companions.order != ElementOrder::strided)
    refuse(name, "elements in the order of their strides beside a program",
           "elements in the order of fragments", "pass the operand as it was",
           ErrorKind::unsupported);
  if (problem.convolution)
    refuse(name, "none for a convolution", "a program",
           "apply it beforehand, or in the epilogue of the operation before",
           ErrorKind::unsupported);
  if (!problem.groups) return;
  if (problem.groups->sizes == GroupSizes::list)
    refuse(name, "none for a list of problems", "a program", "", ErrorKind::unsupported);
  if (problem.groups->have_indices())
    refuse(name, "none where groups have indices", "a program",
           "gather the operand beforehand, or leave the indices out", ErrorKind::unsupported);
}

}  // namespace

const std::optional<OperandProgramType>& program_of(const GemmProblem& problem,
                                                    bool is_a) noexcept {
  return is_a ? problem.a_companions.program : problem.b_companions.program;
}

bool has_operand_programs(const GemmProblem& problem) noexcept {
  return problem.a_companions.program.has_value() || problem.b_companions.program.has_value();
}

DType multiplied_type(const GemmProblem& problem, bool is_a) noexcept {
  const DType own = (is_a ? problem.a : problem.b).dtype;
  const DType other = (is_a ? problem.b : problem.a).dtype;
  const std::optional<OperandProgramType>& program = program_of(problem, is_a);
  if (!program) return own;
  if (const auto stated = stated_type(program->id)) return *stated;
  return is_multiplied(own) ? own : is_multiplied(other) ? other : DType::float32;
}

void check_product_types(const GemmProblem& problem) {
  ProductTypes types{.a = problem.a.dtype,
                     .b = problem.b.dtype,
                     .accumulator = problem.accumulator,
                     .math = problem.math,
                     .are_decoded = is_product_decoded(problem)};
  check_products(types);
  types.a = multiplied_type(problem, true);
  types.b = multiplied_type(problem, false);
  if (has_operand_programs(problem)) check_products(types);
}

std::string program_operand_name(bool is_a, std::string_view name) {
  return (is_a ? "a." : "b.") + std::string(name);
}

MatrixExtents program_extents(const GemmProblem& problem, bool is_a,
                              const MatrixType& matrix) noexcept {
  const ProductExtents extents = product_extents(problem);
  MatrixExtents own = is_a ? extents.a : extents.b;
  const bool is_shared = problem.groups && own.batch != problem.l;
  own.batch = is_shared && matrix.batch_stride == 0 ? 1 : problem.l;
  return own;
}

OperandProgramType describe_program(const epilogue::Program& program, bool is_a,
                                    const std::vector<EpilogueMatrix>& inputs) {
  std::vector<EpilogueMatrix> matrices = inputs;
  for (EpilogueMatrix& input : matrices) {
    if (input.is_number) continue;
    check_element_type(program_operand_name(is_a, input.name), input.type.dtype);
    // Kernels read one element after the other, so that one kernel serves every alignment.
    input.type = with_own_alignment(input.type);
  }
  DescribedEpilogue described = describe_epilogue(program, matrices, {});
  return {.id = described.id, .operands = std::move(described.operands)};
}

void check_operand_programs(const GemmProblem& problem) {
  for (const bool is_a : {true, false})
    if (program_of(problem, is_a)) check_operand(problem, is_a);
}

ProgramView view_program(const OperandProgram& program, bool is_a, const OperandExtents& extents,
                         Device device) {
  if (program.operand() && *program.operand() != product_operand(is_a))
    refuse(epilogue::program_name(product_operand(is_a)),
           is_a ? "a program that assigns A" : "a program that assigns B",
           '"' + operand_program_text(program.program(), *program.operand()).substr(0, 300) + '"');
  const std::array shape{extents.batch, is_a ? extents.rows : extents.k,
                         is_a ? extents.k : extents.rows};
  ProgramView view{.type = {}, .memory = program.operands()};
  std::vector<EpilogueMatrix> inputs;
  for (EpilogueOperand& operand : view.memory) {
    auto* const tensor = std::get_if<Tensor>(&operand.value);
    inputs.push_back({.name = operand.name, .is_number = tensor == nullptr});
    if (tensor == nullptr) continue;
    const std::string name = program_operand_name(is_a, operand.name);
    if (tensor->has_pointers())
      refuse(name, "matrices one batch stride apart", "a batch by pointers", "",
             ErrorKind::unsupported);
    check_element_type(name, tensor->dtype());
    *tensor = view_input(name, is_a, *tensor, shape);
    check_device(name, *tensor, device);
    check_memory(name, *tensor);
    inputs.back().type = matrix_type(*tensor);
  }
  view.type = describe_program(program.program(), is_a, inputs);
  return view;
}

}  // namespace gemmery::operation
