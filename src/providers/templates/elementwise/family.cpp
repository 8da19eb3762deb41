// SPDX-License-Identifier: Apache-2.0
// The elementwise family: one kernel for each problem of K = 0 that has a program.
#include "providers/templates/elementwise/family.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include <fmt/format.h>

#include "device/abi/elementwise.hpp"
#include "device/abi/simt_design.hpp"
#include "epilogue/graph.hpp"
#include "kernel/epilogue.hpp"
#include "kernel/rules.hpp"
#include "providers/templates/constraints.hpp"
#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/name_words.hpp"
#include "runtime/portable_targets.hpp"

namespace gemmery::templates {
namespace {

constexpr int elementwise_version = 1;
constexpr std::string_view entry_name = "gemmery_elementwise";

// --- designs ------------------------------------------------------------------------------------

struct Shape {
  std::uint8_t columns;
  std::uint8_t patches;
};

// Stores of 16 bytes, or of 8 elements of narrower types, so that wider operands do not take all
// registers. One patch per thread: more gain 1 % (a copy, A + B; 10 % if rows are not aligned) and
// cost silu(A) * B 7 %, gelu 15 %, a matrix of 128x128 40 % (11 problems, 1 to 6 patches, H200,
// 2026-11-22).
Shape shape_for(DType out) noexcept {
  const int width = std::max(static_cast<int>(byte_width(out)), 2);
  return {.columns = static_cast<std::uint8_t>(16 / width), .patches = 1};
}

Shape shape_of(const Kernel& kernel) noexcept { return kernel.design().as<Shape>(); }

// The kernel computes the transpose of a column-major out.
bool is_turned(const Kernel& kernel) noexcept {
  return kernel.operands().out.layout == LayoutRule::column;
}

abi::ElementwiseDesign design_of(const Kernel& kernel) noexcept {
  const OperandRules& rules = kernel.operands();
  const Shape shape = shape_of(kernel);
  return {.out = static_cast<abi::DType>(rules.out.dtype),
          .accumulator = static_cast<abi::DType>(rules.accumulator),
          .out_vector_bytes = rules.out.layout == LayoutRule::any ? 0 : rules.out.alignment,
          .columns = shape.columns,
          .patches = shape.patches};
}

// --- constraints --------------------------------------------------------------------------------

// The first constraint that fails, in words; empty if the query is supported.
std::string find_failure(const Query& query) {
  const GemmProblem& problem = query.problem;
  std::string failure = find_device_failure(runtime::portable_targets, query.device);
  if (!failure.empty()) return failure;
  if (problem.k != 0)
    return fmt::format("K: expected 0 (a program without a matrix product), got {}", problem.k);
  if (problem.epilogue == default_epilogue)
    return "epilogue: expected a program other than alpha * accum + beta * C";
  return find_math_failure(problem);
}

// The rule of out for this layout, with the widest access that the problem allows.
OperandRule out_rule(const GemmProblem& problem, LayoutRule layout) {
  const auto alignment = layout == LayoutRule::any
                             ? static_cast<std::uint8_t>(byte_width(problem.out.dtype))
                             : kernel::run_alignment(layout, problem.out, problem.m, problem.n);
  return {.dtype = problem.out.dtype, .layout = layout, .alignment = alignment};
}

OperandRule out_rule(const GemmProblem& problem) {
  const MatrixType& out = problem.out;
  if (out.column_stride == 1 && problem.n > 1) return out_rule(problem, LayoutRule::row);
  if (out.row_stride == 1 && problem.m > 1) return out_rule(problem, LayoutRule::column);
  return out_rule(problem, LayoutRule::any);
}

OperandRule any_rule(DType dtype) {
  return {.dtype = dtype, .layout = LayoutRule::any, .alignment = 1};
}

// Memory bound: every operand is read or written once. A copy reaches 4.28 of 4.8 TB/s on an H200
// (docs/performance-simt.md); launch and memory latency take 1.9 us.
double predict_us(const Query& query) {
  constexpr double reachable_bandwidth = 0.89;
  constexpr double launch_us = 1.9;
  const double memory_us =
      query.problem.bytes() / (query.device.bandwidth_bytes_per_second * reachable_bandwidth) * 1e6;
  return launch_us + memory_us;
}

// --- source -------------------------------------------------------------------------------------

std::string design_text(const abi::ElementwiseDesign& d) {
  return fmt::format(
      "{{.out = DType::{}, .accumulator = DType::{}, .out_vector_bytes = {}, .columns = {}, "
      ".patches = {}}}",
      name(static_cast<DType>(d.out)), name(static_cast<DType>(d.accumulator)), d.out_vector_bytes,
      d.columns, d.patches);
}

// --- launch -------------------------------------------------------------------------------------

abi::EpiloguePlace place_of(const MatrixType& out, void* data, bool turned) {
  return {.data = data,
          .batch_stride = out.batch_stride,
          .row_stride = turned ? out.column_stride : out.row_stride,
          .column_stride = turned ? out.row_stride : out.column_stride};
}

abi::ElementwiseParams params_of(const Kernel& kernel, const GemmProblem& problem, void* out) {
  const bool turned = is_turned(kernel);
  const abi::ElementwiseDesign design = design_of(kernel);
  const auto m = static_cast<unsigned>(turned ? problem.n : problem.m);
  const auto n = static_cast<unsigned>(turned ? problem.m : problem.n);
  const unsigned log2 = abi::choose_row_threads(design, n);
  const unsigned columns =
      abi::tiles_along(n, static_cast<int>(abi::elementwise_tile_columns(design, log2)));
  return {.out = place_of(problem.out, out, turned),
          .m = m,
          .n = n,
          .batches = static_cast<unsigned>(problem.l),
          .tile_rows = abi::tiles_along(m, static_cast<int>(abi::elementwise_tile_rows(log2))),
          .columns = abi::make_fast_divisor(std::max(columns, 1U)),
          .log2_row_threads = log2};
}

}  // namespace

ElementwiseFamily::ElementwiseFamily()
    : TemplateFamily({.name = "elementwise",
                      .version = elementwise_version,
                      .targets = runtime::portable_targets}) {}

// --- discovery ----------------------------------------------------------------------------------

Status ElementwiseFamily::carries(const GemmProblem& problem) const {
  if (Status status = check_without_blocks(problem.epilogue); !status) return status;
  if (problem.epilogue == default_epilogue || !has_reductions(problem.epilogue))
    return Status::success();  // `explain` reports other failures
  return Status::fail("epilogue: expected a program without reductions, got \"" +
                      std::string(text(problem.epilogue).substr(0, 300)) + "\"");
}

void ElementwiseFamily::match(const Query& query, std::vector<RankedKernel>& kernels) const {
  if (!find_failure(query).empty()) return;
  const GemmProblem& problem = query.problem;
  const OperandRules rules{.a = any_rule(problem.a.dtype),
                           .b = any_rule(problem.b.dtype),
                           .c = {},
                           .out = out_rule(problem),
                           .accumulator = problem.accumulator};
  const Kernel kernel(*this, rules, DesignBytes::of(shape_for(problem.out.dtype)),
                      problem.epilogue);
  if (supports(kernel, query)) kernels.emplace_back(kernel, predict_us(query));
}

Status ElementwiseFamily::supports(const Kernel& kernel, const Query& query) const {
  if (std::string failure = find_failure(query); !failure.empty())
    return Status::fail(std::move(failure));
  const abi::ElementwiseParams params = params_of(kernel, query.problem, nullptr);
  if (abi::fits_grid(params.tile_rows, params.columns.divisor)) return Status::success();
  return Status::fail(fmt::format("out: expected at most 2147483647 tiles, got {}x{} of them",
                                  params.tile_rows, params.columns.divisor));
}

void ElementwiseFamily::explain(const Query& query, std::vector<Reason>& reasons) const {
  std::vector<RankedKernel> kernels;
  match(query, kernels);
  Reason reason = reason_of(find_failure(query));
  reason.fitting = static_cast<int>(kernels.size());
  reasons.push_back(std::move(reason));
}

// --- metadata -----------------------------------------------------------------------------------

std::string ElementwiseFamily::kernel_name(const Kernel& kernel) const {
  const Shape shape = shape_of(kernel);
  return gemm_name(fmt::format("elementwise{}", elementwise_version), kernel.operands(),
                   fmt::format("{}x{}", shape.columns, shape.patches), kernel.epilogue());
}

std::optional<Kernel> ElementwiseFamily::read_name(std::string_view text) const {
  const auto parts = read_gemm_name(text, fmt::format("elementwise{}", elementwise_version), 1);
  if (!parts || parts->epilogue == default_epilogue || parts->rules.has_c) return std::nullopt;
  const OperandRule& out = parts->rules.out;
  const bool is_legal = parts->rules.a.layout == LayoutRule::any &&
                        parts->rules.b.layout == LayoutRule::any &&
                        std::has_single_bit(out.alignment) &&
                        out.alignment >= byte_width(out.dtype) && !has_reductions(parts->epilogue);
  if (!is_legal) return std::nullopt;
  return Kernel(*this, parts->rules, DesignBytes::of(shape_for(out.dtype)), parts->epilogue);
}

std::vector<DesignField> ElementwiseFamily::design_fields(const Kernel& kernel) const {
  const Shape shape = shape_of(kernel);
  return {{"patch", fmt::format("1x{}", shape.columns)},
          {"patches", std::to_string(shape.patches)},
          {"threads", std::to_string(abi::elementwise_threads)}};
}

// --- source and launch --------------------------------------------------------------------------

runtime::EmittedSource ElementwiseFamily::emit(const Kernel& kernel, Target) const {
  const EpilogueText epilogue =
      epilogue_text(kernel, is_turned(kernel), "ElementwiseParams", "elementwise");
  return {.text = fmt::format(
              "// elementwise out={}:{}/align={} acc={}\n"
              "#include <device/gemm/elementwise.cuh>\n\n"
              "using namespace gemmery::abi;\n"
              "constexpr ElementwiseDesign design{};\n\n"
              "{}"
              "extern \"C\" __global__ void __launch_bounds__({})\n"
              "{}(const __grid_constant__ {} params) {{\n"
              "    gemmery::device::{}(params);\n"
              "}}\n",
              alias(kernel.operands().out.dtype), gemmery::name(kernel.operands().out.layout),
              kernel.operands().out.alignment, alias(kernel.operands().accumulator),
              design_text(design_of(kernel)), epilogue.head, abi::elementwise_threads, entry_name,
              epilogue.parameters, epilogue.call),
          .entry = std::string(entry_name),
          .max_dynamic_shared_bytes = 0,
          .options = {}};
}

void ElementwiseFamily::pack(const runtime::PackRequest& request, runtime::LaunchPlan& plan) const {
  const GemmArguments& arguments = request.arguments;
  const abi::ElementwiseParams params =
      params_of(request.kernel, arguments.problem(), arguments.out().data());
  plan.set_parameters(params);
  append_epilogue_parameters(arguments, request.kernel.epilogue(), is_turned(request.kernel),
                             abi::RegionGrid{}, plan);
  const unsigned limit = request.max_multiprocessors > 0
                             ? static_cast<unsigned>(request.max_multiprocessors) * 8
                             : 0x7fffffffU;
  const abi::SimtGrid grid =
      abi::simt_grid(params.tile_rows * params.columns.divisor, params.batches, limit);
  plan.shape.grid = {grid.x, grid.y, 1};
  plan.shape.block = {static_cast<std::uint32_t>(abi::elementwise_threads), 1, 1};
}

}  // namespace gemmery::templates
