// SPDX-License-Identifier: Apache-2.0
// The end of a fast path: D = alpha · accum + beta · C in the epilogue's compute type, rounded once
// to out's type and stored.
#pragma once

#include <cstdint>

#include <gemmery/arguments.hpp>

#include "providers/host/blocked.hpp"

namespace gemmery::host {

// One matrix of a batch in memory, strides in elements.
struct MatrixView {
  DType dtype;
  void* data;
  std::int64_t row_stride;
  std::int64_t column_stride;
};

// Matrix `batch` of a view of rank 3.
MatrixView matrix_of(const Tensor& view, std::int64_t batch);

// The address of its element of index 0; nullptr if the view has no memory.
void* first_of(const Tensor& view, std::int64_t batch);

// `row`, or the last one before it whose elements begin with a byte: elements of a column of a
// packed type may share bytes.
std::int64_t whole_row(const Tensor& view, std::int64_t row);

// Computes in float for float accumulators, in double for doubles and integers: alpha · accum +
// beta · C is then exact for integers whose products and sum stay within 2^53.
struct EpilogueWriter {
  MatrixView out;
  MatrixView c;  // data is nullptr if beta is 0
  double alpha;
  double beta;

  EpilogueWriter(const GemmArguments& arguments, std::int64_t batch);

  void operator()(const FinishedTile<float>& tile) const;
  void operator()(const FinishedTile<double>& tile) const;
  void operator()(const FinishedTile<std::int32_t>& tile) const;
};

}  // namespace gemmery::host
