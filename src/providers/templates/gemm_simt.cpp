// SPDX-License-Identifier: Apache-2.0
// The simt family: which kernels serve a query and how fast, why others do not, their source and
// launches.
#include "providers/templates/gemm_simt.hpp"

#include <gemmery/error.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "device/abi/simt_params.hpp"
#include "kernel/rules.hpp"
#include "model/tiled_gemm.hpp"
#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/gemm_simt_design.hpp"
#include "providers/templates/name_words.hpp"

namespace gemmery::templates {
namespace {

// Code for one of them runs on every later device of its major version.
constexpr Target targets_from_sm80[] = {{80}, {86}, {89}, {90}, {100}, {103}, {110}, {120}, {121}};
constexpr std::span<const Target> all_targets = targets_from_sm80;

bool runs_anywhere_on(std::span<const Target> targets, const DeviceInfo& device) {
  return std::ranges::any_of(targets,
                             [&](Target target) { return runs_on(target, device.target); });
}

// --- constraints --------------------------------------------------------------------------------

bool contains(std::span<const DType> dtypes, DType dtype) {
  return std::ranges::find(dtypes, dtype) != dtypes.end();
}

// The first constraint that the whole family fails, in words; empty where it serves the query.
std::string find_failure(const Query& query) {
  const GemmProblem& problem = query.problem;
  const Target device = query.device.target;
  if (device.is_cpu()) return "device: expected a GPU, got the CPU";
  if (!runs_anywhere_on(all_targets, query.device)) {
    return fmt::format("target: expected {} to {}, got {}", to_string(all_targets.front()),
                       to_string(all_targets.back()), to_string(device));
  }
  const auto arithmetic = simt_arithmetic(problem.a.dtype, problem.b.dtype, problem.accumulator);
  if (!arithmetic) {
    return fmt::format(
        "accumulator: expected float32 for floats of up to 32 bits, float64 for float64 times "
        "float64, int32 for 8-bit integers, got {} for {} times {}",
        name(problem.accumulator), name(problem.a.dtype), name(problem.b.dtype));
  }
  const auto outputs = simt_outputs(*arithmetic);
  if (!contains(outputs, problem.out.dtype)) {
    return fmt::format("out: expected one of {}, got {}", list_names(outputs),
                       name(problem.out.dtype));
  }
  if (problem.c && !contains(outputs, problem.c->dtype)) {
    return fmt::format("C: expected one of {}, got {}", list_names(outputs),
                       name(problem.c->dtype));
  }
  if (problem.math != Math::native)
    return fmt::format("math: expected native, got {}", name(problem.math));
  return {};
}

bool fits_operand(const OperandRule& rule, const MatrixType& matrix, std::int64_t rows,
                  std::int64_t columns) {
  if (kernel::run_alignment(rule.layout, matrix, rows, columns) % rule.alignment != 0) return false;
  if (rule.layout == LayoutRule::row) return columns <= 1 || matrix.column_stride == 1;
  if (rule.layout == LayoutRule::column) return rows <= 1 || matrix.row_stride == 1;
  return true;
}

// Whether out (or C) consists of whole runs of what one access moves.
bool holds_whole_runs(const OperandRule& rule, const SimtTile& tile, SimtArithmetic arithmetic,
                      const GemmProblem& problem) {
  const std::int64_t extent = rule.layout == LayoutRule::row ? problem.n : problem.m;
  return extent % simt_run_elements(rule, tile, arithmetic) == 0;
}

// Whether the tiles of one matrix can be counted.
bool fits_grid(const SimtTile& tile, const GemmProblem& problem) {
  return abi::fits_grid(abi::tiles_along(static_cast<unsigned>(problem.m), tile.m),
                        abi::tiles_along(static_cast<unsigned>(problem.n), tile.n));
}

// Keeps the rules of a list that one operand of the problem fits.
template <std::size_t count>
struct FittingRules {
  std::array<OperandRule, count> rules;
  std::size_t size = 0;

