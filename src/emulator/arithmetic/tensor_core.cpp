// SPDX-License-Identifier: Apache-2.0
// The arithmetic of tensor cores. Most sums take a fast path, 16 columns at a time, in which each
// addend is scaled by a power of two so that converting it to an integer cuts off what hardware
// cuts off; infinities, NaNs, subnormal results and extreme exponents take a plain one. Both are
// exact.
#include "emulator/arithmetic/tensor_core.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

// The inner loop in the widest vectors of the host that runs it; elsewhere in those of the build.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define GEMMERY_VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define GEMMERY_VECTOR_CLONES
#endif

namespace gemmery::emulator {
namespace {

// --- numbers
// --------------------------------------------------------------------------------------

struct Format {
  int mantissa_bits;
  int bias;
  int unread_bits;              // of storage, below the mantissa (tf32)
  std::uint32_t first_special;  // the smallest magnitude (sign cut off) that is no number
  std::uint32_t infinity;       // its magnitude, 0 where there is none
};

constexpr Format format_of(MatrixElement element) noexcept {
  switch (element) {
    case MatrixElement::bf16:
      return {7, 127, 0, 0x7f80, 0x7f80};
    case MatrixElement::tf32:
      return {10, 127, 13, 0x3fc00, 0x3fc00};
    case MatrixElement::e4m3:
      return {3, 7, 0, 0x7f, 0};
    case MatrixElement::e5m2:
      return {2, 15, 0, 0x7c, 0x7c};
    default:
      return {10, 15, 0, 0x7c00, 0x7c00};  // f16
  }
}

constexpr std::uint32_t bytes_of_float(MatrixElement element) noexcept {
  switch (element) {
    case MatrixElement::tf32:
      return 4;
    case MatrixElement::e4m3:
    case MatrixElement::e5m2:
      return 1;
    default:
      return 2;
  }
}

// Of zeros: so low that no sum with another exponent is ever the largest.
constexpr std::int16_t no_exponent = -16384;

constexpr std::uint32_t f32_nan = 0x7fffffff;
constexpr std::uint32_t f16_nan = 0x7fff;

float f32_of_f16(std::uint32_t bits) noexcept {
  const float magnitude = std::bit_cast<float>((bits & 0x7fff) << 13) * 0x1p112f;
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

// Nearest even; overflow is infinity; a result that rounds to zero is +0 (recorded).
std::uint32_t round_to_f16(double value) noexcept {
  const double magnitude = std::fabs(value);
  if (magnitude >= 65520.0) return value < 0 ? 0xfc00u : 0x7c00u;
  const auto bits = std::bit_cast<std::uint64_t>(magnitude);
  const int exponent = std::max(static_cast<int>(bits >> 52) - 1023, -14);
  // Adding 2^52 ulps rounds at the ulp.
  const double at_ulp =
      std::bit_cast<double>(static_cast<std::uint64_t>(exponent - 10 + 52 + 1023) << 52);
  const double rounded = (magnitude + at_ulp) - at_ulp;
  if (rounded == 0) return 0;
  const auto float_bits = std::bit_cast<std::uint32_t>(static_cast<float>(rounded * 0x1p-112));
  const std::uint32_t f16 = float_bits >> 13;
  return f16 | (value < 0 ? 0x8000u : 0u);
}

// --- operands, taken apart
// ------------------------------------------------------------------------

struct Range {                                 // of the exponents of what is not zero
  int low = -no_exponent, high = no_exponent;  // nothing but zeros
  bool has_special = false;  // infinities or NaNs: `high` and the values mean nothing then
};

// One operand as values and exponents.
struct Factors {
  std::vector<float> value;
  std::vector<std::int16_t> exponent;
};

template <class Word>
[[gnu::always_inline]] inline void take_apart(const Word* from, std::uint32_t count,
                                              const Format& format, bool is_negated, float* value,
                                              std::int16_t* exponent, Range& range) noexcept {
  const std::uint32_t sign_bit = 8 * sizeof(Word) - 1;
  const std::uint32_t mask =
      (1u << (sign_bit - static_cast<std::uint32_t>(format.unread_bits))) - 1;
  const float scale =
      std::bit_cast<float>(static_cast<std::uint32_t>(127 + 127 - format.bias) << 23);
  int low = range.low, high = range.high;
  int largest = 0;
  for (std::uint32_t x = 0; x < count; ++x) {
    const std::uint32_t bits = from[x];
    const std::uint32_t magnitude = bits >> format.unread_bits & mask;
    const std::uint32_t sign = (bits >> sign_bit ^ static_cast<std::uint32_t>(is_negated)) << 31;
    // The product is exact, and right for subnormals too.
    const float absolute = std::bit_cast<float>(magnitude << (23 - format.mantissa_bits)) * scale;
    value[x] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(absolute) | sign);
    const int e = std::max(static_cast<int>(magnitude >> format.mantissa_bits), 1) - format.bias;
    const int high_or_none = magnitude == 0 ? no_exponent : e;
    const int low_or_none = magnitude == 0 ? -no_exponent : e;
    exponent[x] = static_cast<std::int16_t>(high_or_none);
    low = std::min(low, low_or_none);
    high = std::max(high, high_or_none);
    largest = std::max(largest, static_cast<int>(magnitude));
  }
  range.low = low;
  range.high = high;
  range.has_special |= static_cast<std::uint32_t>(largest) >= format.first_special;
}

GEMMERY_VECTOR_CLONES
void take_apart(MatrixElement element, const std::byte* from, std::uint32_t count, bool is_negated,
                float* value, std::int16_t* exponent, Range& range) {
  const Format format = format_of(element);
  switch (bytes_of_float(element)) {
    case 1:
      return take_apart(reinterpret_cast<const std::uint8_t*>(from), count, format, is_negated,
                        value, exponent, range);
    case 2:
      return take_apart(reinterpret_cast<const std::uint16_t*>(from), count, format, is_negated,
                        value, exponent, range);
    default:
      return take_apart(reinterpret_cast<const std::uint32_t*>(from), count, format, is_negated,
                        value, exponent, range);
  }
}

constexpr std::uint32_t columns_at_once = 16;
constexpr std::uint32_t most_k = 64;

// B by rows of k, each of all n columns, filled up with zeros to a multiple of columns_at_once.
struct Columns {
  MatrixElement element = MatrixElement::f16;
  bool is_negated = false;
  std::uint32_t n = 0, k = 0;
  std::vector<std::byte> bytes;  // what it was made from
  Factors factors;
  Range range;

