// SPDX-License-Identifier: Apache-2.0
#include "operation/scaled_sums.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "epilogue/expressed.hpp"
#include "epilogue/graph.hpp"
#include "operation/companions.hpp"
#include "operation/epilogue_operands.hpp"
#include "operation/groups.hpp"
#include "operation/matrix.hpp"
#include "operation/refusal.hpp"

namespace gemmery::operation {
namespace {

// A scale that multiplies sums: the place among its operand's, and its matrix as the epilogue sees
// it, with strides of 0 along the extent with which it does not vary.
struct SumScale {
  bool is_a;
  std::size_t index;
  std::string name;  // a word of the epilogue
  MatrixType type;
};

// The matrix's strides along l, m and n of out.
MatrixType as_addend(MatrixType values, bool is_a) noexcept {
  values.column_stride = is_a ? 0 : values.row_stride;
  if (!is_a) values.row_stride = 0;
  return values;
}

// Beside a program scales stay with the elements.
void append_scales(const OperandCompanions& companions, bool is_a, std::vector<SumScale>& list) {
  if (companions.program) return;
  for (std::size_t i = 0; i < companions.scales.size(); ++i) {
    if (!is_of_sums(companions.scales[i])) continue;
    const std::string name = scale_word(is_a, i);
    list.push_back({is_a, i, name, as_addend(companions.scales[i].values, is_a)});
  }
}

std::vector<SumScale> scales_of_sums(const GemmProblem& problem) {
  std::vector<SumScale> list;
  append_scales(problem.a_companions, true, list);
  append_scales(problem.b_companions, false, list);
  return list;
}

// --- the program --------------------------------------------------------------------------------

epilogue::Expression scaled_sum(const std::vector<SumScale>& scales) {
  epilogue::Expression sum = epilogue::accum();
  for (const SumScale& scale : scales) sum = sum * epilogue::operand(scale.name);
  return sum;
}

// factor * value, and 0 if the factor is 0, whatever the value is.
epilogue::Expression times(const char* factor, const epilogue::Expression& value) {
  const epilogue::Expression number = epilogue::operand(factor);
  return epilogue::where(number == 0.0, 0.0, number * value);
}

epilogue::Program scaled_program(const GemmProblem& problem, const std::vector<SumScale>& scales) {
  const epilogue::Expression sum = scaled_sum(scales);
  if (problem.epilogue != default_epilogue)
    return epilogue::Program(epilogue::results_of(rules_of(problem.epilogue).program.graph(), sum));
  const epilogue::Expression product = times("alpha", sum);
  return epilogue::Program{
      {"D", problem.c ? product + times("beta", epilogue::operand("C")) : product}};
}

// --- its operands -------------------------------------------------------------------------------

// The matrix of a name of the program. Numbers have none.
EpilogueMatrix matrix_of(const std::string& name, const GemmProblem& problem,
                         const std::vector<SumScale>& scales) {
  const auto scale = std::ranges::find(scales, name, &SumScale::name);
  if (scale != scales.end())
    return {.name = name, .type = normalize(scale->type, addend_extents(problem, scale->type))};
  if (problem.epilogue == default_epilogue) {
    if (name == "C") return {.name = name, .type = *problem.c};
    return {.name = name, .is_number = true};
  }
  const std::vector<EpilogueOperandRule>& rules = rules_of(problem.epilogue).operands;
  const auto rule = std::ranges::find(rules, name, &EpilogueOperandRule::name);
  return {.name = name,
          .is_number = rule->is_number,
          .type = problem.epilogue_operands[static_cast<std::size_t>(rule - rules.begin())],
          .layout = rule->layout};
}

std::vector<std::string> names_of(const epilogue::Program& program) {
  std::vector<std::string> names = program.inputs();
  for (const std::string& output : program.outputs())
    if (output != "D") names.push_back(output);
  return names;
}

void drop_scales_of_sums(OperandCompanions& companions) {
  if (!companions.program) std::erase_if(companions.scales, is_of_sums);
}

// The product without these scales, and the program with them.
GemmProblem rewrite(const GemmProblem& problem, const std::vector<SumScale>& scales) {
  const epilogue::Program program = scaled_program(problem, scales);
  std::vector<EpilogueMatrix> matrices;
  for (const std::string& name : names_of(program))
    matrices.push_back(matrix_of(name, problem, scales));
  const MatrixExtents out = product_extents(problem).out;
  GemmProblem rewritten = problem;
  rewritten.c.reset();
  drop_scales_of_sums(rewritten.a_companions);
  drop_scales_of_sums(rewritten.b_companions);
  DescribedEpilogue described = describe_epilogue(program, matrices, out, ragged_of_out(problem));
  rewritten.epilogue = described.id;
  rewritten.epilogue_operands = std::move(described.operands);
  return rewritten;
}

// --- memory -------------------------------------------------------------------------------------

Tensor view_of(const SumScale& scale, const GemmArguments& arguments, const GemmProblem& problem) {
  const BoundCompanions& memory = scale.is_a ? arguments.a_companions() : arguments.b_companions();
  const Tensor& values = memory.scales[scale.index];
  const MatrixExtents out = addend_extents(problem, scale.type);
  return with_strides(values, {out.batch, out.rows, out.columns},
                      {scale.type.batch_stride, scale.type.row_stride, scale.type.column_stride});
}

std::variant<double, Tensor> value_of(const std::string& name, const GemmArguments& arguments,
                                      const std::vector<SumScale>& scales) {
  const auto scale = std::ranges::find(scales, name, &SumScale::name);
  if (scale != scales.end()) return view_of(*scale, arguments, arguments.problem());
  if (arguments.problem().epilogue != default_epilogue)
    return find_operand(arguments.epilogue_operands(), name)->value;
  if (name == "alpha") return arguments.alpha();
  if (name == "beta") return arguments.beta();
  return *arguments.c();
}

void drop_views(const OperandCompanions& types, std::vector<Tensor>& views) {
  if (types.program) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < types.scales.size(); ++i)
    if (!is_of_sums(types.scales[i])) views[kept++] = views[i];
  views.resize(kept);
}

}  // namespace

