// SPDX-License-Identifier: Apache-2.0
// The launches of sm80 kernels: their parameters, schedules of split k, and grids.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "device/abi/sm80_conv_params.hpp"
#include "device/abi/sm80_grouped_params.hpp"
#include "device/abi/sm80_params.hpp"
#include "operation/conv_windows.hpp"
#include "providers/templates/conv_windows.hpp"
#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/groups.hpp"
#include "providers/templates/problem_list.hpp"
#include "providers/templates/sm80/design.hpp"
#include "providers/templates/sm80/family.hpp"
#include "providers/templates/sm80/prediction.hpp"
#include "providers/templates/sm80/scales.hpp"

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

// --- launches
// -------------------------------------------------------------------------------------

// The parameters that all launches of a kernel share.
struct Sm80Launch {
  const runtime::PackRequest& request;
  const GemmProblem& problem;
  const OperandRules& rules;
  Sm80Tile tile;
  abi::Sm80Design design;
  bool is_turned;
  Sm80Extents extents;
  unsigned limit;           // of blocks
  unsigned blocks_at_once;  // resident blocks

  explicit Sm80Launch(const runtime::PackRequest& packed)
      : request(packed),
        problem(packed.arguments.problem()),
        rules(packed.kernel.operands()),
        tile(sm80_tile(packed.kernel)),
        design(sm80_design(packed.kernel)),
        is_turned(is_turned_sm80(rules, tile)),
        extents(sm80_extents(rules, tile, problem)),
        limit(packed.max_multiprocessors > 0 ? static_cast<unsigned>(packed.max_multiprocessors)
                                             : 0x7fffffffU),
        blocks_at_once(std::min(static_cast<unsigned>(std::max(packed.device.multiprocessors, 1) *
                                                      resident_blocks(design, packed.device)),
                                limit)) {}

  // The parameters without the tile order and the split schedule.
  abi::Sm80Params parameters() const {
    const GemmArguments& arguments = request.arguments;
    abi::Sm80Operand a = operand_of(arguments.a(), problem.a, rules.a.layout);
    if (design.convolution == abi::ConvolutionKind::wgrad)
      a.line_stride = pixel_stride_of_a(problem);
    const abi::Sm80Operand b = operand_of(arguments.b(), problem.b, rules.b.layout);
    // With alpha = 0, A and B are not read, so that no NaN of theirs reaches out.
    const auto k = arguments.alpha() == 0 ? 0U : static_cast<unsigned>(problem.k);
    return {.a = is_turned ? b : a,
            .b = is_turned ? a : b,
            .c = problem.c ? to_abi(*arguments.c(), *problem.c, is_turned) : abi::SimtMatrix{},
            .out = to_abi(arguments.out(), problem.out, is_turned),
            .alpha = arguments.alpha(),
            .beta = arguments.beta(),
            .m = extents.rows,
            .n = extents.columns,
            .k = k,
            .k_blocks = std::max(abi::tiles_along(k, design.tile_k), 1U),
            .order = {},
            .split = {},
            .workspace = nullptr};
  }

  void append_epilogue(runtime::LaunchPlan& plan) const {
    if (request.kernel.epilogue() == default_epilogue) return;
    const abi::RegionGrid regions =
        regions_of_tiles(extents.tile_rows, extents.tile_columns,
                         {.m = design.tile_m, .n = design.tile_n}, problem, is_turned);
    append_epilogue_parameters(request.arguments, request.kernel.epilogue(), is_turned, regions,
                               plan);
  }

  void set_shape(unsigned blocks, runtime::LaunchPlan& plan) const {
    plan.shape.grid = {std::clamp(blocks, 1U, limit), 1, 1};
    plan.shape.block = {static_cast<std::uint32_t>(abi::thread_count(design)), 1, 1};
    plan.shape.shared_bytes = static_cast<std::uint32_t>(abi::shared_bytes(design));
  }
};

// The parameters of a product with more than a GEMM has, which begin with those of a GEMM.
void set_product(const Sm80Launch& launch, const abi::Sm80Params& params,
                 runtime::LaunchPlan& plan) {
  if (launch.design.scales.are_used())
    return plan.set_parameters(abi::Sm80ScaledParams{
        .gemm = params, .scales = sm80_scale_params(launch.request.arguments, launch.rules)});
  if (!launch.problem.convolution) return plan.set_parameters(params);
  // Without pixels there is no part.
  const auto parts = operation::windows_of(*launch.problem.convolution);
  abi::Sm80ConvParams conv{.gemm = params, .a = {}, .b = {}};
  if (!parts.empty()) {
    const operation::WindowPart first = parts.front();
    conv.a = window_params(first.a);
    conv.b = window_params(first.b);
  }
  if (!launch.design.has_phases) return plan.set_parameters(conv);
  plan.set_parameters(abi::Sm80PhaseParams{
      .conv = conv, .phases = phase_params(launch.problem, launch.design.tile_m)});
}

