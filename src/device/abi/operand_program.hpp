// SPDX-License-Identifier: Apache-2.0
// The run-time parameters of programs of operands, byte for byte as the host passes them.
#pragma once

#include <device/abi/epilogue.hpp>
#include <device/abi/groups.hpp>
#include <device/abi/simt_params.hpp>

namespace gemmery::abi {

/// Those of one program with this many tensors and numbers, which have its compute type. Rows and
/// columns are the operand's: m and k of A, k and n of B.
template <int inputs, int numbers, class Compute>
struct OperandProgramParams {
  EpiloguePlace input[inputs > 0 ? inputs : 1];
  Compute number[numbers > 0 ? numbers : 1];
};

/// A simt kernel with programs. `Programs_`: device/epilogue/operand_program.cuh.
template <class Programs_>
struct SimtProgramParams {
  using Programs = Programs_;

  SimtParams gemm;
  CompanionsParams a;
  CompanionsParams b;
  typename Programs::ParamsOfA program_a;
  typename Programs::ParamsOfB program_b;
};

/// The same for groups, whose rows, columns and k count from the beginning of all of them.
template <class Programs_>
struct SimtProgramGroupParams {
  using Programs = Programs_;

  SimtParams gemm;
  GroupParams groups;
  unsigned clears_outside;
  CompanionsParams a;
  CompanionsParams b;
  typename Programs::ParamsOfA program_a;
  typename Programs::ParamsOfB program_b;
};

static_assert(sizeof(OperandProgramParams<2, 0, float>) == 2 * 32 + 8);
static_assert(sizeof(SimtScaledParams) % 8 == 0 && sizeof(SimtScaledGroupParams) % 8 == 0);

}  // namespace gemmery::abi
