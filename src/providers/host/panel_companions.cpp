// SPDX-License-Identifier: Apache-2.0
#include "providers/host/panel_companions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "device/abi/scale_layout.hpp"
#include "operation/companions.hpp"
#include "providers/host/epilogue_writer.hpp"
#include "providers/host/number.hpp"

namespace gemmery::host {
namespace {

constexpr double smallest_normal = 0x1p-126;
constexpr double largest = std::numeric_limits<float>::max();

std::int64_t block_of(std::int64_t index, std::int64_t block) {
  return block == 0 ? 0 : index / block;
}

CompanionSource source_of(const CompanionType& type, const Tensor& view, std::int64_t batch,
                          const BoundCompanions& all, std::int64_t own_k) {
  const std::int64_t k = all.all_k > 0 ? all.all_k : own_k;
  const MatrixView matrix = matrix_of(view, batch);
  const bool is_swizzled = type.layout == ScaleLayout::swizzled_128x4;
  const std::int64_t blocks = type.block.k == 0 ? 1 : (k + type.block.k - 1) / type.block.k;
  return {.dtype = matrix.dtype,
          .data = matrix.data,
          .lane_block = type.block.rows,
          .depth_block = type.block.k,
          .lane_stride = matrix.row_stride,
          .depth_stride = matrix.column_stride,
          .tiles = is_swizzled ? abi::swizzled_tiles(blocks) : 0,
          .first_lane = all.first_row,
          .first_depth = all.first_k};
}

}  // namespace

double CompanionSource::at(std::int64_t lane, std::int64_t depth) const {
  const std::int64_t row = block_of(first_lane + lane, lane_block);
  const std::int64_t column = block_of(first_depth + depth, depth_block);
  const std::int64_t index = tiles > 0 ? abi::swizzled_offset(row, column, tiles)
                                       : row * lane_stride + column * depth_stride;
  return load(dtype, data, index);
}

std::int64_t PanelCompanions::next_change(std::int64_t depth, std::int64_t end) const {
  std::int64_t next = end;
  const auto stop_at = [&](const CompanionSource& source) {
    if (source.depth_block > 0)
      next = std::min(next,
                      ((source.first_depth + depth) / source.depth_block + 1) * source.depth_block -
                          source.first_depth);
  };
  for (int i = 0; i < scale_count; ++i) stop_at(scales[static_cast<std::size_t>(i)]);
  if (zero_point) stop_at(*zero_point);
  return next;
}

double PanelCompanions::scale_at(std::int64_t lane, std::int64_t depth) const {
  double product = 1;
  for (int i = 0; i < scale_count; ++i)
    product *= scales[static_cast<std::size_t>(i)].at(lane, depth);
  return product;
}

double PanelCompanions::scale_magnitude_at(std::int64_t lane, std::int64_t depth) const {
  const double product = std::fabs(scale_at(lane, depth));
  const bool is_normal = product >= smallest_normal && product <= largest;
  return scale_count < 2 || is_normal || product == 0 ? product : infinity;
}

PanelCompanions panel_companions(const GemmArguments& arguments, bool is_a, std::int64_t batch) {
  const GemmProblem& problem = arguments.problem();
  const OperandCompanions& types = is_a ? problem.a_companions : problem.b_companions;
  const BoundCompanions& memory = is_a ? arguments.a_companions() : arguments.b_companions();
  PanelCompanions companions;
  for (std::size_t i = 0; i < types.scales.size(); ++i) {
    companions.scales[i] = source_of(types.scales[i], memory.scales[i], batch, memory, problem.k);
    ++companions.scale_count;
  }
  if (types.zero_point)
    companions.zero_point =
        source_of(*types.zero_point, *memory.zero_point, batch, memory, problem.k);
  companions.table = types.table;
  if (types.order == ElementOrder::fragments) companions.prepared_depth = problem.k;
  if (types.program)
    companions.program =
        std::make_shared<const PanelProgram>(panel_program(arguments, is_a, batch));
  return companions;
}

double decoded_magnitude(double element) noexcept {
  const double magnitude = std::fabs(element);
  if (magnitude > largest) return infinity;
  return magnitude == 0 ? 0 : std::max(magnitude, smallest_normal);
}

}  // namespace gemmery::host
