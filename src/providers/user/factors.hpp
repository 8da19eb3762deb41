// SPDX-License-Identifier: Apache-2.0
// Expressions for numbers of blocks and bytes in a launch rule: products and quotients of numbers
// and extents, "4*m/64*multiprocessors".
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace gemmery::user {

// The kinds of factors.
enum class Quantity : std::uint8_t { number, m, n, k, l, multiprocessors };

// The values of these quantities for one launch.
struct Quantities {
  const GemmProblem& problem;
  std::int64_t multiprocessors;
};

class Factors {
 public:
  // Throws Error (invalid_argument), which names `field`, for text outside the grammar.
  Factors(std::string_view text, std::string_view field);

  // The product; nothing if it exceeds 63 bits. Quotients are rounded up.
  std::optional<std::int64_t> evaluate(const Quantities& quantities) const noexcept;
  bool mentions(Quantity quantity) const noexcept;

 private:
  struct Factor {
    Quantity quantity = Quantity::number;
    std::int64_t number = 1;
    std::int64_t divisor = 1;
  };
  std::vector<Factor> factors_;
};

}  // namespace gemmery::user
