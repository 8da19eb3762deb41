// SPDX-License-Identifier: Apache-2.0
// Conversion between an epilogue of this process and its form in a file.
#pragma once

#include <gemmery/epilogue.hpp>

#include <string>
#include <vector>

#include "runtime/artifact_file.hpp"

namespace gemmery::runtime {

std::vector<StoredOperand> stored_operands(EpilogueId epilogue);

// The id, in this process, of the epilogue that a stored kernel was compiled with. Throws Error
// (unsupported), which names file and kernel, for a program that this library cannot parse.
EpilogueId intern_stored(const StoredKernel& stored, const std::string& path);

}  // namespace gemmery::runtime
