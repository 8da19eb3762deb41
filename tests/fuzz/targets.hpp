// SPDX-License-Identifier: Apache-2.0
// Fuzz targets: each takes any bytes, and must either accept them and satisfy the property below,
// or refuse them with an Error. A violated property aborts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gemmery::fuzz {

using Bytes = std::span<const std::uint8_t>;

void fuzz_parse_problem(Bytes bytes);   // a printed problem parses to an equal one
void fuzz_from_dlpack(Bytes bytes);     // an accepted view has the tensor's fields
void fuzz_find_kernel(Bytes bytes);     // a kernel that is found has the name
void fuzz_read_artifacts(Bytes bytes);  // a file that is read is written as the same bytes
void fuzz_parse_ptx(Bytes bytes);       // registers and labels of a parsed text exist
void fuzz_parse_epilogue(Bytes bytes);  // a printed program parses to an equal one

}  // namespace gemmery::fuzz
