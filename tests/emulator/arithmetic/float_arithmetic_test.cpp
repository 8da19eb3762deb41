// SPDX-License-Identifier: Apache-2.0
// f32 and f64 in every rounding mode against the host's own rounding modes.
#include "emulator/arithmetic/float_arithmetic.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <functional>
#include <random>

#include "tests/support/random_seed.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::array<Rounding, 4> all_roundings = {Rounding::nearest_even, Rounding::toward_zero,
                                                   Rounding::down, Rounding::up};

int host_mode(Rounding rounding) {
  switch (rounding) {
    case Rounding::toward_zero:
      return FE_TOWARDZERO;
    case Rounding::down:
      return FE_DOWNWARD;
    case Rounding::up:
      return FE_UPWARD;
    default:
      return FE_TONEAREST;
  }
}

// Operands and results go through volatile, so that nothing is computed in another mode.
template <class Float, class Calculate>
Float in_mode(Rounding rounding, Calculate calculate) {
  std::fesetround(host_mode(rounding));
  volatile Float result = calculate();
  std::fesetround(FE_TONEAREST);
  return result;
}

// Values of every size, near each other often, so that sums cancel and products underflow.
template <class Float>
class Values {
 public:
  Float operator()() {
    using Bits = FloatBits<Float>;
    static constexpr std::array<double, 10> edges = {0.0,       -0.0, 1.0, -1.0, HUGE_VAL,
                                                     -HUGE_VAL, 2.0,  0.5, 3.0,  -1.5};
    const std::uint64_t choice = random_() % 8;
    if (choice == 0) return static_cast<Float>(edges[random_() % edges.size()]);
    if (choice == 1) return std::bit_cast<Float>(static_cast<Bits>(random_() % 8));
    if (choice == 2) return std::nextafter(last_, static_cast<Float>(random_() % 2 ? 0 : 9));
    if (choice == 3) return -last_;
    last_ = std::bit_cast<Float>(static_cast<Bits>(random_()));
    if (choice >= 6)
      last_ = std::ldexp(static_cast<Float>(random_() % (1u << 24)),
                         static_cast<int>(random_() % 60) - 50);
    if (last_ != last_) last_ = 1;
    return last_;
  }

 private:
  std::mt19937_64 random_{tests::random_seed()};
  Float last_ = 1;
};

template <class Float>
void expect_same(Float made, Float expected, Rounding rounding, Float a, Float b, Float c) {
  if (made != made && expected != expected) return;
  ASSERT_EQ(std::bit_cast<FloatBits<Float>>(made), std::bit_cast<FloatBits<Float>>(expected))
      << std::hexfloat << made << " for " << expected << ", rounding " << static_cast<int>(rounding)
      << ", of " << a << ", " << b << ", " << c;
}

template <class Float>
void compare_with_the_host() {
  Values<Float> values;
  for (int round = 0; round < 200'000; ++round) {
    volatile Float a = values(), b = values(), c = values();
    const Float x = a, y = b, z = c;
    for (const Rounding rounding : all_roundings) {
      expect_same<Float>(add(x, y, rounding), in_mode<Float>(rounding, [&] { return a + b; }),
                         rounding, x, y, z);
      expect_same<Float>(multiply(x, y, rounding), in_mode<Float>(rounding, [&] { return a * b; }),
                         rounding, x, y, z);
      expect_same<Float>(divide(x, y, rounding), in_mode<Float>(rounding, [&] { return a / b; }),
                         rounding, x, y, z);
      expect_same<Float>(square_root(x, rounding),
                         in_mode<Float>(rounding, [&] { return std::sqrt(a); }), rounding, x, y, z);
      expect_same<Float>(fma(x, y, z, rounding),
                         in_mode<Float>(rounding, [&] { return std::fma(a, b, c); }), rounding, x,
                         y, z);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(FloatArithmetic, f32_rounds_as_the_host_does_in_every_mode) { compare_with_the_host<float>(); }
TEST(FloatArithmetic, f64_rounds_as_the_host_does_in_every_mode) {
  compare_with_the_host<double>();
}

TEST(FloatArithmetic, every_f32_nan_is_the_canonical_one) {
  const float nan = std::bit_cast<float>(0xffc01234u), infinity = HUGE_VALF;
  for (const float made :
       {add(nan, 1.0f, Rounding::nearest_even), add(infinity, -infinity, Rounding::up),
        multiply(0.0f, infinity, Rounding::down), divide(0.0f, 0.0f, Rounding::nearest_even),
        square_root(-1.0f, Rounding::nearest_even)})
    EXPECT_EQ(std::bit_cast<std::uint32_t>(made), f32_nan);
}

TEST(FloatArithmetic, a_zero_sum_is_negative_when_rounding_down) {
  EXPECT_TRUE(std::signbit(add(1.0f, -1.0f, Rounding::down)));
  EXPECT_FALSE(std::signbit(add(1.0f, -1.0f, Rounding::up)));
  EXPECT_FALSE(std::signbit(add(0.0f, 0.0f, Rounding::down)));
}

TEST(FloatArithmetic, extremes_prefer_numbers_and_order_zeros) {
  const float nan = std::nanf("");
  EXPECT_EQ(extreme(nan, 2.0f, Extreme::minimum, false, nan), 2.0f);
  EXPECT_TRUE(std::isnan(extreme(nan, 2.0f, Extreme::minimum, true, nan)));
  EXPECT_TRUE(std::signbit(extreme(0.0f, -0.0f, Extreme::minimum, false, nan)));
  EXPECT_FALSE(std::signbit(extreme(-0.0f, 0.0f, Extreme::maximum, false, nan)));
}

TEST(FloatArithmetic, modifiers_flush_and_saturate) {
  EXPECT_TRUE(std::signbit(flush(-0x1p-140f)));
  EXPECT_EQ(flush(-0x1p-140f), 0.0f);
  EXPECT_EQ(flush(0x1p-126f), 0x1p-126f);
  EXPECT_EQ(saturate(std::nanf("")), 0.0f);
  EXPECT_FALSE(std::signbit(saturate(-0.0f)));
  EXPECT_EQ(saturate(1.5f), 1.0f);
}

}  // namespace
}  // namespace gemmery::emulator
