// SPDX-License-Identifier: Apache-2.0
// Lines of random problems with scales, codes, quantised results and programs of operands, for the
// CPU, emulated devices and GPUs.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include <gemmery/problem.hpp>

namespace gemmery::tests {

// What random problems are drawn from: extents up to these, blocks of scales, and those of swizzled
// ones.
struct ScaleDraw {
  int most_rows;
  int most_k;
  std::vector<std::string> blocks = {"1x128", "128x128", "1x32",  "1x16",  "1x8",
                                     "64x64", "3x5",     "7xall", "allx24"};
  std::vector<std::string> swizzled = {"1x32", "1x16"};
};

// Lines of random problems with scales, which arguments take.
class RandomScales {
 public:
  RandomScales(std::uint64_t seed, ScaleDraw draw) : random_(seed), from_(std::move(draw)) {}

  // `operands`: the types of A and B.
  ProblemLine next(const std::vector<std::string>& operands);

 private:
  std::string line(const std::vector<std::string>& operands);
  std::string scales_of(const std::string& operand, bool is_of_integers);
  int draw(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  std::string one_of(const std::vector<std::string>& all) {
    return all[static_cast<std::size_t>(draw(0, static_cast<int>(all.size()) - 1))];
  }

  std::mt19937_64 random_;
  ScaleDraw from_;
};

// Blocks whose scales do not change within the k of one wgmma. Problems whose scales are all
// factors of sums are included.
inline ScaleDraw scales_for_wgmma() {
  return {.most_rows = 200,
          .most_k = 700,
          .blocks = {"1x128", "128x128", "1x32", "64x64", "3x96", "7xall", "1x256"},
          .swizzled = {"1x32", "1x128"}};
}

// A line with codes of one operand beside 16-bit floats. sm80 decodes all of them: dense or in
// groups of rows, of integers and floats, of a table's numbers, prepared or not. sm90 takes those
// that are dense and neither of a table nor prepared.
std::string draw_codes(std::mt19937_64& random, bool is_for_sm80);

// A line with blocks of one row (of one column, if out's columns are adjacent) that fit a staging
// tile of sm90, in results of 8 to 32 bits.
std::string draw_quantised(std::mt19937_64& random);

// Lines with programs on the elements of A, of B, or of both.
class RandomOperandPrograms {
 public:
  explicit RandomOperandPrograms(std::uint64_t seed) : random_(seed) {}

  // Extents are at most `most`.
  std::string line(int most);
  std::string grouped_line();
  // The fields of a program of an operand and of its tensors.
  std::string program(bool is_a, bool has_batch);

 private:
  std::string value(int depth);
  std::string types();
  int below(int end) { return static_cast<int>(random_() % static_cast<unsigned>(end)); }
  std::string pick(std::initializer_list<const char*> words) {
    return words.begin()[below(static_cast<int>(words.size()))];
  }

  std::mt19937_64 random_;
};

}  // namespace gemmery::tests
