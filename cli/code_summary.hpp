// SPDX-License-Identifier: Apache-2.0
// Summaries of compiled kernels as text: design, resources, instructions.
#pragma once

#include <string>

#include <gemmery/artifact.hpp>

#include "cli/failure.hpp"
#include "cli/output.hpp"

namespace gemmery::cli {

// Prints one kernel for one target, as text or as a record.
void print_summary(const ArtifactSummary& kernel, Output& output);

// Prints every kernel of an artifact file. `not_served` if this version of gemmery cannot load one
// of them.
ExitCode print_file(const std::string& path, Output& output);

}  // namespace gemmery::cli
