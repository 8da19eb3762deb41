// SPDX-License-Identifier: Apache-2.0
// Scales and a zero point of an operand: what a kernel is compiled for, and its run-time
// parameters.
#pragma once

#include <device/abi/dtype.hpp>
#include <device/abi/host_device.hpp>
#include <device/abi/scale_layout.hpp>

namespace gemmery::abi {

/// The types of an operand's companions; those beyond scale_count are not used.
struct CompanionTypes {
  int scale_count = 0;
  DType scales[2] = {DType::float32, DType::float32};
  bool are_swizzled[2] = {false, false};
  bool has_zero_point = false;
  DType zero_point = DType::float32;

  bool operator==(const CompanionTypes&) const = default;

  GEMMERY_HOST_DEVICE
  constexpr bool are_used() const { return scale_count > 0 || has_zero_point; }
};

/// One companion. Strides count values, from block to block; a block of 0 reaches over the whole
/// extent.
struct CompanionParams {
  const void* data;
  Int64 batch_stride;
  Int64 row_stride;
  Int64 k_stride;
  unsigned row_block;
  unsigned k_block;
  Int64 tiles;  // along k, of a swizzled one
};

struct CompanionsParams {
  CompanionParams scales[2];
  CompanionParams zero_point;
};

static_assert(sizeof(CompanionParams) == 48 && sizeof(CompanionsParams) == 3 * 48);

}  // namespace gemmery::abi
