// SPDX-License-Identifier: Apache-2.0
// The launches of sm80 kernels: their parameters, schedules of split k, and grids.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "device/abi/sm80_params.hpp"
#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/sm80/design.hpp"
#include "providers/templates/sm80/family.hpp"
#include "providers/templates/sm80/prediction.hpp"

namespace gemmery::templates {
namespace {

// Out or C, or its transpose, as the kernel computes it.
abi::SimtMatrix to_abi(const Tensor& view, const MatrixType& matrix, bool is_turned) {
  return {.data = view.data(),
          .batch_stride = matrix.batch_stride,
          .row_stride = is_turned ? matrix.column_stride : matrix.row_stride,
          .column_stride = is_turned ? matrix.row_stride : matrix.column_stride};
}

// A or B; the stride is that of the index that is not adjacent in memory.
abi::Sm80Operand operand_of(const Tensor& view, const MatrixType& matrix, LayoutRule layout) {
  return {.data = view.data(),
          .batch_stride = matrix.batch_stride,
          .line_stride = layout == LayoutRule::row ? matrix.row_stride : matrix.column_stride};
}

// --- split k ------------------------------------------------------------------------------------

void set_workspace(const SplitWord& split, const abi::Sm80Design& design, unsigned tiles,
                   abi::Sm80Params& params, runtime::LaunchPlan& plan) {
  const std::size_t partials = partial_tiles(split, params.split, tiles);
  if (partials == 0) return;
  const auto tile_bytes = static_cast<std::size_t>(design.tile_m) *
                          static_cast<std::size_t>(design.tile_n) *
                          static_cast<std::size_t>(abi::accumulator_bytes(design));
  params.split.partials =
      set_split_workspace(tiles, partials * tile_bytes, offsetof(abi::Sm80Params, workspace), plan);
}

}  // namespace

void Sm80Family::pack(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const {
  const GemmArguments& arguments = request.arguments;
  const GemmProblem& problem = arguments.problem();
  const OperandRules& rules = request.kernel.operands();
  const Sm80Tile tile = sm80_tile(request.kernel);
  const abi::Sm80Design design = sm80_design(request.kernel);
  const bool turns = is_turned_sm80(rules);
  const Sm80Extents extents = sm80_extents(rules, tile, problem);
  const auto batches = static_cast<unsigned>(problem.l);
  const unsigned tiles = extents.tile_rows * extents.tile_columns * batches;
  // With alpha = 0, A and B are not read, so that no NaN of theirs reaches out.
  const auto k = arguments.alpha() == 0 ? 0U : static_cast<unsigned>(problem.k);
  const unsigned limit = request.max_multiprocessors > 0
                             ? static_cast<unsigned>(request.max_multiprocessors)
                             : 0x7fffffffU;
  const auto blocks_at_once = static_cast<unsigned>(std::max(request.device.multiprocessors, 1) *
                                                    resident_blocks(design, request.device));
  const SplitWork work{.tiles = tiles,
                       .k_blocks = std::max(abi::tiles_along(k, design.tile_k), 1U),
                       .blocks = std::min(blocks_at_once, limit)};

  const SplitWord split = split_word(tile);
  const abi::Sm80Operand a = operand_of(arguments.a(), problem.a, rules.a.layout);
  const abi::Sm80Operand b = operand_of(arguments.b(), problem.b, rules.b.layout);
  abi::Sm80Params params{
      .a = turns ? b : a,
      .b = turns ? a : b,
      .c = problem.c ? to_abi(*arguments.c(), *problem.c, turns) : abi::SimtMatrix{},
      .out = to_abi(arguments.out(), problem.out, turns),
      .alpha = arguments.alpha(),
      .beta = arguments.beta(),
      .m = extents.rows,
      .n = extents.columns,
      .k = k,
      .k_blocks = work.k_blocks,
      .order = abi::make_tile_order(tile.raster, extents.tile_rows, extents.tile_columns, batches),
      .split = split_schedule(split, work),
      .workspace = nullptr};
  plan.set_parameters(params);
  if (request.kernel.epilogue() != default_epilogue) {
    const abi::RegionGrid regions{.rows = extents.tile_rows,
                                  .columns = extents.tile_columns,
                                  .batches = batches,
                                  .column_parts = 1,
                                  .whole_parts = 1,
                                  .arrivals = 1,
                                  .groups = 0};
    append_epilogue_parameters(arguments, request.kernel.epilogue(), turns, regions, plan);
  }
  set_workspace(split, design, tiles, params, plan);
  std::memcpy(plan.parameter_bytes, &params, sizeof params);  // with the workspace's layout
  plan.shape.grid = {std::min(params.split.units, limit), 1, 1};
  plan.shape.block = {static_cast<std::uint32_t>(abi::thread_count(design)), 1, 1};
  plan.shape.shared_bytes = static_cast<std::uint32_t>(abi::shared_bytes(design));
}

}  // namespace gemmery::templates