  FittingRules(const std::array<OperandRule, count>& all, const MatrixType& matrix,
               std::int64_t rows, std::int64_t columns) {
    for (const OperandRule& rule : all) {
      if (fits_operand(rule, matrix, rows, columns)) rules[size++] = rule;
    }
  }
  std::span<const OperandRule> span() const { return {rules.data(), size}; }
};

// --- predictions --------------------------------------------------------------------------------

// Multiply-adds per clock and multiprocessor. Four products of 8-bit integers are one dp4a.
double fma_per_clock(SimtArithmetic arithmetic, const DeviceInfo& device) {
  switch (arithmetic) {
    case SimtArithmetic::f32:
      return device.fma_f32_per_clock;
    case SimtArithmetic::f64:
      return device.fma_f64_per_clock;
    case SimtArithmetic::integer:
      return 4.0 * device.fma_int_per_clock;
  }
  return 1;
}

int threads_of(const SimtTile& tile) {
  return tile.m / tile.thread_m * (tile.n / tile.thread_n) * tile.k_slices;
}

// What one element costs on its way to shared memory, in multiply-adds of the same arithmetic:
// alone where 16 bytes go there as they are, more where they are transposed, decoded or come one by
// one. Fitted, with `own_cost` below, to 272 times on an H200 (8 shapes of tile, 128^3 to 4096^3
// and skinny outputs, 2026-11-21): the kernel predicted first is 2 % slower than the fastest on
// average.
struct CopyCosts {
  double whole;       // 16 bytes along the tile's edge
  double transposed;  // along k
  double single;      // element by element
};

CopyCosts copy_costs(DType dtype) {
  switch (bit_width(dtype)) {
    case 64:
      return {.whole = 10, .transposed = 16, .single = 18};
    case 32:
      return {.whole = 14, .transposed = 25, .single = 28};
    case 16:
      return {.whole = 24, .transposed = 28, .single = 40};
    default:
      return is_integer(dtype) ? CopyCosts{.whole = 25, .transposed = 11, .single = 40}
                               : CopyCosts{.whole = 35, .transposed = 40, .single = 50};
  }
}

double copy_cost(const OperandRule& rule, LayoutRule along_edge) {
  const CopyCosts costs = copy_costs(rule.dtype);
  const bool is_wide = rule.alignment == 16;
  if (rule.layout == LayoutRule::any || (!is_wide && bit_width(rule.dtype) < 32))
    return costs.single;
  return is_wide && rule.layout == along_edge ? costs.whole : costs.transposed;
}

// Clocks for one multiply-add, loop and reads of shared memory included, in units of the peak's.
double own_cost(SimtArithmetic arithmetic) {
  switch (arithmetic) {
    case SimtArithmetic::f32:
      return 1.08;
    case SimtArithmetic::f64:
      return 1.25;
    case SimtArithmetic::integer:
      return 1.0;
  }
  return 1;
}

// An element of A is multiplied with the tile's n columns, one of B with its m rows.
double efficiency_of(const SimtTile& tile, const OperandRules& rules, SimtArithmetic arithmetic) {
  return 1 / (own_cost(arithmetic) + copy_cost(rules.a, LayoutRule::column) / tile.n +
              copy_cost(rules.b, LayoutRule::row) / tile.m);
}

// Work on rows and columns beyond the matrix is lost even where arithmetic is not what takes the
// time.
double padding_factor(const GemmProblem& problem, const SimtTile& tile) {
  const double m = static_cast<double>(problem.m);
  const double n = static_cast<double>(problem.n);
  if (m == 0 || n == 0) return 1;
  const double padded = std::ceil(m / tile.m) * tile.m * std::ceil(n / tile.n) * tile.n;
  return 1 + 0.1 * std::log2(padded / (m * n));
}

// Narrow stores cost instructions at the end.
double output_factor(const OperandRule& rule) { return rule.alignment == 16 ? 1.0 : 1.02; }

// Predicts one kernel after another on the same problem.
class SimtPrediction {
 public:
  SimtPrediction(const GemmProblem& problem, SimtArithmetic arithmetic, const DeviceInfo& device)
      : model_(problem, device),
        arithmetic_(arithmetic),
        fma_per_clock_(fma_per_clock(arithmetic, device)) {}

