// SPDX-License-Identifier: Apache-2.0
// Where an epilogue's results for blocks of out lie in memory.
#pragma once

#include <cstdint>
#include <optional>

#include <gemmery/arguments.hpp>
#include <gemmery/tensor.hpp>

#include "device/abi/scale_layout.hpp"
#include "epilogue/blocks.hpp"

namespace gemmery::host {

class BlockPlaces {
 public:
  // `view` is the view of rank 3 that the arguments keep.
  BlockPlaces(epilogue::Block block, ScaleLayout layout, const Tensor& view,
              const GemmArguments& arguments)
      : block_(block),
        row_stride_(view.stride(1)),
        column_stride_(view.stride(2)),
        lines_(&arguments.result_lines()) {
    if (layout == ScaleLayout::strided) return;
    const GemmProblem& problem = arguments.problem();
    is_of_rows_ = block.rows == 1;
    const std::int64_t blocks = is_of_rows_ ? epilogue::count_blocks(problem.n, block.columns)
                                            : epilogue::count_blocks(problem.m, block.rows);
    tiles_ = abi::swizzled_tiles(blocks);
  }

  // The value's offset in its matrix, if a block begins at this element of out.
  std::optional<std::int64_t> find(std::int64_t row, std::int64_t column) const {
    if (!epilogue::begins_block(row, block_.rows) ||
        !epilogue::begins_block(column, block_.columns))
      return std::nullopt;
    const std::int64_t down = epilogue::block_of(row, block_.rows);
    const std::int64_t along = epilogue::block_of(column, block_.columns);
    if (tiles_ == 0) return down * row_stride_ + along * column_stride_;
    return is_of_rows_ ? abi::swizzled_offset((*lines_)[down], along, tiles_)
                       : abi::swizzled_offset((*lines_)[along], down, tiles_);
  }

 private:
  epilogue::Block block_;
  std::int64_t row_stride_, column_stride_;
  const ResultLines* lines_;
  std::int64_t tiles_ = 0;  // along blocks if it is swizzled
  bool is_of_rows_ = true;
};

}  // namespace gemmery::host
