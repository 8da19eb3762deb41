// SPDX-License-Identifier: Apache-2.0
// Runs of elements in memory, loaded into and stored from the type that an epilogue computes in.
#pragma once

#include <cstdint>

#include <gemmery/dtype.hpp>

namespace gemmery::host {

// `count` elements, `stride` apart.
struct Line {
  DType dtype;
  void* data;
  std::int64_t first;
  std::int64_t stride;
  int count;
};

// Rounds each value once to the line's type. Compute is float or double.
template <class Compute>
void store_line(const Line& line, const Compute* values);

// The elements in the type that is computed in: rounded to nearest where that is narrower.
template <class Compute>
void load_line(const Line& line, Compute* values);

extern template void store_line(const Line& line, const float* values);
extern template void store_line(const Line& line, const double* values);
extern template void load_line(const Line& line, float* values);
extern template void load_line(const Line& line, double* values);

}  // namespace gemmery::host
