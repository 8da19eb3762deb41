// SPDX-License-Identifier: Apache-2.0
// Element types as the device knows them: the enumeration (in the host's order), widths and kinds,
// all from dtype.def.
#pragma once

#include <device/abi/host_device.hpp>

namespace gemmery::abi {

enum class DType : unsigned char {
#define GEMMERY_DTYPE(name, ...) name,
#include <gemmery/dtype.def>
};

enum class Kind : unsigned char { floating, signed_integer, unsigned_integer };

GEMMERY_HOST_DEVICE
constexpr int bits_of(DType dtype) {
  constexpr int bits[] = {
#define GEMMERY_DTYPE(name, alias, bits, ...) bits,
#include <gemmery/dtype.def>
  };
  return bits[static_cast<int>(dtype)];
}

GEMMERY_HOST_DEVICE
constexpr Kind kind_of(DType dtype) {
  constexpr Kind kinds[] = {
#define GEMMERY_DTYPE(name, alias, bits, kind, ...) Kind::kind,
#include <gemmery/dtype.def>
  };
  return kinds[static_cast<int>(dtype)];
}

GEMMERY_HOST_DEVICE
constexpr bool is_integer(DType dtype) { return kind_of(dtype) != Kind::floating; }

/// True for floats of 16 bits.
GEMMERY_HOST_DEVICE
constexpr bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

/// True for floats of 8 bits with a sign.
GEMMERY_HOST_DEVICE
constexpr bool is_float8(DType dtype) {
  return dtype == DType::float8_e4m3fn || dtype == DType::float8_e5m2;
}

/// True for types whose elements kernels decode to 16-bit floats after they are staged.
GEMMERY_HOST_DEVICE
constexpr bool is_code(DType dtype) {
  return bits_of(dtype) <= 8 && bits_of(dtype) != 6 && dtype != DType::float8_e8m0fnu;
}

/// Bytes of one element. Not for types narrower than a byte.
GEMMERY_HOST_DEVICE
constexpr int bytes_of(DType dtype) { return bits_of(dtype) / 8; }

/// Elements of an access of so many bytes; one by one if they share bytes.
GEMMERY_HOST_DEVICE
constexpr int elements_of(DType dtype, int bytes) {
  return bits_of(dtype) < 8 ? 1 : bytes / bytes_of(dtype);
}

/// Bytes of a run of elements that begins with a byte, a last part of a byte included.
GEMMERY_HOST_DEVICE
constexpr int bytes_of_run(DType dtype, int elements) {
  return (elements * bits_of(dtype) + 7) / 8;
}

}  // namespace gemmery::abi
