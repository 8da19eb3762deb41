// SPDX-License-Identifier: Apache-2.0
// Conversion between compiled kernels and their form in a file.
#pragma once

#include <gemmery/kernel.hpp>

#include <string>
#include <vector>

#include "runtime/artifact_file.hpp"

namespace gemmery::runtime {

// Sixteen-byte digest, in hexadecimal digits, of the headers that host and device code share; these
// define the layout of kernel parameters.
std::string abi_digest();

// Returns one entry for each target of an artifact. With PTX, compiles it now if the artifact lacks
// it. Throws Error (unsupported) for kernels that are not compiled from source.
std::vector<StoredKernel> to_stored(const Artifact& artifact,
                                    const std::vector<std::string>& problems, bool with_ptx);

// Programs of operands are read back from the lines of problems that a kernel was compiled for.
// Throws Error (unsupported) for a kernel with programs if no line has them.
void check_programs_are_spelled(const Kernel& kernel, const std::vector<std::string>& problems);

// Compiles the PTX of an artifact that lacks it, for a file.
void make_ptx(const Artifact& artifact);

// Makes the artifact of one kernel for all its targets in a file. Compiles nothing. Throws Error
// (unsupported), which names the file, for a family, a version of one, a kernel or a target that
// this library does not have, or kernels whose form has changed since the file was written.
Artifact from_stored(const std::vector<StoredKernel>& of_one_kernel, const std::string& path);

}  // namespace gemmery::runtime
