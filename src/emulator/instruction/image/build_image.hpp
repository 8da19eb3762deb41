// SPDX-License-Identifier: Apache-2.0
// Builds what the machine executes from a program: places variables, lays out functions, decodes
// instructions.
#pragma once

#include <memory>
#include <string_view>

#include "emulator/machine/kernel_image.hpp"

namespace gemmery::emulator {

// Allocates and initialises global and constant variables and marks them as written. `managed`:
// those that have a place already.
ModuleVariables place_variables(const Program& program, GlobalMemory& memory,
                                const ModuleVariables& managed = {});
// The managed ones, in memory that the host accesses as well.
ModuleVariables place_managed_variables(const Program& program, GlobalMemory& host_memory);

// Throws Error (unsupported), with the PTX line, for an instruction form that the emulator does not
// support; Error (invalid_argument) for an entry that does not exist.
std::shared_ptr<const KernelImage> build_image(std::shared_ptr<const Program> program,
                                               std::string_view entry,
                                               const ModuleVariables& variables);

}  // namespace gemmery::emulator
