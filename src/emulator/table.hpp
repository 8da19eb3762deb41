// SPDX-License-Identifier: Apache-2.0
// The emulator's own driver functions, named as in the driver's manual, one declaration for each
// row of GEMMERY_CUDA_FUNCTIONS. Defined by concern: context_calls.cpp, stream_calls.cpp,
// memory_calls.cpp, code_calls.cpp, launch_calls.cpp.
#pragma once

#include "emulator/outcome.hpp"

namespace gemmery::emulator::calls {

#define GEMMERY_DECLARE(name, parameters) cuda::Result name parameters;
GEMMERY_CUDA_FUNCTIONS(GEMMERY_DECLARE)
#undef GEMMERY_DECLARE

}  // namespace gemmery::emulator::calls
