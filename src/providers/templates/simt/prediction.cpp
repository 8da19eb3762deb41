// SPDX-License-Identifier: Apache-2.0
// The cost of a simt kernel's instructions other than multiply-adds, fitted to measurements.
#include "providers/templates/simt/prediction.hpp"

#include <algorithm>
#include <cmath>

namespace gemmery::templates {
namespace {

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

// The cost of copying one element to shared memory, in multiply-adds of the same arithmetic: little
// if 16 bytes are copied unchanged, more if they are transposed, decoded or loaded one by one.
// Fitted, with `own_cost` below, to 272 times on an H200 (8 tile shapes, 128^3 to 4096^3 and skinny
// outputs, 2026-11-21): the kernel that is predicted to be the fastest is 2 % slower than the
// fastest on average.
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

// Clocks for one multiply-add, including the loop and the reads of shared memory, relative to the
// peak rate.
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

// Narrow stores cost instructions in the epilogue.
double output_factor(const OperandRule& rule) { return rule.alignment == 16 ? 1.0 : 1.02; }

}  // namespace

SimtPrediction::SimtPrediction(const GemmProblem& problem, SimtArithmetic arithmetic,
                               const DeviceInfo& device)
    : model_(problem, device),
      arithmetic_(arithmetic),
      fma_per_clock_(fma_per_clock(arithmetic, device)) {}

double SimtPrediction::microseconds(const SimtTile& tile, const OperandRules& rules) const {
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

double padding_factor(const GemmProblem& problem, const SimtTile& tile) {
  const double m = static_cast<double>(problem.m);
  const double n = static_cast<double>(problem.n);
  if (m == 0 || n == 0) return 1;
  const double padded = std::ceil(m / tile.m) * tile.m * std::ceil(n / tile.n) * tile.n;
  return 1 + 0.1 * std::log2(padded / (m * n));
}

}  // namespace gemmery::templates
