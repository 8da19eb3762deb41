// SPDX-License-Identifier: Apache-2.0
// Counter-based random numbers for operands: number i of a seed depends on nothing else, so any
// thread can generate any part.
#pragma once

#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numbers>
#include <random>

#include <gemmery/verify.hpp>

namespace gemmery::api {

// 64 random bits: the output function of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) applied
// twice, to the seed and to the index.
constexpr std::uint64_t mix_bits(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
constexpr std::uint64_t random_bits(std::uint64_t seed, std::uint64_t index) noexcept {
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15u;
  return mix_bits(mix_bits(seed + golden) + golden * (index + 1));
}

// A seed that no earlier run had; never 0, which asks for a fresh one.
inline std::uint64_t fresh_seed() {
  std::random_device device;
  const std::uint64_t seed = (std::uint64_t{device()} << 32) | device();
  return seed == 0 ? 1 : seed;
}

// In [0, 1) and in (0, 1].
constexpr double unit_of(std::uint32_t bits) noexcept { return bits * 0x1p-32; }
constexpr double positive_unit_of(std::uint32_t bits) noexcept { return (bits + 1.0) * 0x1p-32; }

// Box and Muller, 1958.
inline double standard_normal(std::uint64_t bits) noexcept {
  const double radius =
      std::sqrt(-2 * std::log(positive_unit_of(static_cast<std::uint32_t>(bits))));
  return radius * std::cos(2 * std::numbers::pi * unit_of(static_cast<std::uint32_t>(bits >> 32)));
}

// Patterns that are worst for some arithmetic: they show lost bits.
enum class Pattern : unsigned char {
  random,
  lowest,       // every element the smallest number of the fill
  highest,      // every element the largest
  alternating,  // the smallest and the largest in turn
  one_huge,     // few elements, a hundred times as large as the others
  subnormal     // below the type's normal numbers, or so large that products with those are normal
};

// The numbers of one operand: element i is `numbers(i)`, before it is rounded to the operand's
// type.
struct Numbers {
  Fill fill = Fill::normal;
  std::uint64_t seed = 1;
  // Integer fills, and operands of integer types, draw from least to most.
  std::int64_t least = -2;
  std::int64_t most = 2;
  bool is_integer = false;
  double scale = 1;
  Pattern pattern = Pattern::random;
  bool with_specials = false;  // some NaN, infinities, zeros, huge and tiny numbers

  double operator()(std::uint64_t index) const noexcept {
    if (pattern == Pattern::lowest) return static_cast<double>(least);
    if (pattern == Pattern::highest) return static_cast<double>(most);
    if (pattern == Pattern::alternating) return static_cast<double>(index % 2 == 0 ? least : most);
    const std::uint64_t bits = random_bits(seed, index);
    const double random = number_of(bits);
    return pattern == Pattern::one_huge && !is_integer && bits % huge_period == 0 ? 128 * random
                                                                                  : random;
  }

 private:
  static constexpr std::uint64_t huge_period = 127;

  double number_of(std::uint64_t bits) const noexcept {
    if (with_specials && !is_integer && bits % special_period == 0)
      return specials[mix_bits(bits) % std::size(specials)];
    if (is_integer || fill == Fill::integers) {
      const auto span = static_cast<std::uint64_t>(most - least + 1);
      return static_cast<double>(least + static_cast<std::int64_t>(bits % span));
    }
    if (fill == Fill::uniform) return scale * (2 * unit_of(static_cast<std::uint32_t>(bits)) - 1);
    return scale * standard_normal(bits);
  }

  static constexpr std::uint64_t special_period = 61;
  static constexpr double specials[] = {std::numeric_limits<double>::quiet_NaN(),
                                        std::numeric_limits<double>::infinity(),
                                        -std::numeric_limits<double>::infinity(),
                                        0.0,
                                        -0.0,
                                        60000.0,
                                        -1e30,
                                        1e-40};
};

}  // namespace gemmery::api
