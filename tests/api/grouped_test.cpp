// SPDX-License-Identifier: Apache-2.0
// Grouped GEMM on the CPU, one test for each known failure of other libraries: empty groups, K = 0,
// tails, odd extents, lists, sizes that change between runs.
#include <gemmery/gemmery.hpp>

#include <gtest/gtest.h>

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "core/number.hpp"
#include "tests/support/error_of.hpp"

namespace gemmery {
namespace {

using tests::error_of;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// A matrix of float32, filled with a value.
struct Matrix {
  std::vector<std::int64_t> shape;
  std::vector<float> values;

  explicit Matrix(std::vector<std::int64_t> extents, float value = 0)
      : shape(std::move(extents)), values(count(), value) {}
  // Small integers, different in every row, so that products are exact.
  static Matrix integers(std::vector<std::int64_t> extents, int salt) {
    Matrix matrix(std::move(extents));
    for (std::size_t i = 0; i < matrix.values.size(); ++i)
      matrix.values[i] = static_cast<float>(static_cast<int>((i * 7 + i / 5 + salt) % 9) - 4);
    return matrix;
  }
  std::size_t count() const {
    return static_cast<std::size_t>(
        std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>()));
  }
  Tensor view() const { return Tensor(values.data(), DType::float32, shape); }
  float* row(std::int64_t index) { return values.data() + index * shape.back(); }
  const float* row(std::int64_t index) const { return values.data() + index * shape.back(); }
};

GroupIndices of(const std::vector<std::int32_t>& sizes) {
  return GroupIndices(std::span<const std::int32_t>(sizes));
}

// Runs every kernel of the CPU, each on a poisoned out, and passes the result to `check`.
template <class Check>
void for_each_kernel_of(const GemmArguments& arguments, Matrix& out, const Check& check) {
  const auto kernels = get_kernels(arguments);
  ASSERT_FALSE(kernels.empty());
  for (const Kernel& kernel : kernels) {
    SCOPED_TRACE(kernel.name());
    std::ranges::fill(out.values, nan);
    kernel.run(arguments, {.stream = Stream::cpu()});
    check();
  }
}

// Expects in each row the sum over k of a[row] · B[group] if the row belongs to a group, else NaN.
void expect_rows(const Matrix& a, const Matrix& b, const Matrix& out,
                 const std::vector<std::int64_t>& group_of_row) {
  const std::int64_t n = out.shape.back();
  const std::int64_t k = a.shape.back();
  for (std::int64_t row = 0; row < out.shape[0]; ++row) {
    const std::int64_t group = group_of_row[static_cast<std::size_t>(row)];
    for (std::int64_t column = 0; column < n; ++column) {
      if (group < 0) {
        ASSERT_TRUE(std::isnan(out.row(row)[column])) << row << ", " << column;
        continue;
      }
      float sum = 0;
      for (std::int64_t depth = 0; depth < k; ++depth)
        sum += a.row(row)[depth] * b.row(group * k + depth)[column];
      ASSERT_EQ(out.row(row)[column], sum) << row << ", " << column;
    }
  }
}

std::vector<std::int64_t> groups_of(const std::vector<std::int32_t>& ends, std::int64_t rows) {
  std::vector<std::int64_t> groups(static_cast<std::size_t>(rows), -1);
  std::int64_t begin = 0;
  for (std::size_t group = 0; group < ends.size(); ++group)
    for (; begin < ends[group]; ++begin)
      groups[static_cast<std::size_t>(begin)] = static_cast<std::int64_t>(group);
  return groups;
}

std::vector<std::int32_t> ends_of(const std::vector<std::int32_t>& counts) {
  std::vector<std::int32_t> ends;
  std::partial_sum(counts.begin(), counts.end(), std::back_inserter(ends));
  return ends;
}

struct RowCase {
  std::vector<std::int32_t> counts;
  std::int64_t n, k;
  std::int64_t tail = 0;  // rows of no group, NaN in A
};

void check_row_case(const RowCase& row) {
  const std::vector<std::int32_t> ends = ends_of(row.counts);
  const std::int64_t used = ends.empty() ? 0 : ends.back();
  Matrix a = Matrix::integers({used + row.tail, row.k}, 1);
  std::fill(a.values.begin() + used * row.k, a.values.end(), nan);
  const Matrix b = Matrix::integers({static_cast<std::int64_t>(ends.size()), row.k, row.n}, 2);
  Matrix out({used + row.tail, row.n});
  const GroupedGemmArguments arguments(a.view(), b.view(), out.view(), DType::float32,
                                       {.sizes = of(ends), .check = true});
  for_each_kernel_of(arguments, out,
                     [&] { expect_rows(a, b, out, groups_of(ends, out.shape[0])); });
}

// --- one tensor of rows -------------------------------------------------------------------------

TEST(GroupedRows, row_01_no_groups) { check_row_case({{}, 8, 8}); }

TEST(GroupedRows, row_02_empty_groups_and_single_rows) {
  check_row_case({{0, 0, 0}, 64, 64});
  check_row_case({{1}, 64, 64});
  check_row_case({{5, 0}, 64, 64});
}

TEST(GroupedRows, row_03_257_groups_of_one_row) {
  check_row_case({std::vector<std::int32_t>(257, 1), 72, 136});
}

TEST(GroupedRows, row_04_groups_of_every_kind) { check_row_case({{0, 7, 1, 13, 0, 11}, 48, 64}); }

TEST(GroupedRows, row_05_groups_about_a_tile) { check_row_case({{128, 130, 65}, 64, 32}); }

TEST(GroupedRows, rows_07_and_08_skewed_groups) {
  check_row_case({{8, 16, 24, 32, 40, 48, 56, 64}, 96, 40});
  std::vector<std::int32_t> counts(64, 0);
  counts[17] = 200;
  check_row_case({counts, 64, 96});
}

TEST(GroupedRows, row_09_rows_behind_the_last_end_stay_as_they_are) {
  check_row_case({{3, 4}, 64, 64, 9});
  check_row_case({{3, 4}, 64, 64, 0});
}

TEST(GroupedRows, row_10_odd_extents) { check_row_case({{3, 5}, 63, 65}); }

TEST(GroupedRows, row_14_1025_groups) {
  check_row_case({std::vector<std::int32_t>(1025, 1), 8, 8});
}

TEST(GroupedRows, rows_outside_become_zero_where_that_is_asked_for) {
  const std::vector<std::int32_t> ends{3, 3, 7};
  const Matrix a = Matrix::integers({12, 8}, 1);
  const Matrix b = Matrix::integers({3, 8, 5}, 2);
  Matrix out({12, 5});
  const GroupedGemmArguments arguments(a.view(), b.view(), out.view(), DType::float32,
                                       {.sizes = of(ends), .outside = OutsideGroups::zero});
  for_each_kernel_of(arguments, out, [&] {
    for (std::int64_t row = 0; row < 12; ++row) EXPECT_EQ(std::isnan(out.row(row)[0]), false);
    EXPECT_TRUE(std::all_of(out.row(7), out.row(7) + 25, [](float x) { return x == 0; }));
  });
}

TEST(GroupedRows, row_11_memory_of_any_alignment) {
  const std::vector<std::int32_t> ends{16, 32};
  Matrix a = Matrix::integers({32 * 24 + 1}, 1);
  const Matrix b = Matrix::integers({2, 24, 16}, 2);
  Matrix out({32, 16});
  const Tensor shifted(a.values.data() + 1, DType::float32, {32, 24});
  const GroupedGemmArguments arguments(shifted, b.view(), out.view(), DType::float32,
                                       {.sizes = of(ends)});
  Matrix moved({32, 24});
  std::copy(a.values.begin() + 1, a.values.end(), moved.values.begin());
  for_each_kernel_of(arguments, out, [&] { expect_rows(moved, b, out, groups_of(ends, 32)); });
}

TEST(GroupedRows, row_12_decreasing_ends_are_refused_when_work_runs_and_nothing_is_written) {
  const std::vector<std::int32_t> ends{7, 3, 9};
  const Matrix a = Matrix::integers({12, 8}, 1), b = Matrix::integers({3, 8, 5}, 2);
  Matrix out({12, 5}, nan);
  const GroupedGemmArguments arguments(a.view(), b.view(), out.view(), DType::float32,
                                       {.sizes = of(ends)});
  for (const Kernel& kernel : get_kernels(arguments)) {
    const Error error = error_of([&] { kernel.run(arguments, {.stream = Stream::cpu()}); });
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    EXPECT_EQ(error.operand(), "gemm: ends[1]");
  }
  EXPECT_TRUE(std::ranges::all_of(out.values, [](float x) { return std::isnan(x); }));
}

TEST(GroupedRows, row_13_prefix_and_wide_sizes) {
  const Matrix a = Matrix::integers({32, 16}, 1), b = Matrix::integers({3, 16, 24}, 2);
  Matrix out({32, 24});
  const std::vector<std::int64_t> ends{7, 7, 20}, prefix{0, 7, 7, 20};
  const auto check = [&](const GroupOffsets& offsets) {
    const GroupedGemmArguments arguments(a.view(), b.view(), out.view(), DType::float32, offsets);
    for_each_kernel_of(arguments, out, [&] { expect_rows(a, b, out, groups_of({7, 7, 20}, 32)); });
  };
  check({.sizes = GroupIndices(std::span(ends))});
  check({.sizes = GroupIndices(std::span(prefix)), .form = GroupSizes::prefix});
}

TEST(GroupedRows, row_16_no_products_give_the_epilogue_of_zero) {
  const std::vector<std::int32_t> ends{3, 3, 10};
  const Matrix a({12, 0}), b({3, 0, 4});
  Matrix out({12, 4});
  const GroupedGemmArguments zeros(a.view(), b.view(), out.view(), DType::float32,
                                   {.sizes = of(ends)});
  for_each_kernel_of(zeros, out, [&] {
    EXPECT_TRUE(std::all_of(out.row(0), out.row(10), [](float x) { return x == 0; }));
    EXPECT_TRUE(std::isnan(out.row(10)[0]));
  });
  const GroupedGemmArguments ones(
      a.view(), b.view(), out.view(), DType::float32, {.sizes = of(ends)},
      {.epilogue = EpilogueArguments("D = exp(accum)", std::vector<EpilogueOperand>{})});
  for_each_kernel_of(ones, out, [&] {
    EXPECT_TRUE(std::all_of(out.row(0), out.row(10), [](float x) { return x == 1; }));
  });
}

TEST(GroupedRows, row_17_operands_per_group_per_row_and_results_of_each) {
  const std::vector<std::int32_t> ends{0, 9, 139};
  const Matrix a = Matrix::integers({150, 8}, 1), b = Matrix::integers({3, 8, 6}, 2);
  const Matrix bias = Matrix::integers({3, 1, 6}, 3), scale = Matrix::integers({3, 1, 1}, 5),
               factor = Matrix::integers({150, 1}, 4);
  Matrix out({150, 6}), top({3, 1, 1}), rows({150, 1}), copy({150, 6}, nan);
  const GroupedGemmArguments arguments(
      a.view(), b.view(), out.view(), DType::float32, {.sizes = of(ends)},
      {.epilogue = EpilogueArguments(
           "D = (accum + bias) * scale + factor; copy = accum; top = amax(D); rows = sum(D)",
           {{"bias", bias.view()},
            {"scale", scale.view()},
            {"factor", factor.view()},
            {"copy", copy.view()},
            {"top", top.view()},
            {"rows", rows.view()}})});
  const std::vector<std::int64_t> group_of_row = groups_of(ends, 150);
  for_each_kernel_of(arguments, out, [&] {
    std::array<float, 3> tops{};
    expect_rows(a, b, copy, group_of_row);
    for (std::int64_t row = 0; row < 139; ++row) {
      const std::int64_t group = group_of_row[static_cast<std::size_t>(row)];
      float sum = 0;
      for (std::int64_t column = 0; column < 6; ++column) {
        const float expected =
            (copy.row(row)[column] + bias.row(group)[column]) * scale.row(group)[0] +
            factor.row(row)[0];
        ASSERT_EQ(out.row(row)[column], expected) << row << ", " << column;
        sum += expected;
        float& highest = tops[static_cast<std::size_t>(group)];
        highest = std::max(highest, std::fabs(expected));
      }
      ASSERT_EQ(rows.row(row)[0], sum) << row;
    }
    for (std::size_t group = 0; group < 3; ++group) EXPECT_EQ(top.values[group], tops[group]);
    std::ranges::fill(copy.values, nan);
  });
}

TEST(GroupedRows, row_25_labels_in_any_order_with_padding) {
  const std::vector<std::int32_t> labels{2, 2, -1, 0, 2, -1, -1, 1, 1, 0, -1};
  Matrix a = Matrix::integers({11, 8}, 1);
  const Matrix b = Matrix::integers({3, 8, 6}, 2);
  Matrix out({11, 6});
  for (std::int64_t row = 0; row < 11; ++row)
    if (labels[static_cast<std::size_t>(row)] < 0) std::fill_n(a.row(row), 8, nan);
  const GroupedGemmArguments arguments(a.view(), b.view(), out.view(), DType::float32,
                                       {.sizes = of(labels), .form = GroupSizes::labels});
  for_each_kernel_of(arguments, out, [&] {
    expect_rows(a, b, out, std::vector<std::int64_t>(labels.begin(), labels.end()));
  });
}

TEST(GroupedRows, only_padding_is_no_work) {  // all labels -1
  const std::vector<std::int32_t> labels(9, -1);
  const Matrix a({9, 4}, nan), b({1, 4, 4}, nan);
  Matrix out({9, 4});
  const GroupedGemmArguments arguments(a.view(), b.view(), out.view(), DType::float32,
                                       {.sizes = of(labels), .form = GroupSizes::labels});
  for_each_kernel_of(arguments, out, [&] {
    EXPECT_TRUE(std::ranges::all_of(out.values, [](float x) { return std::isnan(x); }));
  });
}

TEST(GroupedRows, row_30_sizes_change_between_launches_that_were_prepared_once) {
  std::vector<std::int32_t> ends{2, 9};
  const Matrix a = Matrix::integers({12, 8}, 1), b = Matrix::integers({2, 8, 6}, 2);
  Matrix out({12, 6});
  const GroupedGemmArguments arguments(a.view(), b.view(), out.view(), DType::float32,
                                       {.sizes = of(ends)});
  for (const Kernel& kernel : get_kernels(arguments)) {
    PreparedLaunch launch = kernel.compile(arguments).bind(arguments);
    for (const std::vector<std::int32_t>& sizes :
         {std::vector<std::int32_t>{2, 9}, {0, 12}, {12, 12}, {5, 5}}) {
      ends = sizes;
      std::ranges::fill(out.values, nan);
      launch.launch(Stream::cpu());
      expect_rows(a, b, out, groups_of(sizes, 12));
    }
  }
}

TEST(GroupedRows, row_31_bits_of_a_row_do_not_depend_on_other_groups) {
  const std::int64_t k = 300;
  Matrix a({40, k});
  for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] = std::sin(static_cast<float>(i));
  Matrix b({2, k, 24});
  for (std::size_t i = 0; i < b.values.size(); ++i) b.values[i] = std::cos(static_cast<float>(i));
  Matrix out({40, 24});
  std::vector<std::int32_t> ends{8, 40};
  const GroupedGemmArguments arguments(a.view(), b.view(), out.view(), DType::float32,
                                       {.sizes = of(ends)});
  const Kernel plain = *find_kernel("host_plain_v1_f32_f32_out_f32_acc_f32_c_none_math_native");
  plain.run(arguments, {.stream = Stream::cpu()});
  const std::vector<float> first(out.values.begin(), out.values.begin() + 8 * 24);
  for (const std::int32_t end : {8, 9, 20, 39}) {
    ends = {8, end};
    std::ranges::fill(out.values, nan);
    plain.run(arguments, {.stream = Stream::cpu()});
    EXPECT_EQ(std::memcmp(first.data(), out.values.data(), first.size() * sizeof(float)), 0);
  }
}

