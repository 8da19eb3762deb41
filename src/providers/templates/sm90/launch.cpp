// SPDX-License-Identifier: Apache-2.0
// The launches of sm90 kernels: their tensor maps, their other parameters and their grids.
#include "providers/templates/sm90/launch.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <variant>

#include "device/abi/simt_design.hpp"
#include "device/abi/sm90_conv_params.hpp"
#include "device/abi/sm90_params.hpp"
#include "device/abi/sm90_program.hpp"
#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/groups.hpp"
#include "providers/templates/name_words.hpp"
#include "providers/templates/sm90/constraints.hpp"
#include "providers/templates/sm90/convolution.hpp"
#include "providers/templates/sm90/family.hpp"
#include "providers/templates/sm90/phases.hpp"
#include "providers/templates/sm90/program.hpp"
#include "providers/templates/sm90/scales.hpp"

namespace gemmery::templates {
namespace {

// --- operands -----------------------------------------------------------------------------------

// A or B as the kernel sees it.
struct TileSide {
  abi::Major major;
  int extent;  // of the tile
  int atom;    // abi::atom_extent, which equals the k of a stage
  bool is_shared;
  int line_bytes;  // of a row of a K-major tile
  int line;        // the same in elements of its map
};

TileSide a_side(const abi::Sm90Design& design) {
  const int line_bytes = abi::a_line_bytes(design);
  return {design.a_major,
          design.tile_m,
          abi::atom_extent(design),
          design.cluster_n > 1,
          line_bytes,
          abi::decodes_a(design) ? line_bytes : abi::atom_extent(design)};
}
TileSide b_side(const abi::Sm90Design& design) {
  return {design.b_major,       design.tile_n,           abi::atom_extent(design),
          design.cluster_m > 1, abi::sm90_swizzle_bytes, abi::atom_extent(design)};
}

// The box of one copy of an operand: rows of a K-major tile; or an atom of all k, or of half of
// them if two blocks share the tile.
TmaBox operand_box(const TileSide& side) {
  const int k = side.is_shared ? side.atom / 2 : side.atom;
  return {
      .adjacent = side.line,
      .other = side.major == abi::Major::k ? abi::rows_per_copy(side.extent, side.is_shared) : k};
}

}  // namespace

TmaBox a_box(const abi::Sm90Design& design) { return operand_box(a_side(design)); }
TmaBox b_box(const abi::Sm90Design& design) { return operand_box(b_side(design)); }

std::array<ProductOperand, 2> sides_of(const GemmProblem& problem, const Kernel& kernel) {
  const OperandRules& rules = kernel.operands();
  const ProductOperand a = product_a(rules, problem);
  const ProductOperand b = product_b(rules, problem);
  return is_turned(kernel) ? std::array{b, a} : std::array{a, b};
}

std::array<const void*, 2> data_of(const GemmArguments& arguments, const Kernel& kernel) {
  const void* const a = arguments.a().data();
  const void* const b = arguments.b().data();
  return is_turned(kernel) ? std::array{b, a} : std::array{a, b};
}

const void* aligned_down(const void* address) {
  constexpr std::uintptr_t unit = 16;
  return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(address) / unit * unit);
}

void set_shape(const abi::Sm90Design& design, unsigned blocks, runtime::LaunchPlan& plan) {
  plan.shape.grid = {blocks, 1, 1};
  plan.shape.block = {static_cast<std::uint32_t>(abi::thread_count(design)), 1, 1};
  plan.shape.cluster = {static_cast<std::uint32_t>(abi::cluster_size(design)), 1, 1};
  plan.shape.shared_bytes = static_cast<std::uint32_t>(abi::launch_shared_bytes(design));
  plan.shape.is_programmatic = true;
}

bool lets_next_begin(unsigned blocks, const DeviceInfo& device) {
  const auto multiprocessors = static_cast<unsigned>(std::max(device.multiprocessors, 1));
  return 2 * blocks <= multiprocessors || 10 * blocks >= 9 * multiprocessors;
}

