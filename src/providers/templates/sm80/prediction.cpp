// SPDX-License-Identifier: Apache-2.0
// The time of an sm80 kernel: its mmas and the cost of everything else.
#include "providers/templates/sm80/prediction.hpp"
#include "providers/templates/conv_windows.hpp"

#include <algorithm>
#include <cmath>

#include "epilogue/cost.hpp"
#include "providers/templates/groups.hpp"

namespace gemmery::templates {
namespace {

// Multiply-adds per clock and multiprocessor of 16-bit operands accumulated in float32, dense.
// Sources: NVIDIA's data sheets (A100 312, A10 125, L40S 362, RTX 4090 165, RTX 5090 210
// TFLOP/s); the H100's are what mma.sync reaches of its peak, 0.62. Only that one has been
// measured here.
struct Rates {
  double half;     // f16, bf16
  double integer;  // int8
  double real64;   // float64, by m8n8k4
};

Rates rates_of(Target device) noexcept {
  switch (device.architecture) {
    case 80:
      return {.half = 1024, .integer = 2048, .real64 = 64};
    case 86:
    case 89:
      return {.half = 512, .integer = 1024, .real64 = 2};
    case 90:
      return {.half = 1270, .integer = 2540, .real64 = 64};
    case 120:
    case 121:
      return {.half = 512, .integer = 1024, .real64 = 2};
    default:
      return {.half = 1024, .integer = 2048, .real64 = device.architecture == 100 ? 64.0 : 2.0};
  }
}

// Share of the peak that the mainloop reaches: larger warp tiles load fewer fragments for an mma.
double efficiency_of(const Sm80Tile& tile, const OperandRules& rules, Target device,
                     double fma_per_clock) {
  const double warp_m = static_cast<double>(tile.m) / tile.warps_m;
  const double warp_n = static_cast<double>(tile.n) / tile.warps_n;
  const double fragments = 4 * (1 / warp_m + 1 / warp_n);  // 1/8 for 64x64
  // Such slow tensor cores hide everything else.
  if (fma_per_clock < 8) return 0.95;
  // 4096^3 and 8192^3 in eight tiles on an H100, within 5 % (bench/results/h100-sm80.md).
  if (rules.a.dtype == DType::float64 && device.architecture == 90)
    return 0.97 / (1 + 0.3 * fragments);
  double efficiency = 0.9 / (1 + 1.2 * fragments);
  // Instructions that decode codes share the issue slots of the mmas; an estimate.
  if (is_mixed_sm80(rules.a.dtype, rules.b.dtype)) efficiency *= 0.6;
  // Narrow copies cost instructions: copies of 4 bytes take four times as many, elements through
  // registers more.
  for (const OperandRule& rule : {rules.a, rules.b}) {
    if (rule.alignment < 4) efficiency *= 0.45;
    if (rule.alignment >= 4 && rule.alignment < 16) efficiency *= 0.75;
  }
  return efficiency;
}

// On an architecture that has a family of its own, predictions must not be too optimistic: on an
// H100 kernels take 0.8 (4096^3) to 1.8 (1000^3) of the time that the model predicts without this
// factor. No other family multiplies float64 on tensor cores.
double caution(DType a, Target device) {
  return device.architecture == 90 && a != DType::float64 ? 1.5 : 1.0;
}

// How much faster than m8n8k4 the m16n8k8 and m16n8k16 of float64 are: an H100's data sheet has
// twice the rate that m8n8k4 reaches (4096^3 in 4.46 ms, bench/results/h100-sm80.md).
double wide_double_factor(Target device) { return device.architecture == 90 ? 2 : 1; }

// Time of a product relative to a native one: three mmas, and the splitting of float32 (4096^3 and
// 1024^3 on an H100, 2026-11-23: bench/results/h100-sm80.md).
double splitting_factor(Math math) {
  switch (math) {
    case Math::tf32x3:
      return 4.6;
    case Math::bf16x3:
    case Math::f16x3:
      return 6;
    default:
      return 1;
  }
}

// Elements per clock that a thread copies one by one, through registers: operands of which not even
// 4 bytes are aligned. With 256 threads on a multiprocessor 1001^3 and 35x8457x2560 gave 2.4 of 2
// bytes, 1760x7133x1760 at least 3.8 of one byte; a convolution of three channels took 1.2 times as
// long in 256x128 with 256 threads as in 128x64 with 384 (H200, bench/results/h200-races.md).
double single_copies_per_clock(DType dtype) { return (bit_width(dtype) == 8 ? 4 : 2.4) / 256; }

// The clocks in which a multiprocessor with so many threads copies what one step of a block's
// mainloop multiplies, as far as elements are copied one by one.
double single_copy_clocks(const Sm80Tile& tile, const OperandRules& rules, double threads) {
  double clocks = 0;
  if (rules.a.alignment < 4)
    clocks += static_cast<double>(tile.m) * tile.k / single_copies_per_clock(rules.a.dtype);
  if (rules.b.alignment < 4)
    clocks += static_cast<double>(tile.n) * tile.k / single_copies_per_clock(rules.b.dtype);
  return clocks / threads;
}

// The cost of splitting a tile among blocks: their accumulators go through L2 and back, in order.
// The parts of a stream are also further apart.
constexpr double split_us = 5;
constexpr double stream_factor = 1.2;

// Time of an emitted epilogue's arithmetic, during which a block multiplies nothing. A
// multiprocessor issues 128 instructions a clock, of which 16 go to the special function unit;
// reading the epilogue's inputs takes about as many again.
double epilogue_us(const GemmProblem& problem, const DeviceInfo& device) {
  if (problem.epilogue == default_epilogue) return 0;
  const epilogue::Graph& graph = rules_of(problem.epilogue).program.graph();
  constexpr double instructions_a_clock = 128;
  constexpr double slow_a_clock = 16;
  constexpr double reading = 8;  // instructions for each element of a tensor
  const double clocks = (epilogue::count_instructions(graph) +
                         reading * static_cast<double>(problem.epilogue_operands.size())) /
                            instructions_a_clock +
                        epilogue::count_slow_results(graph) / slow_a_clock;
  const double elements = static_cast<double>(problem.l) * static_cast<double>(problem.m) *
                          static_cast<double>(problem.n);
  return elements * clocks / (std::max(device.multiprocessors, 1) * device.clock_ghz * 1e3);
}

// If memory is the bottleneck, tiles of any size have the same predicted time. This factor then
// prefers tiles with few rows for groups with few rows. It is not measured.
double padding_factor(const GemmProblem& average, const Sm80Tile& tile) {
  const auto padded = [](std::int64_t extent, int along) {
    const auto whole = static_cast<double>(std::max<std::int64_t>(extent, 1));
    return std::ceil(whole / along) * along / whole;
  };
  const double waste = padded(average.m, tile.m) * padded(average.n, tile.n) - 1;
  return 1 + 0.02 * std::min(waste, 15.0);
}

// In a dgrad with a stride each pixel uses only the taps of its phase.
GemmProblem without_phases(const GemmProblem& problem) {
  GemmProblem product = problem;
  if (problem.convolution && has_phases(*problem.convolution))
    product.k = std::max<std::int64_t>(
        product.k / std::max<std::int64_t>(count_phases(*problem.convolution), 1), 1);
  return product;
}

// The time of a grouped kernel to find its tiles; a host table is bisected in the constant cache.
double finding_us(const Sm80Tile& tile, std::int64_t groups, double tiles_of_block,
                  const DeviceInfo& device) {
  constexpr double clocks_a_bisection = 400;  // an estimate
  if (tile.groups == abi::GroupSchedule::host || tile.groups == abi::GroupSchedule::list)
    return clocks_a_bisection * tiles_of_block / (device.clock_ghz * 1e3);
  return templates::finding_us(groups, tiles_of_block,
                               tile.groups == abi::GroupSchedule::persistent, device);
}

}  // namespace

int resident_blocks(const abi::Sm80Design& design, const DeviceInfo& device) noexcept {
  const auto shared = static_cast<std::int64_t>(abi::shared_bytes(design)) + 1024;
  const int by_shared = static_cast<int>(device.shared_bytes_per_multiprocessor / shared);
  const int registers =
      std::min(255, abi::accumulators_per_thread(design) * abi::accumulator_bytes(design) / 4 + 96);
  const int by_registers = 65536 / (registers * abi::thread_count(design));
  return std::max(std::min({by_shared, by_registers, 4}), 1);
}

double mma_per_clock(DType a, DType accumulator, Math math, Target device) noexcept {
  const Rates rates = rates_of(device);
  if (a == DType::float64) return rates.real64;
  if (is_integer(a)) return rates.integer;
  if (bit_width(a) == 8) return rates.integer;
  const bool is_tf32 = math == Math::tf32 || math == Math::tf32x3;
  (void)accumulator;
  return is_tf32 ? rates.half / 2 : rates.half;
}

Sm80Prediction::Sm80Prediction(const GemmProblem& problem, const OperandRules& types,
                               const DeviceInfo& device)
    : problem_(problem.groups ? average_groups(problem) : without_phases(problem)),
      device_(device),
      groups_(problem.groups ? problem.l : 0),
      epilogue_us_(epilogue_us(problem_, device)),
      fma_per_clock_(mma_per_clock(multiplied_type(types.a.dtype, types.b.dtype), types.accumulator,
                                   types.math, device.target) /
                     splitting_factor(types.math)) {}

double Sm80Prediction::microseconds(const Sm80Tile& tile, const OperandRules& rules) const {
  const abi::Sm80Design design = sm80_design(rules, tile);
  GemmProblem problem = problem_;
  if (is_turned_sm80(rules, tile)) std::swap(problem.m, problem.n);
  const bool is_wide = abi::needs_sm90_mma(design);
  const double fma_per_clock =
      fma_per_clock_ * (is_wide ? wide_double_factor(device_.target) : 1.0);
  const int slices = tile.split == abi::SplitMode::stream ? 1 : tile.slices;
  model::TimeParts parts =
      model::TiledGemmModel(problem, device_)
          .predict({.tile_m = tile.m,
                    .tile_n = tile.n,
                    .tile_k = tile.k,
                    .k_slices = slices,
                    .threads = abi::thread_count(design),
                    .blocks_per_multiprocessor = resident_blocks(design, device_),
                    .fma_per_clock = fma_per_clock,
                    .efficiency = efficiency_of(tile, rules, device_.target, fma_per_clock),
                    .step_latency_clocks = 700.0 / (tile.stages - 1)});
  const double tiles = std::ceil(static_cast<double>(problem.m) / tile.m) *
                       std::ceil(static_cast<double>(problem.n) / tile.n) *
                       static_cast<double>(problem.l) * slices;
  const bool is_stream = tile.split == abi::SplitMode::stream;
  if (is_stream) {
    // A stream has no partly filled wave; it exchanges parts of tiles instead.
    const double waves = tiles / std::max(device_.multiprocessors, 1);
    parts.math_us *= waves / std::ceil(waves);
  }
  const double tiles_each = tiles / std::max(device_.multiprocessors, 1);
  const double steps = std::max(std::ceil(static_cast<double>(problem.k) / slices / tile.k), 1.0);
  const double waves = is_stream ? tiles_each : std::ceil(tiles_each);
  constexpr double most_threads = 384;  // more were not timed
  const double threads = std::min(
      abi::thread_count(design) * std::clamp<double>(waves, 1, resident_blocks(design, device_)),
      most_threads);
  const double copy_us =
      waves * steps * single_copy_clocks(tile, rules, threads) / (device_.clock_ghz * 1e3);
  double total =
      std::max(parts.total_us() + epilogue_us_, parts.launch_us + parts.fill_us + copy_us) *
      caution(rules.a.dtype, device_.target);
  if (is_stream) total *= stream_factor;
  if (tile.split != abi::SplitMode::none) {
    const double bytes = 2.0 * tiles * tile.m * tile.n * abi::accumulator_bytes(design);
    total += split_us + bytes / (device_.bandwidth_bytes_per_second * 2) * 1e6;
  }
  if (tile.groups != abi::GroupSchedule::none) {
    const int resident = std::max(device_.multiprocessors, 1) * resident_blocks(design, device_);
    total += finding_us(tile, groups_, std::ceil(tiles / resident), device_);
    total *= padding_factor(problem, tile);
  }
  return rules.out.alignment == 16 ? total : total * 1.05;
}

}  // namespace gemmery::templates
