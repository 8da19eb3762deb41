// SPDX-License-Identifier: Apache-2.0
// Decomposes operands, several elements at a time, and caches the most recent ones.
#include "emulator/arithmetic/tensor_core_operands.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/arithmetic/tensor_core_format.hpp"
#include "emulator/arithmetic/tensor_core_vector.hpp"

namespace gemmery::emulator::tensor_core {
namespace {

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
    // The product is exact, also for subnormals.
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

}  // namespace

void take_apart_row(const MatrixProduct& product, std::uint32_t row, Row& apart) {
  const std::size_t row_bytes = std::size_t{product.k} * bytes_of_float(product.a);
  apart.range = {};
  take_apart(product.a, static_cast<const std::byte*>(product.a_at) + row * row_bytes, product.k,
             product.negates_a, apart.value.data(), apart.exponent.data(), apart.range);
}

// The four warps of a warpgroup multiply by the same B, so the most recent ones are cached.
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

}  // namespace gemmery::emulator::tensor_core