// (G - 1)·K·N and T·N above 2^31 elements, in address space that is accessed only at its end.
TEST(GroupedRows, row_15_offsets_beyond_31_bits) {
  struct Sparse {
    std::size_t bytes;
    void* data;
    explicit Sparse(std::size_t count)
        : bytes(count),
          data(mmap(nullptr, count, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
    ~Sparse() { munmap(data, bytes); }
  };
  const std::int64_t groups = 40000, k = 256, n = 256, rows = 10000000;
  Sparse b_memory(static_cast<std::size_t>(groups * k * n) * 2);
  Sparse a_memory(static_cast<std::size_t>(rows * k) * 2);
  Sparse out_memory(static_cast<std::size_t>(rows * n) * 2);
  if (b_memory.data == MAP_FAILED || a_memory.data == MAP_FAILED || out_memory.data == MAP_FAILED)
    GTEST_SKIP() << "no address space of 20 GB";
  const Tensor a(a_memory.data, DType::bfloat16, {rows, k});
  const Tensor b(b_memory.data, DType::bfloat16, {groups, k, n});
  const Tensor out(out_memory.data, DType::bfloat16, {rows, n});
  constexpr std::uint16_t one = 0x3f80;
  std::fill_n(static_cast<std::uint16_t*>(b_memory.data) + (groups - 1) * k * n, k * n, one);
  std::fill_n(static_cast<std::uint16_t*>(a_memory.data) + (rows - 3) * k, 3 * k, one);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(rows), -1);
  std::fill(labels.end() - 3, labels.end(), static_cast<std::int32_t>(groups - 1));
  const GroupedGemmArguments arguments(a, b, out, DType::float32,
                                       {.sizes = of(labels), .form = GroupSizes::labels});
  find_kernel("host_plain_v1_bf16_bf16_out_bf16_acc_f32_c_none_math_native")
      ->run(arguments, {.stream = Stream::cpu()});
  const auto* const last = static_cast<const std::uint16_t*>(out_memory.data) + (rows - 3) * n;
  EXPECT_TRUE(std::all_of(last, last + 3 * n, [](auto x) {
    return x == 0x4380; /* 256 */
  }));
  EXPECT_EQ(last[-1], 0);
}

// --- columns, depth, stacks ---------------------------------------------------------------------

TEST(GroupedColumns, row_18_only_the_columns_of_groups_are_written) {
  const Matrix a = Matrix::integers({4, 33, 64}, 1);
  for (const std::vector<std::int32_t>& counts :
       {std::vector<std::int32_t>{8, 0, 24, 16}, {1, 2, 3, 0}}) {
    const std::vector<std::int32_t> ends = ends_of(counts);
    const std::int64_t columns = ends.back() + 5;
    const Matrix b = Matrix::integers({64, columns}, 2);
    Matrix out({33, columns});
    const GroupedGemmArguments arguments(a.view(), b.view(), out.view(), DType::float32,
                                         {.sizes = of(ends)});
    const std::vector<std::int64_t> group_of = groups_of(ends, columns);
    for_each_kernel_of(arguments, out, [&] {
      for (std::int64_t row = 0; row < 33; ++row)
        for (std::int64_t column = 0; column < columns; ++column) {
          const std::int64_t group = group_of[static_cast<std::size_t>(column)];
          float sum = group < 0 ? nan : 0;
          for (std::int64_t k = 0; group >= 0 && k < 64; ++k)
            sum += a.row(group * 33 + row)[k] * b.row(k)[column];
          if (group < 0) {
            ASSERT_TRUE(std::isnan(out.row(row)[column]));
          } else {
            ASSERT_EQ(out.row(row)[column], sum);
          }
        }
    });
  }
}

// Without products, out is beta · C.
void check_weight_gradient(const std::vector<std::int32_t>& counts, double beta) {
  const std::vector<std::int32_t> ends = ends_of(counts);
  const std::int64_t depth = ends.back();
  const auto groups = static_cast<std::int64_t>(counts.size());
  const Matrix a = Matrix::integers({17, depth}, 1), b = Matrix::integers({depth, 19}, 2);
  const Matrix c = Matrix::integers({groups, 17, 19}, 3);
  Matrix out({groups, 17, 19});
  GemmOptions options{.beta = beta};
  if (beta != 0) options.c = c.view();
  const GroupedGemmArguments arguments(a.view(), b.view(), out.view(), DType::float32,
                                       {.sizes = of(ends)}, options);
  for_each_kernel_of(arguments, out, [&] {
    std::int64_t begin = 0;
    for (std::int64_t group = 0; group < groups; ++group) {
      const std::int64_t end = ends[static_cast<std::size_t>(group)];
      for (std::int64_t row = 0; row < 17; ++row)
        for (std::int64_t column = 0; column < 19; ++column) {
          float sum = beta == 0 ? 0 : static_cast<float>(beta) * c.row(group * 17 + row)[column];
          for (std::int64_t k = begin; k < end; ++k) sum += a.row(row)[k] * b.row(k)[column];
          ASSERT_EQ(out.row(group * 17 + row)[column], sum);
        }
      begin = end;
    }
  });
}

TEST(GroupedDepth, row_19_groups_without_depth_give_beta_c) {
  check_weight_gradient({128, 0, 256}, 0);
  check_weight_gradient({128, 0, 256}, 1);
}
TEST(GroupedDepth, row_20_depths_of_any_number) { check_weight_gradient({1, 17, 44, 0}, 1); }
TEST(GroupedDepth, no_depth_at_all_gives_zeros) { check_weight_gradient({0, 0, 0, 0}, 0); }
TEST(GroupedDepth, the_sizes_of_a_real_gradient) {
  check_weight_gradient({162, 0, 2577, 446, 0, 83}, 0);
}

TEST(GroupedDepth, row_21_accumulates_in_place) {
  const std::vector<std::int32_t> ends{3, 8, 8};
  const Matrix a = Matrix::integers({4, 8}, 1), b = Matrix::integers({8, 5}, 2);
  Matrix out = Matrix::integers({3, 4, 5}, 3);
  const std::vector<float> before = out.values;
  const GroupedGemmArguments arguments(a.view(), b.view(), out.view(), DType::float32,
                                       {.sizes = of(ends)}, {.c = out.view(), .beta = 1});
  get_kernels(arguments).front().run(arguments, {.stream = Stream::cpu()});
  for (std::int64_t group = 0; group < 3; ++group)
    for (std::int64_t i = 0; i < 20; ++i) {
      float sum = before[static_cast<std::size_t>(group * 20 + i)];
      const std::int64_t begin = group == 0 ? 0 : ends[static_cast<std::size_t>(group - 1)];
      for (std::int64_t k = begin; k < ends[static_cast<std::size_t>(group)]; ++k)
        sum += a.row(i / 5)[k] * b.row(k)[i % 5];
      EXPECT_EQ(out.values[static_cast<std::size_t>(group * 20 + i)], sum);
    }
}

TEST(GroupedStacks, rows_22_to_24_masked_rows) {
  for (const std::int32_t most : {1, 8, 64, 192}) {
    const std::vector<std::int32_t> counts{0, 1, most};
    Matrix a = Matrix::integers({3, most, 32}, 1);
    const Matrix b = Matrix::integers({3, 32, 16}, 2);
    Matrix out({3, most, 16});
    std::vector<std::int64_t> used;
    for (std::int64_t group = 0; group < 3; ++group)
      for (std::int64_t row = 0; row < most; ++row) {
        const bool is_used = row < counts[static_cast<std::size_t>(group)];
        used.push_back(is_used ? group : -1);
        if (!is_used) std::fill_n(a.row(group * most + row), 32, nan);
      }
    const GroupedGemmArguments arguments(
        a.view(), b.view(), out.view(), DType::float32,
        {.sizes = of(counts), .form = GroupSizes::masked, .expected = 100 * most});
    Matrix flat_a = a, flat_b = b;
    flat_a.shape = {3 * most, 32};
    flat_b.shape = {96, 16};
    for_each_kernel_of(arguments, out, [&] {
      Matrix flat = out;
      flat.shape = {3 * most, 16};
      expect_rows(flat_a, flat_b, flat, used);
    });
  }
}

// --- lists --------------------------------------------------------------------------------------

TEST(GroupedLists, row_26_every_problem_has_its_extents_strides_and_scalars) {
  struct Extents {
    std::int64_t m, n, k;
  };
  const std::vector<Extents> extents{{256, 512, 128}, {1, 1, 1}, {0, 5, 7}, {33, 65, 0}};
  std::vector<Matrix> a, b, c, out;
  for (const auto& [m, n, k] : extents) {
    a.push_back(Matrix::integers({m, k + 3}, 1));  // its leading dimension is larger than k
    b.push_back(Matrix::integers({k, n}, 2));
    c.push_back(Matrix::integers({m, n}, 3));
    out.emplace_back(std::vector<std::int64_t>{m, n + 1}, nan);
  }
  std::vector<GroupedProblem> problems;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const auto& [m, n, k] = extents[i];
    problems.push_back({Tensor(a[i].values.data(), DType::float32, {m, k}, {k + 3, 1}),
                        b[i].view(),
                        Tensor(out[i].values.data(), DType::float32, {m, n}, {n + 1, 1}),
                        {.c = c[i].view(), .alpha = static_cast<double>(i + 1), .beta = 0.5}});
  }
  const GroupedGemmArguments arguments(problems, DType::float32);
  for (const Kernel& kernel : get_kernels(arguments)) {
    SCOPED_TRACE(kernel.name());
    kernel.run(arguments, {.stream = Stream::cpu()});
    for (std::size_t i = 0; i < extents.size(); ++i) {
      const auto& [m, n, k] = extents[i];
      for (std::int64_t row = 0; row < m; ++row) {
        for (std::int64_t column = 0; column < n; ++column) {
          float sum = 0;
          for (std::int64_t depth = 0; depth < k; ++depth)
            sum += a[i].row(row)[depth] * b[i].row(depth)[column];
          ASSERT_EQ(out[i].row(row)[column],
                    static_cast<float>(i + 1) * sum + 0.5F * c[i].row(row)[column]);
        }
        ASSERT_TRUE(std::isnan(out[i].row(row)[n]));
      }
    }
  }
}

