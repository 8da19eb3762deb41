// SPDX-License-Identifier: Apache-2.0
#include "operation/block_results.hpp"

#include <gemmery/scales.hpp>

#include <algorithm>
#include <string>

#include "epilogue/blocks.hpp"
#include "epilogue/graph.hpp"
#include "operation/groups.hpp"
#include "operation/refusal.hpp"

namespace gemmery::operation {
namespace {

// The elements that share a value of an input.
epilogue::Block block_of_input(const EpilogueMatrix& matrix) noexcept {
  if (matrix.is_number) return {};
  return {matrix.type.row_stride != 0 ? 1 : 0, matrix.type.column_stride != 0 ? 1 : 0};
}

}  // namespace

epilogue::Block block_of_result(const epilogue::Program& program,
                                const std::vector<EpilogueMatrix>& matrices,
                                std::string_view result) {
  std::vector<epilogue::Block> of_inputs;
  for (std::size_t i = 0; i < program.inputs().size(); ++i)
    of_inputs.push_back(block_of_input(matrices[i]));
  const auto& outputs = program.graph().outputs;
  const auto output = std::ranges::find(outputs, result, &epilogue::Output::name);
  return epilogue::block_of_output(program.graph(), *output, of_inputs);
}

MatrixExtents block_extents(epilogue::Block block, ScaleLayout layout,
                            const MatrixExtents& out) noexcept {
  const std::int64_t rows = epilogue::count_blocks(out.rows, block.rows);
  const std::int64_t columns = epilogue::count_blocks(out.columns, block.columns);
  if (layout == ScaleLayout::strided) return {out.batch, rows, columns};
  const bool is_of_rows = block.rows == 1;
  const std::int64_t lines = is_of_rows ? rows : columns;
  const std::int64_t blocks = is_of_rows ? columns : rows;
  return {out.batch, 1, swizzled_scale_count(lines, blocks, {1, 1})};
}

namespace {

std::string quoted(const epilogue::Program& program) {
  return '"' + program.text().substr(0, 300) + '"';
}

// Groups that share out begin anywhere among its rows (columns).
void check_block_of_groups(const epilogue::Program& program, Ragged ragged, epilogue::Block block) {
  const bool is_of_rows = ragged == Ragged::m;
  if ((is_of_rows ? block.rows : block.columns) == 1) return;
  refuse("epilogue",
         is_of_rows ? "reductions of blocks of one row where groups divide the rows of out"
                    : "reductions of blocks of one column where groups divide the columns of out",
         "blocks of " + epilogue::block_text(block) + ", and " + quoted(program),
         "reduce the result afterwards, or pass masked groups, whose blocks begin with each matrix",
         ErrorKind::unsupported);
}

}  // namespace

void check_block_form(const epilogue::Program& program, const GemmProblem& problem) {
  if (!epilogue::has_block_reductions(program.graph())) return;
  if (problem.convolution)
    refuse("epilogue", "a GEMM for reductions of blocks", "a convolution, and " + quoted(program),
           "reduce the result afterwards", ErrorKind::unsupported);
  if (!is_out_shared(problem)) return;
  for (const epilogue::Node& node : program.graph().nodes)
    if (node.kind == epilogue::NodeKind::reduction)
      check_block_of_groups(program, problem.groups->ragged, node.reduction.block);
}

void check_cleared_blocks(const EpilogueOperandRule& rule, const Groups& groups) {
  if (groups.outside != OutsideGroups::zero || rule.layout == ScaleLayout::strided) return;
  refuse("epilogue operand " + rule.name,
         "untouched elements outside of groups beside the layout swizzled_128x4", "outside=zero",
         "fill the scales with zeros before", ErrorKind::unsupported);
}

}  // namespace gemmery::operation
