// SPDX-License-Identifier: Apache-2.0
// Loading and storing elements of any dtype.
#include "core/number.hpp"

#include <array>
#include <cstring>

namespace gemmery::number {
namespace {

constexpr std::array<float, 256> e4m3_values = [] {
  std::array<float, 256> values{};
  for (std::uint32_t code = 0; code < 256; ++code)
    values[code] = static_cast<float>(decode(float_format(DType::float8_e4m3fn), code));
  return values;
}();

template <class T>
T read(const void* data, std::int64_t index) {
  T element;
  std::memcpy(&element, static_cast<const T*>(data) + index, sizeof element);
  return element;
}

template <class T>
void write(void* data, std::int64_t index, T element) {
  std::memcpy(static_cast<T*>(data) + index, &element, sizeof element);
}

template <class Code>
void write_code(void* data, std::int64_t index, DType dtype, DoubleDouble value) {
  write(data, index, static_cast<Code>(encode(float_format(dtype), round_to_odd(value))));
}

template <class Integer>
Rounding rounding_of_integer() {
  using Limits = std::numeric_limits<Integer>;
  return {.unit = 0,
          .smallest = 1,
          .largest = static_cast<double>(Limits::max()),
          .lowest = static_cast<double>(Limits::min())};
}

}  // namespace

float from_float8_e4m3fn(std::uint8_t code) { return e4m3_values[code]; }

double load(DType dtype, const void* data, std::int64_t index) {
  switch (dtype) {
    case DType::float64:
      return read<double>(data, index);
    case DType::float32:
      return read<float>(data, index);
    case DType::float16:
      return from_float16(read<std::uint16_t>(data, index));
    case DType::bfloat16:
      return from_bfloat16(read<std::uint16_t>(data, index));
    case DType::float8_e4m3fn:
      return from_float8_e4m3fn(read<std::uint8_t>(data, index));
    case DType::float8_e5m2:
      return from_float8_e5m2(read<std::uint8_t>(data, index));
    case DType::int8:
      return read<std::int8_t>(data, index);
    case DType::uint8:
      return read<std::uint8_t>(data, index);
    case DType::int32:
      return read<std::int32_t>(data, index);
    case DType::uint32:
      return read<std::uint32_t>(data, index);
    case DType::float8_e8m0fnu:
    case DType::float4_e2m1fn:
      break;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

void store(DType dtype, void* data, std::int64_t index, DoubleDouble value) {
  switch (dtype) {
    case DType::float64:
      return write(data, index, value.high);
    case DType::float32:
      return write_code<std::uint32_t>(data, index, dtype, value);
    case DType::float16:
    case DType::bfloat16:
      return write_code<std::uint16_t>(data, index, dtype, value);
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
      return write_code<std::uint8_t>(data, index, dtype, value);
    case DType::int8:
      return write(data, index, saturate<std::int8_t>(round_to_odd(value)));
    case DType::uint8:
      return write(data, index, saturate<std::uint8_t>(round_to_odd(value)));
    case DType::int32:
      return write(data, index, saturate<std::int32_t>(round_to_odd(value)));
    case DType::uint32:
      return write(data, index, saturate<std::uint32_t>(round_to_odd(value)));
    case DType::float8_e8m0fnu:
    case DType::float4_e2m1fn:
      break;
  }
}

double rounded_to(DType dtype, DoubleDouble value) {
  std::uint64_t element = 0;
  store(dtype, &element, 0, value);
  return load(dtype, &element, 0);
}

Rounding rounding_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return {.unit = 0x1p-53,
              .smallest = 0x1p-1074,
              .largest = std::numeric_limits<double>::max(),
              .lowest = std::numeric_limits<double>::lowest()};
    case DType::int8:
      return rounding_of_integer<std::int8_t>();
    case DType::uint8:
      return rounding_of_integer<std::uint8_t>();
    case DType::int32:
      return rounding_of_integer<std::int32_t>();
    case DType::uint32:
      return rounding_of_integer<std::uint32_t>();
    default:
      break;
  }
  const FloatFormat format = float_format(dtype);
  const double largest = decode(format, format.largest());
  return {.unit = power_of_two(-format.mantissa_bits - 1),
          .smallest = decode(format, 1),
          .largest = largest,
          .lowest = -largest};
}

}  // namespace gemmery::number
