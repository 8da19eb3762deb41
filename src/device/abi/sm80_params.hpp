// SPDX-License-Identifier: Apache-2.0
// The run-time parameters of an sm80 kernel, byte for byte as the host passes them.
#pragma once

#include <device/abi/companions.hpp>
#include <device/abi/host_device.hpp>
#include <device/abi/simt_params.hpp>
#include <device/abi/split.hpp>
#include <device/abi/tile_order.hpp>

namespace gemmery::abi {

/// A batch of matrices of which one index is adjacent in memory. Strides count elements.
struct Sm80Operand {
  const void* data;
  Int64 batch_stride;
  Int64 line_stride;  // of the other index
};

/// out[l] = alpha * a[l] b[l] + beta * c[l], a (m, k), b (k, n), c and out (m, n).
struct Sm80Params {
  Sm80Operand a;
  Sm80Operand b;
  SimtMatrix c;
  SimtMatrix out;
  double alpha;
  double beta;
  unsigned m;
  unsigned n;
  unsigned k;
  unsigned k_blocks;  // of a tile
  TileOrder order;
  SplitSchedule split;
  void* workspace;
};

/// `scales`: of the operand that is decoded.
struct Sm80ScaledParams {
  Sm80Params gemm;
  GroupedCompanionsParams scales;
};

static_assert(sizeof(Sm80Operand) == 24);

}  // namespace gemmery::abi
