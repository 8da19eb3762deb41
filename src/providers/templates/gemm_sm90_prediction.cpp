// SPDX-License-Identifier: Apache-2.0
// The design of an sm90 kernel in the model's words.
#include "providers/templates/gemm_sm90_prediction.hpp"

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
          .slab_bytes = abi::slab_bytes(design)};
}

}  // namespace

Sm90Prediction::Sm90Prediction(const GemmProblem& problem, const OperandRules& rules,
                               const DeviceInfo& device,
                               const model::WarpSpecializedConstants& constants) noexcept
    : rules_(rules), model_(problem, is_turned(rules), device, constants) {}

model::WarpSpecializedParts Sm90Prediction::parts(const Sm90Tile& tile) const noexcept {
  return model_.predict(describe(sm90_design(rules_, tile)));
}

}  // namespace gemmery::templates
