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

// The bits of a code that shares bytes with others: those from `shift` on of one byte or two.
struct PackedPlace {
  std::ptrdiff_t byte;
  int shift;
  std::uint32_t mask;
  bool is_split;  // over two bytes
};

PackedPlace packed_place(DType dtype, std::int64_t index) {
  const int bits = bit_width(dtype);
  const std::int64_t first = index * bits;
  const auto shift = static_cast<int>(first & 7);
  return {first >> 3, shift, (1u << bits) - 1, shift + bits > 8};
}

std::uint32_t read_packed(DType dtype, const void* data, std::int64_t index) {
  const PackedPlace place = packed_place(dtype, index);
  const auto* const bytes = static_cast<const std::uint8_t*>(data) + place.byte;
  const std::uint32_t word = bytes[0] | (place.is_split ? std::uint32_t{bytes[1]} << 8 : 0);
  return (word >> place.shift) & place.mask;
}

void write_packed(DType dtype, void* data, std::int64_t index, std::uint32_t code) {
  const PackedPlace place = packed_place(dtype, index);
  auto* const bytes = static_cast<std::uint8_t*>(data) + place.byte;
  const std::uint32_t mask = place.mask << place.shift;
  const std::uint32_t shifted = code << place.shift;
  bytes[0] = static_cast<std::uint8_t>((bytes[0] & ~mask) | shifted);
  if (place.is_split)
    bytes[1] = static_cast<std::uint8_t>((bytes[1] & ~(mask >> 8)) | (shifted >> 8));
}

Rounding rounding_of_integer(DType dtype) {
  const bool is_signed = facts(dtype).kind == DTypeKind::signed_integer;
  const double count = power_of_two(bit_width(dtype) - (is_signed ? 1 : 0));
  return {.unit = 0, .smallest = 1, .largest = count - 1, .lowest = is_signed ? -count : 0};
}

}  // namespace

float from_float8_e4m3fn(std::uint8_t code) { return e4m3_values[code]; }

double decode(DType dtype, std::uint32_t code) {
  switch (dtype) {
    case DType::float8_e8m0fnu:
      return decode_e8m0(code);
    case DType::int4:
      return static_cast<double>(code ^ 8u) - 8;
    case DType::int8:
      return static_cast<std::int8_t>(code);
    case DType::uint4:
    case DType::uint8:
      return code;
    default:
      return decode(float_format(dtype), code);
  }
}

std::uint32_t encode(DType dtype, double value) {
  switch (dtype) {
    case DType::float8_e8m0fnu:
      return encode_e8m0(value);
    case DType::int4:
    case DType::uint4: {
      const Rounding range = rounding_of_integer(dtype);
      const double whole = std::isnan(value) ? 0 : std::nearbyint(value);
      return static_cast<std::uint32_t>(
                 static_cast<int>(std::clamp(whole, range.lowest, range.largest))) &
             15u;
    }
    case DType::int8:
      return static_cast<std::uint8_t>(saturate<std::int8_t>(value));
    case DType::uint8:
      return saturate<std::uint8_t>(value);
    default:
      return encode(float_format(dtype), value);
  }
}

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
      return decode_e8m0(read<std::uint8_t>(data, index));
    case DType::float6_e2m3fn:
    case DType::float6_e3m2fn:
    case DType::float4_e2m1fn:
    case DType::int4:
    case DType::uint4:
      return decode(dtype, read_packed(dtype, data, index));
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
      return write(data, index, static_cast<std::uint8_t>(encode_e8m0(round_to_odd(value))));
    case DType::float6_e2m3fn:
    case DType::float6_e3m2fn:
    case DType::float4_e2m1fn:
    case DType::int4:
    case DType::uint4:
      return write_packed(dtype, data, index, encode(dtype, round_to_odd(value)));
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
    case DType::float8_e8m0fnu:
      return {.unit = 1.0 / 3, .smallest = 0x1p-127, .largest = 0x1p127, .lowest = 0x1p-127};
    default:
      break;
  }
  if (is_integer(dtype)) return rounding_of_integer(dtype);
  const FloatFormat format = float_format(dtype);
  const double largest = decode(format, format.largest());
  return {.unit = power_of_two(-format.mantissa_bits - 1),
          .smallest = decode(format, 1),
          .largest = largest,
          .lowest = -largest};
}

}  // namespace gemmery::number