  std::uint32_t stride() const noexcept {
    return (n + columns_at_once - 1) / columns_at_once * columns_at_once;
  }
};

void take_apart_columns(const MatrixProduct& product, std::size_t bytes, Columns& columns) {
  const auto* from = static_cast<const std::byte*>(product.b_at);
  columns.element = product.b;
  columns.is_negated = product.negates_b;
  columns.n = product.n;
  columns.k = product.k;
  columns.bytes.assign(from, from + bytes);
  columns.range = {};
  const std::size_t stride = columns.stride();
  columns.factors.value.assign(stride * product.k, 0.0f);
  columns.factors.exponent.assign(stride * product.k, no_exponent);
  const std::size_t row_bytes = std::size_t{product.k} * bytes_of_float(product.b);
  std::array<float, most_k> value;
  std::array<std::int16_t, most_k> exponent;
  for (std::uint32_t column = 0; column < product.n; ++column) {
    take_apart(product.b, from + column * row_bytes, product.k, product.negates_b, value.data(),
               exponent.data(), columns.range);
    for (std::uint32_t at = 0; at < product.k; ++at) {
      columns.factors.value[at * stride + column] = value[at];
      columns.factors.exponent[at * stride + column] = exponent[at];
    }
  }
}

// The four warps of a warpgroup multiply by the same B: the last few are kept.
const Columns& columns_of(const MatrixProduct& product) {
  static thread_local std::array<Columns, 4> kept;
  static thread_local std::size_t next = 0;
  const std::size_t bytes = std::size_t{product.n} * product.k * bytes_of_float(product.b);
  for (const Columns& columns : kept)
    if (columns.element == product.b && columns.is_negated == product.negates_b &&
        columns.n == product.n && columns.k == product.k && columns.bytes.size() == bytes &&
        std::memcmp(columns.bytes.data(), product.b_at, bytes) == 0)
      return columns;
  Columns& columns = kept[next];
  next = (next + 1) % kept.size();
  take_apart_columns(product, bytes, columns);
  return columns;
}

// --- one sum, the plain way
// -----------------------------------------------------------------------

struct Rule {
  int places;         // F above
  int result_places;  // of an f32 result
  Accumulator accumulator;
};

Rule rule_of(const MatrixProduct& product) noexcept {
  const bool is_narrow = bytes_of_float(product.a) == 1;
  return {is_narrow ? 13 : 25, is_narrow ? 13 : 23, product.accumulator};
}

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

// sum * 2^lowest as the result's bits.
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
  int exponent;  // what addends are compared by
  bool is_negative;
};

std::uint32_t add_up(const Rule& rule, std::span<const Addend> addends) noexcept {
  int largest = -32768;
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

// What infinities and NaNs among the addends make of the sum.
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

// --- sixteen sums at once
// -------------------------------------------------------------------------

// Outside of these exponents the fast path would leave what float can hold.
constexpr int lowest_exponent = -100, highest_exponent = 125;

// One row of A and B, their C as floats with exponents; results in two parts that may not overflow
// 32 bits (at most eight products below 2^27 each), in units of 2^(largest - places).
struct Sixteen {
  const float* a_value;
  const std::int16_t* a_exponent;
  const float* b_value;  // 16 columns of the first k; the next k is b_stride further
  const std::int16_t* b_exponent;
  std::size_t b_stride;
  std::uint32_t k;
  Rule rule;
  alignas(64) float c[16];
  alignas(64) std::int16_t c_exponent[16];
  alignas(64) std::int32_t largest[16];
  alignas(64) std::int32_t even[16], odd[16];
  alignas(64) float result[16];  // of an f32 accumulator
};

using Float8 [[gnu::vector_size(32)]] = float;
using Int8 [[gnu::vector_size(32)]] = std::int32_t;
using Short16 [[gnu::vector_size(32)]] = std::int16_t;
using Short8 [[gnu::vector_size(16)]] = std::int16_t;
using Int4 [[gnu::vector_size(16)]] = std::int32_t;
using Float4 [[gnu::vector_size(16)]] = float;
using Long4 [[gnu::vector_size(32)]] = std::int64_t;
using Double4 [[gnu::vector_size(32)]] = double;

template <class Vector, class T>
[[gnu::always_inline]] inline void load(Vector& to, const T* from) noexcept {
  std::memcpy(&to, from, sizeof to);
}

// The sums as f32, cut off; exact up to there, and no smaller than 2^(lowest_exponent - places).
[[gnu::always_inline]] inline void finish_four(Sixteen& s, std::uint32_t first,
                                               const std::int32_t* exponents) noexcept {
  Int4 even, odd, exponent;
  load(even, s.even + first);
  load(odd, s.odd + first);
  load(exponent, exponents);
  const Double4 sum =
      __builtin_convertvector(even, Double4) + __builtin_convertvector(odd, Double4);
  const Long4 unit_bits = (__builtin_convertvector(exponent, Long4) + (1023 - s.rule.places)) << 52;
  Double4 value;
  std::memcpy(&value, &unit_bits, sizeof value);
  value *= sum;
  Long4 bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits &= ~((std::int64_t{1} << (52 - s.rule.result_places)) - 1);
  std::memcpy(&value, &bits, sizeof value);
  const Float4 result = __builtin_convertvector(value, Float4);
  std::memcpy(s.result + first, &result, sizeof result);
}

// Vectors of half of the columns: no compiler makes two of one by itself.
[[gnu::always_inline]] inline void add_eight(Sixteen& s, std::uint32_t first) noexcept {
  Int8 largest;
  load(largest, s.largest + first);
  const Int8 lowest = Int8{} + lowest_exponent;
  largest = largest < lowest ? lowest : largest;
  const Int8 scale_bits = (127 + s.rule.places - largest) << 23;
  Float8 scale, value;
  load(scale, reinterpret_cast<const float*>(&scale_bits));
  load(value, s.c + first);
  Int8 even = __builtin_convertvector(value * scale, Int8), odd = {};
  const float* b = s.b_value + first;
  for (std::uint32_t at = 0; at < s.k; at += 2) {
    load(value, b);
    even += __builtin_convertvector(value * s.a_value[at] * scale, Int8);
    load(value, b + s.b_stride);
    odd += __builtin_convertvector(value * s.a_value[at + 1] * scale, Int8);
    b += 2 * s.b_stride;
  }
  std::memcpy(s.even + first, &even, sizeof even);
  std::memcpy(s.odd + first, &odd, sizeof odd);
  if (s.rule.accumulator == Accumulator::f16) return;
  alignas(32) std::int32_t exponents[8];
  std::memcpy(exponents, &largest, sizeof largest);
  finish_four(s, first, exponents);
  finish_four(s, first + 4, exponents + 4);
}

// `count`: of the columns; the others' sums mean nothing.
[[gnu::always_inline]] inline void add_sixteen(Sixteen& s, std::uint32_t count) noexcept {
  Short16 largest, exponent;
  load(largest, s.c_exponent);
  for (std::uint32_t at = 0; at < s.k; ++at) {
    load(exponent, s.b_exponent + at * s.b_stride);
    exponent += s.a_exponent[at];
    largest = exponent > largest ? exponent : largest;
  }
  alignas(32) std::int16_t narrow[16];
  std::memcpy(narrow, &largest, sizeof largest);
  for (std::uint32_t x = 0; x < 16; ++x) s.largest[x] = narrow[x];
  add_eight(s, 0);
  if (count > 8) add_eight(s, 8);
}

// The sums as the results' bits, and in `plain_columns` those where the plain way must say.
[[gnu::always_inline]] inline void finish(const Sixteen& s, std::uint32_t* bits,
                                          std::uint32_t& plain_columns) noexcept {
  std::uint32_t plain = 0;
  for (std::uint32_t x = 0; x < columns_at_once; ++x) {
    const bool is_low = s.largest[x] < lowest_exponent;
    plain |= static_cast<std::uint32_t>(is_low && s.c[x] != 0.0f) << x;
    bits[x] = is_low ? 0 : std::bit_cast<std::uint32_t>(s.result[x]);
  }
  plain_columns |= plain;
  if (s.rule.accumulator == Accumulator::f32) return;
  for (std::uint32_t x = 0; x < columns_at_once; ++x) {
    const auto sum = static_cast<double>(std::int64_t{s.even[x]} + s.odd[x]);
    const auto exponent = static_cast<std::uint64_t>(1023 + s.largest[x] - s.rule.places);
    const bool is_low = s.largest[x] < lowest_exponent;
    bits[x] = is_low ? 0 : round_to_f16(sum * std::bit_cast<double>(exponent << 52));
  }
}

// C of up to 16 columns as floats; those that are no numbers are left to the plain way.
[[gnu::always_inline]] inline void load_c(const std::uint32_t* c, std::uint32_t count,
                                          Accumulator accumulator, Sixteen& s,
                                          std::uint32_t& special_columns) noexcept {
  alignas(64) std::uint32_t given[columns_at_once] = {};
  if (c != nullptr) std::memcpy(given, c, count * sizeof *c);
  const bool is_half = accumulator == Accumulator::f16;
  const std::uint32_t first_special = is_half ? 0x7c00u : 0x7f800000u;
  const std::uint32_t all = is_half ? 0x7fffu : 0x7fffffffu;
  const int mantissa_bits = is_half ? 10 : 23, bias = is_half ? 15 : 127;
  std::uint32_t special = 0;
  for (std::uint32_t x = 0; x < columns_at_once; ++x) {
    const std::uint32_t magnitude = given[x] & all;
    const bool is_special = magnitude >= first_special;
    const bool is_nothing = magnitude == 0 || is_special;
    const int exponent = std::max(static_cast<int>(magnitude >> mantissa_bits), 1) - bias;
    special |= static_cast<std::uint32_t>(is_special) << x;
    s.c_exponent[x] = static_cast<std::int16_t>(is_nothing ? -32768 : exponent);
    const std::uint32_t bits =
        is_half ? std::bit_cast<std::uint32_t>(f32_of_f16(given[x])) : given[x];
    s.c[x] = std::bit_cast<float>(is_nothing ? 0 : bits);
  }
  special_columns = special;
}

struct Row {
  std::array<float, most_k> value;
  std::array<std::int16_t, most_k> exponent;
  Range range;
};

void multiply_row_plainly(const MatrixProduct& product, std::uint32_t row, const std::uint32_t* c,
                          std::uint32_t* d) noexcept {
  for (std::uint32_t column = 0; column < product.n; ++column)
    d[column] = sum_plainly(product, row, column, c == nullptr ? 0 : c[column]);
}

GEMMERY_VECTOR_CLONES
void multiply_row(const MatrixProduct& product, const Columns& columns, const Row& a,
                  std::uint32_t row, const std::uint32_t* c, std::uint32_t* d) {
  const Rule rule = rule_of(product);
  Sixteen s;
  s.a_value = a.value.data();
  s.a_exponent = a.exponent.data();
  s.b_stride = columns.stride();
  s.k = product.k;
  s.rule = rule;
  for (std::uint32_t first = 0; first < product.n; first += columns_at_once) {
    const std::uint32_t count = std::min(columns_at_once, product.n - first);
    std::uint32_t plain_columns = 0;
    load_c(c == nullptr ? nullptr : c + first, count, product.accumulator, s, plain_columns);
    s.b_value = columns.factors.value.data() + first;
    s.b_exponent = columns.factors.exponent.data() + first;
    add_sixteen(s, count);
    alignas(64) std::uint32_t sums[columns_at_once];
    finish(s, sums, plain_columns);
    plain_columns &= (std::uint32_t{1} << count) - 1;
    for (; plain_columns != 0; plain_columns &= plain_columns - 1) {
      const auto x = static_cast<std::uint32_t>(std::countr_zero(plain_columns));
      sums[x] = sum_plainly(product, row, first + x, c == nullptr ? 0 : c[first + x]);
    }
    std::memcpy(d + first, sums, count * sizeof *d);
  }
}

bool is_within_reach(const Range& a, const Range& b) noexcept {
  if (a.has_special || b.has_special) return false;
  if (a.low > a.high || b.low > b.high) return true;  // nothing but zeros
  return a.low + b.low >= lowest_exponent && a.high + b.high <= highest_exponent;
}

void multiply_floats(const MatrixProduct& product) {
  const Columns& columns = columns_of(product);
  const std::size_t row_bytes = std::size_t{product.k} * bytes_of_float(product.a);
  Row a;
  for (std::uint32_t row = 0; row < product.m; ++row) {
    a.range = {};
    take_apart(product.a, static_cast<const std::byte*>(product.a_at) + row * row_bytes, product.k,
               product.negates_a, a.value.data(), a.exponent.data(), a.range);
    const std::size_t at = std::size_t{row} * product.n;
    const auto* c =
        product.c_at == nullptr ? nullptr : static_cast<const std::uint32_t*>(product.c_at) + at;
    auto* d = static_cast<std::uint32_t*>(product.d_at) + at;
    if (is_within_reach(a.range, columns.range))
      multiply_row(product, columns, a, row, c, d);
    else
      multiply_row_plainly(product, row, c, d);
  }
}

// --- 8-bit floats of mma.sync
// ---------------------------------------------------------------------

// Exact; every 8-bit float is a number of f16.
std::uint16_t f16_of(MatrixElement element, std::uint8_t bits) noexcept {
  if (element == MatrixElement::e5m2) return static_cast<std::uint16_t>(bits << 8);
  const std::uint32_t sign = (bits & 0x80u) << 8, magnitude = bits & 0x7fu;
  if (magnitude == 0x7f) return static_cast<std::uint16_t>(sign | f16_nan);
  const float value = std::bit_cast<float>(magnitude << 20) * 0x1p120f;
  const auto f16 = std::bit_cast<std::uint32_t>(value * 0x1p-112f) >> 13;
  return static_cast<std::uint16_t>(sign | f16);
}

// Those k of each row whose k % 4 is in {0, 1} (part 0) or {2, 3} (part 1).
std::vector<std::uint16_t> unpack(MatrixElement element, const void* from, std::uint32_t rows,
                                  std::uint32_t k, std::uint32_t part) {
  const auto* bytes = static_cast<const std::uint8_t*>(from);
  std::vector<std::uint16_t> out(std::size_t{rows} * k / 2);
  std::size_t to = 0;
  for (std::uint32_t row = 0; row < rows; ++row)
    for (std::uint32_t at = 0; at < k; ++at)
      if (at % 4 / 2 == part) out[to++] = f16_of(element, bytes[std::size_t{row} * k + at]);
  return out;
}

std::uint32_t add_rounded(Accumulator accumulator, std::uint32_t left,
                          std::uint32_t right) noexcept {
  if (accumulator == Accumulator::f16) {
    const auto is_nan = [](std::uint32_t bits) { return (bits & 0x7fff) > 0x7c00; };
    const auto value = [](std::uint32_t bits) {
      return (bits & 0x7fff) == 0x7c00 ? ((bits & 0x8000) != 0 ? -HUGE_VAL : HUGE_VAL)
                                       : static_cast<double>(f32_of_f16(bits));
    };
    const double sum = value(left) + value(right);
    if (is_nan(left) || is_nan(right) || std::isnan(sum)) return f16_nan;
    return sum == 0 && std::signbit(sum) ? 0x8000u : round_to_f16(sum);
  }
  const float sum = std::bit_cast<float>(left) + std::bit_cast<float>(right);
  return std::isnan(sum) ? f32_nan : std::bit_cast<std::uint32_t>(sum);
}

void multiply_unpacked(const MatrixProduct& product) {
  std::vector<std::uint32_t> sum(std::size_t{product.m} * product.n);
  for (std::uint32_t part = 0; part < 2; ++part) {
    const auto a = unpack(product.a, product.a_at, product.m, product.k, part);
    const auto b = unpack(product.b, product.b_at, product.n, product.k, part);
    MatrixProduct half = product;
    half.a = half.b = MatrixElement::f16;
    half.k = product.k / 2;
    half.unpacks_to_f16 = false;
    half.a_at = a.data();
    half.b_at = b.data();
    half.c_at = part == 0 ? nullptr : sum.data();
    half.d_at = sum.data();
    multiply_floats(half);
  }
  const auto* c = static_cast<const std::uint32_t*>(product.c_at);
  auto* d = static_cast<std::uint32_t*>(product.d_at);
  for (std::size_t x = 0; x < sum.size(); ++x)
    d[x] = add_rounded(product.accumulator, sum[x], c == nullptr ? 0 : c[x]);
}

// --- integers
// -------------------------------------------------------------------------------------

// Elements as 16 bits, whatever they were.
std::vector<std::int16_t> widen(MatrixElement element, const void* from, std::size_t count) {
  const auto* bytes = static_cast<const std::uint8_t*>(from);
  std::vector<std::int16_t> out(count);
  for (std::size_t x = 0; x < count; ++x) {
    const std::uint32_t nibble = bytes[x / 2] >> (x % 2 * 4) & 15u;
    switch (element) {
      case MatrixElement::s8:
        out[x] = static_cast<std::int8_t>(bytes[x]);
        break;
      case MatrixElement::u8:
        out[x] = bytes[x];
        break;
      case MatrixElement::s4:
        out[x] = static_cast<std::int16_t>(static_cast<int>(nibble ^ 8) - 8);
        break;
      default:
        out[x] = static_cast<std::int16_t>(nibble);
        break;
    }
  }
  return out;
}

std::int32_t add_c(const MatrixProduct& product, std::size_t at, std::int64_t sum) noexcept {
  if (product.c_at != nullptr) sum += static_cast<const std::int32_t*>(product.c_at)[at];
  if (product.saturates) sum = std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX);
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(sum));
}

