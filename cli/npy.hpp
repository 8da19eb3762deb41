// SPDX-License-Identifier: Apache-2.0
// Arrays in NumPy's file format (.npy, versions 1.0 to 3.0): row-major arrays of numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gemmery::cli {

struct NpyArray {
  std::string descr;  // NumPy's type: "<f4", "|u1"
  std::vector<std::uint64_t> shape;
  std::vector<std::byte> bytes;
};

// Throws Error (invalid_argument), which names the file, for Fortran order, objects, structured or
// big-endian elements, and for bytes that are not a .npy file.
NpyArray parse_npy(std::string_view file_bytes, const std::string& file);
std::string format_npy(const NpyArray& array);

// These two also throw Error (io).
NpyArray read_npy(const std::string& file);
void write_npy(const std::string& file, const NpyArray& array);

// Bytes of an element: 4 for "<f4". Throws Error (invalid_argument) for elements that are not
// numbers.
std::size_t element_bytes(std::string_view descr, const std::string& file);

}  // namespace gemmery::cli
