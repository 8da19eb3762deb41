// SPDX-License-Identifier: Apache-2.0
// The design of an sm90 kernel in the terms of the model.
#include "providers/templates/sm90/prediction.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "epilogue/cost.hpp"
#include "model/copy_time.hpp"
#include "operation/companions.hpp"
#include "providers/templates/class_table.hpp"
#include "providers/templates/repacking.hpp"
#include "providers/templates/sm90/constraints.hpp"
#include "providers/templates/sm90/convolution.hpp"
#include "providers/templates/sm90/phases.hpp"

namespace gemmery::templates {
namespace {

// Bytes of a stage that are read and written again: transposed operands, or split operands whole
// and half of the parts behind them, which are only written.
int transposed_bytes(const abi::Sm90Design& design) noexcept {
  if (abi::splits_operands(design.math)) {
    const int tiles = abi::a_tile_bytes(design) + abi::b_tile_bytes(design);
    return tiles + abi::behind_bytes(design.math, tiles) / 2;
  }
  return (abi::transposes_a(design) ? abi::a_stage_bytes(design) : 0) +
         (abi::transposes_b(design) ? abi::b_stage_bytes(design) : 0);
}

// The products of the parts of split operands, relative to one product of whole operands.
double products_of(const abi::Sm90Design& design) noexcept {
  const int bytes = abi::bytes_of(abi::multiplied_type(design.math, design.b));
  return 1.0 * abi::product_count(design.math) * bytes / abi::bytes_of(design.b);
}

model::WarpSpecializedDesign describe(const abi::Sm90Design& design) noexcept {
  return {
      .tile_m = design.tile_m,
      .tile_n = design.tile_n,
      .tile_k = abi::tile_k(design),
      .cluster_m = design.cluster_m,
      .cluster_n = design.cluster_n,
      .stages = design.stages,
      .stage_bytes = abi::a_tile_bytes(design) + abi::b_tile_bytes(design),
      .consumers = abi::consumers_per_tile(design),
      .wgmma_columns = abi::columns_per_consumer(design),
      .turns = abi::turn_count(design),
      .band_tiles = design.raster.band,
      .is_band_of_rows = design.raster.along == abi::Along::m,
      .staging_bytes = abi::staging_bytes(design),
      .split_k = design.split_k,
      .adds_vector = design.adds_vector,
      .transposed_bytes = transposed_bytes(design),
      .is_promoted = abi::is_promoted(design),
      .is_scaled = abi::has_scales(design),
      .promotions = std::max(abi::scale_parts(design), 1),
      .scale_products = design.scale_vectors == abi::ScaleVectors::both ? 1 : 0,
      .takes_registers = design.a_by_registers,
      .decoded_rows = abi::decodes_a(design) ? design.tile_m / abi::consumers_per_tile(design) : 0,
      .prefetches_inputs = abi::has_room_to_prefetch(design),
      .products = products_of(design)};
}

// A program needs registers beside the accumulators. Too few are left if a thread has more than 192
// accumulators, or if three consumers share a tile.
bool has_room_for_programs(const abi::Sm90Design& design) noexcept {
  return abi::accumulator_registers(design) <= 192 && abi::consumers_per_tile(design) < 3;
}

}  // namespace

model::WarpSpecializedTerms sm90_terms(const abi::Sm90Design& design) noexcept {
  return model::WarpSpecializedTerms(describe(design));
}

namespace {

// The convolutions that the contiguous indices of A and B suit. What is legal does not depend on
// their dimensions.
Sm90Form form_of_convolutions(const OperandRules& rules) {
  if (rules.a.layout != LayoutRule::row) return Sm90Form::wgrad_2d;
  return rules.b.layout == LayoutRule::row ? Sm90Form::dgrad_2d : Sm90Form::fprop_2d;
}
// Those of them that have phases or padded taps.
Sm90Form form_of_pixels(const OperandRules& rules) {
  return rules.a.layout == LayoutRule::row ? Sm90Form::strided_dgrad_2d : Sm90Form::padded_wgrad_2d;
}

bool is_legal_as(Sm90Form form, const OperandRules& rules, Sm90Tile tile) {
  tile.form = form;
  return abi::is_legal(sm90_design(rules, tile));
}

using Tiles = std::span<const Sm90Tile> (*)(const OperandRules&);

std::vector<Sm90Candidate> list_candidates(Tiles tiles, const OperandRules& rules) {
  std::vector<Sm90Candidate> candidates;
  for (const Sm90Tile& tile : tiles(rules)) {
    const abi::Sm90Design design = sm90_design(rules, tile);
    candidates.push_back(
        {.tile = tile,
         .has_room_for_programs = has_room_for_programs(design),
         .has_room_beside_sums = abi::has_room_beside_sums(design),
         .has_room_to_read = abi::has_room_to_read(design),
         .fits_convolutions = is_legal_as(form_of_convolutions(rules), rules, tile),
         .fits_pixels = is_legal_as(form_of_pixels(rules), rules, tile),
         .stage_bytes = abi::stage_bytes(design),
         .stage_room = abi::stage_room(design),
         .share = abi::stored_design(design),
         .terms = sm90_terms(design)});
  }
  return candidates;
}

using CandidateTable = ClassTable<Sm90Candidate, sm90_tile_class_count>;

std::span<const Sm90Candidate> candidates_of(CandidateTable& table, Tiles tiles,
                                             const OperandRules& rules) {
  const std::size_t index = sm90_tile_class(rules);
  return table.rows_of(index, [&] { return list_candidates(tiles, sm90_rules_of_class(index)); });
}

// --- what a program adds ------------------------------------------------------------------------

// Instructions for an element beside the program's own, counted in SASS of tiles of 128x128
// (2026-11-22): for a vector along n, read from shared memory and decoded for two rows at once; for
// a full tensor, read in staging tiles or written by plain stores; for an element of a reduction,
// with the test for the edge, and if every column is distributed over the lanes of a warp.
constexpr double vector_instructions = 0.75;
constexpr double full_input_instructions = 1.1;
constexpr double full_output_instructions = 3;
constexpr double reduction_instructions = 2.2;
constexpr double column_reduction_instructions = 8;

double count_operand(const EpilogueOperandRule& rule, bool is_turned) noexcept {
  if (rule.is_number) return 0;
  const bool is_full = rule.varies_m && rule.varies_n;
  const bool varies_along_rows = is_turned ? rule.varies_m : rule.varies_n;
  if (rule.is_output) {
    return is_full             ? full_output_instructions
           : varies_along_rows ? column_reduction_instructions
                               : reduction_instructions;
  }
  return is_full ? full_input_instructions : varies_along_rows ? vector_instructions : 0;
}

bool is_full_input(const EpilogueOperandRule& rule) noexcept {
  return !rule.is_number && !rule.is_output && rule.varies_m && rule.varies_n;
}

// Counts only tensors as large as a matrix; the others are negligible beside the product.
double count_bytes(const EpilogueOperandRule& rule, const MatrixType& matrix,
                   const GemmProblem& problem) noexcept {
  if (rule.is_number || !rule.varies_m || !rule.varies_n) return 0;
  return static_cast<double>(problem.m) * static_cast<double>(problem.n) *
         static_cast<double>(matrix.batch_stride != 0 ? problem.l : 1) * bit_width(rule.dtype) / 8;
}

model::ProgramWork program_work(const GemmProblem& problem, bool is_turned) noexcept {
  model::ProgramWork work{.bytes = operation::companion_bytes(problem)};
  if (problem.epilogue == default_epilogue) return work;
  const EpilogueRules& rules = rules_of(problem.epilogue);
  work.instructions = epilogue::count_instructions(rules.program.graph());
  int inputs = 0;
  int outputs = 0;
  for (std::size_t index = 0; index < rules.operands.size(); ++index) {
    const EpilogueOperandRule& rule = rules.operands[index];
    work.instructions += count_operand(rule, is_turned);
    work.bytes += count_bytes(rule, problem.epilogue_operands[index], problem);
    work.full_inputs += is_full_input(rule) ? 1 : 0;
    inputs += rule.is_number || rule.is_output ? 0 : 1;
    outputs += rule.is_output ? 1 : 0;
  }
  // A reduction of whole tiles allows a dense kernel, too (warpgroup_program.cuh). It is not
  // modelled: where such kernels are fastest they already rank first, and at K = 1024 it would rank
  // them before others that are 1 % faster (h200-epilogues.md).
  const int slow_results = epilogue::count_slow_results(rules.program.graph());
  work.slow_results = slow_results;
  work.is_dense = abi::is_dense(slow_results, inputs, work.full_inputs, outputs);
  work.addend_instructions = 1 + vector_instructions;
  work.is_dense_without_addend = abi::is_dense(slow_results, inputs - 1, work.full_inputs, outputs);
  return work;
}

// With the k that the kernel multiplies.
GemmProblem product_of(const OperandRules& rules, const GemmProblem& problem) {
  GemmProblem product = problem_of_product(rules, problem);
  product.k = sm90_depth(problem);
  product.n = sm90_columns(problem);
  // In a dgrad with a stride each pixel has its share of the taps.
  if (problem.convolution && has_phases(*problem.convolution))
    product.k = std::max<std::int64_t>(product.k / count_phases(*problem.convolution), 1);
  return product;
}

}  // namespace

std::span<const Sm90Candidate> sm90_candidates(const OperandRules& rules) {
  static auto* const table = new CandidateTable;
  return candidates_of(*table, sm90_tiles, rules);
}

std::span<const Sm90Candidate> sm90_program_candidates(const OperandRules& rules) {
  static auto* const table = new CandidateTable;
  return candidates_of(*table, sm90_program_tiles, rules);
}

std::span<const Sm90Candidate> sm90_split_candidates(const OperandRules& rules) {
  if (sm90_split_tiles(rules).empty()) return {};
  static auto* const table = new CandidateTable;
  return candidates_of(*table, sm90_split_tiles, rules);
}

std::span<const Sm90Candidate> sm90_part_candidates(const OperandRules& rules) {
  if (sm90_part_tiles(rules).empty()) return {};
  static auto* const table = new CandidateTable;
  return candidates_of(*table, sm90_part_tiles, rules);
}

std::span<const Sm90Candidate> sm90_slice_candidates(const OperandRules& rules) {
  if (sm90_slice_tiles(rules).empty()) return {};
  static auto* const table = new CandidateTable;
  return candidates_of(*table, sm90_slice_tiles, rules);
}

std::span<const Sm90Candidate> sm90_group_candidates(const OperandRules& rules) {
  static auto* const table = new CandidateTable;
  return candidates_of(*table, sm90_group_tiles, rules);
}

std::span<const Sm90Candidate> sm90_register_candidates(const OperandRules& rules) {
  if (sm90_register_tiles(rules).empty()) return {};
  static auto* const table = new CandidateTable;
  return candidates_of(*table, sm90_register_tiles, rules);
}

Sm90Prediction::Sm90Prediction(const GemmProblem& problem, const OperandRules& rules,
                               const DeviceInfo& device,
                               const model::WarpSpecializedConstants& constants) noexcept
    : Sm90Prediction(problem, rules, device, is_turned(rules), constants) {}

Sm90Prediction::Sm90Prediction(const GemmProblem& problem, const OperandRules& rules,
                               const DeviceInfo& device, bool is_turned,
                               const model::WarpSpecializedConstants& constants) noexcept
    : problem_(product_of(rules, problem)),
      device_(device),
      constants_(constants),
      rules_(rules),
      is_turned_(is_turned),
      copy_us_(model::copy_microseconds(bytes_moved(rules, problem), device)),
      model_(problem_, is_turned, device, constants, program_work(problem, is_turned)) {}

// --- splits through the workspace ---------------------------------------------------------------

double Sm90Prediction::microseconds(const Sm90Tile& tile) const noexcept {
  return product_us(tile, model::WarpSpecializedTerms(describe(sm90_design(rules_, tile)))) +
         copy_us_;
}

// The time until the last block has stored its accumulators and added up those of all slices.
double Sm90Prediction::exchange_us(const Sm90Tile& tile, double slices) const noexcept {
  const double rows = std::min<double>(tile.m, extents_of(is_turned_, problem_).rows);
  const double bytes =
      rows * tile.n / tile.split_k * static_cast<double>(byte_width(rules_.accumulator));
  return constants_.part_latency_us +
         (1 + slices) * bytes / (constants_.part_bytes_per_clock * model_.clock_ghz() * 1e3);
}

// Bytes that a cluster requests for all k of its tile.
double Sm90Prediction::requested_bytes(const Sm90Tile& tile) const noexcept {
  const double lines = tile.cluster_m * tile.m + tile.cluster_n * tile.n;
  return lines * static_cast<double>(problem_.k * byte_width(rules_.a.dtype));
}

double Sm90Prediction::part_microseconds(const Sm90Tile& tile,
                                         const model::WarpSpecializedTerms& terms) const noexcept {
  const Sm90TileCounts counts = count_tiles(extents_of(is_turned_, problem_), tile);
  const double tiles =
      static_cast<double>(problem_.l) * std::max(1.0, 1.0 * counts.rows * counts.columns);
  if (tile.split == abi::SplitMode::stream) {
    // Every multiprocessor has the same number of k blocks, in whole tiles and in parts of tiles.
    const double resident = clusters_at_once(device_, tile.cluster_m * tile.cluster_n);
    const double waves = tiles / resident;
    model::WarpSpecializedParts parts = model_.predict(terms);
    parts.compute_us =
        std::max(parts.compute_us * waves / std::ceil(waves),
                 tiles * requested_bytes(tile) / constants_.stream_bytes_per_ns / 1e3);
    return parts.total_us() + exchange_us(tile, std::max(2.0, 1 / waves));
  }
  // Slices are separate tiles with less k. Serial ones wait for each other.
  GemmProblem sliced = problem_;
  sliced.l *= tile.slices;
  sliced.k = (sliced.k + tile.slices - 1) / tile.slices;
  model::WarpSpecializedParts product =
      model::WarpSpecializedModel(sliced, is_turned_, device_, constants_,
                                  program_work(problem_, is_turned_))
          .predict(terms);
  // For the model, all slices are copies of one slice, which is read only once.
  product.memory_us = std::max(product.memory_us, model_.predict(terms).memory_us);
  const bool is_serial = tile.split == abi::SplitMode::serial;
  return product.total_us() +
         (is_serial ? tile.slices * exchange_us(tile, 1) : exchange_us(tile, tile.slices));
}

model::WarpSpecializedParts Sm90Prediction::parts(const Sm90Tile& tile) const noexcept {
  return model_.predict(describe(sm90_design(rules_, tile)));
}

}  // namespace gemmery::templates