unsigned resident_clusters(const runtime::PackRequest& request, int cluster_size) {
  const int allowed = request.max_multiprocessors > 0
                          ? std::min(request.max_multiprocessors, request.device.multiprocessors)
                          : request.device.multiprocessors;
  return static_cast<unsigned>(std::min(std::max(allowed / cluster_size, 1),
                                        clusters_at_once(request.device, cluster_size)));
}

namespace {

// The copies of one stage of an operand.
struct StageCopies {
  TmaBox box;
  unsigned bytes;  // of all copies together
};

// A K-major operand with fewer rows than its tile is loaded without the missing rows if one copy
// loads all.
StageCopies stage_copies(const TileSide& side, unsigned extent) {
  StageCopies copies{.box = operand_box(side),
                     .bytes = static_cast<unsigned>(abi::operand_stage_bytes(
                         side.major, side.extent, side.atom, side.line_bytes))};
  const bool is_one_copy = side.major == abi::Major::k && copies.box.other == side.extent;
  if (is_one_copy && extent < static_cast<unsigned>(side.extent)) {
    copies.box.other = static_cast<int>(std::max(extent, 1U));
    copies.bytes = static_cast<unsigned>(copies.box.other * side.line_bytes);
  }
  return copies;
}

// Out or C as the kernel sees it.
abi::RowMajorMatrix rows_of(const Tensor& tensor, const MatrixType& matrix, bool turned) {
  return {.data = tensor.data(),
          .batch_stride = matrix.batch_stride,
          .row_stride = turned ? matrix.column_stride : matrix.row_stride,
          .column_stride = turned ? matrix.row_stride : matrix.column_stride};
}

// The array of a batch by pointers; null for other batches.
void* const* array_of(const MatrixType& matrix, const void* data) {
  return matrix.has_pointers() ? static_cast<void* const*>(data) : nullptr;
}

// Sets the maps of A and B. The maps of repacked copies get their addresses with the workspace.
void set_inputs(const runtime::PackRequest& request, const abi::Sm90Design& design,
                const Sm90Extents& extents, abi::Sm90Params& params) {
  const GemmArguments& arguments = request.arguments;
  const GemmProblem& problem = arguments.problem();
  const StageCopies a_copies = stage_copies(a_side(design), extents.rows);
  const StageCopies b_copies = stage_copies(b_side(design), extents.columns);
  params.a_bytes = a_copies.bytes;
  params.b_bytes = b_copies.bytes;
  const auto encode = [&](const void* data, DType dtype, const TmaView& view, TmaBox box) {
    driver::TiledTensorMap map = map_of(data, dtype, view, box, design.has_pointers);
    map.is_tf32 = design.math == abi::MmaMath::tf32;  // rounded by the copy, not truncated by wgmma
    return encode_map(request.driver, map);
  };
  // With alpha = 0, A and B are not read: nothing in them may change out, not even NaN.
  if (problem.k == 0 || arguments.alpha() == 0) {
    // Maps of any memory: the only block of k lies beyond them and is all zeros.
    constexpr TmaView least{1, 1, 1, 16, 16};
    const void* const out = aligned_down(arguments.out().data());
    params.k_blocks = 1;
    params.first_k = 1 << 30;
    const auto [first, second] = sides_of(problem, request.kernel);
    params.a = encode(out, first.rule.dtype, least, a_copies.box);
    params.b = encode(out, second.rule.dtype, least, b_copies.box);
    return;
  }
  const unsigned k_blocks = abi::tiles_along(static_cast<unsigned>(problem.k), abi::tile_k(design));
  const auto [first, second] = sides_of(problem, request.kernel);
  const auto [first_data, second_data] = data_of(arguments, request.kernel);
  params.k_blocks = abi::tiles_along(k_blocks, design.split_k);
  params.a_batch_step = first.view().batches > 1 ? 1 : 0;
  params.b_batch_step = second.view().batches > 1 ? 1 : 0;
  if (!first.is_copy) params.a_array = array_of(first.matrix, first_data);
  if (!second.is_copy) params.b_array = array_of(second.matrix, second_data);
  if (!design.gathers_rows)
    params.a = encode(aligned_down(first_data), first.rule.dtype, first.view(), a_copies.box);
  params.b = encode(aligned_down(second_data), second.rule.dtype, second.view(), b_copies.box);
}

// Sets the maps of a convolution, and the other parameters of its copies.
void set_windows(const runtime::PackRequest& request, const abi::Sm90Design& design,
                 const Sm90Extents& extents, abi::Sm90ConvParams& params) {
  const GemmArguments& arguments = request.arguments;
  const GemmProblem& problem = arguments.problem();
  const StageCopies a_copies = stage_copies(a_side(design), extents.rows);
  const StageCopies b_copies = stage_copies(b_side(design), extents.columns);
  const auto encode = [&](auto map) {
    map.is_tf32 = design.math == abi::MmaMath::tf32;
    return encode_map(request.driver, map);
  };
  const bool reads = problem.k != 0 && arguments.alpha() != 0;
  const void* const nothing = aligned_down(arguments.out().data());
  const void* const a = reads ? arguments.a().data() : nothing;
  const void* const b = reads ? arguments.b().data() : nothing;
  abi::Sm90Params& gemm = params.gemm;
  gemm.a_bytes = a_copies.bytes;
  gemm.b_bytes = b_copies.bytes;
  gemm.k_blocks = 1;
  gemm.first_k = 1 << 30;
  if (reads) {
    const auto depth = static_cast<unsigned>(sm90_depth(problem));
    gemm.k_blocks = abi::tiles_along(abi::tiles_along(depth, abi::tile_k(design)), design.split_k);
    gemm.first_k = 0;
  }
  params.window = tma_window(problem, reads);
  params.filters = tma_filters(problem);
  const auto images = reads ? image_map : empty_image_map;
  if (abi::finds_rows(design)) {
    if (!design.has_phases) gemm.a = encode(images(a, problem, a_copies.box));
    gemm.b = encode((reads ? filter_map : empty_filter_map)(b, problem, b_copies.box));
    return;
  }
  constexpr TmaView least{1, 1, 1, 16, 16};
  const TmaView outputs = view_of(request.kernel.operands().a, matrix_of_outputs(problem),
                                  problem.m, problem.k, problem.l);
  gemm.a_batch_step = reads && outputs.batches > 1 ? 1 : 0;
  gemm.a = encode(map_of(a, problem.a.dtype, reads ? outputs : least, a_copies.box, false));
  gemm.b = encode(images(b, problem, b_copies.box));
}

// The same with the phases of a dgrad with a stride.
abi::Sm90PhaseParams with_phases(const runtime::PackRequest& request, const abi::Sm90Design& design,
                                 const Sm90Extents& extents, const abi::Sm90Params& gemm) {
  const GemmArguments& arguments = request.arguments;
  const GemmProblem& problem = arguments.problem();
  const bool reads = problem.k != 0 && arguments.alpha() != 0;
  const PhaseOperands operands{
      .a = reads ? arguments.a().data() : aligned_down(arguments.out().data()),
      .out = arguments.out().data(),
      .a_box = stage_copies(a_side(design), extents.rows).box,
      .out_box = {.adjacent = abi::staging_columns(design), .other = abi::sm90_warp_rows},
      .is_tf32 = design.math == abi::MmaMath::tf32,
      .reads = reads};
  abi::Sm90PhaseParams params{.gemm = gemm, .images = {}, .phases = {}};
  set_phases(
      problem, operands,
      [&](const driver::Im2colTensorMap& map) { return encode_map(request.driver, map); }, params);
  return params;
}

// Adds the workspace of the copies and the launch that fills them; A and B are read only if the
// product reads them.
void set_copies(const runtime::PackRequest& request, runtime::LaunchPlan& plan) {
  const GemmArguments& arguments = request.arguments;
  const OperandRules& rules = request.kernel.operands();
  if (!is_repacked(rules.a) && !is_repacked(rules.b)) return;
  const auto sides = sides_of(arguments.problem(), request.kernel);
  const auto data = data_of(arguments, request.kernel);
  const auto offsets = reserve_copies(sides, plan);
  if (arguments.problem().k == 0 || arguments.alpha() == 0) return;
  prepare_copies({OperandData{sides[0], data[0]}, OperandData{sides[1], data[1]}}, offsets, plan);
  constexpr std::size_t maps[] = {offsetof(abi::Sm90Params, a), offsetof(abi::Sm90Params, b)};
  for (std::size_t side = 0; side < sides.size(); ++side)
    if (sides[side].is_copy)
      plan.add_workspace_map({.parameter_offset = maps[side], .workspace_offset = offsets[side]});
}

void set_results(const runtime::PackRequest& request, const abi::Sm90Design& design,
                 const Sm90Extents& extents, abi::Sm90Params& params) {
  const GemmArguments& arguments = request.arguments;
  const GemmProblem& problem = arguments.problem();
  const OperandRules& rules = request.kernel.operands();
  const TmaBox out_box{.adjacent = abi::staging_columns(design), .other = abi::sm90_warp_rows};
  if (design.has_tap_columns) {
    params.out = encode_map(request.driver, tap_map(arguments.out().data(), problem, out_box));
  } else if (abi::stores_by_tma(design) && !design.has_phases) {
    params.out = encode_map(request.driver,
                            map_of(arguments.out().data(), problem.out.dtype,
                                   view_of(rules.out, problem.out, problem.m, problem.n, problem.l),
                                   out_box, design.has_pointers));
  }
  const bool turned = is_turned(request.kernel);
  params.out_rows = rows_of(arguments.out(), problem.out, turned);
  if (arguments.c()) params.c = rows_of(*arguments.c(), *problem.c, turned);
  const bool ends_in_whole_units =
      extents.columns * byte_width(problem.out.dtype) % widest_access == 0;
  params.last_whole_staging =
      ends_in_whole_units ? std::numeric_limits<int>::max()
                          : static_cast<int>(extents.columns) - abi::staging_columns(design);
}

// --- parts of tiles -----------------------------------------------------------------------------

// Adds the workspace for parts of tiles, if there are any; `params` are in the plan.
void set_parts(const SplitWord& split, const abi::Sm90Design& design, unsigned tiles,
               abi::Sm90Params& params, runtime::LaunchPlan& plan) {
  const std::size_t partials = partial_tiles(split, params.split, tiles);
  if (partials == 0) return;
  const auto parts = static_cast<std::size_t>(abi::parts_per_share(design));
  const auto part_bytes = static_cast<std::size_t>(abi::part_bytes(design));
  params.split.partials = set_split_workspace(tiles * parts, partials * parts * part_bytes,
                                              offsetof(abi::Sm90Params, workspace), plan);
  std::memcpy(plan.parameter_bytes, &params, sizeof params);
}

// --- programs -----------------------------------------------------------------------------------

// Appends abi::Sm90ProgramParams::input to the plan's parameters.
void append_input_maps(const runtime::PackRequest& request, const abi::Sm90Design& design,
                       runtime::LaunchPlan& plan) {
  const GemmArguments& arguments = request.arguments;
  const OperandRules& rules = request.kernel.operands();
  const ProgramTensors tensors =
      program_tensors(request.kernel.epilogue(), is_turned(request.kernel));
  const TmaBox box{.adjacent = abi::staging_columns(design), .other = abi::sm90_warp_rows};
  for (const TmaInput& input : list_tma_inputs(arguments.problem(), rules, design, tensors)) {
    const Tensor& tensor = std::get<Tensor>(arguments.epilogue_operands()[input.operand].value);
    append_parameter(encode_map(request.driver, map_of(tensor.data(), tensor.dtype(), input.view,
                                                       box, design.has_pointers)),
                     plan);
  }
}

abi::RegionGrid regions_of(const abi::Sm90Design& design, const Sm90Extents& extents,
                           const runtime::PackRequest& request, unsigned grid_blocks) {
  constexpr unsigned warps = abi::warps_per_consumer;
  const abi::Sm90Design stored = abi::stored_design(design);
  const int blocks = abi::blocks_per_consumer(stored);
  const GroupTileExtents region{.m = blocks * abi::sm90_block_rows,
                                .n = abi::columns_per_consumer(stored)};
  const GemmProblem& problem = request.arguments.problem();
  const abi::RegionGrid grid{
      .rows = abi::tiles_along(extents.rows, region.m),
      .columns = abi::tiles_along(extents.columns, region.n),
      .batches = static_cast<unsigned>(problem.l),
      .column_parts = static_cast<unsigned>(blocks) * warps,
      .whole_parts = warps,
      .arrivals = 1,
      .groups = abi::reduces_by_groups(design)
                    ? grid_blocks * static_cast<unsigned>(abi::consumer_count(design))
                    : 0};
  return regions_of_launch(grid, region, problem, is_turned(request.kernel));
}

void append_program(const runtime::PackRequest& request, const abi::Sm90Design& design,
                    unsigned blocks, runtime::LaunchPlan& plan) {
  if (request.kernel.epilogue() == default_epilogue) return;
  const GemmArguments& arguments = request.arguments;
  const Sm90Extents extents = extents_of(is_turned(request.kernel), arguments.problem());
  append_epilogue_parameters(arguments, request.kernel.epilogue(), is_turned(request.kernel),
                             regions_of(design, extents, request, blocks), plan);
  append_input_maps(request, design, plan);
}

// --- groups -------------------------------------------------------------------------------------

abi::Sm90GatherParams gathered_params(const runtime::PackRequest& request,
                                      const abi::Sm90GroupedParams& grouped) {
  const GemmArguments& arguments = request.arguments;
  const GemmProblem& problem = arguments.problem();
  const bool turned = is_turned(request.kernel);
  const bool reads = arguments.alpha() != 0;
  return {.scattered = {.grouped = grouped, .scatter = scatter_params(arguments)},
          .gather = gather_params(arguments),
          .a = turned ? rows_of(arguments.b(), problem.b, true)
                      : rows_of(arguments.a(), problem.a, false),
          .k = reads ? static_cast<unsigned>(problem.k) : 0U};
}

void pack_groups(const runtime::PackRequest& request, const abi::Sm90Design& design,
                 abi::Sm90Params params, unsigned resident, runtime::LaunchPlan& plan) {
  const GemmArguments& arguments = request.arguments;
  const GemmProblem& problem = arguments.problem();
  const OperandRules& rules = request.kernel.operands();
  const bool turned = is_turned(request.kernel);
  const TmaView out = view_of(rules.out, problem.out, problem.m, problem.n, problem.l);
  const abi::GroupParams groups = group_params(arguments, turned);
  // TMA clips at the end of out, and only there.
  if (groups.ragged == abi::RaggedExtent::n) params.last_whole_staging = -1;
  abi::Sm90GroupTableParams all{
      .grouped = {.gemm = params, .groups = groups, .out_batch_step = out.batches > 1 ? 1U : 0U},
      .table = {}};
  unsigned tiles = most_tiles(extents_in_out(sm90_tile(request.kernel), turned), problem);
  if (design.has_group_table) {
    const unsigned rows = abi::tiles_along(params.m, design.tile_m);
    const unsigned columns = abi::tiles_along(params.n, design.tile_n);
    const bool is_of_n = groups.ragged == abi::RaggedExtent::n;
    const unsigned across = groups.ragged == abi::RaggedExtent::k ? rows * columns
                            : is_of_n                             ? rows
                                                                  : columns;
    all.table = group_table(arguments, groups,
                            static_cast<unsigned>(is_of_n ? design.tile_n : design.tile_m), across);
    tiles = all.table.rows[groups.count].first_tile;
  }
  // At least one block, for empty groups; to clear elements of no group, as many as are resident.
  const unsigned blocks = design.clears_outside ? resident : std::clamp(tiles, 1U, resident);
  all.grouped.gemm.lets_next_begin = lets_next_begin(blocks, request.device) ? 1 : 0;
  if (design.has_group_table)
    plan.set_parameters(all);
  else if (abi::has_scales(design))
    plan.set_parameters(abi::Sm90ScaledGroupParams{.grouped = all.grouped,
                                                   .scales = sm90_scales(arguments, turned)});
  else if (design.gathers_rows)
    plan.set_parameters(gathered_params(request, all.grouped));
  else if (design.scatters_rows)
    plan.set_parameters(
        abi::Sm90ScatterParams{.grouped = all.grouped, .scatter = scatter_params(arguments)});
  else
    plan.set_parameters(all.grouped);
  set_shape(design, blocks, plan);
  append_program(request, design, blocks, plan);
}

}  // namespace