void check_scale_words(const GemmProblem& problem) {
  if (!has_companions(problem) || problem.epilogue == default_epilogue) return;
  for (const SumScale& scale : scales_of_sums(problem))
    for (const EpilogueOperandRule& operand : rules_of(problem.epilogue).operands)
      if (operand.name == scale.name)
        refuse("epilogue operand " + operand.name, "another name than that of the operand's scale",
               operand.name, "rename it in the program");
}

std::optional<GemmProblem> with_scaled_sums(const GemmProblem& problem) {
  if (!has_companions(problem)) return std::nullopt;
  const std::vector<SumScale> scales = scales_of_sums(problem);
  if (scales.empty()) return std::nullopt;
  return rewrite(problem, scales);
}

std::shared_ptr<const GemmArguments> ScaleBinder::bind(const GemmArguments& arguments) {
  const GemmProblem& problem = arguments.problem();
  const std::vector<SumScale> scales = scales_of_sums(problem);
  if (scales.empty()) return nullptr;
  auto scaled = std::make_shared<GemmArguments>(arguments);
  scaled->problem_ = rewrite(problem, scales);
  scaled->is_with_scaled_sums_ = true;
  scaled->scaled_sums_.reset();
  scaled->alpha_ = 1;
  scaled->beta_ = 0;
  scaled->c_.reset();
  scaled->epilogue_operands_.clear();
  for (const std::string& name : names_of(rules_of(scaled->problem_.epilogue).program))
    scaled->epilogue_operands_.push_back({name, value_of(name, arguments, scales)});
  drop_views(problem.a_companions, scaled->a_companions_.scales);
  drop_views(problem.b_companions, scaled->b_companions_.scales);
  return scaled;
}

}  // namespace gemmery::operation
