// SPDX-License-Identifier: Apache-2.0
// Integer products in 32 bits, which wrap or are clamped once; f64 products by fused multiply-adds.
#include "emulator/arithmetic/tensor_core_exact.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "emulator/arithmetic/tensor_core_vector.hpp"

namespace gemmery::emulator::tensor_core {
namespace {

// All elements widened to 16 bits.
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

// One row of A times all rows of B; k is a multiple of 16.
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

// Returns a NaN operand, made quiet: that of b, else of c, else of a (recorded).
double fused_multiply_add(double a, double b, double c) noexcept {
  const double result = std::fma(a, b, c);
  if (!std::isnan(result)) return result;
  for (const double operand : {b, c, a})
    if (std::isnan(operand))
      return std::bit_cast<double>(std::bit_cast<std::uint64_t>(operand) | 0x8000000000000u);
  return std::bit_cast<double>(std::uint64_t{0xfff8000000000000u});
}

}  // namespace

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

}  // namespace gemmery::emulator::tensor_core
