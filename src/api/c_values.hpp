// SPDX-License-Identifier: Apache-2.0
// Conversion between the plain structs of the C API and the library's values.
#pragma once

#include <gemmery/gemmery.h>
#include <gemmery/arguments.hpp>
#include <gemmery/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

namespace gemmery::c_api {

[[noreturn]] void refuse_argument(std::string operand, std::string expected, std::string got);

// Throws Error (invalid_argument) for NULL.
template <class Pointer>
Pointer* required(Pointer* pointer, const char* name) {
  if (pointer == nullptr) refuse_argument(name, "an address", "NULL");
  return pointer;
}

// Throws Error (invalid_argument) if the size is below that of the struct's first version.
void check_struct_size(std::size_t given, std::size_t least, const char* name);

// Throws Error (unsupported) where a later version of the struct has members that are not zero.
void refuse_unknown_members(const void* given, std::size_t given_bytes, std::size_t known_bytes,
                            const char* name);

// The caller's struct in this version's form: missing members are zero. `least`: the size of its
// first version.
template <class Struct>
Struct read_struct(const Struct* given, std::size_t least, const char* name) {
  const std::size_t bytes = required(given, name)->struct_size;
  check_struct_size(bytes, least, name);
  refuse_unknown_members(given, bytes, sizeof(Struct), name);
  Struct known{};
  std::memcpy(&known, given, std::min(bytes, sizeof(Struct)));
  return known;
}

// Copies as much of the value as the caller's struct holds; its size stays.
template <class Struct>
void write_struct(Struct value, std::size_t least, Struct* given, const char* name) {
  const std::size_t bytes = required(given, name)->struct_size;
  check_struct_size(bytes, least, name);
  value.struct_size = bytes;
  std::memcpy(given, &value, std::min(bytes, sizeof(Struct)));
}

Device to_device(gemmery_device device);
gemmery_device from_device(Device device) noexcept;
GemmArguments to_arguments(const gemmery_gemm* gemm);

}  // namespace gemmery::c_api
