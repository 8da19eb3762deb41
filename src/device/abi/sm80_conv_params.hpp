// SPDX-License-Identifier: Apache-2.0
// The run-time parameters of sm80 kernels of convolutions, byte for byte as the host passes them.
#pragma once

#include <device/abi/conv_phases.hpp>
#include <device/abi/sm80_params.hpp>
#include <device/abi/window_params.hpp>

namespace gemmery::abi {

/// The window of an operand that is a plain matrix is not used.
struct Sm80ConvParams {
  Sm80Params gemm;
  WindowParams a;
  WindowParams b;
};

/// A dgrad with a stride; the windows are those of any phase.
struct Sm80PhaseParams {
  Sm80ConvParams conv;
  PhaseParams phases;
};

}  // namespace gemmery::abi
