// SPDX-License-Identifier: Apache-2.0
// A matrix whose columns move by one with every multiplication: results are exact, and a lost or
// repeated launch in a chain is detected.
#pragma once

#include <gemmery/gemmery.hpp>

#include <cstdint>
#include <random>
#include <vector>

namespace gemmery::tests {

// Two buffers of m x n bfloat16 numbers, and the n x n matrix that moves columns by one.
class MovingColumns {
 public:
  MovingColumns(std::int64_t m, std::int64_t n, std::uint64_t seed, Stream stream);

  // From the first buffer into the second, or back.
  GemmArguments forth() const { return product(first_, second_); }
  GemmArguments back() const { return product(second_, first_); }

  // Fills the first buffer with new random whole numbers, the second with poison.
  void refill();

  // The number of wrong elements in the first buffer (for an even number of moves) or the second:
  // those that differ from the filled-in numbers with their columns moved that often.
  std::int64_t count_wrong(std::int64_t moves) const;

 private:
  GemmArguments product(const Buffer& from, const Buffer& to) const;

  std::int64_t m_, n_;
  Stream stream_;
  std::mt19937_64 random_;
  std::vector<std::uint16_t> host_;
  Buffer first_, second_, shift_;
};

}  // namespace gemmery::tests
