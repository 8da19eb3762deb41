// SPDX-License-Identifier: Apache-2.0
// The sm90 family: which kernels serve a query and how fast, why others do not, their source and
// launches.
#include "providers/templates/gemm_sm90.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "device/abi/sm90_params.hpp"
#include "device/abi/sm90_program.hpp"
#include "driver/tensor_map.hpp"
#include "epilogue/graph.hpp"
#include "kernel/rules.hpp"
#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/gemm_sm90_design.hpp"
#include "providers/templates/gemm_sm90_prediction.hpp"
#include "providers/templates/name_words.hpp"

namespace gemmery::templates {
namespace {

constexpr Target hopper_targets[] = {{90, 'a'}};

// --- operands as TMA walks them -----------------------------------------------------------------

// A batch of matrices, the adjacent index first.
struct TmaView {
  std::int64_t adjacent;  // extents
  std::int64_t other;
  std::int64_t batches;
  std::int64_t stride_bytes;  // from row to row
  std::int64_t batch_stride_bytes;
};

TmaView view_of(const OperandRule& rule, const MatrixType& matrix, std::int64_t rows,
                std::int64_t columns, std::int64_t batches) {
  const bool is_row = rule.layout == LayoutRule::row;
  const auto width = static_cast<std::int64_t>(byte_width(matrix.dtype));
  return {.adjacent = is_row ? columns : rows,
          .other = is_row ? rows : columns,
          .batches = matrix.batch_stride == 0 ? 1 : batches,
          .stride_bytes = width * (is_row ? matrix.row_stride : matrix.column_stride),
          .batch_stride_bytes = width * matrix.batch_stride};
}

// Coordinates are 32 bits with a sign, and tiles reach beyond extents.
constexpr std::int64_t largest_extent = std::numeric_limits<std::int32_t>::max() - 1024;

bool is_tma_stride(std::int64_t bytes) {
  return bytes > 0 && bytes % 16 == 0 && bytes < std::int64_t{1} << 40;
}

// What a tensor map cannot say, in words; empty where it can.
std::string find_misfit(const char* operand, const TmaView& view) {
  if (std::max({view.adjacent, view.other, view.batches}) > largest_extent) {
    return fmt::format("{}: expected extents of at most {}, got {}x{}x{}", operand, largest_extent,
                       view.batches, view.other, view.adjacent);
  }
  if (view.other > 1 && !is_tma_stride(view.stride_bytes)) {
    return fmt::format("{}: expected a stride of 16 to 2^40 bytes in steps of 16, got {}", operand,
                       view.stride_bytes);
  }
  if (view.batches > 1 && !is_tma_stride(view.batch_stride_bytes)) {
    return fmt::format("{}: expected a batch stride of 16 to 2^40 bytes in steps of 16, got {}",
                       operand, view.batch_stride_bytes);
  }
  return {};
}

std::string find_misfit(const OperandRules& rules, const GemmProblem& problem) {
  std::string misfit =
      find_misfit("A", view_of(rules.a, problem.a, problem.m, problem.k, problem.l));
  if (misfit.empty())
    misfit = find_misfit("B", view_of(rules.b, problem.b, problem.k, problem.n, problem.l));
  if (misfit.empty())
    misfit = find_misfit("out", view_of(rules.out, problem.out, problem.m, problem.n, problem.l));
  return misfit;
}

// --- a program's inputs that TMA brings ---------------------------------------------------------

// One of them: its number among the operands, and how TMA walks it.
struct SlabInput {
  std::size_t operand;
  TmaView view;
};

std::vector<SlabInput> list_slab_inputs(const GemmProblem& problem, const OperandRules& rules,
                                        const abi::Sm90Design& design,
                                        const ProgramTensors& tensors) {
  const abi::SlabInputs slabs = abi::slab_inputs(
      tensors.inputs.data(), static_cast<int>(tensors.inputs.size()), abi::stored_design(design));
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

// What of them a tensor map cannot say.
std::string find_misfit(const std::vector<SlabInput>& inputs, EpilogueId epilogue) {
  for (const SlabInput& input : inputs) {
    const std::string& name = rules_of(epilogue).operands[input.operand].name;
    std::string misfit = find_misfit(("epilogue operand " + name).c_str(), input.view);
    if (!misfit.empty()) return misfit;
  }
  return {};
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
  const abi::SlabInputs slabs = abi::slab_inputs(
      tensors.inputs.data(), static_cast<int>(tensors.inputs.size()), abi::stored_design(design));
  const auto full = std::ranges::count_if(tensors.inputs,
                                          [](const auto& input) { return !abi::is_vector(input); });
  return full <= slabs.count && std::ranges::all_of(tensors.outputs, abi::is_of_everything);
}

// The tile with the stages that fit beside what the program takes; none where that is too much, or
// TMA cannot walk what it would have to bring.
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

// --- constraints --------------------------------------------------------------------------------

bool contains(std::span<const DType> dtypes, DType dtype) {
  return std::ranges::find(dtypes, dtype) != dtypes.end();
}

// The first constraint on device and types that the query fails, in words.
std::string find_type_failure(const Query& query) {
  const GemmProblem& problem = query.problem;
  const Target device = query.device.target;
  if (device.is_cpu()) return "device: expected a GPU, got the CPU";
  if (!runs_on(hopper_targets[0], device))
    return fmt::format("target: expected {}, got {}", to_string(hopper_targets[0]),
                       to_string(device));
  if (!contains(sm90_inputs(), problem.a.dtype) || problem.a.dtype != problem.b.dtype) {
    return fmt::format("A and B: expected the same of {}, got {} and {}", list_names(sm90_inputs()),
                       name(problem.a.dtype), name(problem.b.dtype));
  }
  if (!is_sm90_accumulator(problem.accumulator, problem.a.dtype)) {
    return fmt::format("accumulator: expected float32, or float16 for float16 operands, got {}",
                       name(problem.accumulator));
  }
  if (!contains(sm90_outputs(), problem.out.dtype)) {
    return fmt::format("out: expected one of {}, got {}", list_names(sm90_outputs()),
                       name(problem.out.dtype));
  }
  if (problem.c && !contains(sm90_outputs(), problem.c->dtype)) {
    return fmt::format("C: expected one of {}, got {}", list_names(sm90_outputs()),
                       name(problem.c->dtype));
  }
  if (problem.math != Math::native)
    return fmt::format("math: expected native, got {}", name(problem.math));
  return {};
}

OperandRule rule_of(DType dtype, LayoutRule layout) {
  return {.dtype = dtype, .layout = layout, .alignment = widest_access};
}

// Calls visit(rules) for every choice of layouts for operands of these types.
template <class Visit>
void walk_layouts(DType input, DType accumulator, DType out, std::optional<DType> c,
                  Visit&& visit) {
  constexpr LayoutRule layouts[] = {LayoutRule::row, LayoutRule::column};
  for (const LayoutRule a_layout : layouts) {
    for (const LayoutRule b_layout : layouts) {
      for (const LayoutRule out_layout : layouts) {
        OperandRules rules{.a = rule_of(input, a_layout),
                           .b = rule_of(input, b_layout),
                           .c = {},
                           .out = rule_of(out, out_layout),
                           .accumulator = accumulator};
        rules.has_c = c.has_value();
        if (c) rules.c = rule_of(*c, out_layout);
        visit(rules);
      }
    }
  }
}

template <class Visit>
void walk_fitting_rules(const GemmProblem& problem, Visit&& visit) {
  const std::optional<DType> c = problem.c ? std::optional(problem.c->dtype) : std::nullopt;
  walk_layouts(problem.a.dtype, problem.accumulator, problem.out.dtype, c,
               [&](const OperandRules& rules) {
                 if (kernel::keeps_rules(rules, problem) && find_misfit(rules, problem).empty())
                   visit(rules);
               });
}

LayoutRule nearest_rule(const MatrixType& matrix, std::int64_t rows, std::int64_t columns) {
  return layout_of(matrix, rows, columns) == Layout::column ? LayoutRule::column : LayoutRule::row;
}

// Why no layout fits: what the rules nearest to the operands ask for.
std::string find_layout_failure(const GemmProblem& problem) {
  OperandRules rules{
      .a = rule_of(problem.a.dtype, nearest_rule(problem.a, problem.m, problem.k)),
      .b = rule_of(problem.b.dtype, nearest_rule(problem.b, problem.k, problem.n)),
      .c = {},
      .out = rule_of(problem.out.dtype, nearest_rule(problem.out, problem.m, problem.n)),
      .accumulator = problem.accumulator};
  rules.has_c = problem.c.has_value();
  if (problem.c) rules.c = rule_of(problem.c->dtype, rules.out.layout);
  const Status status = kernel::check_rules(rules, problem);
  return status ? find_misfit(rules, problem) : status.error();
}

std::string find_failure(const Query& query) {
  std::string failure = find_type_failure(query);
  if (!failure.empty()) return failure;
  bool fits = false;
  walk_fitting_rules(query.problem, [&](const OperandRules&) { fits = true; });
  return fits ? "" : find_layout_failure(query.problem);
}

// --- tiles of a problem -------------------------------------------------------------------------

// The kernel counts tiles of all matrices in 31 bits.
bool fits_count(const Sm90TileCounts& tiles, std::int64_t batches) {
  const std::uint64_t per_matrix = std::uint64_t{tiles.rows} * tiles.columns;
  constexpr std::uint64_t limit = 0x7fffffff;
  return per_matrix <= limit &&
         (per_matrix == 0 || static_cast<std::uint64_t>(batches) <= limit / per_matrix);
}

// Clusters that run at a time, one block a multiprocessor. A cluster lies in one group of
// multiprocessors, and groups have 14 to 18: of the 132 of an H200, 66 clusters of two run at a
// time, 30 of four, 15 of eight (cuOccupancyMaxActiveClusters, 2026-11-22).
int clusters_at_once(const DeviceInfo& device, int cluster_size) {
  const int left_over = cluster_size > 2 ? 12 : 0;
  return std::max((device.multiprocessors - left_over) / cluster_size, 1);
}

// Whether all blocks of a launch run at once. Splits are offered there: elsewhere tiles fill the
// device without them.
bool fits_one_wave(const Sm90TileCounts& tiles, std::uint16_t split_k, const Query& query) {
  const double clusters = static_cast<double>(query.problem.l) * tiles.rows * tiles.columns;
  return clusters <= clusters_at_once(query.device, split_k);
}

// Whether any split may be: the largest tile of a split does not fill the device, and there is more
// k than exchanging sums costs.
bool may_split(const Sm90Extents& extents, const Query& query) {
  constexpr Sm90Tile largest{.m = 256, .n = 256, .cluster_m = 1, .cluster_n = 1, .stages = 0};
  constexpr std::int64_t shortest_k = 512;
  return query.problem.k >= shortest_k && fits_one_wave(count_tiles(extents, largest), 2, query);
}

// No tile that is offered is smaller in either extent.
constexpr Sm90Tile smallest_tile{.m = 64, .n = 16, .cluster_m = 1, .cluster_n = 1, .stages = 0};

void match_programs(const Family& family, const Query& query, const OperandRules& rules,
                    std::vector<RankedKernel>& kernels) {
  const GemmProblem& problem = query.problem;
  const Sm90Extents extents = extents_of(rules, problem);
  const Sm90Prediction prediction(problem, rules, query.device);
  const ProgramTensors tensors = program_tensors(problem.epilogue, is_turned(rules));
  const auto add = [&](const Sm90Candidate& candidate) {
    if (!candidate.has_room_for_programs) return;
    const auto tile = fit_program(candidate.tile, problem, rules, tensors);
    if (!tile) return;
    kernels.emplace_back(Kernel(family, rules, DesignBytes::of(*tile), problem.epilogue),
                         prediction.microseconds(*tile));
  };
  for (const Sm90Candidate& candidate : sm90_candidates(rules))
    if (fits_count(count_tiles(extents, candidate.tile), problem.l)) add(candidate);
  if (!may_split(extents, query)) return;
  for (const Sm90Candidate& candidate : sm90_split_candidates(rules))
    if (fits_one_wave(count_tiles(extents, candidate.tile), candidate.tile.split_k, query))
      add(candidate);
}

// What of a program's operands no kernel takes, where none fits.
std::string find_program_failure(const GemmProblem& problem) {
  std::string failure;
  walk_fitting_rules(problem, [&](const OperandRules& rules) {
    const ProgramTensors tensors = program_tensors(problem.epilogue, is_turned(rules));
    for (const Sm90Tile& tile : sm90_tiles(rules)) {
      if (!failure.empty()) return;
      const abi::Sm90Design design = with_program(sm90_design(rules, tile), tensors);
      failure = find_misfit(list_slab_inputs(problem, rules, design, tensors), problem.epilogue);
    }
  });
  return failure;
}

// --- source -------------------------------------------------------------------------------------

std::string_view text_of(abi::Major major) { return major == abi::Major::k ? "k" : "extent"; }

std::string_view text_of(abi::DType dtype) { return name(static_cast<DType>(dtype)); }

std::string design_text(const abi::Sm90Design& d) {
  return fmt::format(
      "{{.operand = DType::{}, .accumulator = DType::{}, .c = DType::{}, .out = DType::{},\n"
      "    .a_major = Major::{}, .b_major = Major::{},\n"
      "    .tile_m = {}, .tile_n = {}, .cluster_m = {}, .cluster_n = {},\n"
      "    .schedule = Schedule::{}, .raster = {{.along = Along::{}, .band = {}}},\n"
      "    .stages = {}, .has_c = {}, .split_k = {}, .program_bytes = {}}}",
      text_of(d.operand), text_of(d.accumulator), text_of(d.c), text_of(d.out), text_of(d.a_major),
      text_of(d.b_major), d.tile_m, d.tile_n, d.cluster_m, d.cluster_n,
      d.schedule == abi::Schedule::ping_pong ? "ping_pong" : "cooperative",
      d.raster.along == abi::Along::m ? "m" : "n", d.raster.band, d.stages, d.has_c, d.split_k,
      d.program_bytes);
}

constexpr std::string_view entry_name = "gemmery_sm90";

std::string epilogue_comment(const Kernel& kernel) {
  const bool turns = is_turned(kernel.operands());
  if (kernel.epilogue() == default_epilogue) {
    return std::string("// D = alpha * accum + beta * C") +
           (turns ? ", as D^T = B^T A^T: a is B^T, b is A^T" : "") + "\n";
  }
  return turns ? "// as D^T = B^T A^T: a is B^T, b is A^T, m and n are turned\n" : "";
}

// --- launch -------------------------------------------------------------------------------------

// Where blocks fill at most half of the multiprocessors or nearly all (sm90_params.hpp says why).
bool lets_next_begin(unsigned blocks, const DeviceInfo& device) {
  const auto multiprocessors = static_cast<unsigned>(std::max(device.multiprocessors, 1));
  return 2 * blocks <= multiprocessors || 10 * blocks >= 9 * multiprocessors;
}

abi::TensorMap encode_map(const driver::DriverApi& api, const driver::TiledTensorMap& view) {
  return std::bit_cast<abi::TensorMap>(driver::encode(api, view));
}

driver::cuda::TensorMapSwizzle swizzle_of(int pitch_bytes) {
  using Swizzle = driver::cuda::TensorMapSwizzle;
  return pitch_bytes == 128  ? Swizzle::bytes128
         : pitch_bytes == 64 ? Swizzle::bytes64
                             : Swizzle::bytes32;
}

// Strides of extents 1 are not looked at, but must keep the rules.
std::uint64_t stride_or_least(std::int64_t extent, std::int64_t bytes) {
  return extent > 1 ? static_cast<std::uint64_t>(bytes) : 16U;
}

struct TmaBox {
  int adjacent;
  int other;
};

driver::TiledTensorMap map_of(const void* data, DType dtype, const TmaView& view, TmaBox box) {
  const auto extent = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const auto side = [](int value) { return static_cast<std::uint32_t>(value); };
  driver::TiledTensorMap map{.address = data, .dtype = dtype, .rank = 3};
  map.extents = {extent(view.adjacent), extent(view.other), extent(view.batches)};
  map.byte_strides = {stride_or_least(view.other, view.stride_bytes),
                      stride_or_least(view.batches, view.batch_stride_bytes)};
  map.box = {side(box.adjacent), side(box.other), 1};
  map.swizzle = swizzle_of(box.adjacent * static_cast<int>(byte_width(dtype)));
  return map;
}

// What one copy brings of an operand: rows of a K-major tile, or 64 columns of all k, of half of
// them where two blocks share the tile.
TmaBox operand_box(abi::Major major, int extent, bool is_shared) {
  const int k = is_shared ? 32 : 64;
  return {.adjacent = 64,
          .other = major == abi::Major::k ? abi::rows_per_copy(extent, is_shared) : k};
}

// The copies of one stage of an operand.
struct StageCopies {
  TmaBox box;
  unsigned bytes;  // of all together
};

// A K-major operand that has fewer rows than its tile is brought without those that it lacks, where
// one copy brings all.
StageCopies stage_copies(abi::Major major, int tile, bool is_shared, unsigned extent) {
  StageCopies copies{.box = operand_box(major, tile, is_shared),
                     .bytes = static_cast<unsigned>(abi::operand_stage_bytes(major, tile))};
  const bool is_one_copy = major == abi::Major::k && copies.box.other == tile;
  if (is_one_copy && extent < static_cast<unsigned>(tile)) {
    copies.box.other = static_cast<int>(std::max(extent, 1U));
    copies.bytes = static_cast<unsigned>(copies.box.other * abi::sm90_swizzle_bytes);
  }
  return copies;
}

// Out or C as the kernel sees it.
abi::RowMajorMatrix rows_of(const Tensor& tensor, const MatrixType& matrix,
                            const OperandRules& rules) {
  return {.data = tensor.data(),
          .batch_stride = matrix.batch_stride,
          .row_stride = is_turned(rules) ? matrix.column_stride : matrix.row_stride};
}

// abi::Sm90ProgramParams::input, behind what the plan holds.
void append_slab_maps(const runtime::PackRequest& request, const abi::Sm90Design& design,
                      runtime::LaunchPlan& plan) {
  const GemmArguments& arguments = request.arguments;
  const OperandRules& rules = request.kernel.operands();
  const ProgramTensors tensors = program_tensors(request.kernel.epilogue(), is_turned(rules));
  const TmaBox box{.adjacent = abi::slab_columns(design), .other = abi::sm90_block_rows};
  for (const SlabInput& input : list_slab_inputs(arguments.problem(), rules, design, tensors)) {
    const Tensor& tensor = std::get<Tensor>(arguments.epilogue_operands()[input.operand].value);
    append_parameter(
        encode_map(request.driver, map_of(tensor.data(), tensor.dtype(), input.view, box)), plan);
  }
}

// One side of a product as the kernel takes it.
struct Side {
  const Tensor& tensor;
  const MatrixType& matrix;
  TmaView view;
};

}  // namespace

int Sm90Family::version() const noexcept { return sm90_version; }

// --- discovery ----------------------------------------------------------------------------------

void Sm90Family::match(const Query& query, std::vector<RankedKernel>& kernels) const {
  if (!find_type_failure(query).empty()) return;
  const GemmProblem& problem = query.problem;
  walk_fitting_rules(problem, [&](const OperandRules& rules) {
    if (problem.epilogue != default_epilogue) return match_programs(*this, query, rules, kernels);
    const Sm90Extents extents = extents_of(rules, problem);
    const Sm90Prediction prediction(problem, rules, query.device);
    const bool fits_all = fits_count(count_tiles(extents, smallest_tile), problem.l);
    const std::span<const Sm90Candidate> candidates = sm90_candidates(rules);
    kernels.reserve(kernels.size() + candidates.size());
    for (const Sm90Candidate& candidate : candidates) {
      if (!fits_all && !fits_count(count_tiles(extents, candidate.tile), problem.l)) continue;
      kernels.emplace_back(Kernel(*this, rules, DesignBytes::of(candidate.tile), problem.epilogue),
                           prediction.microseconds(candidate));
    }
    if (!may_split(extents, query)) return;
    for (const Sm90Candidate& candidate : sm90_split_candidates(rules)) {
      const Sm90TileCounts counts = count_tiles(extents, candidate.tile);
      if (!fits_one_wave(counts, candidate.tile.split_k, query)) continue;
      kernels.emplace_back(Kernel(*this, rules, DesignBytes::of(candidate.tile), problem.epilogue),
                           prediction.microseconds(candidate));
    }
  });
}

Status Sm90Family::supports(const Kernel& kernel, const Query& query) const {
  const GemmProblem& problem = query.problem;
  if (Status status = check_carried(problem); !status) return status;
  const OperandRules& rules = kernel.operands();
  std::string misfit = find_misfit(rules, problem);
  if (!misfit.empty()) return Status::fail(std::move(misfit));
  const Sm90Tile tile = sm90_tile(kernel);
  misfit = find_misfit(list_slab_inputs(problem, rules, sm90_design(kernel),
                                        program_tensors(problem.epilogue, is_turned(rules))),
                       problem.epilogue);
  if (!misfit.empty()) return Status::fail(std::move(misfit));
  if (!fits_count(count_tiles(extents_of(rules, problem), tile), problem.l)) {
    return Status::fail(
        fmt::format("out: expected at most 2147483647 tiles of {}x{}, got {} x {}x{} elements",
                    tile.m, tile.n, problem.l, problem.m, problem.n));
  }
  return Status::success();
}

void Sm90Family::explain(const Query& query, std::vector<Reason>& reasons) const {
  Reason reason{.provider = std::string(provider()),
                .family = std::string(name()),
                .design_class = {},
                .failed = find_failure(query),
                .fitting = 0,
                .nearest = {}};
  std::vector<RankedKernel> kernels;
  if (reason.failed.empty()) match(query, kernels);
  reason.fitting = static_cast<int>(kernels.size());
  if (reason.failed.empty() && kernels.empty()) reason.failed = find_program_failure(query.problem);
  reasons.push_back(std::move(reason));
}

void Sm90Family::enumerate(const std::function<void(const Kernel&)>& visit) const {
  const auto add = [&](const OperandRules& rules) {
    for (const auto tiles : {sm90_tiles(rules), sm90_split_tiles(rules)}) {
      for (const Sm90Tile& tile : tiles) visit(Kernel(*this, rules, DesignBytes::of(tile)));
    }
  };
  const auto add_types = [&](DType input, DType accumulator) {
    for (const DType out : sm90_outputs()) {
      walk_layouts(input, accumulator, out, std::nullopt, add);
      for (const DType c : sm90_outputs()) walk_layouts(input, accumulator, out, c, add);
    }
  };
  for (const DType input : sm90_inputs()) {
    for (const DType accumulator : {DType::float32, DType::float16})
      if (is_sm90_accumulator(accumulator, input)) add_types(input, accumulator);
  }
}

// --- metadata -----------------------------------------------------------------------------------

std::string Sm90Family::kernel_name(const Kernel& kernel) const { return sm90_name(kernel); }

std::optional<Kernel> Sm90Family::parse_name(std::string_view kernel_name) const {
  const auto parts = parse_sm90_name(kernel_name);
  if (!parts) return std::nullopt;
  const Kernel kernel(*this, parts->rules, DesignBytes::of(parts->tile), parts->epilogue);
  if (sm90_name(kernel) != kernel_name)
    return std::nullopt;  // another spelling of it is not its name
  return kernel;
}

std::vector<DesignField> Sm90Family::design_fields(const Kernel& kernel) const {
  const Sm90Tile tile = sm90_tile(kernel);
  return {{"instruction", "wgmma"},
          {"tile", tile_text(tile)},
          {"cluster", fmt::format("{}x{}", tile.cluster_m, tile.cluster_n)},
          {"threads", std::to_string(abi::thread_count(sm90_design(kernel)))},
          {"split_k", std::to_string(tile.split_k)},
          {"stages", std::to_string(tile.stages)},
          {"schedule", std::string(schedule_text(tile.schedule))},
          {"raster", raster_text(tile.raster)}};
}

std::span<const Target> Sm90Family::target_table(const Kernel&) const noexcept {
  return hopper_targets;
}

// --- source and launch --------------------------------------------------------------------------

Status Sm90Family::carries(const GemmProblem& problem) const { return check_carried(problem); }

runtime::EmittedSource Sm90Family::emit(const Kernel& kernel, Target) const {
  const abi::Sm90Design design = sm90_design(kernel);
  EpilogueText epilogue =
      epilogue_text(kernel, is_turned(kernel.operands()), "Sm90Params", "sm90_gemm");
  if (kernel.epilogue() != default_epilogue) {
    epilogue.parameters = fmt::format(
        "Sm90ProgramParams<{}, slab_inputs(Epilogue::input, Epilogue::inputs, "
        "stored_design(design)).count>",
        epilogue.parameters);
  }
  return {.text = fmt::format(
              "// {}\n"
              "{}"
              "#include <device/gemm/sm90.cuh>\n\n"
              "using namespace gemmery::abi;\n"
              "constexpr Sm90Design design{};\n"
              "static_assert(thread_count(design) == {} && shared_bytes(design) == {}, \"host and "
              "device disagree\");\n\n"
              "{}"
              "extern \"C\" __global__ void __launch_bounds__(thread_count(design), 1)\n"
              "{}(const __grid_constant__ {} params) {{\n"
              "    gemmery::device::{}(params);\n"
              "}}\n",
              class_line(kernel.operands()), epilogue_comment(kernel), design_text(design),
              abi::thread_count(design), abi::shared_bytes(design), epilogue.head, entry_name,
              epilogue.parameters, epilogue.call),
          .entry = std::string(entry_name),
          .max_dynamic_shared_bytes = abi::launch_shared_bytes(design),
          .options = {}};
}

void Sm90Family::pack(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const {
  const GemmArguments& arguments = request.arguments;
  const GemmProblem& problem = arguments.problem();
  const OperandRules& rules = request.kernel.operands();
  const abi::Sm90Design design = sm90_design(request.kernel);
  const Sm90Tile tile = sm90_tile(request.kernel);
  const Sm90Extents extents = extents_of(rules, problem);
  const Sm90TileCounts tiles = count_tiles(extents, tile);
  const auto batches = static_cast<unsigned>(problem.l);

  abi::Sm90Params params{};
  params.alpha = static_cast<float>(arguments.alpha());
  params.beta = static_cast<float>(arguments.beta());
  params.m = extents.rows;
  params.n = extents.columns;
  params.tile_rows = tiles.rows;
  params.tile_columns = tiles.columns;
  params.batches = batches;

  const Side a{arguments.a(), problem.a,
               view_of(rules.a, problem.a, problem.m, problem.k, problem.l)};
  const Side b{arguments.b(), problem.b,
               view_of(rules.b, problem.b, problem.k, problem.n, problem.l)};
  const Side& first = is_turned(rules) ? b : a;
  const Side& second = is_turned(rules) ? a : b;
  const void* const out = arguments.out().data();
  const StageCopies a_copies =
      stage_copies(design.a_major, design.tile_m, design.cluster_n > 1, extents.rows);
  const StageCopies b_copies =
      stage_copies(design.b_major, design.tile_n, design.cluster_m > 1, extents.columns);
  params.a_bytes = a_copies.bytes;
  params.b_bytes = b_copies.bytes;
  // With alpha = 0, A and B are not read: what is there must not reach out, not even as NaN.
  if (problem.k > 0 && arguments.alpha() != 0) {
    const unsigned k_blocks = divide_up(static_cast<unsigned>(problem.k), 64);
    params.k_blocks = divide_up(k_blocks, static_cast<unsigned>(design.split_k));
    params.a_batch_step = first.view.batches > 1 ? 1 : 0;
    params.b_batch_step = second.view.batches > 1 ? 1 : 0;
    params.a = encode_map(
        request.driver, map_of(first.tensor.data(), first.matrix.dtype, first.view, a_copies.box));
    params.b = encode_map(request.driver, map_of(second.tensor.data(), second.matrix.dtype,
                                                 second.view, b_copies.box));
  } else {
    // Maps of anything: the one block of k lies beyond them and is all zeros.
    constexpr TmaView least{8, 1, 1, 16, 16};
    params.k_blocks = 1;
    params.first_k = 1 << 30;
    params.a = encode_map(request.driver, map_of(out, problem.a.dtype, least, a_copies.box));
    params.b = encode_map(request.driver, map_of(out, problem.a.dtype, least, b_copies.box));
  }
  params.out =
      encode_map(request.driver,
                 map_of(out, problem.out.dtype,
                        view_of(rules.out, problem.out, problem.m, problem.n, problem.l),
                        {.adjacent = abi::slab_columns(design), .other = abi::sm90_block_rows}));
  params.out_rows = rows_of(arguments.out(), problem.out, rules);
  if (arguments.c()) params.c = rows_of(*arguments.c(), *problem.c, rules);
  const bool ends_in_whole_units =
      extents.columns * byte_width(problem.out.dtype) % widest_access == 0;
  params.whole_columns = ends_in_whole_units ? 0xffffffffU : extents.columns;

  // Clusters stride over tiles, so one for each that is resident covers them all.
  const int allowed = request.max_multiprocessors > 0
                          ? std::min(request.max_multiprocessors, request.device.multiprocessors)
                          : request.device.multiprocessors;
  const auto size = static_cast<unsigned>(abi::cluster_size(design));
  const auto resident =
      static_cast<unsigned>(std::min(std::max(allowed / static_cast<int>(size), 1),
                                     clusters_at_once(request.device, static_cast<int>(size))));
  const unsigned clusters = std::min(resident, tiles.rows * tiles.columns * batches);
  plan.shape.grid = {clusters * size, 1, 1};
  plan.shape.block = {static_cast<std::uint32_t>(abi::thread_count(design)), 1, 1};
  plan.shape.cluster = {size, 1, 1};
  plan.shape.shared_bytes = static_cast<std::uint32_t>(abi::launch_shared_bytes(design));
  plan.shape.is_programmatic = true;
  params.lets_next_begin = lets_next_begin(clusters * size, request.device) ? 1 : 0;
  plan.set_parameters(params);
  if (request.kernel.epilogue() != default_epilogue) {
    constexpr unsigned warps = abi::warpgroup_threads / 32;
    const abi::Sm90Design stored = abi::stored_design(design);
    const auto blocks = static_cast<unsigned>(abi::blocks_per_consumer(stored));
    const abi::RegionGrid regions{
        .rows = divide_up(extents.rows, blocks * abi::sm90_block_rows),
        .columns =
            divide_up(extents.columns, static_cast<unsigned>(abi::columns_per_consumer(stored))),
        .batches = batches,
        .column_parts = blocks * warps,
        .whole_parts = warps,
        .arrivals = 1,
        .groups = plan.shape.grid[0] * static_cast<unsigned>(abi::consumer_count(design))};
    append_epilogue_parameters(arguments, request.kernel.epilogue(), is_turned(rules), regions,
                               plan);
    append_slab_maps(request, design, plan);
  }
}

}  // namespace gemmery::templates
