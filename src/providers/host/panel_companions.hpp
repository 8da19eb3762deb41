// SPDX-License-Identifier: Apache-2.0
// The scales and the zero point of a matrix while it is packed: lanes are rows of A, columns of B.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include <gemmery/arguments.hpp>
#include <gemmery/dtype.hpp>

#include "providers/host/panel_program.hpp"

namespace gemmery::host {

// One of them. A block of 0 reaches over the whole extent.
struct CompanionSource {
  DType dtype = DType::float32;
  const void* data = nullptr;
  std::int64_t lane_block = 0, depth_block = 0;
  std::int64_t lane_stride = 0, depth_stride = 0;  // from block to block
  std::int64_t tiles = 0;                          // along k if it is swizzled, otherwise 0
  // Of the matrix, where blocks count from others: a part of rows or k that groups share.
  std::int64_t first_lane = 0, first_depth = 0;

  double at(std::int64_t lane, std::int64_t depth) const;
};

struct PanelCompanions {
  std::array<CompanionSource, 2> scales;
  int scale_count = 0;
  std::optional<CompanionSource> zero_point;
  std::optional<CodeTable> table;
  std::int64_t prepared_depth = 0;  // the extent of k of prepared elements, otherwise 0
  std::shared_ptr<const PanelProgram> program = {};

  bool are_used() const noexcept {
    return scale_count > 0 || zero_point || table || prepared_depth > 0 || program != nullptr;
  }
  // The roundings of an element that is decoded.
  int rounding_count() const noexcept { return scale_count + (zero_point ? 1 : 0); }

  // The number that an element stands for before it is scaled.
  double number_of(double element) const {
    return table ? table->values[static_cast<std::size_t>(element)] : element;
  }

  // The first depth after `depth` at which a value may change.
  std::int64_t next_change(std::int64_t depth, std::int64_t end) const;
  double zero_at(std::int64_t lane, std::int64_t depth) const {
    return zero_point ? zero_point->at(lane, depth) : 0;
  }
  double scale_at(std::int64_t lane, std::int64_t depth) const;
  // Infinite if kernels may get another product of the scales, because it leaves the range of
  // normal float32 numbers.
  double scale_magnitude_at(std::int64_t lane, std::int64_t depth) const;
};

// Those of A or B in matrix `batch`.
PanelCompanions panel_companions(const GemmArguments& arguments, bool is_a, std::int64_t batch);

// The magnitude of an element that a kernel computes in float32: infinite from float32's range on;
// numbers below the normal ones count as the smallest normal one, of which 2^-24 is half a unit.
double decoded_magnitude(double element) noexcept;

}  // namespace gemmery::host
