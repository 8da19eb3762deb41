// SPDX-License-Identifier: Apache-2.0
// Most sums take a fast path, 16 columns at a time: each addend is scaled by a power of two, so
// that its conversion to an integer truncates what hardware truncates. Sums that the fast path
// cannot hold are computed one by one (sum_plainly). Both are exact.
#include "emulator/arithmetic/tensor_core_floats.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/arithmetic/tensor_core_format.hpp"
#include "emulator/arithmetic/tensor_core_operands.hpp"
#include "emulator/arithmetic/tensor_core_sum.hpp"
#include "emulator/arithmetic/tensor_core_vector.hpp"

namespace gemmery::emulator::tensor_core {
namespace {

// Outside of these exponents, intermediate values of the fast path exceed the range of float.
constexpr int lowest_exponent = -100, highest_exponent = 125;

// One row of A and 16 columns of B, with C as floats and exponents. Sums are kept in two halves
// that cannot overflow 32 bits (at most eight products below 2^27 each), in units of 2^(largest -
// places).
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
  alignas(64) float result[16];  // for an f32 accumulator
};

// The sums truncated to f32. They are exact before, and at least 2^(lowest_exponent - places).
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

// Vectors of half of the columns each, as compilers do not split wider ones.
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

// Only the first `count` columns are valid.
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

// The results' bits; `plain_columns` receives the columns that sum_plainly must compute.
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

// C of up to 16 columns as floats. Columns with infinities or NaNs are left to sum_plainly.
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
  if (a.low > a.high || b.low > b.high) return true;  // all zeros
  return a.low + b.low >= lowest_exponent && a.high + b.high <= highest_exponent;
}

}  // namespace

void multiply_floats(const MatrixProduct& product) {
  const Columns& columns = columns_of(product);
  Row a;
  for (std::uint32_t row = 0; row < product.m; ++row) {
    take_apart_row(product, row, a);
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

}  // namespace gemmery::emulator::tensor_core
