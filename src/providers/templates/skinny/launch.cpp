// SPDX-License-Identifier: Apache-2.0
// The launches of skinny kernels: their parameters, slices of k, and grids.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "device/abi/skinny_params.hpp"
#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/skinny/design.hpp"
#include "providers/templates/skinny/family.hpp"
#include "providers/templates/skinny/prediction.hpp"
#include "providers/templates/split_schedule.hpp"

namespace gemmery::templates {
namespace {

// The matrix, or its transpose, as the kernel computes it, with the problem's strides, which are 0
// where an extent is 1 or a dimension is broadcast.
abi::SimtMatrix to_abi(const Tensor& view, const MatrixType& matrix, bool is_turned) {
  return {.data = view.data(),
          .batch_stride = matrix.batch_stride,
          .row_stride = is_turned ? matrix.column_stride : matrix.row_stride,
          .column_stride = is_turned ? matrix.row_stride : matrix.column_stride};
}

// The workspace: counters of the tiles, then a part of its tile for every unit.
void set_workspace(const abi::SkinnyDesign& design, unsigned tiles, abi::SkinnyParams& params,
                   runtime::LaunchPlan& plan) {
  if (params.split.slices == 1) return;
  const std::size_t partials = std::size_t{params.split.units} *
                               static_cast<std::size_t>(design.rows) *
                               static_cast<std::size_t>(abi::tile_columns(design)) *
                               static_cast<std::size_t>(abi::word_bytes(design));
  params.split.partials =
      set_split_workspace(tiles, partials, offsetof(abi::SkinnyParams, workspace), plan);
}

}  // namespace

void SkinnyFamily::pack(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const {
  const GemmArguments& arguments = request.arguments;
  const GemmProblem& problem = arguments.problem();
  const SkinnyTile tile = skinny_tile(request.kernel);
  const abi::SkinnyDesign design = skinny_design(request.kernel);
  const bool turns = is_turned(tile);
  const auto rows = static_cast<unsigned>(skinny_row_count(tile, problem));
  const auto columns = static_cast<unsigned>(skinny_column_count(tile, problem));
  const unsigned tile_rows = rows > 0 ? 1 : 0;
  const unsigned tile_columns = abi::tiles_along(columns, abi::tile_columns(design));
  const auto batches = static_cast<unsigned>(problem.l);
  const unsigned tiles = tile_rows * tile_columns * batches;
  // With alpha = 0, A and B are not read, so that no NaN of theirs reaches out.
  const auto k = arguments.alpha() == 0 ? 0U : static_cast<unsigned>(problem.k);
  const unsigned k_blocks = skinny_k_blocks(design, k);
  const abi::SimtMatrix a = to_abi(arguments.a(), problem.a, turns);
  const abi::SimtMatrix b = to_abi(arguments.b(), problem.b, turns);
  abi::SkinnyParams params{
      .gemm = {.a = turns ? b : a,
               .b = turns ? a : b,
               .c = arguments.c() ? to_abi(*arguments.c(), *problem.c, turns) : abi::SimtMatrix{},
               .out = to_abi(arguments.out(), problem.out, turns),
               .alpha = arguments.alpha(),
               .beta = arguments.beta(),
               .m = rows,
               .n = columns,
               .k = k,
               .batches = batches,
               .order = abi::make_tile_order(abi::simt_raster, tile_rows, tile_columns, batches)},
      .split =
          split_schedule(split_word(tile), {.tiles = tiles, .k_blocks = k_blocks, .blocks = 1}),
      .k_blocks = k_blocks,
      .workspace = nullptr};
  plan.set_parameters(params);
  if (request.kernel.epilogue() != default_epilogue) {
    const abi::RegionGrid regions{.rows = tile_rows,
                                  .columns = tile_columns,
                                  .batches = batches,
                                  .column_parts = 1,
                                  .whole_parts = 1,
                                  .arrivals = 1,
                                  .groups = 0};
    append_epilogue_parameters(arguments, request.kernel.epilogue(), turns, regions, plan);
  }
  set_workspace(design, tiles, params, plan);
  std::memcpy(plan.parameter_bytes, &params, sizeof params);  // with the workspace's layout
  const unsigned limit = request.max_multiprocessors > 0
                             ? static_cast<unsigned>(request.max_multiprocessors)
                             : 0x7fffffffU;
  plan.shape.grid = {std::min(params.split.units, limit), 1, 1};
  plan.shape.block = {static_cast<std::uint32_t>(design.threads), 1, 1};
  plan.shape.shared_bytes = static_cast<std::uint32_t>(abi::shared_bytes(design));
}

}  // namespace gemmery::templates