// One row of A by all rows of B; k is a multiple of 16.
GEMMERY_VECTOR_CLONES
void add_integer_row(const std::int16_t* a, const std::int16_t* b, std::uint32_t n, std::uint32_t k,
                     std::int32_t* sums) {
  for (std::uint32_t column = 0; column < n; ++column) {
    Int8 low = {}, high = {};
    for (std::uint32_t at = 0; at < k; at += 16) {
      Short8 left, right;
      load(left, a + at);
      load(right, b + at);
      low += __builtin_convertvector(left, Int8) * __builtin_convertvector(right, Int8);
      load(left, a + at + 8);
      load(right, b + at + 8);
      high += __builtin_convertvector(left, Int8) * __builtin_convertvector(right, Int8);
    }
    low += high;
    std::int32_t sum = 0;
    for (int x = 0; x < 8; ++x) sum += low[x];
    sums[column] = sum;
    b += k;
  }
}

void multiply_integers(const MatrixProduct& product) {
  const auto a = widen(product.a, product.a_at, std::size_t{product.m} * product.k);
  const auto b = widen(product.b, product.b_at, std::size_t{product.n} * product.k);
  std::vector<std::int32_t> sums(product.n);
  auto* d = static_cast<std::int32_t*>(product.d_at);
  for (std::size_t row = 0; row < product.m; ++row) {
    add_integer_row(a.data() + row * product.k, b.data(), product.n, product.k, sums.data());
    for (std::size_t column = 0; column < product.n; ++column) {
      const std::size_t at = row * product.n + column;
      d[at] = add_c(product, at, sums[column]);
    }
  }
}

