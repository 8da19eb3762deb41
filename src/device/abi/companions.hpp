// SPDX-License-Identifier: Apache-2.0
// Scales, a zero point and a code table of an operand, which a kernel reads in its main loop: what
// it is compiled for, and what a launch passes.
#pragma once

#include <device/abi/dtype.hpp>
#include <device/abi/fast_divisor.hpp>
#include <device/abi/host_device.hpp>
#include <device/abi/scale_layout.hpp>

namespace gemmery::abi {

/// The types of an operand's companions. Scales multiply; those beyond scale_count are not used.
/// They are tensors of any strides, or swizzled; zero points are strided.
struct CompanionTypes {
  int scale_count = 0;
  DType scales[2] = {DType::float32, DType::float32};
  bool are_swizzled[2] = {false, false};
  bool has_zero_point = false;
  DType zero_point = DType::float32;
  bool has_table = false;    // of an operand of uint4
  bool is_prepared = false;  // prepared_layout.hpp

  bool operator==(const CompanionTypes&) const = default;

  GEMMERY_HOST_DEVICE
  constexpr bool are_used() const { return varies_by_block() || has_table || is_prepared; }
  GEMMERY_HOST_DEVICE
  constexpr bool varies_by_block() const { return scale_count > 0 || has_zero_point; }
};

/// True if a scale may multiply decoded codes, exactly, instead of the sums of a group of k: e4m3
/// times e2m1 (NVFP4) has 6 bits at most, and either 16-bit type has its range.
GEMMERY_HOST_DEVICE
constexpr bool scale_decoded(DType code, const CompanionTypes& types) {
  return code == DType::float4_e2m1fn && types.scale_count == 1 &&
         types.scales[0] == DType::float8_e4m3fn;
}

/// True if zero points are integers of at most 8 bits, which integers of such a kind count from.
GEMMERY_HOST_DEVICE
constexpr bool accepts_zero_point(DType code, const CompanionTypes& types) {
  if (!types.has_zero_point) return true;
  return is_integer(code) && is_integer(types.zero_point) && bits_of(types.zero_point) <= 8 &&
         (bits_of(types.zero_point) == 4 || kind_of(types.zero_point) == kind_of(code));
}

/// The divisor of a block that reaches over a whole extent.
inline constexpr unsigned whole_extent = 1U << 31;

/// One companion: values of blocks of `rows` rows of A (columns of B) by `k` elements. Strides
/// count values, from block to block.
struct CompanionParams {
  const void* data;
  Int64 batch_stride;
  Int64 row_stride;
  Int64 k_stride;
  Int64 tiles;  // along k, of a swizzled one
  FastDivisor rows;
  FastDivisor k;
};

/// `table`: the numbers of codes.
struct CompanionsParams {
  CompanionParams scales[2];
  CompanionParams zero_point;
  float table[16];
};

/// `group`: the elements of k after which a value may change.
struct GroupedCompanionsParams {
  CompanionsParams companions;
  FastDivisor group;
};

static_assert(sizeof(CompanionParams) == 64 && sizeof(CompanionsParams) == 4 * 64);

}  // namespace gemmery::abi
