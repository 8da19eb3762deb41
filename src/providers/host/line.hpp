// SPDX-License-Identifier: Apache-2.0
// Runs of elements in memory, loaded into and stored from the epilogue's compute type.
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

// Loads the elements into the compute type: rounded to nearest if that is narrower.
template <class Compute>
void load_line(const Line& line, Compute* values);

extern template void store_line(const Line& line, const float* values);
extern template void store_line(const Line& line, const double* values);
extern template void load_line(const Line& line, float* values);
extern template void load_line(const Line& line, double* values);

}  // namespace gemmery::host
