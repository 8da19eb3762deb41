// SPDX-License-Identifier: Apache-2.0
// Operands as TMA walks them: what a tensor map cannot say of one, and the map.
#pragma once

#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>

#include <cstdint>
#include <string>

#include "driver/tensor_map.hpp"

namespace gemmery::templates {

// A batch of matrices, the adjacent index first.
struct TmaView {
  std::int64_t adjacent;  // extents
  std::int64_t other;
  std::int64_t batches;
  std::int64_t stride_bytes;  // from row to row
  std::int64_t batch_stride_bytes;
  bool has_pointers = false;  // matrices lie anywhere
};

TmaView view_of(const OperandRule& rule, const MatrixType& matrix, std::int64_t rows,
                std::int64_t columns, std::int64_t batches);

// What a tensor map cannot say, in words; empty where it can.
std::string find_misfit(const char* operand, const TmaView& view);

// What one copy brings: elements along the adjacent index, and rows of them.
struct TmaBox {
  int adjacent;
  int other;
};

// Swizzled as wide as the box is. `takes_pointers`: of four dimensions, as kernels for batches by
// pointers have it (device/abi/pointer_array.hpp), also of matrices one stride apart. Of pointers,
// `data` is their array.
driver::TiledTensorMap map_of(const void* data, DType dtype, const TmaView& view, TmaBox box,
                              bool takes_pointers);

}  // namespace gemmery::templates
