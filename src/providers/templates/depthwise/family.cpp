// SPDX-License-Identifier: Apache-2.0
// The depthwise family: queries, reasons of refusals, and names.
#include "providers/templates/depthwise/family.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "providers/templates/constraints.hpp"
#include "providers/templates/conv_windows.hpp"
#include "providers/templates/depthwise/prediction.hpp"
#include "providers/templates/epilogue_parameters.hpp"
#include "providers/templates/simt/design.hpp"
#include "runtime/portable_targets.hpp"

namespace gemmery::templates {
namespace {

OperandRule by_element(DType dtype) {
  return {.dtype = dtype,
          .layout = LayoutRule::any,
          .alignment = static_cast<std::uint8_t>(byte_width(dtype))};
}

OperandRules rules_for(const GemmProblem& problem) {
  return {.a = by_element(problem.a.dtype),
          .b = by_element(problem.b.dtype),
          .c = problem.c ? by_element(problem.c->dtype) : OperandRule{},
          .out = by_element(problem.out.dtype),
          .accumulator = problem.accumulator,
          .has_c = problem.c.has_value()};
}

std::string find_reduction_failure(const GemmProblem& problem) {
  const bool is_wgrad = problem.convolution && problem.convolution->kind == ConvKind::wgrad;
  for (const abi::EpilogueTensor& output : program_tensors(problem.epilogue, false).outputs) {
    if (output.reduction == abi::Reduction::none) continue;
    if (is_wgrad || output.varies_m || !output.varies_l)
      return "epilogue: expected reductions to a value of each channel alone, beside fprop or "
             "dgrad "
             "of a depthwise convolution, got others";
  }
  return {};
}

// The first constraint that the whole family fails, in words; empty if it supports the query.
std::string find_failure(const Query& query) {
  const GemmProblem& problem = query.problem;
  if (!problem.convolution) return "operation: expected a depthwise convolution, got a GEMM";
  const auto arithmetic = simt_arithmetic(problem.a.dtype, problem.b.dtype, problem.accumulator);
  std::string failure = find_cuda_core_failure(
      arithmetic ? simt_outputs(*arithmetic) : std::span<const DType>(), problem, query.device);
  return failure.empty() ? find_reduction_failure(problem) : failure;
}

std::string find_misfit(const DepthwiseTile& tile, const OperandRules& rules,
                        const GemmProblem& problem) {
  if (!problem.convolution) return "operation: expected a depthwise convolution, got a GEMM";
  const Convolution& convolution = *problem.convolution;
  const abi::DepthwiseDesign design = depthwise_design(rules, tile);
  if (depthwise_kind(convolution) != tile.kind) {
    return fmt::format("operation: expected {}, got {}", kind_text(tile.kind),
                       kind_text(depthwise_kind(convolution)));
  }
  if (!fits_taps(tile, convolution)) {
    return fmt::format("filter: expected {} adjacent taps along width at a stride of {}, got {}",
                       tile.taps, tile.stride, convolution.filter[2]);
  }
  if (shared_bytes_of(design, problem) > abi::most_depthwise_shared_bytes)
    return fmt::format("filter: expected taps of a channel within {} bytes, got {}",
                       abi::most_depthwise_shared_bytes, kept_taps(convolution));
  const double units = static_cast<double>(channel_tiles(design, convolution)) *
                       std::max(static_cast<double>(strip_tiles(design, convolution)),
                                static_cast<double>(tap_tiles(design, convolution)) * tile.slices);
  if (units > 0x7fffffff) return too_many("tiles of strips and channels", problem);
  return {};
}

}  // namespace

DepthwiseFamily::DepthwiseFamily()
    : TemplateFamily({.name = "depthwise",
                      .version = depthwise_version,
                      .targets = runtime::portable_targets}) {}

Status DepthwiseFamily::carries(const GemmProblem& problem) const {
  std::string failure = find_reduction_failure(problem);
  return failure.empty() ? Status::success() : Status::fail(std::move(failure));
}

// --- discovery ----------------------------------------------------------------------------------

void DepthwiseFamily::match(const Query& query, std::vector<RankedKernel>& kernels) const {
  if (!find_failure(query).empty()) return;
  const GemmProblem& problem = query.problem;
  const OperandRules rules = rules_for(problem);
  for (const DepthwiseTile& tile : depthwise_tiles(rules, problem, query.device)) {
    if (!find_misfit(tile, rules, problem).empty()) continue;
    kernels.emplace_back(Kernel(*this, rules, DesignBytes::of(tile), problem.epilogue),
                         predict_depthwise_us(tile, rules, problem, query.device));
  }
}

Status DepthwiseFamily::supports(const Kernel& kernel, const Query& query) const {
  std::string misfit = find_reduction_failure(query.problem);
  if (misfit.empty())
    misfit = find_misfit(depthwise_tile(kernel), kernel.operands(), query.problem);
  return misfit.empty() ? Status::success() : Status::fail(std::move(misfit));
}

void DepthwiseFamily::explain(const Query& query, std::vector<Reason>& reasons) const {
  Reason reason = reason_of(find_failure(query));
  if (reason.failed.empty()) {
    std::vector<RankedKernel> kernels;
    match(query, kernels);
    reason.fitting = static_cast<int>(kernels.size());
    if (kernels.empty()) {
      reason.failed =
          fmt::format("filter: expected taps of a channel within {} bytes, got {}",
                      abi::most_depthwise_shared_bytes, kept_taps(*query.problem.convolution));
    }
  }
  reasons.push_back(std::move(reason));
}

// Enumerates kernels for common filters, with operands of one type and C of out's type.
void DepthwiseFamily::enumerate(const std::function<void(const Kernel&)>& visit) const {
  constexpr std::array types{DType::float32, DType::float16,       DType::bfloat16,
                             DType::float64, DType::float8_e4m3fn, DType::float8_e5m2,
                             DType::int8,    DType::uint8};
  for (const DType type : types) {
    const DType accumulator = default_accumulator(type, type);
    for (const DType out : simt_outputs(*simt_arithmetic(type, type, accumulator))) {
      for (const bool has_c : {false, true}) {
        const OperandRules rules{.a = by_element(type),
                                 .b = by_element(type),
                                 .c = has_c ? by_element(out) : OperandRule{},
                                 .out = by_element(out),
                                 .accumulator = accumulator,
                                 .has_c = has_c};
        for (const DepthwiseTile& tile : listed_depthwise_tiles(rules))
          visit(Kernel(*this, rules, DesignBytes::of(tile)));
      }
    }
  }
}

// --- metadata -----------------------------------------------------------------------------------

std::string DepthwiseFamily::kernel_name(const Kernel& kernel) const {
  return depthwise_name(kernel);
}

std::optional<Kernel> DepthwiseFamily::read_name(std::string_view text) const {
  const auto parts = parse_depthwise_name(text);
  if (!parts) return std::nullopt;
  return Kernel(*this, parts->rules, DesignBytes::of(parts->tile), parts->epilogue);
}

std::vector<DesignField> DepthwiseFamily::design_fields(const Kernel& kernel) const {
  const DepthwiseTile tile = depthwise_tile(kernel);
  const abi::DepthwiseDesign design = depthwise_design(kernel);
  const bool has_phases = tile.kind == abi::DepthwiseKind::strided_dgrad;
  const bool is_any = tile.taps == 1;
  std::vector<DesignField> fields{
      {"instruction", kernel.operands().accumulator == DType::int32 ? "imad" : "fma"},
      {"tile",
       fmt::format("{}x{}", abi::tile_strips(design) * tile.pixels, abi::tile_channels(design))},
      {"strip", fmt::format("{}x{}", tile.pixels, tile.channels)},
      {"convolution", std::string(has_phases ? "dgrad" : kind_text(tile.kind))},
      {"groups", "depthwise"},
      {"filter_width", is_any ? "any" : std::to_string(tile.taps)},
      {"filter_stride", is_any ? "any" : std::to_string(tile.stride)},
      {"split_k", split_text(split_word(tile))}};
  if (has_phases) fields.push_back({"stride", "by phases"});
  return fields;
}

}  // namespace gemmery::templates