void multiply_bits(const MatrixProduct& product) {
  const auto* a = static_cast<const std::uint32_t*>(product.a_at);
  const auto* b = static_cast<const std::uint32_t*>(product.b_at);
  const std::size_t words = product.k / 32;
  auto* d = static_cast<std::int32_t*>(product.d_at);
  for (std::size_t row = 0; row < product.m; ++row)
    for (std::size_t column = 0; column < product.n; ++column) {
      std::int64_t sum = 0;
      for (std::size_t x = 0; x < words; ++x) {
        const std::uint32_t left = a[row * words + x], right = b[column * words + x];
        sum += std::popcount(product.is_xor ? left ^ right : left & right);
      }
      const std::size_t at = row * product.n + column;
      d[at] = add_c(product, at, sum);
    }
}

// --- f64
// ------------------------------------------------------------------------------------------

// A NaN among the operands is handed on, quietened, that of b before c before a (recorded).
double fused_multiply_add(double a, double b, double c) noexcept {
  const double result = std::fma(a, b, c);
  if (!std::isnan(result)) return result;
  for (const double operand : {b, c, a})
    if (std::isnan(operand))
      return std::bit_cast<double>(std::bit_cast<std::uint64_t>(operand) | 0x8000000000000u);
  return std::bit_cast<double>(std::uint64_t{0xfff8000000000000u});
}

void multiply_f64(const MatrixProduct& product) {
  const auto* a = static_cast<const double*>(product.a_at);
  const auto* b = static_cast<const double*>(product.b_at);
  const auto* c = static_cast<const double*>(product.c_at);
  auto* d = static_cast<double*>(product.d_at);
  for (std::size_t row = 0; row < product.m; ++row)
    for (std::size_t column = 0; column < product.n; ++column) {
      double sum = c == nullptr ? 0.0 : c[row * product.n + column];
      for (std::size_t at = 0; at < product.k; ++at)
        sum = fused_multiply_add(a[row * product.k + at], b[column * product.k + at], sum);
      d[row * product.n + column] = sum;
    }
}

}  // namespace

void multiply(const MatrixProduct& product) {
  switch (product.a) {
    case MatrixElement::f64:
      return multiply_f64(product);
    case MatrixElement::b1:
      return multiply_bits(product);
    case MatrixElement::s8:
    case MatrixElement::u8:
    case MatrixElement::s4:
    case MatrixElement::u4:
      return multiply_integers(product);
    default:
      break;
  }
  if (product.unpacks_to_f16) return multiply_unpacked(product);
  multiply_floats(product);
}

}  // namespace gemmery::emulator
