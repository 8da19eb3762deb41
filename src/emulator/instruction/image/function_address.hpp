// SPDX-License-Identifier: Apache-2.0
// Functions have addresses, so that tables of them and virtual functions can be called.
#pragma once

#include <cstdint>

#include "emulator/program/program.hpp"

namespace gemmery::emulator {

// The same for all kernels of a module; no other module has it.
std::uint64_t address_of_function(const Program& program, const Function& function) noexcept;

}  // namespace gemmery::emulator
