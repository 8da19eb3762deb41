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

// Out or C as what is computed has it.
abi::SimtMatrix to_abi(const Tensor& view, const MatrixType& matrix, bool is_turned) {
  return {.data = view.data(),
          .batch_stride = matrix.batch_stride,
          .row_stride = is_turned ? matrix.column_stride : matrix.row_stride,
          .column_stride = is_turned ? matrix.row_stride : matrix.column_stride};
}

// A or B: the stride of the index that is not adjacent.
abi::Sm80Operand operand_of(const Tensor& view, const MatrixType& matrix, LayoutRule layout) {
  return {.data = view.data(),
          .batch_stride = matrix.batch_stride,
          .line_stride = layout == LayoutRule::row ? matrix.row_stride : matrix.column_stride};
}

// --- split k ------------------------------------------------------------------------------------

struct Work {
  unsigned tiles;  // of all matrices
  unsigned k_blocks;
  unsigned blocks;  // of threads that may be resident at once
};

abi::SplitSchedule schedule_of(const Sm80Tile& tile, const Work& work) {
  const unsigned slices = std::clamp<unsigned>(tile.slices, 1, std::max(work.k_blocks, 1U));
  switch (tile.split) {
    case abi::SplitMode::none:
      return {.units = work.tiles,
              .slices = 1,
              .slice = {},
              .per_unit = work.k_blocks,
              .longer = 0,
              .whole = 0,
              .k_block = {},
              .partials = 0};
    case abi::SplitMode::serial:
    case abi::SplitMode::parallel: {
      const unsigned per_slice = (work.k_blocks + slices - 1) / slices;
      // Rounding up may leave fewer slices than were asked for.
      const unsigned real = (work.k_blocks + per_slice - 1) / per_slice;
      return {.units = work.tiles * real,
              .slices = real,
              .slice = abi::make_fast_divisor(real),
              .per_unit = per_slice,
              .longer = 0,
              .whole = 0,
              .k_block = {},
              .partials = 0};
    }
    case abi::SplitMode::stream: {
      // One wave of tiles and what is left of another are shared.
      const unsigned units = std::clamp(work.blocks, 1U, work.tiles * work.k_blocks);
      const unsigned whole = work.tiles / units > 1 ? work.tiles / units - 1 : 0;
      const unsigned all = (work.tiles - whole * units) * work.k_blocks;
      return {.units = units,
              .slices = 1,
              .slice = {},
              .per_unit = all / units,
              .longer = all % units,
              .whole = whole,
              .k_block = abi::make_fast_divisor(work.k_blocks),
              .partials = 0};
    }
  }
  return {};
}

// Tiles of accumulators in the workspace.
std::size_t partial_tiles(const Sm80Tile& tile, const abi::SplitSchedule& schedule,
                          unsigned tiles) {
  if (tile.split == abi::SplitMode::stream) return std::size_t{2} * schedule.units;
  if (tile.split == abi::SplitMode::none || schedule.slices == 1) return 0;
  return tile.split == abi::SplitMode::serial ? tiles : schedule.units;
}

constexpr std::size_t workspace_unit = 256;

void set_workspace(const Sm80Tile& tile, const abi::Sm80Design& design, unsigned tiles,
                   abi::Sm80Params& params, runtime::LaunchPlan& plan) {
  const std::size_t partials = partial_tiles(tile, params.split, tiles);
  if (partials == 0) return;
  const std::size_t counters =
      (tiles * sizeof(unsigned) + workspace_unit - 1) / workspace_unit * workspace_unit;
  params.split.partials = counters;
  plan.zeroed_workspace_bytes = counters;
  plan.workspace_bytes = counters + partials * static_cast<std::size_t>(design.tile_m) *
                                        static_cast<std::size_t>(design.tile_n) *
                                        static_cast<std::size_t>(abi::accumulator_bytes(design));
  plan.leaves_zeros = true;
  plan.workspace_slot = offsetof(abi::Sm80Params, workspace);
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
  // With alpha = 0, A and B are not read: what is there must not reach out, not even as NaN.
  const auto k = arguments.alpha() == 0 ? 0U : static_cast<unsigned>(problem.k);
  const unsigned limit = request.max_multiprocessors > 0
                             ? static_cast<unsigned>(request.max_multiprocessors)
                             : 0x7fffffffU;
  const auto blocks_at_once = static_cast<unsigned>(std::max(request.device.multiprocessors, 1) *
                                                    resident_blocks(design, request.device));
  const Work work{.tiles = tiles,
                  .k_blocks = std::max(abi::tiles_along(k, design.tile_k), 1U),
                  .blocks = std::min(blocks_at_once, limit)};

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
      .split = schedule_of(tile, work),
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
  set_workspace(tile, design, tiles, params, plan);
  std::memcpy(plan.parameter_bytes, &params, sizeof params);  // with the workspace's layout
  plan.shape.grid = {std::min(params.split.units, limit), 1, 1};
  plan.shape.block = {static_cast<std::uint32_t>(abi::thread_count(design)), 1, 1};
  plan.shape.shared_bytes = static_cast<std::uint32_t>(abi::shared_bytes(design));
}

}  // namespace gemmery::templates
