// SPDX-License-Identifier: Apache-2.0
// Which programs fit which sm90 kernels.
#include "providers/templates/sm90/program.hpp"

#include <algorithm>
#include <iterator>

#include "device/abi/sm90_program.hpp"
#include "epilogue/graph.hpp"
#include "providers/templates/name_words.hpp"

namespace gemmery::templates {
namespace {

abi::TmaInputs tma_inputs_of(const ProgramTensors& tensors, int staging_columns,
                             bool takes_tma_inputs) {
  return abi::tma_inputs(tensors.inputs.data(), static_cast<int>(tensors.inputs.size()),
                         staging_columns, takes_tma_inputs);
}

// Operations that need many registers at a time, with ten or more instructions each.
bool is_heavy(const epilogue::Node& node) {
  constexpr epilogue::Op heavy[] = {
      epilogue::Op::pow,  epilogue::Op::log,  epilogue::Op::softplus, epilogue::Op::erf,
      epilogue::Op::tanh, epilogue::Op::sqrt, epilogue::Op::rsqrt,    epilogue::Op::divide};
  return node.kind == epilogue::NodeKind::cast ||
         (node.kind == epilogue::NodeKind::operation &&
          std::ranges::find(heavy, node.op) != std::end(heavy));
}

// True if not all full tensors are loaded by TMA.
bool reads_by_threads(const ProgramTensors& tensors, const abi::TmaInputs& by_tma) {
  const auto full = std::ranges::count_if(tensors.inputs,
                                          [](const auto& input) { return !abi::is_vector(input); });
  return full > by_tma.count;
}

// True if a program fits the 40 registers that 192 accumulators leave: a few simple operations in
// float32, all inputs in shared memory, no stored result beside D except reductions to one value.
// In float64, beside int32 accumulators, `accum * s + bias` spilled 56 to 76 bytes (ptxas 13.0).
bool is_light(EpilogueId epilogue, const ProgramTensors& tensors, const abi::TmaInputs& by_tma) {
  const epilogue::Graph& graph = rules_of(epilogue).program.graph();
  const auto operations =
      std::ranges::count(graph.nodes, epilogue::NodeKind::operation, &epilogue::Node::kind);
  if (operations > 4 || std::ranges::any_of(graph.nodes, is_heavy)) return false;
  return !reads_by_threads(tensors, by_tma) &&
         std::ranges::all_of(tensors.outputs, abi::is_of_everything);
}

std::vector<TmaInput> list_inputs(const GemmProblem& problem, const OperandRules& rules,
                                  const abi::TmaInputs& by_tma, const ProgramTensors& tensors) {
  std::vector<TmaInput> inputs;
  for (int place = 0; place < by_tma.count; ++place) {
    const auto input = static_cast<std::size_t>(by_tma.index[place]);
    const std::size_t operand = tensors.input_operands[input];
    const MatrixType& matrix = problem.epilogue_operands[operand];
    const OperandRule rule{.dtype = matrix.dtype,
                           .layout = is_turned(rules) ? LayoutRule::column : LayoutRule::row,
                           .alignment = widest_access};
    inputs.push_back({operand, view_of(rule, matrix, problem.m, problem.n, problem.l)});
  }
  return inputs;
}

}  // namespace

std::vector<TmaInput> list_tma_inputs(const GemmProblem& problem, const OperandRules& rules,
                                      const abi::Sm90Design& design,
                                      const ProgramTensors& tensors) {
  return list_inputs(problem, rules,
                     tma_inputs_of(tensors, abi::staging_columns(design),
                                   abi::StoredShare(design).takes_tma_inputs()),
                     tensors);
}

std::string find_misfit(const std::vector<TmaInput>& inputs, EpilogueId epilogue) {
  for (const TmaInput& input : inputs) {
    const std::string& name = rules_of(epilogue).operands[input.operand].name;
    std::string misfit = find_misfit(("epilogue operand " + name).c_str(), input.view);
    if (!misfit.empty()) return misfit;
  }
  return {};
}

int widest_staging(const OperandRules& rules) noexcept {
  return abi::sm90_swizzle_bytes / static_cast<int>(byte_width(rules.out.dtype));
}

Status check_sm90_blocks(EpilogueId epilogue, bool is_turned, int staging_columns) {
  constexpr int columns_of_lane = 2;
  return check_row_blocks(
      epilogue, {.columns = staging_columns, .run = columns_of_lane, .is_turned = is_turned});
}

ProgramFit::ProgramFit(const GemmProblem& problem, const OperandRules& rules)
    : tensors_(program_tensors(problem.epilogue, is_turned(rules))),
      operand_(static_cast<abi::DType>(rules.a.dtype)),
      has_row_pairs_(has_adjacent_rows(rules, Sm90Tile{})),
      scatters_rows_(problem.groups && problem.groups->scatter.are_used()) {
  // The widths among which abi::staging_columns selects.
  const int widest = widest_staging(rules);
  widths_ = {width_of(widest, problem, rules), width_of(widest / 2, problem, rules),
             width_of(widest / 4, problem, rules)};
}

ProgramFit::Width ProgramFit::width_of(int staging_columns, const GemmProblem& problem,
                                       const OperandRules& rules) const {
  const abi::TmaInputs by_tma =
      tma_inputs_of(tensors_, staging_columns, !scatters_rows_ && !has_row_pairs_);
  const bool turned = is_turned(rules);
  return {
      .staging_columns = staging_columns,
      .is_walked =
          find_misfit(list_inputs(problem, rules, by_tma, tensors_), problem.epilogue).empty(),
      .has_blocks = static_cast<bool>(check_sm90_blocks(problem.epilogue, turned, staging_columns)),
      .reads_by_threads = reads_by_threads(tensors_, by_tma),
      .is_light =
          problem.accumulator != DType::int32 && is_light(problem.epilogue, tensors_, by_tma)};
}

int ProgramFit::stages(const Sm90Candidate& candidate) const noexcept {
  const Width& width =
      *std::ranges::find(widths_, candidate.share.staging_columns, &Width::staging_columns);
  if (!width.is_walked || !width.has_blocks) return 0;
  if (!candidate.has_room_beside_sums && !width.is_light) return 0;
  if (!candidate.has_room_to_read && width.reads_by_threads) return 0;
  abi::StoredShare share = candidate.share;
  share.scatters_rows = scatters_rows_;
  share.has_row_pairs = has_row_pairs_;
  share.operand = operand_;  // a candidate is of a class, whose operands are of either type
  if (share.adds_vector && !has_vector_addend(tensors_, share)) return 0;
  const int bytes = program_bytes(tensors_, share);
  const int stages = abi::stages_in(candidate.stage_room - bytes, candidate.stage_bytes);
  return stages < 2 ? 0 : stages;
}

}  // namespace gemmery::templates
