// SPDX-License-Identifier: Apache-2.0
// How fast sm90 kernels are on a problem: what discovery sorts by.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

#include <span>

#include "model/warp_specialized_gemm.hpp"
#include "providers/templates/sm90/design.hpp"

namespace gemmery::templates {

// A tile that is offered, with what every query would else work out again.
struct Sm90Candidate {
  Sm90Tile tile;
  bool has_room_for_programs;  // in registers
  bool has_room_beside_sums;   // for heavy programs, too
  int stage_bytes;
  int stage_room;  // bytes, for stages and programs
  abi::StoredShare share;
  model::WarpSpecializedTerms terms;
};

// Those of sm90_tiles, sm90_program_tiles and sm90_split_tiles, in the same order.
std::span<const Sm90Candidate> sm90_candidates(const OperandRules& rules);
std::span<const Sm90Candidate> sm90_program_candidates(const OperandRules& rules);
std::span<const Sm90Candidate> sm90_split_candidates(const OperandRules& rules);

// Predicts one design after another on the same problem, which `rules` must serve.
class Sm90Prediction {
 public:
  Sm90Prediction(const GemmProblem& problem, const OperandRules& rules, const DeviceInfo& device,
                 const model::WarpSpecializedConstants& constants = {}) noexcept;

  // Of the product alone.
  model::WarpSpecializedParts parts(const Sm90Tile& tile) const noexcept;
  // Of one run.
  double microseconds(const Sm90Tile& tile) const noexcept {
    return parts(tile).total_us() + copy_us_;
  }
  double microseconds(const Sm90Candidate& candidate) const noexcept {
    return model_.predict(candidate.terms).total_us() + copy_us_;
  }
  // With other stages than those of its tile.
  double microseconds(const Sm90Candidate& candidate, int stages) const noexcept {
    return stages == candidate.tile.stages
               ? microseconds(candidate)
               : model_.predict(candidate.terms.with_stages(stages)).total_us() + copy_us_;
  }

 private:
  OperandRules rules_;
  double copy_us_;  // of the operands that are repacked
  model::WarpSpecializedModel model_;
};

}  // namespace gemmery::templates
