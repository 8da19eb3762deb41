// SPDX-License-Identifier: Apache-2.0
// A matrix whose columns move by one with every multiplication: results are exact, and each launch
// of a chain of them shows.
#pragma once

#include <gemmery/gemmery.hpp>

#include <cstdint>
#include <random>
#include <vector>

namespace gemmery::tests {

// Two buffers of m x n numbers of bfloat16 and the n x n matrix that moves columns by one.
class MovingColumns {
 public:
  MovingColumns(std::int64_t m, std::int64_t n, std::uint64_t seed, Stream stream);

  // From the first buffer into the second, or back.
  GemmArguments forth() const { return product(first_, second_); }
  GemmArguments back() const { return product(second_, first_); }

  // Fills the first buffer with new random whole numbers, the second with poison.
  void refill();

  // How many numbers of the first buffer (after an even count of moves) or of the second are not
  // those that were filled in, their columns moved so often.
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
