// SPDX-License-Identifier: Apache-2.0
// Rows of groups by index on the CPU, compared with plain loops.
#include <gemmery/gemmery.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/support/error_of.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery {
namespace {

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t S = 9, R = 40, T = 24, G = 4, K = 7, N = 5;

// Integers, so that products are exact.
std::vector<float> numbers(std::int64_t count, int salt) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>((i * 7 + i / 5 + salt) % 9 - 4));
  return values;
}

template <class Integer>
GroupIndices of(const std::vector<Integer>& values) {
  return GroupIndices(std::span<const Integer>(values));
}

struct Rows {
  std::vector<float> a = numbers(S * K, 1), b = numbers(G * K * N, 2);
  std::vector<float> out = std::vector<float>(R * N, nan);
  std::vector<std::int32_t> ends{5, 5, 17, 20};  // rows 20 to 23 are of no group
  std::vector<std::int64_t> gather = std::vector<std::int64_t>(T, 1 << 20);
  std::vector<std::int32_t> scatter = std::vector<std::int32_t>(T, -77);

  Rows() {
    std::mt19937_64 random(tests::random_seed());
    std::vector<std::int32_t> places(R);
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<std::int32_t>(i);
    std::ranges::shuffle(places, random);
    for (std::size_t row = 0; row < 20; ++row) {
      gather[row] = static_cast<std::int64_t>(random() % (2 * S));
      scatter[row] = places[row];
    }
    gather[3] = gather[18] = -1;
    scatter[7] = scatter[18] = -1;
  }
  GroupedGemmArguments arguments(const GemmOptions& options = {}) const {
    return {Tensor(a.data(), DType::float32, {S, K}),
            Tensor(b.data(), DType::float32, {G, K, N}),
            Tensor(out.data(), DType::float32, {R, N}),
            DType::float32,
            {.sizes = of(ends),
             .check = true,
             .gather = of(gather),
             .gather_divide = 2,
             .scatter = of(scatter)},
            options};
  }
  // The expected out: `finish(sum, row of out, column, group)`, NaN in rows that are not written.
  template <class Finish>
  std::vector<float> expected(const Finish& finish) const {
    std::vector<float> values(R * N, nan);
    std::size_t group = 0;
    for (std::int64_t row = 0; row < 20; ++row) {
      while (row >= ends[group]) ++group;
      const std::int64_t target = scatter[static_cast<std::size_t>(row)];
      const std::int64_t source = gather[static_cast<std::size_t>(row)];
      if (target < 0) continue;
      for (std::int64_t column = 0; column < N; ++column) {
        float sum = 0;
        for (std::int64_t k = 0; source >= 0 && k < K; ++k)
          sum +=
              a[static_cast<std::size_t>(source / 2 * K + k)] *
              b[(group * K + static_cast<std::size_t>(k)) * N + static_cast<std::size_t>(column)];
        values[static_cast<std::size_t>(target * N + column)] = finish(sum, target, column, group);
      }
    }
    return values;
  }
};

void expect_equal(const std::vector<float>& got, const std::vector<float>& expected) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i])) {
      ASSERT_TRUE(std::isnan(got[i])) << i;
    } else {
      ASSERT_EQ(got[i], expected[i]) << i;
    }
  }
}

template <class Check>
void for_each_kernel(const GemmArguments& arguments, std::vector<float>& out, const Check& check) {
  const auto kernels = get_kernels(arguments);
  ASSERT_GE(kernels.size(), 2U);
  for (const Kernel& kernel : kernels) {
    SCOPED_TRACE(kernel.name());
    std::ranges::fill(out, nan);
    kernel.run(arguments, {.stream = Stream::cpu()});
    check();
  }
}

TEST(IndexedRows, rows_28_and_29_gather_weigh_scatter) {
  Rows rows;
  const std::vector<float> weights = numbers(R, 5), bias = numbers(G * N, 6);
  const GemmOptions options{
      .epilogue = EpilogueArguments("D = weight * (accum + bias)",
                                    {{"weight", Tensor(weights.data(), DType::float32, {R, 1})},
                                     {"bias", Tensor(bias.data(), DType::float32, {G, 1, N})}})};
  const GemmArguments arguments = rows.arguments(options);
  for_each_kernel(arguments, rows.out, [&] {
    expect_equal(rows.out, rows.expected([&](float sum, std::int64_t row, std::int64_t column,
                                             std::size_t group) {
      return weights[static_cast<std::size_t>(row)] *
             (sum + bias[group * N + static_cast<std::size_t>(column)]);
    }));
  });
}

