// SPDX-License-Identifier: Apache-2.0
#include <gemmery/arguments.hpp>
#include <gemmery/error.hpp>

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>
#include <vector>

#include "operation/overlap.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery {
namespace {

struct Matrices {
  std::vector<float> memory = std::vector<float>(4096);
  Tensor a{&memory[0], DType::float32, {4, 6}};
  Tensor b{&memory[64], DType::float32, {6, 5}};
  Tensor c{&memory[128], DType::float32, {4, 5}};
  Tensor out{&memory[256], DType::float32, {4, 5}};
};

TEST(GemmArguments, describe_their_problem) {
  Matrices x;
  const GemmArguments arguments(x.a, x.b, x.out, {.c = x.c, .alpha = 2, .beta = 3});
  EXPECT_EQ(to_string(arguments.problem()), "gemm 4x5x6 a=f32 c=f32 beta=1");
  EXPECT_EQ(arguments.alpha(), 2);
  EXPECT_EQ(arguments.device(), Device::cpu());
}

TEST(GemmArguments, keep_a_c_whatever_beta_is) {
  Matrices x;
  const GemmArguments read(x.a, x.b, x.out, {.c = x.c, .beta = 2});
  const GemmArguments unread(x.a, x.b, x.out, {.c = x.c, .beta = 0});
  EXPECT_TRUE(unread.c());
  EXPECT_EQ(read.problem(), unread.problem());
}

TEST(GemmArguments, broadcast_batches_and_c) {
  std::vector<float> memory(4096);
  const Tensor a(&memory[0], DType::float32, {3, 4, 6});
  const Tensor b(&memory[100], DType::float32, {6, 5});
  const Tensor bias(&memory[200], DType::float32, {5});
  const Tensor out(&memory[300], DType::float32, {3, 4, 5});
  const GemmArguments arguments(a, b, out, {.c = bias, .beta = 1});
  EXPECT_EQ(arguments.problem().l, 3);
  EXPECT_EQ(arguments.b().stride(0), 0);
  EXPECT_EQ(arguments.c()->stride(1), 0);
  EXPECT_EQ(arguments.c()->stride(2), 1);
}

TEST(GemmArguments, take_zero_extents_everywhere) {
  for (int zero = 0; zero < 3; ++zero) {
    const std::int64_t m = zero == 0 ? 0 : 4;
    const std::int64_t n = zero == 1 ? 0 : 5;
    const std::int64_t k = zero == 2 ? 0 : 6;
    std::vector<float> memory(64);
    const GemmArguments arguments(
        Tensor(nullptr, DType::float32, {m, k}, {0, 0}).with_data(&memory[0]),
        Tensor(&memory[30], DType::float32, {k, n}), Tensor(&memory[40], DType::float32, {m, n}));
    EXPECT_EQ(arguments.problem().m, m);
  }
}

TEST(GemmArguments, in_place_c_is_taken_and_a_shifted_one_refused) {
  Matrices x;
  EXPECT_NO_THROW(GemmArguments(x.a, x.b, x.out, {.c = x.out, .beta = 1}));
  EXPECT_THROW(GemmArguments(x.a, x.b, x.out, {.c = x.out.with_data(&x.memory[257]), .beta = 1}),
               Error);
}

TEST(GemmArguments, interleaved_columns_do_not_overlap) {
  std::vector<float> memory(256);
  const Tensor a(&memory[0], DType::float32, {4, 4}, {8, 2});
  const Tensor b(&memory[100], DType::float32, {4, 4});
  const Tensor out(&memory[1], DType::float32, {4, 4}, {8, 2});
  EXPECT_NO_THROW(GemmArguments(a, b, out));
  EXPECT_THROW(GemmArguments(a, b, out.with_data(&memory[2])), Error);
}

TEST(GemmArguments, patching_keeps_the_problem_or_is_refused) {
  Matrices x;
  GemmArguments arguments(x.a, x.b, x.out, {.c = x.c, .beta = 1});
  arguments.set_data("A", &x.memory[512]);
  EXPECT_EQ(arguments.a().data(), &x.memory[512]);
  EXPECT_THROW(arguments.set_data("A", nullptr), Error);
  EXPECT_THROW(arguments.set_data("A", &x.memory[257]), Error);  // overlaps out
  EXPECT_THROW(arguments.set_data("X", &x.memory[512]), Error);
  arguments.set_scalars(1, 0);
  EXPECT_EQ(arguments.beta(), 0);
  arguments.set_scalars(0.5, 0.25);
  EXPECT_EQ(arguments.beta(), 0.25);
}

TEST(GemmArguments, patching_refuses_less_alignment) {
  std::vector<float> memory(4096);
  auto* const base =
      reinterpret_cast<float*>((reinterpret_cast<std::uintptr_t>(memory.data()) + 63) / 64 * 64);
  GemmArguments arguments(Tensor(base, DType::float32, {8, 8}),
                          Tensor(base + 64, DType::float32, {8, 8}),
                          Tensor(base + 128, DType::float32, {8, 8}));
  EXPECT_THROW(arguments.set_data("A", base + 257), Error);
  EXPECT_NO_THROW(arguments.set_data("A", base + 256));

  // The problem's alignment is required, not that of the previous memory.
  GemmArguments shifted(Tensor(base + 1, DType::float32, {8, 8}),
                        Tensor(base + 128, DType::float32, {8, 8}),
                        Tensor(base + 256, DType::float32, {8, 8}));
  EXPECT_NO_THROW(shifted.set_data("A", base));
  EXPECT_NO_THROW(shifted.set_data("A", base + 1));
}

// The offsets of all elements, for a comparison of all pairs.
std::vector<std::int64_t> element_offsets(const Tensor& tensor) {
  std::vector<std::int64_t> offsets{0};
  for (int d = 0; d < tensor.rank(); ++d) {
    std::vector<std::int64_t> next;
    for (const std::int64_t offset : offsets) {
      for (std::int64_t i = 0; i < tensor.extent(d); ++i)
        next.push_back(offset + i * tensor.stride(d));
    }
    offsets = next;
  }
  return offsets;
}

TEST(Overlap, agrees_with_brute_force_on_random_views) {
  std::mt19937_64 random(tests::random_seed());
  static std::array<std::int16_t, 8192> memory{};
  const auto view = [&] {
    const auto extent = [&] { return static_cast<std::int64_t>(random() % 5); };
    const auto stride = [&] { return static_cast<std::int64_t>(random() % 25) - 12; };
    return Tensor(&memory[4096 + random() % 16], DType::float16, {extent(), extent(), extent()},
                  {stride(), stride(), stride()});
  };
  int disjoint_pairs = 0;
  for (int round = 0; round < 20000; ++round) {
    const Tensor x = view();
    const Tensor y = view();
    const auto offsets = element_offsets(x);
    const std::set<std::int64_t> distinct(offsets.begin(), offsets.end());
    EXPECT_EQ(operation::has_self_overlap(x), distinct.size() != offsets.size()) << to_string(x);
    const auto shift =
        (static_cast<const std::int16_t*>(y.data()) - static_cast<const std::int16_t*>(x.data()));
    bool meets = false;
    for (const std::int64_t offset : element_offsets(y)) meets |= distinct.contains(offset + shift);
    if (!operation::may_overlap(x, y)) {
      EXPECT_FALSE(meets) << to_string(x) << " and " << to_string(y);
      ++disjoint_pairs;
    }
  }
  EXPECT_GT(disjoint_pairs, 100);
}

}  // namespace
}  // namespace gemmery
