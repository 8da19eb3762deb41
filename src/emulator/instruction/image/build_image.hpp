// SPDX-License-Identifier: Apache-2.0
// From a program to what the machine runs: variables placed, functions laid out, instructions
// decoded.
#pragma once

#include <memory>
#include <string_view>

#include "emulator/machine/kernel_image.hpp"

namespace gemmery::emulator {

// Global and constant variables, allocated, initialised and marked as written.
ModuleVariables place_variables(const Program& program, GlobalMemory& memory);

// Throws Error (unsupported) for an instruction form that the machine does not know, with its PTX
// line; invalid_argument for an entry that is not there.
std::shared_ptr<const KernelImage> build_image(std::shared_ptr<const Program> program,
                                               std::string_view entry,
                                               const ModuleVariables& variables);

}  // namespace gemmery::emulator
