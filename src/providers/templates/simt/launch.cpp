// SPDX-License-Identifier: Apache-2.0
// The launches of simt kernels: their parameters and grids.
#include <algorithm>
#include <vector>

#include "device/abi/simt_params.hpp"
#include "operation/conv_windows.hpp"
#include "providers/templates/companions.hpp"
#include "providers/templates/conv_windows.hpp"
#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/groups.hpp"
#include "providers/templates/operand_programs.hpp"
#include "providers/templates/problem_list.hpp"
#include "providers/templates/simt/design.hpp"
#include "providers/templates/simt/family.hpp"

namespace gemmery::templates {
namespace {

// The strides are the problem's, which are 0 for extents of 0 and 1: addresses of cp.async must be
// aligned even for k beyond the matrix, where nothing is read.
abi::SimtMatrix to_abi(const Tensor& view, const MatrixType& matrix) {
  return {.data = view.data(),
          .batch_stride = matrix.batch_stride,
          .row_stride = matrix.row_stride,
          .column_stride = matrix.column_stride};
}

}  // namespace

namespace {

unsigned tile_rows_of(const GemmProblem& problem, const abi::SimtDesign& design) {
  return design.has_phases ? tile_rows_of_phases(problem, design.tile_m)
                           : abi::tiles_along(static_cast<unsigned>(problem.m), design.tile_m);
}

abi::SimtParams gemm_params(const GemmArguments& arguments, const abi::SimtDesign& design) {
  const GemmProblem& problem = arguments.problem();
  const auto m = static_cast<unsigned>(problem.m);
  const auto n = static_cast<unsigned>(problem.n);
  return {.a = to_abi(arguments.a(), problem.a),
          .b = to_abi(arguments.b(), problem.b),
          .c = problem.c ? to_abi(*arguments.c(), *problem.c) : abi::SimtMatrix{},
          .out = to_abi(arguments.out(), problem.out),
          .alpha = arguments.alpha(),
          .beta = arguments.beta(),
          .m = m,
          .n = n,
          // With alpha = 0, A and B are not read: nothing in them may change out, not even NaN.
          .k = arguments.alpha() == 0 ? 0U : static_cast<unsigned>(problem.k),
          .batches = static_cast<unsigned>(problem.l),
          .order = abi::make_tile_order(abi::simt_raster, tile_rows_of(problem, design),
                                        abi::tiles_along(n, design.tile_n), 1)};
}

abi::SimtConvParams conv_params(const GemmArguments& arguments, abi::SimtParams gemm) {
  const GemmProblem& problem = arguments.problem();
  // A stride of 1 has one phase, even without a tap that reaches out.
  const operation::WindowParts parts = operation::windows_of(*problem.convolution);
  if (problem.convolution->kind == ConvKind::wgrad)
    gemm.a.column_stride = pixel_stride_of_a(problem);
  if (parts.empty()) return {.gemm = gemm, .a = {}, .b = {}};
  const operation::WindowPart first = parts.front();
  return {.gemm = gemm, .a = window_params(first.a), .b = window_params(first.b)};
}

abi::SimtGroupTableParams table_params(const GemmArguments& arguments, const abi::SimtParams& gemm,
                                       const abi::SimtDesign& design) {
  const abi::GroupParams groups = group_params(arguments);
  const bool is_of_n = groups.ragged == abi::RaggedExtent::n;
  const unsigned rows = abi::tiles_along(gemm.m, design.tile_m);
  const unsigned columns = abi::tiles_along(gemm.n, design.tile_n);
  const unsigned across = is_of_n                                 ? rows
                          : groups.ragged == abi::RaggedExtent::k ? rows * columns
                                                                  : columns;
  const auto tile = static_cast<unsigned>(is_of_n ? design.tile_n : design.tile_m);
  return {.gemm = gemm,
          .groups = groups,
          .table = group_table(arguments, groups, tile, across),
          .clears_outside = clears_outside(*arguments.problem().groups) ? 1U : 0U};
}

}  // namespace

void SimtFamily::pack(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const {
  const GemmArguments& arguments = request.arguments;
  const GemmProblem& problem = arguments.problem();
  const abi::SimtDesign design = simt_design(request.kernel);
  const abi::SimtParams gemm = gemm_params(arguments, design);
  const unsigned tile_rows = tile_rows_of(problem, design);
  const unsigned tile_columns = abi::tiles_along(gemm.n, design.tile_n);
  const bool clears_rest = problem.groups && clears_outside(*problem.groups);
  const bool has_programs = request.kernel.operands().programs != OperandProgramsId::none;
  const bool is_scaled =
      design.a_companions.are_used() || design.b_companions.are_used() || has_programs;
  unsigned group_tiles = 0;
  if (design.indexed != abi::IndexedExtent::none) {
    group_tiles = most_tiles({.m = design.tile_m, .n = design.tile_n}, problem);
    plan.set_parameters(abi::SimtIndexedParams{.gemm = gemm,
                                               .groups = group_params(arguments),
                                               .gather = gather_params(arguments),
                                               .scatter = scatter_params(arguments),
                                               .clears_outside = clears_rest ? 1U : 0U});
  } else if (problem.groups && is_list(*problem.groups)) {
    const ListedKernel listed{.rules = request.kernel.operands(),
                              .tile_m = design.tile_m,
                              .tile_n = design.tile_n,
                              .is_turned = false};
    group_tiles = std::max(set_problem_list(arguments, listed, plan), 1U);
  } else if (problem.groups && problem.groups->are_on_host) {
    const abi::SimtGroupTableParams params = table_params(arguments, gemm, design);
    plan.set_parameters(params);
    // At least one block. To clear elements of no group, as many as if groups filled out.
    group_tiles = clears_rest ? most_tiles({.m = design.tile_m, .n = design.tile_n}, problem)
                              : std::max(params.table.rows[params.groups.count].first_tile, 1U);
  } else if (problem.groups && is_scaled) {
    group_tiles = most_tiles({.m = design.tile_m, .n = design.tile_n}, problem);
    plan.set_parameters(abi::SimtScaledGroupParams{
        .gemm = gemm,
        .groups = group_params(arguments),
        .clears_outside = clears_rest ? 1U : 0U,
        .a = companions_params(problem.a_companions, arguments.a_companions(), problem.k),
        .b = companions_params(problem.b_companions, arguments.b_companions(), problem.k)});
  } else if (problem.groups) {
    group_tiles = most_tiles({.m = design.tile_m, .n = design.tile_n}, problem);
    plan.set_parameters(abi::SimtGroupedParams{
        .gemm = gemm, .groups = group_params(arguments), .clears_outside = clears_rest ? 1U : 0U});
  } else if (problem.convolution) {
    const abi::SimtConvParams conv = conv_params(arguments, gemm);
    if (design.has_phases)
      plan.set_parameters(
          abi::SimtPhaseParams{.conv = conv, .phases = phase_params(problem, design.tile_m)});
    else
      plan.set_parameters(conv);
  } else if (is_scaled) {
    plan.set_parameters(abi::SimtScaledParams{
        .gemm = gemm,
        .a = companions_params(problem.a_companions, arguments.a_companions(), problem.k),
        .b = companions_params(problem.b_companions, arguments.b_companions(), problem.k)});
  } else {
    plan.set_parameters(gemm);
  }
  if (has_programs) append_operand_programs(arguments, plan);
  if (request.kernel.epilogue() != default_epilogue) {
    const abi::RegionGrid regions =
        regions_of_tiles(tile_rows, tile_columns, {.m = design.tile_m, .n = design.tile_n}, problem,
                         /*is_turned=*/false);
    append_epilogue_parameters(arguments, request.kernel.epilogue(), false, regions, plan);
  }
  // Blocks stride over tiles and batches, so one block for each allowed multiprocessor covers them
  // all.
  const unsigned limit = request.max_multiprocessors > 0
                             ? static_cast<unsigned>(request.max_multiprocessors)
                             : 0x7fffffffU;
  const abi::SimtGrid grid = problem.groups
                                 ? abi::simt_grid(group_tiles, 1, limit)
                                 : abi::simt_grid(tile_rows * tile_columns, gemm.batches, limit);
  plan.shape.grid = {grid.x, grid.y, 1};
  plan.shape.block = {static_cast<std::uint32_t>(abi::thread_count(design)), 1, 1};
  plan.shape.shared_bytes = static_cast<std::uint32_t>(abi::shared_bytes(design));
}

}  // namespace gemmery::templates
