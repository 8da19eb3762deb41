// SPDX-License-Identifier: Apache-2.0
// Elementwise arguments: their problem, errors, and results on the host.
#include <gemmery/buffer.hpp>
#include <gemmery/discovery.hpp>
#include <gemmery/elementwise.hpp>
#include <gemmery/error.hpp>
#include <gemmery/verify.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/support/random_seed.hpp"

namespace gemmery {
namespace {

void run_best(const GemmArguments& arguments) {
  const auto kernels = get_kernels(arguments);
  ASSERT_FALSE(kernels.empty()) << to_string(explain(arguments));
  kernels.front().run(arguments, {.stream = Stream::cpu()});
}

std::string refusal_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(ElementwiseArguments, add_two_tensors_by_default) {
  std::vector<float> a{1, 2, 3, 4, 5, 6}, b{10, 20, 30, 40, 50, 60}, out(6);
  const ElementwiseArguments sum({a.data(), DType::float32, {2, 3}},
                                 {b.data(), DType::float32, {2, 3}},
                                 {out.data(), DType::float32, {2, 3}});
  EXPECT_EQ(sum.problem().k, 0);
  run_best(sum);
  EXPECT_EQ(out, (std::vector<float>{11, 22, 33, 44, 55, 66}));
}

TEST(ElementwiseArguments, broadcast_what_they_read) {
  std::vector<float> a{1, 2, 3}, b{10, 20}, out(6);
  const ElementwiseArguments sum({a.data(), DType::float32, {3}},
                                 {b.data(), DType::float32, {2, 1}},
                                 {out.data(), DType::float32, {2, 3}}, "D = A * B");
  run_best(sum);
  EXPECT_EQ(out, (std::vector<float>{10, 20, 30, 20, 40, 60}));
}

TEST(ElementwiseArguments, take_vectors_and_batches) {
  std::vector<float> a(24, 2), out(24);
  run_best(ElementwiseArguments({out.data(), DType::float32, {24}},
                                {"D = x + 1", {{"x", Tensor(a.data(), DType::float32, {24})}}}));
  EXPECT_EQ(out, std::vector<float>(24, 3));
  run_best(ElementwiseArguments(
      {out.data(), DType::float32, {2, 3, 4}},
      {"D = x * s", {{"x", Tensor(a.data(), DType::float32, {2, 3, 4})}, {"s", 0.5}}}));
  EXPECT_EQ(out, std::vector<float>(24, 1));
}

// Sums of 32-bit integers that are not exact in float32.
TEST(ElementwiseArguments, are_exact_for_integers) {
  std::mt19937_64 random(tests::random_seed());
  std::uniform_int_distribution<std::int32_t> numbers(-(1 << 30), 1 << 30);
  std::vector<std::int32_t> a(100), b(100), out(100), expected(100);
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = numbers(random);
    b[i] = numbers(random) / 2;
    expected[i] = a[i] + b[i];
  }
  const auto view = [](std::vector<std::int32_t>& numbers_of) {
    return Tensor(numbers_of.data(), DType::int32, {10, 10});
  };
  run_best(ElementwiseArguments(view(a), view(b), view(out)));
  EXPECT_EQ(out, expected);
}

TEST(ElementwiseArguments, write_over_what_they_read_and_are_patched) {
  std::vector<float> a{1, 2}, b{10, 20}, other{100, 200};
  const Tensor out(a.data(), DType::float32, {1, 2});
  ElementwiseArguments sum(out, {b.data(), DType::float32, {1, 2}}, out);
  run_best(sum);
  EXPECT_EQ(a, (std::vector<float>{11, 22}));
  sum.set_data("B", other.data());
  run_best(sum);
  EXPECT_EQ(a, (std::vector<float>{111, 222}));
}

// As a matrix, rows of odd lengths would not be aligned.
TEST(ElementwiseArguments, are_one_vector_where_all_is_packed_and_of_one_shape) {
  std::vector<float> a(3 * 5 * 7, 1), b(3 * 5 * 7, 2), out(3 * 5 * 7);
  const auto view = [](std::vector<float>& values) {
    return Tensor(values.data(), DType::float32, {1, 3, 1, 5, 7});
  };
  const ElementwiseArguments sum(view(a), view(b), view(out));
  EXPECT_EQ(sum.problem().m, 1);
  EXPECT_EQ(sum.problem().n, 3 * 5 * 7);
  run_best(sum);
  EXPECT_EQ(out, std::vector<float>(3 * 5 * 7, 3));
  const ElementwiseArguments biased(Tensor(out.data(), DType::float32, {15, 7}),
                                    {"D = x + row",
                                     {{"x", Tensor(a.data(), DType::float32, {15, 7})},
                                      {"row", Tensor(b.data(), DType::float32, {7})}}});
  EXPECT_EQ(biased.problem().m, 15);
  const ElementwiseArguments turned(Tensor(out.data(), DType::float32, {15, 7}),
                                    {"D = x + 1; half = x / 2",
                                     {{"x", Tensor(a.data(), DType::float32, {15, 7}, {1, 15})},
                                      {"half", Tensor(b.data(), DType::float32, {15, 7})}}});
  EXPECT_EQ(turned.problem().m, 15);
  run_best(turned);
  EXPECT_EQ(b, std::vector<float>(3 * 5 * 7, 0.5));
}

TEST(ElementwiseArguments, refuse_by_the_name_of_the_operand) {
  std::vector<float> memory(64);
  const auto tensor = [&](std::initializer_list<std::int64_t> shape) {
    return Tensor(memory.data(), DType::float32, shape);
  };
  const std::string shapes = refusal_of([&] {
    (void)ElementwiseArguments(tensor({2, 3}), tensor({2, 4}),
                               Tensor(memory.data() + 32, DType::float32, {2, 3}));
  });
  EXPECT_NE(shapes.find("operand B"), std::string::npos) << shapes;
  const std::string ranks = refusal_of([&] {
    (void)ElementwiseArguments(tensor({2}), tensor({2}),
                               Tensor(memory.data() + 32, DType::float32, {1, 1, 2, 2}));
  });
  EXPECT_NE(ranks.find("rank 4"), std::string::npos) << ranks;
}

}  // namespace
}  // namespace gemmery
