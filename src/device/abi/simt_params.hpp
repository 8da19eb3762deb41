// SPDX-License-Identifier: Apache-2.0
// The run-time parameters of a simt kernel, byte for byte as the host passes them.
#pragma once

#include <device/abi/companions.hpp>
#include <device/abi/conv_phases.hpp>
#include <device/abi/host_device.hpp>
#include <device/abi/tile_order.hpp>
#include <device/abi/window_params.hpp>

namespace gemmery::abi {

/// A batch of matrices in memory. Strides count elements, may be negative or zero, and are ignored
/// if the extent is 1.
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
  unsigned batches;
  TileOrder order;  // of one matrix
};

/// Operands with scales and zero points.
struct SimtScaledParams {
  SimtParams gemm;
  CompanionsParams a;
  CompanionsParams b;
};

/// A convolution. The window of an operand that is a plain matrix is not used.
struct SimtConvParams {
  SimtParams gemm;
  WindowParams a;
  WindowParams b;
};

/// A dgrad with a stride; the windows are those of any phase.
struct SimtPhaseParams {
  SimtConvParams conv;
  PhaseParams phases;
};

static_assert(sizeof(SimtMatrix) == 32);
static_assert(sizeof(TileOrder) == 11 * 4);
static_assert(sizeof(SimtParams) == 4 * 32 + 2 * 8 + 4 * 4 + 12 * 4, "with 4 bytes at the end");

}  // namespace gemmery::abi
