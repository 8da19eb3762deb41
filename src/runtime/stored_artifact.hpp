// SPDX-License-Identifier: Apache-2.0
// Between compiled kernels and what a file keeps of them.
#pragma once

#include <gemmery/kernel.hpp>

#include <string>
#include <vector>

#include "runtime/artifact_file.hpp"

namespace gemmery::runtime {

// Sixteen-byte digest, in hexadecimal digits, of the headers that host and device code share:
// parameters of kernels are laid out by them.
std::string abi_digest();

// One for each target of an artifact. With PTX, where it has none, compiles that now. Throws Error
// (unsupported) for kernels that are not compiled from source.
std::vector<StoredKernel> to_stored(const Artifact& artifact,
                                    const std::vector<std::string>& problems, bool with_ptx);

// Compiles the PTX of an artifact where it has none, for a file to keep.
void make_ptx(const Artifact& artifact);

// The artifact of one kernel for all the targets that a file has of it. Nothing is compiled. Throws
// Error (unsupported) naming the file and what it was made with: a family, a version of one, a
// kernel or a target that this library does not have, or kernels whose form has changed since.
Artifact from_stored(const std::vector<StoredKernel>& of_one_kernel, const std::string& path);

}  // namespace gemmery::runtime