  double microseconds(const SimtTile& tile, const OperandRules& rules) const {
    const int threads = threads_of(tile);
    return model_
               .predict({.tile_m = tile.m,
                         .tile_n = tile.n,
                         .tile_k = tile.k,
                         .threads = threads,
                         .blocks_per_multiprocessor = std::max(512 / threads, 1),
                         .fma_per_clock = fma_per_clock_,
                         .efficiency = efficiency_of(tile, rules, arithmetic_),
                         .step_latency_clocks = 700.0 / (tile.stages - 1)})
               .total_us() *
           output_factor(rules.out);
  }

 private:
  model::TiledGemmModel model_;
  SimtArithmetic arithmetic_;
  double fma_per_clock_;
};

// --- walking the space --------------------------------------------------------------------------

// C is read in the runs in which out is written, so a C of the other layout is no better than one
// of any layout.
bool is_useful(const OperandRule& c, const OperandRule& out) {
  return c.layout == out.layout || c.layout == LayoutRule::any;
}

// Calls visit(rules, tile) for every useful combination of the given rules and tiles.
template <class Visit>
void walk(std::span<const OperandRule> a, std::span<const OperandRule> b,
          std::span<const OperandRule> out, std::span<const OperandRule> c, DType accumulator,
          std::span<const SimtTile> tiles, Visit&& visit) {
  OperandRules rules{
      .a = {}, .b = {}, .c = {}, .out = {}, .accumulator = accumulator, .has_c = !c.empty()};
  constexpr OperandRule none{};
  const std::span<const OperandRule> c_or_none = c.empty() ? std::span(&none, 1) : c;
  for (const SimtTile& tile : tiles) {
    for (const OperandRule& a_rule : a) {
      rules.a = a_rule;
      for (const OperandRule& b_rule : b) {
        rules.b = b_rule;
        for (const OperandRule& out_rule : out) {
          rules.out = out_rule;
          for (const OperandRule& c_rule : c_or_none) {
            if (rules.has_c && !is_useful(c_rule, out_rule)) continue;
            rules.c = c_rule;
            visit(rules, tile);
          }
        }
      }
    }
  }
}

DType accumulator_of(SimtArithmetic arithmetic) {
  switch (arithmetic) {
    case SimtArithmetic::f32:
      return DType::float32;
    case SimtArithmetic::f64:
      return DType::float64;
    case SimtArithmetic::integer:
      return DType::int32;
  }
  return DType::float32;
}

// --- source -------------------------------------------------------------------------------------

std::string_view text_of(abi::Contiguity contiguity) {
  switch (contiguity) {
    case abi::Contiguity::none:
      return "none";
    case abi::Contiguity::row_major:
      return "row_major";
    case abi::Contiguity::column_major:
      return "column_major";
  }
  return "none";
}

std::string_view text_of(abi::DType dtype) { return name(static_cast<DType>(dtype)); }

std::string design_text(const abi::SimtDesign& d) {
  return fmt::format(
      "{{.a = DType::{}, .b = DType::{}, .c = DType::{}, .out = DType::{}, .accumulator = "
      "DType::{},\n"
      "    .a_contiguity = Contiguity::{}, .b_contiguity = Contiguity::{}, .c_contiguity = "
      "Contiguity::{}, .out_contiguity = Contiguity::{},\n"
      "    .a_vector_bytes = {}, .b_vector_bytes = {}, .c_vector_bytes = {}, .out_vector_bytes = "
      "{},\n"
      "    .tile_m = {}, .tile_n = {}, .tile_k = {}, .thread_m = {}, .thread_n = {}, .k_slices = "
      "{}, .stages = {}, .has_c = {}}}",
      text_of(d.a), text_of(d.b), text_of(d.c), text_of(d.out), text_of(d.accumulator),
      text_of(d.a_contiguity), text_of(d.b_contiguity), text_of(d.c_contiguity),
      text_of(d.out_contiguity), d.a_vector_bytes, d.b_vector_bytes, d.c_vector_bytes,
      d.out_vector_bytes, d.tile_m, d.tile_n, d.tile_k, d.thread_m, d.thread_n, d.k_slices,
      d.stages, d.has_c);
}

constexpr std::string_view entry_name = "gemmery_simt";

// --- launch -------------------------------------------------------------------------------------

// Strides of extents 1 say nothing, and the copies' addresses beyond k must be aligned, too, though
// nothing is read there.
std::int64_t stride_or_zero(const Tensor& view, int dimension) {
  return view.extent(dimension) > 1 ? view.stride(dimension) : 0;
}

abi::SimtMatrix to_abi(const Tensor& view) {
  return {.data = view.data(),
          .batch_stride = stride_or_zero(view, 0),
          .row_stride = stride_or_zero(view, 1),
          .column_stride = stride_or_zero(view, 2)};
}

}  // namespace

int SimtFamily::version() const noexcept { return simt_version; }

// --- discovery ----------------------------------------------------------------------------------

void SimtFamily::match(const Query& query, std::vector<RankedKernel>& kernels) const {
  if (!find_failure(query).empty()) return;
  const GemmProblem& problem = query.problem;
  const SimtArithmetic arithmetic =
      *simt_arithmetic(problem.a.dtype, problem.b.dtype, problem.accumulator);
  const FittingRules a(simt_input_rules(problem.a.dtype), problem.a, problem.m, problem.k);
  const FittingRules b(simt_input_rules(problem.b.dtype), problem.b, problem.k, problem.n);
  const FittingRules out(simt_output_rules(problem.out.dtype), problem.out, problem.m, problem.n);
  const MatrixType& c_matrix = problem.c ? *problem.c : problem.out;
  const FittingRules c(simt_output_rules(c_matrix.dtype), c_matrix, problem.m, problem.n);
  const std::span<const OperandRule> c_rules =
      problem.c ? c.span() : std::span<const OperandRule>{};
  const SimtPrediction prediction(problem, arithmetic, query.device);
  for (const SimtTile& tile : simt_tiles(arithmetic)) {
    if (!fits_grid(tile, problem)) continue;
    const double padding = padding_factor(problem, tile);
    const DesignBytes design = DesignBytes::of(tile);
    const auto add = [&](const OperandRules& rules, const SimtTile&) {
      if (!holds_whole_runs(rules.out, tile, arithmetic, problem)) return;
      if (rules.has_c && !holds_whole_runs(rules.c, tile, arithmetic, problem)) return;
      kernels.emplace_back(Kernel(*this, rules, design, problem.epilogue),
                           prediction.microseconds(tile, rules) * padding);
    };
    walk(a.span(), b.span(), out.span(), c_rules, problem.accumulator, std::span(&tile, 1), add);
  }
}

Status SimtFamily::supports(const Kernel& kernel, const Query& query) const {
  const GemmProblem& problem = query.problem;
  if (Status status = check_carried(problem); !status) return status;
  const OperandRules& rules = kernel.operands();
  const SimtTile tile = simt_tile(kernel);
  const auto arithmetic = *simt_arithmetic(rules.a.dtype, rules.b.dtype, rules.accumulator);
  const auto check = [&](const char* operand, const OperandRule& rule) {
    if (holds_whole_runs(rule, tile, arithmetic, problem)) return Status::success();
    return Status::fail(fmt::format("{}: expected {} a multiple of {} for vector stores, got {}",
                                    operand, rule.layout == LayoutRule::row ? "N" : "M",
                                    simt_run_elements(rule, tile, arithmetic),
                                    rule.layout == LayoutRule::row ? problem.n : problem.m));
  };
  if (!fits_grid(tile, problem)) {
    return Status::fail(
        fmt::format("out: expected at most 2147483647 tiles of {}x{}, got {}x{} elements", tile.m,
                    tile.n, problem.m, problem.n));
  }
  if (Status status = check("out", rules.out); !status) return status;
  return rules.has_c ? check("C", rules.c) : Status::success();
}

void SimtFamily::explain(const Query& query, std::vector<Reason>& reasons) const {
  Reason reason{.provider = std::string(provider()),
                .family = std::string(name()),
                .design_class = {},
                .failed = find_failure(query),
                .fitting = 0,
                .nearest = {}};
  std::vector<RankedKernel> kernels;
  if (!reason.failed.empty()) {
    // The same operands in the arithmetic that the family has for them.
    GemmProblem served = query.problem;
    served.accumulator = default_accumulator(served.a.dtype, served.b.dtype);
    served.math = Math::native;
    match({served, query.device}, kernels);
    std::ranges::sort(kernels, {}, &RankedKernel::predicted_us);
    for (std::size_t i = 0; i < std::min<std::size_t>(kernels.size(), 3); ++i)
      reason.nearest.push_back(kernels[i]);
    reasons.push_back(std::move(reason));
    return;
  }
  match(query, kernels);
  const GemmProblem& problem = query.problem;
  for (const SimtTile& tile :
       simt_tiles(*simt_arithmetic(problem.a.dtype, problem.b.dtype, problem.accumulator))) {
    Reason of_tile = reason;
    of_tile.design_class = tile_text(tile);
    of_tile.fitting = static_cast<int>(std::ranges::count_if(
        kernels, [&](const RankedKernel& one) { return simt_tile(one) == tile; }));
    reasons.push_back(std::move(of_tile));
  }
}

void SimtFamily::enumerate(const std::function<void(const Kernel&)>& visit) const {
  constexpr DType floats[] = {DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn,
                              DType::float8_e5m2};
  constexpr DType doubles[] = {DType::float64};
  constexpr DType bytes[] = {DType::int8, DType::uint8};
  const auto walk_types = [&](SimtArithmetic arithmetic, std::span<const DType> inputs) {
    const auto add = [&](const OperandRules& rules, const SimtTile& tile) {
      visit(Kernel(*this, rules, DesignBytes::of(tile)));
    };
    const auto outputs = simt_outputs(arithmetic);
    for (const DType a : inputs) {
      for (const DType b : inputs) {
        for (const DType out : outputs) {
          const auto a_rules = simt_input_rules(a);
          const auto b_rules = simt_input_rules(b);
          const auto out_rules = simt_output_rules(out);
          walk(a_rules, b_rules, out_rules, {}, accumulator_of(arithmetic), simt_tiles(arithmetic),
               add);
          for (const DType c : outputs) {
            const auto c_rules = simt_output_rules(c);
            walk(a_rules, b_rules, out_rules, c_rules, accumulator_of(arithmetic),
                 simt_tiles(arithmetic), add);
          }
        }
      }
    }
  };
  walk_types(SimtArithmetic::f32, floats);
  walk_types(SimtArithmetic::f64, doubles);
  walk_types(SimtArithmetic::integer, bytes);
}

// --- metadata -----------------------------------------------------------------------------------

std::string SimtFamily::kernel_name(const Kernel& kernel) const { return simt_name(kernel); }

std::optional<Kernel> SimtFamily::parse_name(std::string_view kernel_name) const {
  const auto parts = parse_simt_name(kernel_name);
  if (!parts) return std::nullopt;
  const Kernel kernel(*this, parts->rules, DesignBytes::of(parts->tile), parts->epilogue);
  if (simt_name(kernel) != kernel_name)
    return std::nullopt;  // another spelling of it is not its name
  return kernel;
}

std::vector<DesignField> SimtFamily::design_fields(const Kernel& kernel) const {
  const SimtTile tile = simt_tile(kernel);
  return {{"instruction", kernel.operands().accumulator == DType::int32 ? "dp4a" : "fma"},
          {"tile", tile_text(tile)},
          {"thread_tile", fmt::format("{}x{}", tile.thread_m, tile.thread_n)},
          {"threads", std::to_string(threads_of(tile))},
          {"k_slices", std::to_string(tile.k_slices)},
          {"stages", std::to_string(tile.stages)}};
}

std::span<const Target> SimtFamily::target_table(const Kernel&) const noexcept {
  return all_targets;
}

// --- source and launch --------------------------------------------------------------------------

Status SimtFamily::carries(const GemmProblem& problem) const { return check_carried(problem); }

runtime::EmittedSource SimtFamily::emit(const Kernel& kernel, Target) const {
  const abi::SimtDesign design = simt_design(kernel);
  const bool is_default = kernel.epilogue() == default_epilogue;
  const EpilogueText epilogue = epilogue_text(kernel, false, "SimtParams", "simt_gemm");
  // A program wants registers of its own: what two blocks leave each other would be spilled.
  const std::string_view blocks = is_default ? "least_blocks_per_multiprocessor(design)" : "1";
  return {.text = fmt::format(
              "// {}\n"
              "{}"
              "#include <device/gemm/simt.cuh>\n\n"
              "using namespace gemmery::abi;\n"
              "constexpr SimtDesign design{};\n"
              "static_assert(thread_count(design) == {} && shared_bytes(design) == {}, \"host and "
              "device disagree\");\n\n"
              "{}"
              "extern \"C\" __global__ void\n"
              "__launch_bounds__(thread_count(design), {})\n"
              "{}(const __grid_constant__ {} params) {{\n"
              "    gemmery::device::{}(params);\n"
              "}}\n",
              class_line(kernel.operands()), is_default ? "// D = alpha * accum + beta * C\n" : "",
              design_text(design), abi::thread_count(design), abi::shared_bytes(design),
              epilogue.head, blocks, entry_name, epilogue.parameters, epilogue.call),
          .entry = std::string(entry_name),
          .max_dynamic_shared_bytes = abi::shared_bytes(design),
          .options = {}};
}

void SimtFamily::pack(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const {
  const GemmArguments& arguments = request.arguments;
  const GemmProblem& problem = arguments.problem();
  const abi::SimtDesign design = simt_design(request.kernel);
  const auto m = static_cast<unsigned>(problem.m);
  const auto n = static_cast<unsigned>(problem.n);
  const unsigned tile_rows = abi::tiles_along(m, design.tile_m);
  const unsigned tile_columns = abi::tiles_along(n, design.tile_n);
  const auto batches = static_cast<unsigned>(problem.l);
  plan.set_parameters(abi::SimtParams{
      .a = to_abi(arguments.a()),
      .b = to_abi(arguments.b()),
      .c = arguments.c() ? to_abi(*arguments.c()) : abi::SimtMatrix{},
      .out = to_abi(arguments.out()),
      .alpha = arguments.alpha(),
      .beta = arguments.beta(),
      .m = m,
      .n = n,
      // With alpha = 0, A and B are not read: what is there must not reach out, not even as NaN.
      .k = arguments.alpha() == 0 ? 0U : static_cast<unsigned>(problem.k),
      .tile_rows = tile_rows,
      .tile_columns = tile_columns,
      .batches = batches});
  if (request.kernel.epilogue() != default_epilogue) {
    const abi::RegionGrid regions{.rows = tile_rows,
                                  .columns = tile_columns,
                                  .batches = batches,
                                  .column_parts = 1,
                                  .whole_parts = 1,
                                  .arrivals = 1,
                                  .groups = 0};
    append_epilogue_parameters(arguments, request.kernel.epilogue(), false, regions, plan);
  }
  // Blocks stride over tiles and batches, so one block per allowed multiprocessor covers them all.
  const unsigned limit = request.max_multiprocessors > 0
                             ? static_cast<unsigned>(request.max_multiprocessors)
                             : 0x7fffffffU;
  const abi::SimtGrid grid = abi::simt_grid(tile_rows * tile_columns, batches, limit);
  plan.shape.grid = {grid.x, grid.y, 1};
  plan.shape.block = {static_cast<std::uint32_t>(abi::thread_count(design)), 1, 1};
  plan.shape.shared_bytes = static_cast<std::uint32_t>(abi::shared_bytes(design));
}

}  // namespace gemmery::templates
