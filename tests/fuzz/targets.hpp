// SPDX-License-Identifier: Apache-2.0
// What is fuzzed: each target takes any bytes, and must either accept them and keep its promises,
// or refuse them with an Error. A broken promise aborts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gemmery::fuzz {

using Bytes = std::span<const std::uint8_t>;

void fuzz_parse_problem(Bytes bytes);   // what parses prints to a line that parses to the same
void fuzz_from_dlpack(Bytes bytes);     // what is accepted is the view that the tensor states
void fuzz_find_kernel(Bytes bytes);     // what is found has that name
void fuzz_read_artifacts(Bytes bytes);  // what is read is written as the same bytes
void fuzz_parse_ptx(Bytes bytes);       // registers and labels of what parses exist
void fuzz_parse_epilogue(Bytes bytes);  // what parses prints as text that parses to the same

}  // namespace gemmery::fuzz