TEST(GroupedLists, row_27_problems_may_share_operands) {
  const Matrix a = Matrix::integers({9, 8}, 1), b = Matrix::integers({8, 7}, 2);
  std::vector<Matrix> out(64, Matrix({9, 7}, nan));
  std::vector<GroupedProblem> problems;
  for (const Matrix& one : out) problems.push_back({a.view(), b.view(), one.view()});
  const GroupedGemmArguments arguments(problems, DType::float32);
  get_kernels(arguments).front().run(arguments, {.stream = Stream::cpu()});
  for (const Matrix& one : out) {
    EXPECT_EQ(one.values, out.front().values);
    EXPECT_FALSE(std::isnan(one.values.front()));
  }
}

// --- discovery ----------------------------------------------------------------------------------

TEST(GroupedDiscovery, families_that_know_no_groups_refuse_them_with_one_reason) {
  const ProblemLine line = parse_problem("grouped_gemm 96x64x80 groups=7 a=bf16");
  const DeviceInfo device = find_device_info("h200").value();
  for (const Reason& reason : explain(line.problem, device).reasons) {
    const bool knows_groups = reason.family != "skinny" && reason.family != "elementwise";
    if (reason.provider == "templates" && !knows_groups) {
      EXPECT_EQ(reason.failed,
                "groups: expected one GEMM, or groups in a form that this family takes, got groups "
                "by ends");
    }
  }
}

TEST(GroupedDiscovery, results_are_checked_against_the_bounds_of_each_group) {
  const std::vector<std::int32_t> ends{3, 3, 10};
  const Matrix a = Matrix::integers({12, 8}, 1), b = Matrix::integers({3, 8, 5}, 2);
  Matrix out({12, 5}, nan);
  const GroupedGemmArguments arguments(a.view(), b.view(), out.view(), DType::float32,
                                       {.sizes = of(ends)});
  const Kernel kernel = get_kernels(arguments).front();
  kernel.run(arguments, {.stream = Stream::cpu()});
  const VerifyReport right = check_result(arguments, kernel);
  EXPECT_TRUE(right.passed) << right.first_failure;
  EXPECT_EQ(right.elements, 50);
  out.row(9)[4] += 1;
  const VerifyReport wrong = check_result(arguments, kernel);
  EXPECT_EQ(wrong.mismatches, 1);
  EXPECT_EQ(wrong.first_failure.substr(0, 23), "group 2: out[0, 6, 4] i");
}

}  // namespace
}  // namespace gemmery
