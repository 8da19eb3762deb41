// SPDX-License-Identifier: Apache-2.0
// The run-time parameters of a skinny kernel, byte for byte as the host passes them.
#pragma once

#include <device/abi/host_device.hpp>
#include <device/abi/simt_params.hpp>
#include <device/abi/split.hpp>

namespace gemmery::abi {

/// The problem in the form of simt kernels, transposed if the host transposed it, and the split of
/// k: a unit is a slice of a tile, a k block is one split_unit of the design.
struct SkinnyParams {
  SimtParams gemm;  // order: tiles of all matrices, one row of them in each
  SplitSchedule split;
  unsigned k_blocks;  // of a tile
  void* workspace;
};

}  // namespace gemmery::abi
