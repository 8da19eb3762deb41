// SPDX-License-Identifier: Apache-2.0
// Arguments and lines of grouped problems: valid ones, and errors that name the operand.
#include <gemmery/gemmery.hpp>

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "operation/groups.hpp"
#include "tests/support/error_of.hpp"

namespace gemmery {
namespace {

using operation::GroupSlice;
using operation::read_groups;
using tests::error_of;

// Memory for all tests.
alignas(64) std::array<float, 1 << 14> a_memory, b_memory, out_memory, c_memory;

using Shape = std::initializer_list<std::int64_t>;
Tensor f32(const void* data, Shape shape) { return Tensor(data, DType::float32, shape); }

constexpr std::int64_t T = 12, G = 3, K = 4, N = 5;
const Tensor a_rows = f32(a_memory.data(), {T, K});
const Tensor b_stack = f32(b_memory.data(), {G, K, N});
const Tensor out_rows = f32(out_memory.data(), {T, N});

GroupedGemmArguments rows(const GroupOffsets& offsets, const GemmOptions& options = {}) {
  return {a_rows, b_stack, out_rows, DType::float32, offsets, options};
}

template <std::size_t count>
GroupIndices of(const std::array<std::int32_t, count>& values) {
  return GroupIndices(std::span<const std::int32_t>(values));
}
template <std::size_t count>
GroupIndices of(const std::array<std::int64_t, count>& values) {
  return GroupIndices(std::span<const std::int64_t>(values));
}

constexpr std::array<std::int32_t, 3> ends{5, 5, 10};

std::vector<std::array<std::int64_t, 3>> slices_of(const GemmArguments& arguments) {
  std::vector<std::array<std::int64_t, 3>> list;
  for (const GroupSlice& slice : read_groups(arguments))
    list.push_back({slice.group, slice.begin, slice.size});
  return list;
}
using Slices = std::vector<std::array<std::int64_t, 3>>;

// --- forms --------------------------------------------------------------------------------------

TEST(Grouped, every_form_of_the_sizes_says_the_same) {
  const Slices expected{{0, 0, 5}, {1, 5, 0}, {2, 5, 5}};
  EXPECT_EQ(slices_of(rows({.sizes = of(ends)})), expected);
  constexpr std::array<std::int64_t, 3> wide{5, 5, 10};
  EXPECT_EQ(slices_of(rows({.sizes = of(wide)})), expected);
  constexpr std::array<std::int32_t, 4> prefix{0, 5, 5, 10};
  EXPECT_EQ(slices_of(rows({.sizes = of(prefix), .form = GroupSizes::prefix})), expected);
  constexpr std::array<std::int32_t, 3> counts{5, 0, 5};
  EXPECT_EQ(slices_of(rows({.sizes = of(counts), .form = GroupSizes::counts})), expected);
  constexpr std::array<std::int32_t, T> labels{0, 0, 0, 0, 0, 2, 2, 2, 2, 2, -1, -1};
  EXPECT_EQ(slices_of(rows({.sizes = of(labels), .form = GroupSizes::labels})),
            (Slices{{0, 0, 5}, {2, 5, 5}}));
}

TEST(Grouped, a_group_starts_at_the_next_multiple_of_the_alignment) {
  EXPECT_EQ(slices_of(rows({.sizes = of(std::array<std::int32_t, 3>{3, 3, 11}), .alignment = 8})),
            (Slices{{0, 0, 3}, {1, 3, 0}, {2, 8, 3}}));
  EXPECT_EQ(slices_of(rows({.sizes = of(std::array<std::int32_t, 3>{3, 8, 11}), .alignment = 8})),
            (Slices{{0, 0, 3}, {1, 8, 0}, {2, 8, 3}}));
}

TEST(Grouped, ranks_say_which_extent_differs) {
  const auto ragged = [](Shape a, Shape b, Shape out) {
    const GroupedGemmArguments arguments(f32(a_memory.data(), a), f32(b_memory.data(), b),
                                         f32(out_memory.data(), out), DType::float32,
                                         {.sizes = of(ends)});
    return arguments.problem().groups->ragged;
  };
  EXPECT_EQ(ragged({12, 4}, {3, 4, 5}, {12, 5}), Ragged::m);
  EXPECT_EQ(ragged({3, 2, 4}, {4, 12}, {2, 12}), Ragged::n);
  EXPECT_EQ(ragged({2, 12}, {12, 5}, {3, 2, 5}), Ragged::k);
}

TEST(Grouped, sizes_are_not_part_of_the_problem) {
  constexpr std::array<std::int32_t, 3> other{1, 2, 12};
  EXPECT_EQ(rows({.sizes = of(ends)}).problem(), rows({.sizes = of(other)}).problem());
  EXPECT_EQ(hash_value(rows({.sizes = of(ends)}).problem()),
            hash_value(rows({.sizes = of(other)}).problem()));
  EXPECT_NE(rows({.sizes = of(ends)}).problem(),
            rows({.sizes = of(ends), .outside = OutsideGroups::zero}).problem());
  EXPECT_NE(hash_value(rows({.sizes = of(ends)}).problem()),
            hash_value(rows({.sizes = of(ends), .alignment = 2}).problem()));
}

TEST(Grouped, sizes_are_read_when_work_runs_unless_they_were_to_be_read_early) {
  std::array<std::int32_t, 3> sizes{1, 2, 3};
  const GroupedGemmArguments late = rows({.sizes = of(sizes)});
  const GroupedGemmArguments early = rows({.sizes = of(sizes), .read_now = true});
  sizes = {4, 8, 12};
  EXPECT_EQ(slices_of(late), (Slices{{0, 0, 4}, {1, 4, 4}, {2, 8, 4}}));
  EXPECT_EQ(slices_of(early), (Slices{{0, 0, 1}, {1, 1, 1}, {2, 2, 1}}));
}

TEST(Grouped, set_data_binds_other_sizes) {
  GroupedGemmArguments arguments = rows({.sizes = of(ends)});
  constexpr std::array<std::int32_t, 3> other{1, 2, 12};
  arguments.set_data("sizes", other.data());
  EXPECT_EQ(slices_of(arguments), (Slices{{0, 0, 1}, {1, 1, 1}, {2, 2, 10}}));
}

// --- refusals -----------------------------------------------------------------------------------

struct Refusal {
  const char* name;
  const char* operand;
  const char* says;
  std::function<void()> act;
};

void expect_refusals(const std::vector<Refusal>& refusals) {
  for (const Refusal& row : refusals) {
    const std::string text = error_of(row.act).what();
    EXPECT_NE(text.find(row.operand), std::string::npos) << row.name << ": " << text;
    EXPECT_NE(text.find(row.says), std::string::npos) << row.name << ": " << text;
  }
}

template <std::size_t count>
std::function<void()> checking(const std::array<std::int32_t, count>& sizes, GroupOffsets offsets) {
  return [sizes, offsets]() mutable {
    offsets.sizes = of(sizes);
    offsets.check = true;
    rows(offsets);
  };
}

// Row 12 of the acceptance list, and similar cases in the other forms.
TEST(Grouped, sizes_that_do_not_fit_are_refused_by_the_first_of_them) {
  using I3 = std::array<std::int32_t, 3>;
  using I4 = std::array<std::int32_t, 4>;
  using Labels = std::array<std::int32_t, T>;
  expect_refusals({
      {"decreasing ends", "ends[1]", "from 5 to 12, got 4", checking(I3{5, 4, 12}, {})},
      {"negative end", "ends[0]", "from 0 to 12, got -1", checking(I3{-1, 4, 12}, {})},
      {"end beyond T", "ends[2]", "from 5 to 12, got 13", checking(I3{5, 5, 13}, {})},
      {"prefix without its 0", "prefix[0]", "expected 0, got 1",
       checking(I4{1, 5, 6, 7}, {.form = GroupSizes::prefix})},
      {"decreasing prefix", "prefix[2]", "from 5 to 12, got 2",
       checking(I4{0, 5, 2, 7}, {.form = GroupSizes::prefix})},
      {"negative count", "counts[1]", "from 0 to 7, got -2",
       checking(I3{5, -2, 3}, {.form = GroupSizes::counts})},
      {"counts beyond T", "counts[2]", "from 0 to 2, got 3",
       checking(I3{5, 5, 3}, {.form = GroupSizes::counts})},
      {"label of no group", "labels[3]", "got 3",
       checking(Labels{0, 0, 0, 3}, {.form = GroupSizes::labels})},
      {"label below -1", "labels[0]", "got -2", checking(Labels{-2}, {.form = GroupSizes::labels})},
      {"labels finer than promised", "labels[2]", "multiples of 4",
       checking(Labels{0, 0, 1}, {.form = GroupSizes::labels, .alignment = 4})},
  });
}

TEST(Grouped, what_means_nothing_is_refused_by_name) {
  const GroupIndices three = of(ends);
  const auto with = [](const char* program, const char* name, const Tensor& tensor) {
    return GemmOptions{.epilogue = EpilogueArguments(program, {{name, tensor}})};
  };
  const Tensor stack = f32(a_memory.data(), {3, 2, 4});
  expect_refusals({
      {"too few sizes", "ends", "expected 3 sizes, got 2",
       [] { rows({.sizes = GroupIndices(ends.data(), 2)}); }},
      {"no memory", "sizes", "null pointer",
       [] { rows({.sizes = GroupIndices(static_cast<const std::int32_t*>(nullptr), 3)}); }},
      {"unaligned sizes", "sizes", "1 bytes off",
       [] {
         rows({.sizes = GroupIndices(reinterpret_cast<const std::int32_t*>(
                                         reinterpret_cast<const char*>(ends.data()) + 1),
                                     3)});
       }},
      {"alignment of 0", "alignment", "got 0", [&] { rows({.sizes = three, .alignment = 0}); }},
      {"negative hint", "expected size", "got -1", [&] { rows({.sizes = three, .expected = -1}); }},
      {"ranks of a batch", "A, B, out", "masked",
       [&] {
         GroupedGemmArguments(stack, f32(b_memory.data(), {3, 4, 5}),
                              f32(out_memory.data(), {3, 2, 5}), DType::float32, {.sizes = three});
       }},
      {"masked groups in one tensor", "A, B, out", "stacks",
       [&] { rows({.sizes = three, .form = GroupSizes::masked}); }},
      {"another K", "B", "expected 3 rows",
       [&] {
         GroupedGemmArguments(f32(a_memory.data(), {12, 3}), b_stack, out_rows, DType::float32,
                              {.sizes = three});
       }},
      {"labels along k", "labels", "ends, prefix or counts",
       [] {
         constexpr std::array<std::int32_t, 12> labels{};
         GroupedGemmArguments(f32(a_memory.data(), {2, 12}), f32(b_memory.data(), {12, 5}),
                              f32(out_memory.data(), {3, 2, 5}), DType::float32,
                              {.sizes = of(labels), .form = GroupSizes::labels});
       }},
      {"values for group and row", "epilogue operand x", "each row or column is of one group",
       [&] {
         rows({.sizes = three}, with("D = accum + x", "x", f32(c_memory.data(), {3, 12, 5})));
       }},
      {"C for group and row", "C", "each row or column is of one group",
       [&] {
         rows({.sizes = three}, {.c = f32(c_memory.data(), {3, 12, 5}), .beta = 1});
       }},
      {"a sum over groups", "epilogue operand s", "one reduction over several groups",
       [&] {
         rows({.sizes = three}, with("D = accum; s = sum(D)", "s", f32(c_memory.data(), {1})));
       }},
      {"checked sizes of a GPU", "check", "sizes in host memory",
       [&] {
         const Device gpu = Device::cuda(0);
         const auto on_gpu = [&](const Tensor& like) {
           return Tensor(like.data(), like.dtype(), like.shape(), gpu);
         };
         GroupedGemmArguments(on_gpu(a_rows), on_gpu(b_stack), on_gpu(out_rows), DType::float32,
                              {.sizes = GroupIndices(ends.data(), 3, gpu), .check = true});
       }},
  });
}

TEST(Grouped, lists_are_refused_by_the_problem_that_differs) {
  const auto problem = [](std::size_t at, std::int64_t m, std::int64_t n, std::int64_t k) {
    return GroupedProblem{f32(&a_memory[at], {m, k}), f32(&b_memory[at], {k, n}),
                          f32(&out_memory[at], {m, n})};
  };
  const GroupedProblem first = problem(0, 4, 5, 6);
  GroupedProblem with_c = problem(1000, 4, 5, 6);
  with_c.options.c = f32(c_memory.data(), {4, 5});
  GroupedProblem with_epilogue = problem(1000, 4, 5, 6);
  with_epilogue.options.epilogue = EpilogueArguments("D = relu(accum)", {});
  GroupedProblem column = problem(1000, 4, 5, 6);
  column.A = Tensor(a_memory.data(), DType::float32, {4, 6}, {1, 4});
  GroupedProblem batch = problem(1000, 4, 5, 6);
  batch.A = f32(a_memory.data(), {1, 4, 6});
  const auto list = [&](const GroupedProblem& second) {
    return [&first, second] { GroupedGemmArguments({first, second}, DType::float32); };
  };
  expect_refusals({
      {"none", "problems", "at least one", [] { GroupedGemmArguments({}, DType::float32); }},
      {"another K", "of problem 1", "K",
       list({f32(a_memory.data(), {4, 6}), f32(b_memory.data(), {7, 5}),
             f32(&out_memory[1000], {4, 5})})},
      {"same out", "out of problem 1", "overlapping", list(problem(10, 4, 5, 6))},
      {"C of one", "C of problem 1", "expected none", list(with_c)},
      {"epilogue", "epilogue of problem 1", "default program", list(with_epilogue)},
      {"layouts", "A of problem 1", "another layout", list(column)},
      {"a batch", "A of problem 1", "rank 3", list(batch)},
      {"set_data", "set_data", "list",
       [&] { GroupedGemmArguments({first}, DType::float32).set_data("A", a_memory.data()); }},
      {"set_scalars", "set_scalars", "list",
       [&] { GroupedGemmArguments({first}, DType::float32).set_scalars(1, 0); }},
  });
}

// A run would overwrite the sizes while it reads them; sizes that were copied are not read again.
TEST(Grouped, out_shares_no_memory_with_sizes_that_are_read_when_work_runs) {
  alignas(64) static std::array<std::int32_t, 2 * T * N> memory{};
  const Tensor out = f32(memory.data(), {T, N});
  const auto with = [&](const GroupOffsets& offsets) {
    return GroupedGemmArguments(a_rows, b_stack, out, DType::float32, offsets);
  };
  const auto sizes_at = [](std::size_t index) { return GroupIndices(&memory[index], G); };
  constexpr std::size_t last_inside = T * N - 1, behind = T * N;
  GroupedGemmArguments arguments = with({.sizes = sizes_at(behind)});
  expect_refusals({
      {"from the start", "out", "nothing with sizes", [&] { with({.sizes = sizes_at(0)}); }},
      {"the last one", "out", "nothing with sizes",
       [&] { with({.sizes = sizes_at(last_inside)}); }},
      {"set later", "out", "nothing with sizes",
       [&] { arguments.set_data("sizes", memory.data()); }},
      {"an out set later", "out", "nothing with sizes",
       [&] { arguments.set_data("out", &memory[behind]); }},
  });
  with({.sizes = sizes_at(0), .read_now = true});
  arguments.set_data("sizes", &memory[behind + G]);
}

TEST(Grouped, what_ranks_say_is_not_contradicted) {
  expect_refusals({{"another extent", "ragged", "expected m, by the ranks of A, B and out, got k",
                    [] { rows({.sizes = of(ends), .ragged = Ragged::k}); }}});
}

TEST(Grouped, labels_without_groups_are_padding_alone) {
  std::array<std::int32_t, T> labels{};
  const auto check = [&] {
    GroupedGemmArguments(a_rows, f32(b_memory.data(), {0, K, N}), out_rows, DType::float32,
                         {.sizes = of(labels), .form = GroupSizes::labels, .check = true});
  };
  expect_refusals({{"a label", "labels[0]", "expected -1, since there are no groups", check}});
  labels.fill(-1);
  check();
}

TEST(Grouped, no_groups_are_no_work) {
  EXPECT_EQ(parse_problem("grouped_gemm 16x8x8 groups=0 a=f32").problem.flops(), 0);
  EXPECT_EQ(parse_problem("grouped_gemm 16x8x8 groups=2 a=f32").problem.flops(), 2.0 * 16 * 8 * 8);
}

// --- lines --------------------------------------------------------------------------------------

TEST(GroupedGrammar, canonical_lines_print_as_they_were_read) {
  for (const char* const line : {
           "grouped_gemm 8192x2048x7168 groups=16 a=bf16",
           "grouped_gemm 8192x2048x7168 groups=16 ends=i64 a=bf16 b=bf16:c out=f32",
           "grouped_gemm 64x32x16 groups=4 ragged=n prefix=i32/host outside=zero a=f32",
           "grouped_gemm 7168x4096x32768 groups=8 ragged=k counts=i32/align=128 a=bf16:c out=f32 "
           "c=f32 beta=1",
           "grouped_gemm 64x32x16 groups=4 labels=i32/align=64 a=e4m3 out=bf16",
           "grouped_gemm 192x7168x3072 groups=32 masked=i32/expect=20 a=bf16 b=bf16:c",
           "grouped_gemm 256x512x128 groups=3 list=host a=f16 b=f16:c",
           "grouped_gemm 256x512x128 groups=3 a=f16 b=f16/pointers",
           "grouped_gemm 64x32x16 groups=4 a=f32 c=f32[l,n] beta=1",
           "grouped_gemm 64x32x16 groups=4 gather=i32/of=20/divide=2 a=f32",
           "grouped_gemm 64x32x16 groups=4 counts=i64 gather=i64 scatter=i32/of=0 a=f32",
           "grouped_gemm 64x32x16 groups=4 ragged=n scatter=i32/of=40 a=f32 c=f32 beta=1",
           "grouped_gemm 64x32x16 groups=4 scatter=i32/of=96 a=f32 epilogue=\"D = w * accum\" "
           "w=f32[m]",
           "grouped_gemm 0x32x16 groups=0 a=f32",
       }) {
    EXPECT_EQ(to_string(parse_problem(line)), line);
  }
}

TEST(GroupedGrammar, several_spellings_of_one_problem_are_equal) {
  EXPECT_EQ(parse_problem("grouped_gemm 64x32x16 groups=4 a=bf16"),
            parse_problem("grouped_gemm 64x32x16 a=bf16 ends=int32 ragged=m groups=4 "
                          "outside=untouched out=bf16"));
  EXPECT_NE(parse_problem("grouped_gemm 64x32x16 groups=1 a=bf16"),
            parse_problem("gemm 64x32x16 a=bf16"));
}

TEST(GroupedGrammar, names_of_an_epilogue_that_the_line_uses_have_a_prefix) {
  const char* const line =
      "grouped_gemm 64x32x16 groups=4 a=bf16 epilogue=\"D = scale * (accum + ends)\" "
      "scale=f32[l,1] epilogue.ends=bf16[l,n]";
  EXPECT_EQ(to_string(parse_problem(line)), line);
}

TEST(GroupedGrammar, arguments_print_as_a_line_that_reads_back) {
  const GemmOptions options{
      .epilogue = EpilogueArguments(
          "D = accum + bias; top = amax(D)",
          {{"bias", f32(c_memory.data(), {G, 1, N})}, {"top", f32(&c_memory[100], {G, 1, 1})}})};
  const GroupedGemmArguments arguments = rows({.sizes = of(ends)}, options);
  const std::string text = to_string(arguments.problem());
  EXPECT_EQ(text,
            "grouped_gemm 12x5x4 groups=3 a=f32 epilogue=\"D = accum + bias; top = amax(D)\" "
            "bias=f32[l,n] top=f32[l,1]");
  EXPECT_EQ(parse_problem(text).problem, arguments.problem());
}

TEST(GroupedGrammar, says_what_is_wrong) {
  const auto refusal = [](const char* line) {
    return std::string(error_of([&] { parse_problem(line); }).what());
  };
  for (const auto& [line, says] : std::initializer_list<std::array<const char*, 2>>{
           {"grouped_gemm 8x8x8 a=f32", "groups="},
           {"grouped_gemm 8x8x8x2 groups=2 a=f32", "MxNxK"},
           {"grouped_gemm 8x8x8 groups=2 a=f32 ends=i32 counts=i32", "one form"},
           {"grouped_gemm 8x8x8 groups=2 a=f32 ends=f32", "i32 or i64"},
           {"grouped_gemm 8x8x8 groups=2 a=f32 ends=i32/align=0", "align="},
           {"grouped_gemm 8x8x8 groups=2 a=f32 ends=i32/fast", "host, align= or expect="},
           {"grouped_gemm 8x8x8 groups=2 a=f32 ragged=l", "ragged=m"},
           {"grouped_gemm 8x8x8 groups=2 a=f32 outside=nan", "outside=untouched"},
           {"grouped_gemm 8x8x8 groups=2 a=f32 labels=i32 ragged=k", "labels"},
           {"grouped_gemm 8x8x8 groups=2 a=f32 list=device", "list=host"},
           {"grouped_gemm 8x8x8 groups=2 a=f32 masked=i32/align=8", "alignment"},
           {"grouped_gemm 8x8x8 groups=2 a=f32 align=8", "ends=, prefix=, counts="},
           {"grouped_gemm 8x8x8 groups=2 a=f32 gather=f32", "i32 or i64"},
           {"grouped_gemm 8x8x8 groups=2 a=f32 gather=i32/rows=8", "of=INT"},
           {"grouped_gemm 8x8x8 groups=2 a=f32 gather=i32/divide=0", "divide=INT"},
           {"grouped_gemm 8x8x8 groups=2 a=f32 scatter=i32/divide=2", "of=INT, the extent of out"},
           {"grouped_gemm 8x8x8 groups=2 a=f32 scatter=i32 scatter=i32", "each field once"},
           {"grouped_gemm 8x8x8 groups=2 a=f32 gather=i32 ragged=k", "groups of K"},
           {"grouped_gemm 8x8x8 groups=2 a=f32 gather=i32 masked=i32", "masked groups"},
           {"grouped_gemm 8x8x8 groups=2 a=f32 scatter=i32 outside=zero",
            "untouched beside a scatter"},
           {"gemm 8x8x8 a=f32 gather=i32", "gather"},
           {"gemm 8x8x8 groups=2 a=f32", "groups"},
       })
    EXPECT_NE(refusal(line).find(says), std::string::npos) << line << ": " << refusal(line);
}

}  // namespace
}  // namespace gemmery
