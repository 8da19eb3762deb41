// SPDX-License-Identifier: Apache-2.0
// The scales and the zero point of an operand that a kernel reads in its main loop, besides its
// elements: what a kernel is compiled for, and what a launch passes.
#pragma once

#include <device/abi/dtype.hpp>
#include <device/abi/fast_divisor.hpp>
#include <device/abi/host_device.hpp>

namespace gemmery::abi {

/// A scale is a tensor of any strides, or swizzled (abi/scale_layout).
struct OperandScales {
  int count = 0;  // of scales, which multiply: at most 2
  DType first = DType::float32;
  DType second = DType::float32;
  bool is_first_swizzled = false;
  bool is_second_swizzled = false;
  bool has_zero = false;  // has a zero point, strided
  DType zero = DType::int8;

  GEMMERY_HOST_DEVICE
  constexpr bool are_used() const { return count > 0 || has_zero; }
  bool operator==(const OperandScales&) const = default;
};

/// The divisor of a block that reaches over a whole extent.
inline constexpr unsigned whole_extent = 1U << 31;

/// Values of blocks of `rows` rows of A (columns of B) by `k` elements. Strides count values; those
/// of a swizzled scale are not used, but the tiles along k (abi::swizzled_tiles).
struct ScaleParams {
  const void* data;
  Int64 batch_stride;
  Int64 row_stride;
  Int64 k_stride;
  Int64 tiles;
  FastDivisor rows;
  FastDivisor k;
};

/// `group`: the elements of k after which a value may change: a multiple of all blocks' divisors.
struct OperandScaleParams {
  ScaleParams first;
  ScaleParams second;
  ScaleParams zero;
  FastDivisor group;
};

}  // namespace gemmery::abi
