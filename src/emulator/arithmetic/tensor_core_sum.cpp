// SPDX-License-Identifier: Apache-2.0
// Adds truncated addends as integers of 64 bits.
#include "emulator/arithmetic/tensor_core_sum.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include "emulator/arithmetic/tensor_core_format.hpp"
#include "emulator/arithmetic/tensor_core_operands.hpp"

namespace gemmery::emulator::tensor_core {
namespace {

struct Number {
  bool is_negative = false, is_infinite = false, is_nan = false;
  int exponent = 0;
  std::uint32_t mantissa = 0;  // magnitude = mantissa * 2^(exponent - mantissa_bits)
};

Number read_number(const Format& format, std::uint32_t magnitude, bool is_negative) noexcept {
  Number number;
  number.is_negative = is_negative;
  if (magnitude >= format.first_special) {
    number.is_infinite = magnitude == format.infinity;
    number.is_nan = !number.is_infinite;
    return number;
  }
  const std::uint32_t field = magnitude >> format.mantissa_bits;
  number.exponent = static_cast<int>(std::max(field, 1u)) - format.bias;
  number.mantissa = magnitude & ((1u << format.mantissa_bits) - 1);
  if (field != 0) number.mantissa |= 1u << format.mantissa_bits;
  return number;
}

Number read_element(MatrixElement element, const void* row, std::uint32_t at,
                    bool is_negated) noexcept {
  const Format format = format_of(element);
  const std::uint32_t bytes = bytes_of_float(element);
  std::uint32_t bits = 0;
  std::memcpy(&bits, static_cast<const std::byte*>(row) + at * bytes, bytes);
  const bool sign = (bits >> (8 * bytes - 1) & 1) != 0;
  const std::uint32_t magnitude = (bits & ~(1u << (8 * bytes - 1))) >> format.unread_bits;
  return read_number(format, magnitude, sign != is_negated);
}

// The bits of the result sum * 2^lowest.
std::uint32_t write_result(const Rule& rule, std::int64_t sum, int lowest) noexcept {
  if (rule.accumulator == Accumulator::f16)
    return round_to_f16(std::ldexp(static_cast<double>(sum), lowest));
  if (sum == 0) return 0;
  const std::uint32_t sign = sum < 0 ? 0x80000000u : 0;
  const auto magnitude = static_cast<std::uint64_t>(sum < 0 ? -sum : sum);
  const int exponent = static_cast<int>(std::bit_width(magnitude)) - 1 + lowest;
  if (exponent > 127) return sign | 0x7f800000u;
  const int ulp = std::max(exponent, -126) - 23;
  const int shift = ulp - lowest;
  std::uint64_t mantissa = shift <= 0 ? magnitude << -shift : shift > 63 ? 0 : magnitude >> shift;
  mantissa &= ~std::uint64_t{(1u << (23 - rule.result_places)) - 1};
  if (mantissa == 0) return 0;
  const std::uint32_t field = exponent < -126 ? 0 : static_cast<std::uint32_t>(exponent + 127);
  return sign | field << 23 | (static_cast<std::uint32_t>(mantissa) & 0x7fffffu);
}

struct Addend {
  std::uint64_t mantissa;
  int lowest;    // exponent of the mantissa's last bit
  int exponent;  // the exponent by which addends are compared
  bool is_negative;
};

// The largest exponent counts as this at least (recorded).
constexpr int least_largest_exponent = -133;

std::uint32_t add_up(const Rule& rule, std::span<const Addend> addends) noexcept {
  int largest = least_largest_exponent;
  for (const Addend& addend : addends) largest = std::max(largest, addend.exponent);
  const int lowest = largest - rule.places;
  std::int64_t sum = 0;
  for (const Addend& addend : addends) {
    const int shift = lowest - addend.lowest;
    const std::uint64_t kept = shift <= 0   ? addend.mantissa << -shift
                               : shift > 63 ? 0
                                            : addend.mantissa >> shift;
    sum += addend.is_negative ? -static_cast<std::int64_t>(kept) : static_cast<std::int64_t>(kept);
  }
  return write_result(rule, sum, lowest);
}

// The effect of infinities and NaNs among the addends on the sum.
struct Specials {
  bool has_nan = false, has_positive = false, has_negative = false;
  bool any() const noexcept { return has_nan || has_positive || has_negative; }
  void add_infinity(bool is_negative) noexcept {
    (is_negative ? has_negative : has_positive) = true;
  }
  void add_product(const Number& a, const Number& b) noexcept {
    if (a.is_nan || b.is_nan) {
      has_nan = true;
    } else if (a.is_infinite || b.is_infinite) {
      const bool is_times_zero =
          (!a.is_infinite && a.mantissa == 0) || (!b.is_infinite && b.mantissa == 0);
      if (is_times_zero)
        has_nan = true;
      else
        add_infinity(a.is_negative != b.is_negative);
    }
  }
  std::uint32_t result(Accumulator accumulator) const noexcept {
    const bool is_half = accumulator == Accumulator::f16;
    if (has_nan || (has_positive && has_negative)) return is_half ? f16_nan : f32_nan;
    const std::uint32_t infinity = is_half ? 0x7c00u : 0x7f800000u;
    return infinity | (has_negative ? (is_half ? 0x8000u : 0x80000000u) : 0u);
  }
};

}  // namespace

Rule rule_of(const MatrixProduct& product) noexcept {
  const bool is_narrow = bytes_of_float(product.a) == 1;
  return {is_narrow ? 13 : 25, is_narrow ? 13 : 23, product.accumulator};
}

std::uint32_t sum_plainly(const MatrixProduct& product, std::uint32_t row, std::uint32_t column,
                          std::uint32_t c_bits) noexcept {
  const Rule rule = rule_of(product);
  const bool is_half = rule.accumulator == Accumulator::f16;
  const Format c_format =
      is_half ? format_of(MatrixElement::f16) : Format{23, 127, 0, 0x7f800000u, 0x7f800000u};
  const std::uint32_t c_sign = is_half ? 0x8000u : 0x80000000u;
  const Number c = read_number(c_format, c_bits & (c_sign - 1), (c_bits & c_sign) != 0);
  Specials specials;
  if (c.is_nan) specials.has_nan = true;
  if (c.is_infinite) specials.add_infinity(c.is_negative);

  std::array<Addend, most_k + 1> addends;
  std::size_t count = 0;
  if (c.mantissa != 0)
    addends[count++] = {c.mantissa, c.exponent - c_format.mantissa_bits, c.exponent, c.is_negative};
  const auto* a_row = static_cast<const std::byte*>(product.a_at) +
                      std::size_t{row} * product.k * bytes_of_float(product.a);
  const auto* b_row = static_cast<const std::byte*>(product.b_at) +
                      std::size_t{column} * product.k * bytes_of_float(product.b);
  const int places = format_of(product.a).mantissa_bits + format_of(product.b).mantissa_bits;
  for (std::uint32_t at = 0; at < product.k; ++at) {
    const Number a = read_element(product.a, a_row, at, product.negates_a);
    const Number b = read_element(product.b, b_row, at, product.negates_b);
    specials.add_product(a, b);
    if (a.mantissa == 0 || b.mantissa == 0) continue;
    const int exponent = a.exponent + b.exponent;
    addends[count++] = {std::uint64_t{a.mantissa} * b.mantissa, exponent - places, exponent,
                        a.is_negative != b.is_negative};
  }
  if (specials.any()) return specials.result(rule.accumulator);
  return count == 0 ? 0 : add_up(rule, {addends.data(), count});
}

}  // namespace gemmery::emulator::tensor_core
