// SPDX-License-Identifier: Apache-2.0
// Checks that a cubin matches its sm90 design: resources reported by the compiler, instructions
// printed by nvdisasm.
#pragma once

#include <gemmery/kernel.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "jit/compiler.hpp"
#include "jit/disassembler.hpp"

namespace gemmery::templates {

// Compiles the kernel for sm_90a without any cache. Also throws Error for warnings, such as
// serialised wgmmas.
jit::CompiledCode compile_sm90(const Kernel& kernel);

// Checks for spills and stack, and that a launch has enough registers and shared memory, also for
// setmaxnreg. Returns one sentence per failure.
std::vector<std::string> find_resource_faults(const Kernel& kernel, const jit::CodeUsage& usage);

// Checks the shape, types and number of wgmmas, TMA loads and stores, multicast if blocks share
// operands, the registers of setmaxnreg, and that local memory is not used.
std::vector<std::string> find_instruction_faults(const Kernel& kernel, std::string_view sass);

}  // namespace gemmery::templates
