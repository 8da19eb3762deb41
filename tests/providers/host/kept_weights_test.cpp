// SPDX-License-Identifier: Apache-2.0
#include "providers/host/kept_weights.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random_seed.hpp"

namespace gemmery::host {
namespace {

using Bytes = std::vector<unsigned char>;

// "Reorders" by reversing.
KeptWeights::Memory reversed(KeptWeights& kept, std::uint64_t format, const Bytes& source,
                             int& made) {
  return kept.get({format, source.data(), source.size()}, source.size(), [&](void* to) {
    ++made;
    std::reverse_copy(source.begin(), source.end(), static_cast<unsigned char*>(to));
  });
}

bool is_reversed(const KeptWeights::Memory& memory, const Bytes& source) {
  return std::equal(source.rbegin(), source.rend(), static_cast<unsigned char*>(memory.get()));
}

TEST(KeptWeights, are_made_once_for_the_same_contents) {
  KeptWeights kept;
  int made = 0;
  Bytes source(1000);
  std::iota(source.begin(), source.end(), 0);
  const auto first = reversed(kept, 1, source, made);
  const Bytes copy = source;
  EXPECT_EQ(reversed(kept, 1, copy, made), first) << "contents count, not addresses";
  EXPECT_EQ(made, 1);
  EXPECT_NE(reversed(kept, 2, source, made), first) << "another format";
  EXPECT_EQ(made, 2);
}

TEST(KeptWeights, notice_every_changed_bit) {
  std::mt19937_64 random(tests::random_seed());
  KeptWeights kept;
  int made = 0;
  Bytes source(700'001);  // chunks, the last one partly filled
  for (auto& byte : source) byte = static_cast<unsigned char>(random());
  for (int repeat = 0; repeat < 40; ++repeat) {
    source[random() % source.size()] ^= static_cast<unsigned char>(1U << random() % 8);
    if (repeat == 0) source.back() ^= 1;
    ASSERT_TRUE(is_reversed(reversed(kept, 1, source, made), source)) << repeat;
    ASSERT_EQ(made, repeat + 1);
  }
}

TEST(KeptWeights, are_dropped_beyond_the_limits_the_oldest_first) {
  KeptWeights kept({.bytes = 2500, .each = 8});
  int made = 0;
  const Bytes a(1000, 1), b(1000, 2), c(1000, 3);
  reversed(kept, 1, a, made);
  reversed(kept, 2, b, made);
  reversed(kept, 1, a, made);
  reversed(kept, 3, c, made);  // drops b
  EXPECT_EQ(made, 3);
  reversed(kept, 1, a, made);
  EXPECT_EQ(made, 3);
  reversed(kept, 2, b, made);
  EXPECT_EQ(made, 4);
}

TEST(KeptWeights, memory_of_the_oldest_of_a_format_is_used_again_unless_a_call_reads_it) {
  KeptWeights kept({.bytes = 1 << 20, .each = 1});
  int made = 0;
  const Bytes a(1000, 1), b(1000, 2), c(1000, 3);
  void* const place = reversed(kept, 1, a, made).get();
  const auto second = reversed(kept, 1, b, made);
  EXPECT_EQ(second.get(), place);
  const auto third = reversed(kept, 1, c, made);
  EXPECT_NE(third.get(), place);
  EXPECT_TRUE(is_reversed(second, b));
  EXPECT_TRUE(is_reversed(third, c));
}

TEST(KeptWeights, what_was_written_to_meanwhile_is_not_kept) {
  KeptWeights kept;
  Bytes source(1000, 1);
  kept.get({1, source.data(), source.size()}, source.size(), [&](void* to) {
    source[0] = 2;
    std::memcpy(to, source.data(), source.size());
  });
  source[0] = 1;
  int made = 0;
  EXPECT_TRUE(is_reversed(reversed(kept, 1, source, made), source));
  EXPECT_EQ(made, 1);
}

TEST(KeptWeights, many_threads_share_them) {
  KeptWeights kept({.bytes = 3000, .each = 2});
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&kept, t] {
      int made = 0;
      for (int repeat = 0; repeat < 200; ++repeat) {
        const Bytes source(700, static_cast<unsigned char>((repeat + t) % 5));
        EXPECT_TRUE(is_reversed(
            reversed(kept, static_cast<std::uint64_t>(repeat % 2), source, made), source));
      }
    });
}

}  // namespace
}  // namespace gemmery::host
