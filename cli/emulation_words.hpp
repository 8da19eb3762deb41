// SPDX-License-Identifier: Apache-2.0
// Parses the arguments of gemmery emulate: "4x4", "a.npy", "out=zeros:f32:128x128", "1.5f".
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gemmery/emulate.hpp>

namespace gemmery::cli {

// Parses "4", "4x4" or "4x4x2"; omitted extents are 1. Throws Error (invalid_argument).
std::array<std::uint32_t, 3> parse_extents(const std::string& word, const char* option);

// Parses "0", "3,1:2": a block by its index in the grid, and a warp of it. Throws Error
// (invalid_argument).
EmulatedTrace parse_trace(const std::string& word);

// An argument; for a buffer also the element type with which its result is written.
struct NamedArgument {
  std::string name;  // "arg0" if none was given
  EmulationArgument argument;
  std::string descr;  // NumPy's type of the buffer's elements
  std::vector<std::uint64_t> shape;
};

// [NAME=]FILE.npy | zeros:DTYPE:SHAPE | unwritten:DTYPE:SHAPE | map:BOX[/SWIZZLE]: and one of these
// | bytes:FILE.npy | NUMBER.
// Throws Error: invalid_argument, io.
NamedArgument parse_argument(const std::string& word, std::size_t index);

}  // namespace gemmery::cli
