// SPDX-License-Identifier: Apache-2.0
// What `gemmery emulate` reads and writes for kernels and for programs alike.
#pragma once

#include <string>

#include <gemmery/emulate.hpp>

#include "cli/output.hpp"

namespace gemmery::cli {

// Throws Error (io).
std::string read_text(const std::string& file);

Record to_record(const EmulatedPlace& place);
void write_finding(const EmulationFinding& finding, Output& output);

}  // namespace gemmery::cli
