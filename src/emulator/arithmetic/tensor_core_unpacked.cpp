// SPDX-License-Identifier: Apache-2.0
// 8-bit floats of mma.sync: two products of f16, then a rounded addition of C.
#include <bit>
#include <cmath>
#include <vector>

#include "emulator/arithmetic/tensor_core_floats.hpp"
#include "emulator/arithmetic/tensor_core_format.hpp"

namespace gemmery::emulator::tensor_core {
namespace {

// Exact: f16 represents every 8-bit float.
std::uint16_t f16_of(MatrixElement element, std::uint8_t bits) noexcept {
  if (element == MatrixElement::e5m2) return static_cast<std::uint16_t>(bits << 8);
  const std::uint32_t sign = (bits & 0x80u) << 8, magnitude = bits & 0x7fu;
  if (magnitude == 0x7f) return static_cast<std::uint16_t>(sign | f16_nan);
  const float value = std::bit_cast<float>(magnitude << 20) * 0x1p120f;
  const auto f16 = std::bit_cast<std::uint32_t>(value * 0x1p-112f) >> 13;
  return static_cast<std::uint16_t>(sign | f16);
}

// The elements of each row in even (part 0) or odd (part 1) pairs of k.
std::vector<std::uint16_t> unpack(MatrixElement element, const void* from, std::uint32_t rows,
                                  std::uint32_t k, std::uint32_t part) {
  const auto* bytes = static_cast<const std::uint8_t*>(from);
  std::vector<std::uint16_t> out(std::size_t{rows} * k / 2);
  std::size_t to = 0;
  for (std::uint32_t row = 0; row < rows; ++row)
    for (std::uint32_t at = 0; at < k; ++at)
      if (at / 2 % 2 == part) out[to++] = f16_of(element, bytes[std::size_t{row} * k + at]);
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

}  // namespace

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

}  // namespace gemmery::emulator::tensor_core
