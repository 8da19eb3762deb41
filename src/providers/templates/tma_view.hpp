// SPDX-License-Identifier: Apache-2.0
// Operands as TMA sees them: why a tensor map cannot describe one, and the map.
#pragma once

#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>

#include <cstdint>
#include <string>

#include "driver/tensor_map.hpp"

namespace gemmery::templates {

// A batch of matrices, the adjacent index first. Elements that share bytes are seen as bytes.
struct TmaView {
  std::int64_t adjacent;  // extents
  std::int64_t other;
  std::int64_t batches;
  std::int64_t stride_bytes;  // from row to row
  std::int64_t batch_stride_bytes;
  bool has_pointers = false;  // a batch by pointers
};

TmaView view_of(const OperandRule& rule, const MatrixType& matrix, std::int64_t rows,
                std::int64_t columns, std::int64_t batches);

// Why a tensor map cannot describe the view, in words; empty if it can.
std::string find_misfit(const char* operand, const TmaView& view);

// The box of one copy: elements along the adjacent index, and rows of them.
struct TmaBox {
  int adjacent;
  int other;
};

// The swizzle as wide as a row of a box.
driver::cuda::TensorMapSwizzle swizzle_of(int pitch_bytes);

// The map of an operand, swizzled as wide as the box. `takes_pointers`: with four dimensions, as
// kernels for batches by pointers require (device/abi/pointer_array.hpp), also for matrices at one
// stride. For a batch by pointers, `data` is the array.
driver::TiledTensorMap map_of(const void* data, DType dtype, const TmaView& view, TmaBox box,
                              bool takes_pointers);

}  // namespace gemmery::templates