void pack_product(const Sm80Launch& launch, runtime::LaunchPlan& plan) {
  const Sm80Extents& extents = launch.extents;
  const auto batches = static_cast<unsigned>(launch.problem.l);
  const unsigned tiles = extents.tile_rows * extents.tile_columns * batches;
  abi::Sm80Params params = launch.parameters();
  const SplitWork work{
      .tiles = tiles, .k_blocks = params.k_blocks, .blocks = launch.blocks_at_once};
  const SplitWord split = split_word(launch.tile);
  params.order =
      abi::make_tile_order(launch.tile.raster, extents.tile_rows, extents.tile_columns, batches);
  params.split = split_schedule(split, work);
  set_product(launch, params, plan);
  launch.append_epilogue(plan);
  set_workspace(split, launch.design, tiles, params, plan);
  std::memcpy(plan.parameter_bytes, &params, sizeof params);  // with the workspace's layout
  launch.set_shape(params.split.units, plan);
}

// The host's table of the groups' tiles.
abi::GroupTable table_of(const Sm80Launch& launch, const abi::GroupParams& groups) {
  const Sm80Extents& extents = launch.extents;
  const bool is_of_n = groups.ragged == abi::RaggedExtent::n;
  const unsigned across = groups.ragged == abi::RaggedExtent::k
                              ? extents.tile_rows * extents.tile_columns
                          : is_of_n ? extents.tile_rows
                                    : extents.tile_columns;
  return group_table(launch.request.arguments, groups, is_of_n ? launch.tile.n : launch.tile.m,
                     across);
}

// Returns the tiles of all groups.
unsigned set_table_parameters(const Sm80Launch& launch, const abi::GroupParams& groups,
                              runtime::LaunchPlan& plan) {
  const GemmArguments& arguments = launch.request.arguments;
  const abi::GroupTable table = table_of(launch, groups);
  if (launch.design.has_indices)
    plan.set_parameters(abi::Sm80IndexedTableParams{.gemm = launch.parameters(),
                                                    .groups = groups,
                                                    .gather = gather_params(arguments),
                                                    .scatter = scatter_params(arguments),
                                                    .table = table});
  else
    plan.set_parameters(
        abi::Sm80GroupTableParams{.gemm = launch.parameters(), .groups = groups, .table = table});
  return table.rows[groups.count].first_tile;
}

void set_group_parameters(const Sm80Launch& launch, const abi::GroupParams& groups,
                          runtime::LaunchPlan& plan) {
  const GemmArguments& arguments = launch.request.arguments;
  if (launch.design.scales.are_used())
    plan.set_parameters(
        abi::Sm80ScaledGroupParams{.gemm = launch.parameters(),
                                   .groups = groups,
                                   .scales = sm80_scale_params(arguments, launch.rules)});
  else if (launch.design.has_indices)
    plan.set_parameters(abi::Sm80IndexedParams{.gemm = launch.parameters(),
                                               .groups = groups,
                                               .gather = gather_params(arguments),
                                               .scatter = scatter_params(arguments)});
  else
    plan.set_parameters(abi::Sm80GroupedParams{.gemm = launch.parameters(), .groups = groups});
}

void pack_list(const Sm80Launch& launch, runtime::LaunchPlan& plan) {
  launch.set_shape(set_problem_list(launch.request.arguments,
                                    {.rules = launch.rules,
                                     .tile_m = launch.tile.m,
                                     .tile_n = launch.tile.n,
                                     .is_turned = launch.is_turned},
                                    plan),
                   plan);
}

void pack_groups(const Sm80Launch& launch, runtime::LaunchPlan& plan) {
  const abi::GroupParams groups = group_params(launch.request.arguments, launch.is_turned);
  const bool has_table = launch.tile.groups == abi::GroupSchedule::host;
  unsigned blocks = 0;
  if (has_table)
    blocks = set_table_parameters(launch, groups, plan);
  else
    set_group_parameters(launch, groups, plan);
  // To clear elements of no group, as many blocks as if groups filled out.
  if (!has_table || launch.design.clears_outside)
    blocks = most_tiles(extents_in_out(launch.tile, launch.rules), launch.problem);
  if (launch.tile.groups == abi::GroupSchedule::persistent)
    blocks = std::min(blocks, launch.blocks_at_once);
  launch.append_epilogue(plan);
  launch.set_shape(blocks, plan);
}

}  // namespace

void Sm80Family::pack(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const {
  const Sm80Launch launch(request);
  if (launch.tile.groups == abi::GroupSchedule::none) return pack_product(launch, plan);
  if (launch.tile.groups == abi::GroupSchedule::list) return pack_list(launch, plan);
  pack_groups(launch, plan);
}

}  // namespace gemmery::templates
