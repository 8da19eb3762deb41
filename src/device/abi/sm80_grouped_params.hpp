// SPDX-License-Identifier: Apache-2.0
// The run-time parameters of sm80 kernels of grouped products.
#pragma once

#include <device/abi/groups.hpp>
#include <device/abi/sm80_params.hpp>

namespace gemmery::abi {

/// `gemm` has the extents of all groups together; its order, schedule of k and workspace say
/// nothing.
struct Sm80GroupedParams {
  Sm80Params gemm;
  GroupParams groups;
};

/// The same where the host has found the tiles.
struct Sm80GroupTableParams {
  Sm80Params gemm;
  GroupParams groups;  // without sizes
  GroupTable table;
};

}  // namespace gemmery::abi
