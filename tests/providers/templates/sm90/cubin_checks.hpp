// SPDX-License-Identifier: Apache-2.0
// Checks a cubin against the promises of its sm90 design: resources as the compiler reports them,
// instructions as nvdisasm shows them.
#pragma once

#include <gemmery/kernel.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "jit/compiler.hpp"
#include "jit/disassembler.hpp"

namespace gemmery::templates {

// Compiles the kernel for sm_90a, past every cache. Throws Error for warnings too, that wgmmas were
// serialised among them.
jit::CompiledCode compile_sm90(const Kernel& kernel);

// No spills and no stack; registers and shared memory that a launch has, and that setmaxnreg can
// share out. One sentence per promise that is broken.
std::vector<std::string> find_resource_faults(const Kernel& kernel, const jit::CodeUsage& usage);

// Wgmmas of the design's shape and types and as many as its steps take, TMA loads and stores,
// multicast where blocks share operands, the registers that setmaxnreg asks for; no local memory.
std::vector<std::string> find_instruction_faults(const Kernel& kernel, std::string_view sass);

}  // namespace gemmery::templates
