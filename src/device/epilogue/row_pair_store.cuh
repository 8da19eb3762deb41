// SPDX-License-Identifier: Apache-2.0
// Stores results by threads to an out whose rows, not columns, are adjacent in memory. A lane has
// two adjacent rows of each of its columns; eight lanes have 16 rows. If pairs of rows are not
// aligned, or at any strides, elements are stored one by one.
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/epilogue/output_place.cuh>
#include <device/epilogue/staging_writer.cuh>
#include <device/ptx/integer.cuh>
#include <device/ptx/memory.cuh>
#include <device/tile/batch.cuh>

namespace gemmery::device {

template <const abi::Sm90Design& design>
class RowPairStore {
 public:
  static constexpr int words = StagingWriter<design>::words;

  /// `corner`: where the warp's 16 rows of a staging tile begin in out.
  __device__ __forceinline__ RowPairStore(const abi::Sm90Params& params, const OutputPlace& corner,
                                          unsigned lane) {
    const abi::RowMajorMatrix& out = params.out_rows;
    const unsigned row = corner.row + abi::first_row_of_lane(abi::value_of<design>(), lane);
    const unsigned column = corner.column + lane % 4 * 2;
    rows_left_ = static_cast<int>(row_end<design>(params, corner)) - static_cast<int>(row);
    columns_left_ = static_cast<int>(column_end<design>(params, corner)) - static_cast<int>(column);
    step_bytes_ = out.column_stride * element_bytes;
    if constexpr (!has_pairs) row_bytes_ = out.row_stride * element_bytes;
    const MatrixStart start =
        start_of_batch<design.has_pointers>(out.data, out.batch_stride, corner.batch);
    first_ =
        start.address + start.elements * element_bytes + row * row_bytes() + column * step_bytes_;
  }

  /// Writes the sixteen-th group of 16 columns, as returned by StagingWriter::finish_sixteen.
  __device__ __forceinline__ void write(const unsigned (&results)[words], int sixteen) const {
#pragma unroll
    for (int eight = 0; eight < 2; ++eight) {
#pragma unroll
      for (int element = 0; element < 2; ++element) {
        const int column = 16 * sixteen + 8 * eight + element;
        if (columns_left_ <= column) continue;
        char* const target = first_ + column * step_bytes_;
        const auto pair = pair_of(results, eight, element);
        if (has_pairs && rows_left_ > 1) {
          ptx::st_global<2 * element_bytes>(target, pair);
        } else {
          if (rows_left_ > 0) ptx::st_global<element_bytes>(target, {{pair.words[0]}});
          if (!has_pairs && rows_left_ > 1)
            ptx::st_global<element_bytes>(target + row_bytes(), {{second_of(pair)}});
        }
      }
    }
  }

 private:
  static constexpr int element_bytes = abi::bytes_of(design.out);
  static constexpr bool has_pairs = design.out_access >= 2 * element_bytes;

  __device__ abi::Int64 row_bytes() const { return has_pairs ? element_bytes : row_bytes_; }
  __device__ __forceinline__ static unsigned second_of(
      const ptx::Registers<2 * element_bytes>& pair) {
    if constexpr (element_bytes == 4)
      return pair.words[1];
    else
      return pair.words[0] >> 8 * element_bytes;
  }

  /// The results of both rows of one column. Results of 32 bits are words; narrower ones are packed
  /// in pairs of columns.
  __device__ __forceinline__ static ptx::Registers<2 * element_bytes> pair_of(
      const unsigned (&results)[words], int eight, int element) {
    const int first = 2 * eight;
    const int second = first + 1;
    if constexpr (element_bytes == 4) {
      return {{results[2 * first + element], results[2 * second + element]}};
    } else {
      constexpr unsigned selectors[2] = {element_bytes == 2 ? 0x5410U : 0x40U,
                                         element_bytes == 2 ? 0x7632U : 0x51U};
      return {{ptx::prmt(results[first], results[second], selectors[element])}};
    }
  }

  char* first_;
  abi::Int64 step_bytes_;  // from column to column
  abi::Int64 row_bytes_;   // from row to row, if elements are stored one by one
  int rows_left_;          // from the lane's first row
  int columns_left_;       // from its first column
};

}  // namespace gemmery::device
