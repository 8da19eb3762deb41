// SPDX-License-Identifier: Apache-2.0
// The run-time parameters of a simt kernel, byte for byte as the host passes them.
#pragma once

#include <device/abi/host_device.hpp>

namespace gemmery::abi {

/// A batch of matrices in memory. Strides count elements, may be negative or zero, and are ignored
/// where the extent is 1.
struct SimtMatrix {
  const void* data;
  Int64 batch_stride;
  Int64 row_stride;
  Int64 column_stride;
};

/// out[l] = alpha * a[l] b[l] + beta * c[l], a (m, k), b (k, n), c and out (m, n).
struct SimtParams {
  SimtMatrix a;
  SimtMatrix b;
  SimtMatrix c;
  SimtMatrix out;
  double alpha;
  double beta;
  unsigned m;
  unsigned n;
  unsigned k;
  unsigned tile_rows;     // tiles along m
  unsigned tile_columns;  // tiles along n
  unsigned batches;
};

static_assert(sizeof(SimtMatrix) == 32);
static_assert(sizeof(SimtParams) == 4 * 32 + 2 * 8 + 6 * 4);

}  // namespace gemmery::abi
