// SPDX-License-Identifier: Apache-2.0
// Between an epilogue of this process and what a file keeps of it.
#pragma once

#include <gemmery/epilogue.hpp>

#include <string>
#include <vector>

#include "runtime/artifact_file.hpp"

namespace gemmery::runtime {

std::vector<StoredOperand> stored_operands(EpilogueId epilogue);

// The id, in this process, of the epilogue that a kernel of a file was compiled with. Throws Error
// (unsupported) naming file and kernel for a program that this library does not read.
EpilogueId intern_stored(const StoredKernel& stored, const std::string& path);

}  // namespace gemmery::runtime
