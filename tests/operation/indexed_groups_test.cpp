// SPDX-License-Identifier: Apache-2.0
// Rows of groups by index: valid arguments, and errors that name the operand.
#include <gemmery/gemmery.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "operation/groups.hpp"
#include "tests/support/error_of.hpp"

namespace gemmery {
namespace {

using tests::error_of;

alignas(64) std::array<float, 1 << 10> a_memory, b_memory, out_memory;

Tensor f32(const void* data, std::initializer_list<std::int64_t> shape) {
  return Tensor(data, DType::float32, shape);
}

// 3 groups with 6 rows in all; A has 20 rows, out has 30.
constexpr std::int64_t S = 20, R = 30, G = 3, K = 4, N = 5;
using Six = std::array<std::int32_t, 6>;
constexpr std::array<std::int32_t, 3> ends{2, 2, 5};
constexpr Six in_order{0, 1, 2, 3, 4, 5};

template <std::size_t count, class Integer>
GroupIndices of(const std::array<Integer, count>& values) {
  return GroupIndices(std::span<const Integer>(values));
}

GroupedGemmArguments rows(GroupOffsets offsets, std::int64_t a_rows = S, std::int64_t out_rows = R,
                          const GemmOptions& options = {}) {
  offsets.sizes = of(ends);
  return {f32(a_memory.data(), {a_rows, K}),
          f32(b_memory.data(), {G, K, N}),
          f32(out_memory.data(), {out_rows, N}),
          DType::float32,
          offsets,
          options};
}

TEST(IndexedGroups, indices_say_how_many_rows_all_groups_have) {
  const GroupedGemmArguments both = rows({.gather = of(in_order), .scatter = of(in_order)});
  EXPECT_EQ(to_string(both.problem()),
            "grouped_gemm 6x5x4 groups=3 gather=i32/of=20 scatter=i32/of=30 a=f32");
  EXPECT_EQ(parse_problem(to_string(both.problem())).problem, both.problem());
  EXPECT_EQ(both.problem().flops(), 2.0 * 6 * 5 * 4);
  EXPECT_EQ(rows({.gather = of(in_order)}, S, 6).problem().m, 6);
  EXPECT_EQ(rows({.scatter = of(in_order)}, 6, R).problem().m, 6);
}

TEST(IndexedGroups, columns_are_found_where_n_differs) {
  const GroupedGemmArguments arguments(
      f32(a_memory.data(), {G, 5, K}), f32(b_memory.data(), {K, S}), f32(out_memory.data(), {5, R}),
      DType::float32,
      {.sizes = of(ends), .gather = of(in_order), .gather_divide = 2, .scatter = of(in_order)});
  EXPECT_EQ(
      to_string(arguments.problem()),
      "grouped_gemm 5x6x4 groups=3 ragged=n gather=i32/of=20/divide=2 scatter=i32/of=30 a=f32");
}

TEST(IndexedGroups, where_rows_lie_is_part_of_a_problem_and_indices_are_not) {
  constexpr Six other{5, 4, 3, 2, 1, 0};
  const GemmProblem one = rows({.gather = of(in_order)}, S, 6).problem();
  EXPECT_EQ(one, rows({.gather = of(other)}, S, 6).problem());
  EXPECT_EQ(hash_value(one), hash_value(rows({.gather = of(other)}, S, 6).problem()));
  const GemmProblem divided = rows({.gather = of(other), .gather_divide = 2}, S, 6).problem();
  EXPECT_NE(one, divided);
  EXPECT_NE(hash_value(one), hash_value(divided));
  EXPECT_NE(hash_value(one), hash_value(rows({.gather = of(other)}, S + 1, 6).problem()));
}

TEST(IndexedGroups, set_data_binds_other_indices) {
  GroupedGemmArguments arguments = rows({.gather = of(in_order), .scatter = of(in_order)});
  constexpr Six other{5, 4, 3, 2, 1, 0};
  arguments.set_data("gather", other.data());
  arguments.set_data("scatter", other.data());
  EXPECT_EQ(arguments.as_gemm().group_memory()->gather.data, other.data());
  EXPECT_EQ(arguments.as_gemm().group_memory()->scatter.data, other.data());
  GroupedGemmArguments without = rows({.gather = of(in_order)}, S, 6);
  EXPECT_NE(std::string(error_of([&] { without.set_data("scatter", other.data()); }).what())
                .find("set_data"),
            std::string::npos);
}

struct Refusal {
  const char* name;
  const char* operand;
  const char* says;
  std::function<void()> act;
};

// Makes arguments that check the indices.
std::function<void()> checking(const Six& gather, const Six& scatter, std::int32_t divide = 1) {
  return [=] {
    rows({.check = true, .gather = of(gather), .gather_divide = divide, .scatter = of(scatter)});
  };
}

TEST(IndexedGroups, what_does_not_fit_is_refused_by_name) {
  constexpr std::array<std::int32_t, 5> five{};
  const GroupIndices six = of(in_order);
  const std::vector<Refusal> refusals{
      {"beyond A", "gather[3]", "from 0 to 19, got 20", checking({0, 1, 2, 20, 4, 5}, in_order)},
      {"beyond A times top k", "gather[0]", "from 0 to 39, got 40",
       checking({40, 39, 2, 3, 4, 5}, in_order, 2)},
      {"below -1", "gather[1]", "got -2", checking({0, -2, 2, 3, 4, 5}, in_order)},
      {"beyond out", "scatter[4]", "from 0 to 29, got 30", checking(in_order, {0, 1, 2, 3, 30, 5})},
      {"two to one row", "scatter[4]", "got 1, as in scatter[1]",
       checking(in_order, {0, 1, 2, 3, 1, 5})},
      {"too few for out", "gather", "expected 6 indices, one for each row of out, got 5",
       [&] { rows({.gather = of(five)}, S, 6); }},
      {"too few for A", "scatter", "expected 6 indices, one for each row of A, got 5",
       [&] { rows({.scatter = of(five)}, 6, R); }},
      {"as many of both", "scatter", "expected 6 indices, one for each index of gather, got 5",
       [&] { rows({.gather = six, .scatter = of(five)}); }},
      {"no memory", "gather", "null pointer",
       [] { rows({.gather = GroupIndices(static_cast<const std::int32_t*>(nullptr), 6)}, S, 6); }},
      {"elsewhere", "scatter", "where out is",
       [&] { rows({.scatter = GroupIndices(in_order.data(), 6, Device::cuda(0))}, 6, R); }},
      {"a divisor of 0", "divide of gather", "got 0",
       [&] { rows({.gather = six, .gather_divide = 0}, S, 6); }},
      {"zeros elsewhere", "outside", "untouched beside a scatter",
       [&] { rows({.outside = OutsideGroups::zero, .scatter = six}, 6, R); }},
      {"indices within out", "out", "shares nothing with scatter",
       [] {
         rows(
             {.scatter = GroupIndices(reinterpret_cast<const std::int32_t*>(out_memory.data()), 6)},
             6, R);
       }},
      {"along K", "gather", "groups of K",
       [&] {
         GroupedGemmArguments(f32(a_memory.data(), {2, 6}), f32(b_memory.data(), {6, 5}),
                              f32(out_memory.data(), {3, 2, 5}), DType::float32,
                              {.sizes = of(ends), .gather = six});
       }},
      {"masked", "scatter", "masked groups",
       [&] {
         GroupedGemmArguments(f32(a_memory.data(), {3, 2, 4}), f32(b_memory.data(), {3, 4, 5}),
                              f32(out_memory.data(), {3, 2, 5}), DType::float32,
                              {.sizes = of(ends), .form = GroupSizes::masked, .scatter = six});
       }},
  };
  for (const Refusal& row : refusals) {
    const std::string text = error_of(row.act).what();
    EXPECT_NE(text.find(row.operand), std::string::npos) << row.name << ": " << text;
    EXPECT_NE(text.find(row.says), std::string::npos) << row.name << ": " << text;
  }
}

// Row 5 belongs to no group.
TEST(IndexedGroups, indices_of_rows_in_no_group_are_anything) {
  EXPECT_NO_THROW(checking({0, 0, -1, 3, 4, 1 << 30}, {9, -1, 8, -1, 7, 9})());
}

}  // namespace
}  // namespace gemmery