void Sm90Family::pack(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const {
  const GemmArguments& arguments = request.arguments;
  const GemmProblem& problem = arguments.problem();
  const abi::Sm90Design design = sm90_design(request.kernel);
  const Sm90Extents extents = extents_of(is_turned(request.kernel), problem);
  const Sm90TileCounts tiles = count_tiles(extents, sm90_tile(request.kernel));
  const auto batches = static_cast<unsigned>(sm90_batches(problem));
  const int cluster_size = abi::cluster_size(design);
  if (design.has_list) return pack_list(request, design, plan);
  const unsigned all_tiles = tiles.rows * tiles.columns * batches;

  abi::Sm90ConvParams all{};
  abi::Sm90Params& params = all.gemm;
  params.alpha = static_cast<float>(arguments.alpha());
  params.beta = static_cast<float>(arguments.beta());
  params.wide_alpha = arguments.alpha();
  params.wide_beta = arguments.beta();
  params.m = extents.rows;
  params.n = extents.columns;
  params.order = abi::make_tile_order(design.raster, tiles.rows, tiles.columns, batches);
  if (problem.convolution)
    set_windows(request, design, extents, all);
  else
    set_inputs(request, design, extents, params);
  set_results(request, design, extents, params);
  const unsigned resident = resident_clusters(request, cluster_size);
  if (design.has_groups) return pack_groups(request, design, params, resident, plan);
  const SplitWord split = split_word(sm90_tile(request.kernel));
  params.split =
      split_schedule(split, {.tiles = all_tiles, .k_blocks = params.k_blocks, .blocks = resident});
  const auto size = static_cast<unsigned>(cluster_size);
  const unsigned blocks = size * std::min(resident, params.split.units);
  params.lets_next_begin = lets_next_begin(blocks, request.device) ? 1 : 0;
  if (design.has_phases)
    plan.set_parameters(with_phases(request, design, extents, params));
  else if (problem.convolution)
    plan.set_parameters(all);
  else if (abi::has_scales(design))
    plan.set_parameters(abi::Sm90ScaledParams{
        .gemm = params, .scales = sm90_scales(arguments, is_turned(request.kernel))});
  else
    plan.set_parameters(params);
  set_shape(design, blocks, plan);
  append_program(request, design, blocks, plan);
  set_parts(split, design, all_tiles, params, plan);
  set_copies(request, plan);
}

}  // namespace gemmery::templates
