// SPDX-License-Identifier: Apache-2.0
// Which programs find room in which sm90 kernels.
#include "providers/templates/gemm_sm90_program.hpp"

#include <algorithm>
#include <iterator>

#include "device/abi/sm90_program.hpp"
#include "epilogue/graph.hpp"
#include "providers/templates/name_words.hpp"

namespace gemmery::templates {
namespace {

abi::SlabInputs slabs_of(const ProgramTensors& tensors, const abi::Sm90Design& design) {
  return abi::slab_inputs(tensors.inputs.data(), static_cast<int>(tensors.inputs.size()),
                          abi::stored_design(design));
}

// Operations that want many registers at a time, ten and more instructions each.
bool is_heavy(const epilogue::Node& node) {
  constexpr epilogue::Op heavy[] = {
      epilogue::Op::pow,  epilogue::Op::log,  epilogue::Op::softplus, epilogue::Op::erf,
      epilogue::Op::tanh, epilogue::Op::sqrt, epilogue::Op::rsqrt,    epilogue::Op::divide};
  return node.kind == epilogue::NodeKind::cast ||
         (node.kind == epilogue::NodeKind::operation &&
          std::ranges::find(heavy, node.op) != std::end(heavy));
}

// Whether a program does with the 40 registers that 192 sums leave: a few simple operations, all
// that it reads in shared memory, nothing stored beside D but reductions to one value.
bool is_light(EpilogueId epilogue, const ProgramTensors& tensors, const abi::Sm90Design& design) {
  const epilogue::Graph& graph = rules_of(epilogue).program.graph();
  const auto operations =
      std::ranges::count(graph.nodes, epilogue::NodeKind::operation, &epilogue::Node::kind);
  if (operations > 4 || std::ranges::any_of(graph.nodes, is_heavy)) return false;
  const abi::SlabInputs slabs = slabs_of(tensors, design);
  const auto full = std::ranges::count_if(tensors.inputs,
                                          [](const auto& input) { return !abi::is_vector(input); });
  return full <= slabs.count && std::ranges::all_of(tensors.outputs, abi::is_of_everything);
}

}  // namespace

std::vector<SlabInput> list_slab_inputs(const GemmProblem& problem, const OperandRules& rules,
                                        const abi::Sm90Design& design,
                                        const ProgramTensors& tensors) {
  const abi::SlabInputs slabs = slabs_of(tensors, design);
  std::vector<SlabInput> inputs;
  for (int place = 0; place < slabs.count; ++place) {
    const auto input = static_cast<std::size_t>(slabs.index[place]);
    const std::size_t operand = tensors.input_operands[input];
    const MatrixType& matrix = problem.epilogue_operands[operand];
    const OperandRule rule{
        .dtype = matrix.dtype, .layout = rules.out.layout, .alignment = widest_access};
    inputs.push_back({operand, view_of(rule, matrix, problem.m, problem.n, problem.l)});
  }
  return inputs;
}

std::string find_misfit(const std::vector<SlabInput>& inputs, EpilogueId epilogue) {
  for (const SlabInput& input : inputs) {
    const std::string& name = rules_of(epilogue).operands[input.operand].name;
    std::string misfit = find_misfit(("epilogue operand " + name).c_str(), input.view);
    if (!misfit.empty()) return misfit;
  }
  return {};
}

std::optional<Sm90Tile> fit_program(Sm90Tile tile, const GemmProblem& problem,
                                    const OperandRules& rules, const ProgramTensors& tensors) {
  const abi::Sm90Design design = with_program(sm90_design(rules, tile), tensors);
  if (abi::accumulator_registers(design) > 160 && !is_light(problem.epilogue, tensors, design))
    return std::nullopt;
  if (!find_misfit(list_slab_inputs(problem, rules, design, tensors), problem.epilogue).empty())
    return std::nullopt;
  tile.stages = static_cast<std::uint8_t>(std::max(abi::most_stages(design), 0));
  if (tile.stages < 2) return std::nullopt;
  return tile;
}

}  // namespace gemmery::templates
