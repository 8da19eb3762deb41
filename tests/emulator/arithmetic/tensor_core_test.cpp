// SPDX-License-Identifier: Apache-2.0
// Matrix products compared with recorded results of tensor cores (tests/data/emulator/README.md).
#include "emulator/arithmetic/tensor_core.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <random>

#include "tests/emulator/recording/tensor_core_forms.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::emulator {
namespace {

namespace recording = gemmery::tests::recording;
using recording::Form;

MatrixElement element_of(recording::Element element) {
  using From = recording::Element;
  switch (element) {
    case From::f16:
      return MatrixElement::f16;
    case From::bf16:
      return MatrixElement::bf16;
    case From::tf32:
      return MatrixElement::tf32;
    case From::e4m3:
      return MatrixElement::e4m3;
    case From::e5m2:
      return MatrixElement::e5m2;
    case From::s8:
      return MatrixElement::s8;
    case From::u8:
      return MatrixElement::u8;
    case From::s4:
      return MatrixElement::s4;
    case From::u4:
      return MatrixElement::u4;
    case From::b1:
      return MatrixElement::b1;
    case From::f64:
      break;
  }
  return MatrixElement::f64;
}
Accumulator accumulator_of(recording::Sum sum) {
  switch (sum) {
    case recording::Sum::f32:
      return Accumulator::f32;
    case recording::Sum::f16:
      return Accumulator::f16;
    case recording::Sum::s32:
      return Accumulator::s32;
    case recording::Sum::f64:
      break;
  }
  return Accumulator::f64;
}

// The result as packed rows, the form of recorded results.
std::vector<std::uint32_t> multiply_case(const Form& form, int test_case) {
  const recording::Inputs in = recording::make_inputs(form, test_case);
  const bool is_half = form.sum == recording::Sum::f16;
  const auto a = recording::pack(in.a, recording::bits_of(form.a));
  const auto b = recording::pack(in.b, recording::bits_of(form.b));
  const auto c = recording::pack(in.c, is_half ? 32 : recording::bits_of(form.sum));
  std::vector<std::uint32_t> d(c.size());
  const bool is_narrow_float =
      form.a == recording::Element::e4m3 || form.a == recording::Element::e5m2;
  multiply({.a = element_of(form.a),
            .b = element_of(form.b),
            .accumulator = accumulator_of(form.sum),
            .m = static_cast<std::uint32_t>(form.m),
            .n = static_cast<std::uint32_t>(form.n),
            .k = static_cast<std::uint32_t>(form.k),
            .saturates = form.saturates,
            .is_xor = form.is_xor,
            .unpacks_to_f16 = is_narrow_float && !form.is_wgmma,
            .negates_a = form.negates_a,
            .negates_b = form.negates_b,
            .a_at = a.data(),
            .b_at = b.data(),
            .c_at = form.drops_c ? nullptr : c.data(),
            .d_at = d.data()});
  if (!is_half) return d;
  return recording::pack({d.begin(), d.end()}, 16);
}

TEST(TensorCore, every_form_gives_the_bits_that_hardware_gave) {
  std::ifstream file("tests/data/emulator/tensor_core.digests", std::ios::binary);
  ASSERT_TRUE(file) << "run from the root of the tree";
  for (const Form& form : recording::all_forms()) {
    std::vector<std::uint32_t> recorded(static_cast<std::size_t>(form.cases));
    file.read(reinterpret_cast<char*>(recorded.data()),
              static_cast<std::streamsize>(4 * recorded.size()));
    ASSERT_TRUE(file) << form.name;
    std::vector<int> differing;
    for (int test_case = 0; test_case < form.cases; ++test_case) {
      const auto d = multiply_case(form, test_case);
      if (recording::digest(d.data(), d.size()) != recorded[static_cast<std::size_t>(test_case)])
        differing.push_back(test_case);
    }
    EXPECT_TRUE(differing.empty())
        << form.name << ": " << differing.size() << " of " << form.cases
        << " cases differ, the first is case " << (differing.empty() ? 0 : differing.front());
  }
}

// Wide products process B's columns in blocks; narrow ones are checked by recorded results.
TEST(TensorCore, a_wide_product_is_made_of_narrow_ones) {
  std::mt19937_64 random(gemmery::tests::random_seed());
  const std::uint32_t m = 16, n = 8 * (1 + static_cast<std::uint32_t>(random() % 32)), k = 16;
  std::vector<std::uint16_t> a(m * k), b(n * k);
  std::vector<std::uint32_t> c(m * n), wide(m * n), narrow(m * 8);
  for (auto& x : a) x = static_cast<std::uint16_t>(random() & 0xbfff);
  for (auto& x : b) x = static_cast<std::uint16_t>(random() & 0xbfff);
  for (auto& x : c) x = static_cast<std::uint32_t>(random());
  MatrixProduct product{.a = MatrixElement::bf16,
                        .b = MatrixElement::bf16,
                        .m = m,
                        .n = n,
                        .k = k,
                        .a_at = a.data(),
                        .b_at = b.data(),
                        .c_at = c.data(),
                        .d_at = wide.data()};
  multiply(product);
  for (std::uint32_t first = 0; first < n; first += 8) {
    std::vector<std::uint32_t> some;
    for (std::uint32_t row = 0; row < m; ++row)
      some.insert(some.end(), c.begin() + row * n + first, c.begin() + row * n + first + 8);
    product.n = 8;
    product.b_at = b.data() + first * k;
    product.c_at = some.data();
    product.d_at = narrow.data();
    multiply(product);
    for (std::uint32_t row = 0; row < m; ++row)
      for (std::uint32_t x = 0; x < 8; ++x)
        ASSERT_EQ(wide[row * n + first + x], narrow[row * 8 + x]) << row << ", " << first + x;
  }
}

// Prints a figure; there is no limit.
TEST(TensorCore, tells_how_fast_it_is) {
  std::mt19937_64 random(gemmery::tests::random_seed());
  std::normal_distribution<float> normal;
  const std::uint32_t m = 16, n = 256, k = 16;
  std::vector<std::uint16_t> a(m * k);
  std::vector<std::vector<std::uint16_t>> tiles(16, std::vector<std::uint16_t>(n * k));
  std::vector<float> c(m * n);
  const auto bf16 = [&] {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(normal(random)) >> 16);
  };
  for (auto& x : a) x = bf16();
  for (auto& tile : tiles)
    for (auto& x : tile) x = bf16();
  const std::clock_t start = std::clock();
  constexpr int rounds = 1000;
  for (int round = 0; round < rounds; ++round)  // four warps take each tile
    multiply({.a = MatrixElement::bf16,
              .b = MatrixElement::bf16,
              .m = m,
              .n = n,
              .k = k,
              .a_at = a.data(),
              .b_at = tiles[static_cast<std::size_t>(round / 4 % 16)].data(),
              .c_at = c.data(),
              .d_at = c.data()});
  const double time = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::printf("bf16 m16n256k16: %.2f GFLOP/s of a core\n", 2e-9 * m * n * k * rounds / time);
  EXPECT_TRUE(std::isfinite(c[0]));

  const std::clock_t start_s8 = std::clock();
  for (int round = 0; round < rounds; ++round)
    multiply({.a = MatrixElement::s8,
              .b = MatrixElement::s8,
              .accumulator = Accumulator::s32,
              .m = m,
              .n = n,
              .k = 2 * k,
              .a_at = a.data(),
              .b_at = tiles[static_cast<std::size_t>(round / 4 % 16)].data(),
              .d_at = c.data()});
  const double time_s8 = static_cast<double>(std::clock() - start_s8) / CLOCKS_PER_SEC;
  std::printf("s8 m16n256k32: %.2f GFLOP/s of a core\n", 4e-9 * m * n * k * rounds / time_s8);
}

}  // namespace
}  // namespace gemmery::emulator
