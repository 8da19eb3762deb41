// SPDX-License-Identifier: Apache-2.0
// The design of an sm90 kernel in the model's words.
#include "providers/templates/gemm_sm90_prediction.hpp"

#include <array>
#include <vector>

namespace gemmery::templates {
namespace {

model::WarpSpecializedDesign describe(const abi::Sm90Design& design) noexcept {
  return {.tile_m = design.tile_m,
          .tile_n = design.tile_n,
          .tile_k = abi::tile_k(design),
          .cluster_m = design.cluster_m,
          .cluster_n = design.cluster_n,
          .stages = design.stages,
          .stage_bytes = abi::a_stage_bytes(design) + abi::b_stage_bytes(design),
          .consumers = abi::consumers_per_tile(design),
          .wgmma_columns = abi::columns_per_consumer(design),
          .is_ping_pong = design.schedule == abi::Schedule::ping_pong,
          .band_tiles = design.raster.band,
          .is_band_of_rows = design.raster.along == abi::Along::m,
          .slab_bytes = abi::slab_bytes(design),
          .split_k = design.split_k};
}

// A program needs registers beside the sums: those of a thread beyond 192, or where three consumers
// share a block's, leave too few.
bool has_room_for_programs(const abi::Sm90Design& design) noexcept {
  return abi::accumulator_registers(design) <= 192 && abi::consumer_count(design) < 3;
}

using Tiles = std::span<const Sm90Tile> (*)(const OperandRules&);

std::vector<Sm90Candidate> list_candidates(Tiles tiles, const OperandRules& rules) {
  std::vector<Sm90Candidate> candidates;
  for (const Sm90Tile& tile : tiles(rules)) {
    const abi::Sm90Design design = sm90_design(rules, tile);
    candidates.push_back({.tile = tile,
                          .has_room_for_programs = has_room_for_programs(design),
                          .terms = model::WarpSpecializedTerms(describe(design))});
  }
  return candidates;
}

using CandidateTables = std::array<std::vector<Sm90Candidate>, sm90_tile_class_count>;

CandidateTables list_candidate_tables(Tiles tiles) {
  CandidateTables tables;
  for (std::size_t index = 0; index < tables.size(); ++index)
    tables[index] = list_candidates(tiles, sm90_rules_of_class(index));
  return tables;
}

}  // namespace

std::span<const Sm90Candidate> sm90_candidates(const OperandRules& rules) {
  static const CandidateTables tables = list_candidate_tables(sm90_tiles);
  return tables[sm90_tile_class(rules)];
}

std::span<const Sm90Candidate> sm90_split_candidates(const OperandRules& rules) {
  static const CandidateTables tables = list_candidate_tables(sm90_split_tiles);
  return tables[sm90_tile_class(rules)];
}

Sm90Prediction::Sm90Prediction(const GemmProblem& problem, const OperandRules& rules,
                               const DeviceInfo& device,
                               const model::WarpSpecializedConstants& constants) noexcept
    : rules_(rules), model_(problem, is_turned(rules), device, constants) {}

model::WarpSpecializedParts Sm90Prediction::parts(const Sm90Tile& tile) const noexcept {
  return model_.predict(describe(sm90_design(rules_, tile)));
}

}  // namespace gemmery::templates
