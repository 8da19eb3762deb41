// SPDX-License-Identifier: Apache-2.0
// The predicted times of sm90 kernels, by which discovery sorts.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

#include <span>

#include "model/warp_specialized_gemm.hpp"
#include "providers/templates/sm90/design.hpp"

namespace gemmery::templates {

// An offered tile, with values that every query would otherwise compute again.
struct Sm90Candidate {
  Sm90Tile tile;
  bool has_room_for_programs;  // in registers
  bool has_room_beside_sums;   // for heavy programs, too
  bool has_room_to_read;       // for programs whose threads read full tensors
  bool fits_convolutions;      // of the kind that A and B are contiguous for
  bool fits_pixels;            // dgrads by phases, wgrads with padded taps
  int stage_bytes;
  int stage_room;  // bytes, for stages and programs
  abi::StoredShare share;
  model::WarpSpecializedTerms terms;
};

// A design in the terms of the model.
model::WarpSpecializedTerms sm90_terms(const abi::Sm90Design& design) noexcept;

// The candidates of sm90_tiles, sm90_program_tiles, sm90_split_tiles and sm90_part_tiles, in the
// same order.
std::span<const Sm90Candidate> sm90_candidates(const OperandRules& rules);
std::span<const Sm90Candidate> sm90_program_candidates(const OperandRules& rules);
std::span<const Sm90Candidate> sm90_split_candidates(const OperandRules& rules);
std::span<const Sm90Candidate> sm90_part_candidates(const OperandRules& rules);
std::span<const Sm90Candidate> sm90_slice_candidates(const OperandRules& rules);
std::span<const Sm90Candidate> sm90_group_candidates(const OperandRules& rules);
std::span<const Sm90Candidate> sm90_register_candidates(const OperandRules& rules);

// Predicts the times of several designs for the same problem, which `rules` must fit.
class Sm90Prediction {
 public:
  Sm90Prediction(const GemmProblem& problem, const OperandRules& rules, const DeviceInfo& device,
                 const model::WarpSpecializedConstants& constants = {}) noexcept;
  // All designs are transposed, or none is.
  Sm90Prediction(const GemmProblem& problem, const OperandRules& rules, const DeviceInfo& device,
                 bool is_turned, const model::WarpSpecializedConstants& constants = {}) noexcept;

  // The terms of the product alone, without splits through the workspace.
  model::WarpSpecializedParts parts(const Sm90Tile& tile) const noexcept;
  // The time of one launch.
  double microseconds(const Sm90Tile& tile) const noexcept;
  double microseconds(const Sm90Candidate& candidate) const noexcept {
    return product_us(candidate.tile, candidate.terms) + copy_us_;
  }
  // The same with another number of stages than the tile's.
  double microseconds(const Sm90Candidate& candidate, int stages) const noexcept {
    return stages == candidate.tile.stages
               ? microseconds(candidate)
               : product_us(candidate.tile, candidate.terms.with_stages(stages)) + copy_us_;
  }

  // The same of groups whose sizes are known; the problem has those of average size.
  double microseconds(const Sm90Candidate& candidate, int stages,
                      const model::GroupLoad& groups) const noexcept {
    return model_.predict(candidate.terms.with_stages(stages), groups).total_us() + copy_us_;
  }

 private:
  double product_us(const Sm90Tile& tile, const model::WarpSpecializedTerms& terms) const noexcept {
    return tile.split == abi::SplitMode::none ? model_.predict(terms).total_us()
                                              : part_microseconds(tile, terms);
  }
  double part_microseconds(const Sm90Tile& tile,
                           const model::WarpSpecializedTerms& terms) const noexcept;
  double exchange_us(const Sm90Tile& tile, double slices) const noexcept;
  double requested_bytes(const Sm90Tile& tile) const noexcept;

  GemmProblem problem_;
  DeviceInfo device_;
  model::WarpSpecializedConstants constants_;
  OperandRules rules_;
  bool is_turned_;
  double copy_us_;  // of the operands that are repacked
  model::WarpSpecializedModel model_;
};

}  // namespace gemmery::templates
