// SPDX-License-Identifier: Apache-2.0
// How fast an sm90 kernel is on a problem.
#include "providers/templates/gemm_sm90_prediction.hpp"

#include <algorithm>
#include <cmath>

#include "model/tiled_gemm.hpp"

namespace gemmery::templates {
namespace {

// Of one multiprocessor: m64n256k16 takes 128 clocks (probe, H200).
constexpr double fma_per_clock = 2048;

// Clocks of one wgmma of 64 rows and 16 k: the tensor cores', or those of reading A and B from
// shared memory at 128 bytes per clock.
double wgmma_clocks(double tile_n) { return std::max(tile_n / 2, (2048 + 32 * tile_n) / 128); }

// Clocks of a tile's epilogue: bytes of out through slabs, those of 32 bytes a row at half the
// rate. Fitted by eye to tiles of 8192x8192x512 and 8192x4096x512 (H200, 2026-11-21).
double store_clocks(const abi::Sm90Design& design) {
  const double bytes = static_cast<double>(design.tile_m) * design.tile_n * bytes_of(design.out);
  return bytes / (abi::slab_pitch_bytes(design) == 32 ? 16 : 32);
}

// Share of the peak while a tile is under way, its epilogue included. `has_next`: a block has more
// than one tile.
double efficiency_of(const abi::Sm90Design& design, double k_blocks, bool has_next) {
  constexpr double steps = 4;           // wgmmas along k in one stage
  constexpr double stage_clocks = 20;   // waiting for and releasing one
  constexpr double issue_clocks = 1;    // of a wgmma
  constexpr double tile_clocks = 1000;  // first stage, last sums
  const double elements = static_cast<double>(design.tile_m) * design.tile_n;
  const double ideal = k_blocks * steps * elements * 16 / fma_per_clock;
  const double math =
      k_blocks * (steps * (design.tile_m / 64.0) * (wgmma_clocks(design.tile_n) + issue_clocks) +
                  stage_clocks);
  const double store = store_clocks(design);
  if (design.schedule == abi::Schedule::cooperative || !has_next)
    return ideal / (math + tile_clocks + store);
  // The next tile is multiplied meanwhile, unless storing takes longer; each slows the other down.
  return ideal / (std::max(math, tile_clocks + store) + 150 + 0.8 * store);
}

}  // namespace

double predict_sm90_us(const GemmProblem& problem, const OperandRules& rules, const Sm90Tile& tile,
                       const DeviceInfo& device) noexcept {
  const double k_blocks = std::max(std::ceil(static_cast<double>(problem.k) / 64), 1.0);
  // Blocks of a cluster run side by side: what counts is whole clusters.
  const int m = tile.m * tile.cluster_m;
  const int n = tile.n * tile.cluster_n;
  DeviceInfo clusters = device;
  const int size = tile.cluster_m * tile.cluster_n;
  clusters.multiprocessors = std::max(device.multiprocessors / size, 1);
  const Sm90TileCounts tiles = count_tiles(extents_of(rules, problem), tile);
  const bool has_next =
      static_cast<double>(tiles.rows) * tiles.columns * static_cast<double>(problem.l) >
      clusters.multiprocessors;
  return model::predict_tiled_gemm(
             problem,
             {.tile_m = is_turned(rules) ? n : m,
              .tile_n = is_turned(rules) ? m : n,
              .tile_k = 64,
              .threads = 384,
              .blocks_per_multiprocessor = 1,
              .fma_per_clock = fma_per_clock * size,
              .efficiency = efficiency_of(sm90_design(rules, tile), k_blocks, has_next),
              .step_latency_clocks = 900.0 / std::max<int>(tile.stages - 1, 1)},
             clusters)
             .total_us() +
         (size > 1 ? 0.1 : 0.0);
}

}  // namespace gemmery::templates
