// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/random_convolutions.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace gemmery::conformance {
namespace {

// Channels of a group: any number, or a multiple of all operands' access widths.
std::int64_t draw_channels(const OperandRules& rules, Choices& choices) {
  std::int64_t unit = 1;
  const auto widen = [&](const OperandRule& rule) {
    if (rule.alignment > byte_width(rule.dtype))
      unit = std::max<std::int64_t>(unit, rule.alignment);
  };
  widen(rules.a);
  widen(rules.b);
  widen(rules.out);
  if (rules.has_c) widen(rules.c);
  return unit == 1 ? choices.between(1, 20) : unit * choices.between(1, 3);
}

// One dimension, as in a problem line.
struct Dimension {
  std::int64_t image, filter, lower, upper, stride, dilation;
};
Dimension draw_dimension(bool is_strided, Choices& choices) {
  Dimension one{.image = 0,
                .filter = choices.between(1, 3),
                .lower = choices.between(0, 2),
                .upper = choices.between(0, 2),
                .stride = is_strided && choices.percent(50) ? choices.between(2, 3) : 1,
                .dilation = choices.percent(30) ? 2 : 1};
  const std::int64_t reach = one.dilation * (one.filter - 1) + 1;
  const std::int64_t least = std::max<std::int64_t>(1, reach - one.lower - one.upper);
  one.image = least + choices.between(0, 6);
  return one;
}

// Uses the taps and stride for which a kernel is specialised, if it is.
void take_own_filter(const Kernel& kernel, Dimension& one) {
  const auto number = [&](std::string_view field) {
    const std::string_view value = kernel.metadata().design_value(field);
    return value.empty() || value == "any" ? 0 : value.front() - '0';
  };
  const std::int64_t taps = number("filter_width");
  if (taps == 0) return;
  one.filter = taps;
  one.dilation = 1;
  one.image = std::max(one.image, taps);
  if (kernel.metadata().design_value("convolution") != "dgrad")
    one.stride = number("filter_stride");
}

std::string operand_text(std::string_view name, DType dtype) {
  return fmt::format(" {}={}", name, alias(dtype));
}

}  // namespace

GemmProblem random_convolution(const Kernel& kernel, Choices& choices) {
  constexpr std::array<std::string_view, 3> filter_names{"t", "r", "s"};
  const OperandRules& rules = kernel.operands();
  const std::string kind(kernel.metadata().design_value("convolution"));
  // Kernels of a number of dimensions load channels of groups, and those of wgrad, in whole stages.
  const std::string own_dimensions(kernel.metadata().design_value("dimensions"));
  const auto dimensions = own_dimensions.empty()
                              ? static_cast<std::size_t>(choices.between(1, 3))
                              : static_cast<std::size_t>(own_dimensions.front() - '0');
  const bool has_phases = !kernel.metadata().design_value("stride").empty();
  std::string extents, filter, padding, stride, dilation;
  for (std::size_t d = 0; d < dimensions; ++d) {
    Dimension one = draw_dimension(kind != "dgrad", choices);
    // At least two phases, and at most eight.
    if (has_phases && d + 2 >= dimensions)
      one.stride = choices.between(d + 1 == dimensions ? 2 : 1, 2);
    const std::string_view comma = d == 0 ? "" : ",";
    if (d + 1 == dimensions) take_own_filter(kernel, one);
    extents += fmt::format("x{}", one.image);
    filter += fmt::format(" {}={}", filter_names[3 - dimensions + d], one.filter);
    padding += fmt::format("{}{}:{}", comma, one.lower, one.upper);
    stride += fmt::format("{}{}", comma, one.stride);
    dilation += fmt::format("{}{}", comma, one.dilation);
  }
  const bool pads_taps = !kernel.metadata().design_value("taps").empty();
  const auto draw_count = [&](std::int64_t groups) {
    const bool has_stages =
        !own_dimensions.empty() && !pads_taps && (groups > 1 || kind == "wgrad");
    const auto stage = static_cast<std::int64_t>(128 / byte_width(rules.a.dtype));
    return groups * (has_stages ? stage * choices.between(1, 2) : draw_channels(rules, choices));
  };
  std::int64_t groups = choices.percent(25) ? choices.between(2, 3) : 1;
  // Of two groups sm90 has no more than eight phases, and no C beside them.
  if (has_phases) groups = rules.has_c ? 1 : std::min<std::int64_t>(groups, 2);
  std::int64_t channels = draw_count(groups);
  std::int64_t filters = draw_count(groups);
  if (kernel.metadata().design_value("groups") == "depthwise") {
    groups = channels = choices.percent(60) ? 8 * choices.between(1, 4) : choices.between(2, 20);
    filters = channels * (choices.percent(70) ? 1 : choices.between(2, 3));
  }
  std::string line =
      fmt::format("conv{}d_{} {}{}x{} k={}{} pad={} stride={} dilation={} groups={}{}", dimensions,
                  kind, choices.between(1, 3), extents, channels, filters, filter, padding, stride,
                  dilation, groups, choices.percent(20) ? " mode=convolution" : "");
  line += operand_text("a", rules.a.dtype) + operand_text("b", rules.b.dtype) +
          operand_text("out", rules.out.dtype) + operand_text("acc", rules.accumulator);
  if (rules.has_c) line += operand_text("c", rules.c.dtype);
  GemmProblem problem = parse_problem(line).problem;
  problem.math = rules.math;
  return problem;
}

}  // namespace gemmery::conformance
