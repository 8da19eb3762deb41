// SPDX-License-Identifier: Apache-2.0
// The run-time parameters of grouped sm80 kernels.
#pragma once

#include <device/abi/groups.hpp>
#include <device/abi/sm80_params.hpp>

namespace gemmery::abi {

/// `gemm` has the extents of all groups together; its tile order, split schedule and workspace are
/// unused.
struct Sm80GroupedParams {
  Sm80Params gemm;
  GroupParams groups;
};

/// The same with scales of the operand that is decoded.
struct Sm80ScaledGroupParams {
  Sm80Params gemm;
  GroupParams groups;
  GroupedCompanionsParams scales;
};

/// The same with a table of groups from the host.
struct Sm80GroupTableParams {
  Sm80Params gemm;
  GroupParams groups;  // without sizes
  GroupTable table;
};

/// The same two for rows that are found by indices.
struct Sm80IndexedParams {
  Sm80Params gemm;
  GroupParams groups;
  IndexParams gather;
  IndexParams scatter;
};
struct Sm80IndexedTableParams {
  Sm80Params gemm;
  GroupParams groups;  // without sizes
  IndexParams gather;
  IndexParams scatter;
  GroupTable table;
};

}  // namespace gemmery::abi
