// SPDX-License-Identifier: Apache-2.0
// The loads, registers and instructions of skinny kernels, from their design.
#include "providers/templates/skinny/prediction.hpp"

#include <algorithm>
#include <cmath>

#include "model/streamed_gemm.hpp"
#include "providers/templates/epilogue_time.hpp"
#include "providers/templates/split_schedule.hpp"

namespace gemmery::templates {
namespace {

// Instructions that decode a loaded element, counted in SASS for sm_90.
double decode_instructions(abi::DType dtype) noexcept {
  switch (dtype) {
    case abi::DType::float8_e4m3fn:
      return 6;
    case abi::DType::float8_e5m2:
      return 2;
    case abi::DType::float16:
      return 1.5;
    case abi::DType::bfloat16:
      return 1;
    default:
      return 0;
  }
}

// Instructions of a thread for one load of B: to decode it, multiply it by every row, and its share
// of the reads of A and of the loop. By SASS for sm_90, for bfloat16: 21 to 81 along k, 29 to 86
// along columns.
double instructions_per_load(const abi::SkinnyDesign& design, const DeviceInfo& device) noexcept {
  constexpr double issue = 128;  // threads' instructions per clock
  const double elements = abi::load_elements(design);
  const double words = elements / abi::k_per_word(design);
  const bool is_along_k = design.b_major == abi::Major::k;
  const double loop = is_along_k ? 4 : 12;
  const double multiply = design.accumulator == abi::DType::float64
                              ? issue / std::max(device.fma_f64_per_clock, 1)
                              : 1.0;
  const double reads = is_along_k ? design.rows * words / abi::run_words(design) / design.loads
                                  : std::ceil(design.rows / 4.0) / abi::k_per_word(design);
  const double gathered = design.accumulator == abi::DType::int32 && !is_along_k ? 3 * words : 0;
  return elements * decode_instructions(design.b) + gathered + design.rows * words * multiply +
         reads + loop;
}

double element_bytes(const MatrixType& matrix) { return bit_width(matrix.dtype) / 8.0; }

double tile_count(const abi::SkinnyDesign& design, const SkinnyTile& tile,
                  const GemmProblem& problem) {
  return std::ceil(static_cast<double>(skinny_column_count(tile, problem)) /
                   abi::tile_columns(design)) *
         static_cast<double>(problem.l);
}

}  // namespace

int resident_blocks(const abi::SkinnyDesign& design, const DeviceInfo& device) noexcept {
  const auto shared = static_cast<std::int64_t>(abi::shared_bytes(design)) + 1024;
  const auto by_shared = static_cast<int>(device.shared_bytes_per_multiprocessor / shared);
  return std::clamp(by_shared, 1,
                    abi::least_blocks_per_multiprocessor(design, device.target.architecture));
}

unsigned skinny_k_blocks(const abi::SkinnyDesign& design, unsigned k) noexcept {
  return std::max(abi::tiles_along(k, abi::split_unit(design)), 1U);
}

std::vector<SkinnyTile> with_splits(const SkinnyTile& tile, const OperandRules& rules,
                                    const GemmProblem& problem, const DeviceInfo& device) {
  std::vector<SkinnyTile> all{tile};
  const abi::SkinnyDesign design = skinny_design(rules, tile);
  abi::SkinnyDesign split = design;
  split.splits_k = true;
  if (!abi::is_legal(split)) return all;  // a split takes registers, too
  const double tiles = tile_count(design, tile, problem);
  const double places =
      static_cast<double>(device.multiprocessors) * resident_blocks(design, device);
  const unsigned k_blocks = skinny_k_blocks(design, static_cast<unsigned>(problem.k));
  for (std::uint16_t slices = 2; slices <= 64; slices = static_cast<std::uint16_t>(slices * 2)) {
    if (tiles * slices > 2 * places || slices > k_blocks) break;
    all.push_back(tile);
    all.back().slices = slices;
  }
  return all;
}

double predict_skinny_us(const SkinnyTile& tile, const OperandRules& rules,
                         const GemmProblem& problem, const DeviceInfo& device) {
  const abi::SkinnyDesign design = skinny_design(rules, tile);
  const MatrixType& streamed = is_turned(tile) ? problem.a : problem.b;
  const double tiles = tile_count(design, tile, problem);
  const unsigned k_blocks = skinny_k_blocks(design, static_cast<unsigned>(problem.k));
  const unsigned slices =
      split_schedule(split_word(tile), {.tiles = 1, .k_blocks = k_blocks, .blocks = 1}).slices;
  const double streamed_bytes = static_cast<double>(problem.k) *
                                static_cast<double>(skinny_column_count(tile, problem)) *
                                static_cast<double>(problem.l) * element_bytes(streamed);
  const double matrix_bytes = streamed.batch_stride == 0 && problem.l > 0
                                  ? streamed_bytes / static_cast<double>(problem.l)
                                  : streamed_bytes;
  const double partial_bytes =
      tiles * slices * tile.rows * abi::tile_columns(design) * abi::word_bytes(design);
  return model::predict_streamed(
             {.streamed_bytes = streamed_bytes,
              .other_bytes = problem.bytes() - matrix_bytes,
              .units = tiles * slices,
              .bytes_under_way = static_cast<double>(abi::bytes_under_way(design)),
              .blocks_per_multiprocessor = static_cast<double>(resident_blocks(design, device)),
              .is_along_columns = design.b_major == abi::Major::extent,
              .panels = std::ceil(static_cast<double>(k_blocks) * abi::split_unit(design) / slices /
                                  abi::panel_k(design)),
              .late_loads =
                  static_cast<double>(abi::panel_units(design) - abi::units_ahead(design)),
              .instructions_per_byte =
                  instructions_per_load(design, device) / abi::load_bytes(design),
              .slices = static_cast<double>(slices),
              .exchanged_bytes = 2 * partial_bytes},
             device)
             .total_us() +
         epilogue_us(problem, device);
}

}  // namespace gemmery::templates