TEST(IndexedRows, c_is_of_the_rows_of_out) {
  Rows rows;
  const std::vector<float> c = numbers(R * N, 3);
  const GemmArguments arguments =
      rows.arguments({.c = Tensor(c.data(), DType::float32, {R, N}), .alpha = 2, .beta = -1});
  for_each_kernel(arguments, rows.out, [&] {
    expect_equal(rows.out,
                 rows.expected([&](float sum, std::int64_t row, std::int64_t column, std::size_t) {
                   return 2 * sum - c[static_cast<std::size_t>(row * N + column)];
                 }));
  });
}

TEST(IndexedRows, further_results_go_where_rows_of_out_go) {
  Rows rows;
  std::vector<float> copy(R * N, nan), top(R, nan), sums(G * N, nan);
  const GemmOptions options{
      .epilogue = EpilogueArguments("D = -accum; copy = accum; top = max(accum); sums = sum(accum)",
                                    {{"copy", Tensor(copy.data(), DType::float32, {R, N})},
                                     {"top", Tensor(top.data(), DType::float32, {R, 1})},
                                     {"sums", Tensor(sums.data(), DType::float32, {G, 1, N})}})};
  for_each_kernel(rows.arguments(options), rows.out, [&] {
    const std::vector<float> products =
        rows.expected([](float sum, auto, auto, auto) { return sum; });
    expect_equal(copy, products);
    std::vector<float> own_sums(G * N, 0);
    rows.expected([&](float sum, auto, std::int64_t column, std::size_t group) {
      return own_sums[group * N + static_cast<std::size_t>(column)] += sum;
    });
    expect_equal(sums, own_sums);
    for (std::size_t row = 0; row < R; ++row) {
      const auto first = products.begin() + static_cast<std::ptrdiff_t>(row * N);
      if (std::isnan(*first)) {
        EXPECT_TRUE(std::isnan(top[row]));
      } else {
        EXPECT_EQ(top[row], *std::max_element(first, first + N));
      }
    }
  });
}

TEST(IndexedRows, columns_are_rows_of_the_transposed_problem) {
  Rows rows;
  std::vector<float> b(G * N * K);
  for (std::size_t g = 0; g < G; ++g)
    for (std::size_t k = 0; k < K; ++k)
      for (std::size_t n = 0; n < N; ++n) b[(g * N + n) * K + k] = rows.b[(g * K + k) * N + n];
  const GroupedGemmArguments arguments(Tensor(b.data(), DType::float32, {G, N, K}),
                                       Tensor(rows.a.data(), DType::float32, {K, S}, {1, K}),
                                       Tensor(rows.out.data(), DType::float32, {N, R}, {1, N}),
                                       DType::float32,
                                       {.sizes = of(rows.ends),
                                        .gather = of(rows.gather),
                                        .gather_divide = 2,
                                        .scatter = of(rows.scatter)});
  for_each_kernel(arguments, rows.out, [&] {
    expect_equal(rows.out, rows.expected([](float sum, auto, auto, auto) { return sum; }));
  });
}

TEST(IndexedRows, a_run_refuses_wrong_indices_before_it_writes) {
  Rows rows;
  const GemmArguments arguments = rows.arguments();
  const auto expect_refusal = [&](const std::string& says) {
    for (const Kernel& kernel : get_kernels(arguments)) {
      std::ranges::fill(rows.out, nan);
      const Error error =
          tests::error_of([&] { kernel.run(arguments, {.stream = Stream::cpu()}); });
      EXPECT_NE(std::string(error.what()).find(says), std::string::npos) << error.what();
      EXPECT_TRUE(std::ranges::all_of(rows.out, [](float value) { return std::isnan(value); }));
    }
  };
  rows.gather[11] = 2 * S;
  expect_refusal("gather[11]: expected -1, or from 0 to 17, got 18");
  rows.gather[11] = 0;
  rows.scatter[12] = rows.scatter[11];
  expect_refusal("scatter[12]");
}

}  // namespace
}  // namespace gemmery
