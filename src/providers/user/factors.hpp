// SPDX-License-Identifier: Apache-2.0
// What a recipe says of blocks and bytes: factors of numbers and extents, "4*m/64*multiprocessors".
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/problem.hpp>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace gemmery::user {

// What may stand for a number.
enum class Quantity : std::uint8_t { number, m, n, k, l, multiprocessors };

// What the quantities are for one launch.
struct Quantities {
  const GemmProblem& problem;
  std::int64_t multiprocessors;
};

class Factors {
 public:
  // Throws Error (invalid_argument) about `field` for text that is not of the grammar.
  Factors(std::string_view text, std::string_view field);

  // The product; nothing where it does not fit 63 bits. Quotients are rounded up.
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
