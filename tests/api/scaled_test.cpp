// SPDX-License-Identifier: Apache-2.0
// Scaled GEMMs on the CPU against their formula in double.
#include <gemmery/discovery.hpp>
#include <gemmery/dtype.hpp>
#include <gemmery/error.hpp>
#include <gemmery/grouped.hpp>
#include <gemmery/prepare.hpp>
#include <gemmery/scale_conversion.hpp>
#include <gemmery/verify.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/number.hpp"
#include "device/abi/scale_layout.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery {
namespace {

constexpr ScaleLayout strided = ScaleLayout::strided;
constexpr ScaleLayout swizzled = ScaleLayout::swizzled_128x4;

// A tensor with memory of its own.
struct Owned {
  std::vector<std::byte> bytes;
  DType dtype;
  std::vector<std::int64_t> shape;

  Owned(DType type, std::vector<std::int64_t> extents) : dtype(type), shape(std::move(extents)) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    bytes.resize(static_cast<std::size_t>(count) * byte_width(dtype) + 1);
  }
  void set(std::int64_t index, double value) {
    number::store(dtype, bytes.data(), index, {value, 0});
  }
  double get(std::int64_t index) const { return number::load(dtype, bytes.data(), index); }
  std::uint8_t& code(std::int64_t index) {
    return reinterpret_cast<std::uint8_t&>(bytes[static_cast<std::size_t>(index)]);
  }
  Tensor view() const { return Tensor(bytes.data(), dtype, shape); }
};

class ScaledGemm : public ::testing::Test {
 protected:
  std::mt19937_64 random{tests::random_seed()};

  double small_integer() { return static_cast<double>(random() % 9) - 4; }
  void fill(Owned& operand, const std::function<double()>& draw) {
    const auto count = operand.shape[0] * (operand.shape.size() > 1 ? operand.shape[1] : 1);
    for (std::int64_t i = 0; i < count; ++i) operand.set(i, draw());
  }
  // Distinct powers of two of both signs: sums of small integers with these stay exact.
  double power() {
    const double size = std::ldexp(1.0, static_cast<int>(random() % 7) - 3);
    return random() % 2 == 0 ? size : -size;
  }
  Owned operand(DType dtype, std::int64_t rows, std::int64_t columns) {
    Owned made(dtype, {rows, columns});
    const bool is_unsigned = facts(dtype).kind == DTypeKind::unsigned_integer;
    fill(made, [&] { return is_unsigned ? std::fabs(small_integer()) : small_integer(); });
    return made;
  }
  Owned scales(DType dtype, std::int64_t rows, std::int64_t columns) {
    Owned made(dtype, {rows, columns});
    if (dtype == DType::float8_e8m0fnu)
      for (std::int64_t i = 0; i < rows * columns; ++i)
        made.code(i) = static_cast<std::uint8_t>(124 + random() % 7);
    else
      fill(made, [&] { return power(); });
    return made;
  }

  // Runs every kernel and compares exactly.
  void expect_exact(const GemmArguments& arguments, const Owned& out,
                    const std::function<double(std::int64_t, std::int64_t)>& expected) {
    const auto kernels = get_kernels(arguments);
    ASSERT_FALSE(kernels.empty()) << to_string(arguments.problem());
    for (const Kernel& kernel : kernels) {
      kernel.run(arguments, {.stream = Stream::cpu()});
      const GemmProblem& problem = arguments.problem();
      for (std::int64_t m = 0; m < problem.m; ++m)
        for (std::int64_t n = 0; n < problem.n; ++n)
          ASSERT_EQ(out.get(m * problem.n + n), expected(m, n))
              << kernel.name() << " at " << m << ", " << n << " of "
              << to_string(arguments.problem());
      const VerifyReport report = check_result(arguments, kernel);
      EXPECT_TRUE(report.passed) << kernel.name() << ": " << report.first_failure;
    }
  }
};

std::int64_t up(std::int64_t extent, std::int64_t block) { return (extent + block - 1) / block; }

double e8m0(std::uint8_t code) { return std::ldexp(1.0, code - 127); }

// NF4 with blocks of 64 along the flattened weight (N, K): with K = 96 they begin within rows, so
// that scales of 1x32 are what they are in.
TEST_F(ScaledGemm, row_55_codes_of_a_table_in_blocks_that_cross_rows) {
  constexpr std::int64_t m = 5, n = 6, k = 96, in_flat = 64, in_row = 32;
  for (const bool is_a : {false, true}) {
    Owned codes(DType::uint4, {n, k});
    fill(codes, [&] { return static_cast<double>(random() % 16); });
    std::vector<double> flat_scales(n * k / in_flat);
    for (double& scale : flat_scales) scale = power();
    Owned scale(DType::float32, {n, k / in_row});
    for (std::int64_t i = 0; i < n * (k / in_row); ++i)
      scale.set(i, flat_scales[static_cast<std::size_t>(i * in_row / in_flat)]);
    CodeTable table;  // of numbers that keep sums exact
    for (float& number : table.values) number = static_cast<float>(small_integer()) / 2;
    Owned x = operand(DType::float16, m, k);
    Owned out(DType::float32, {is_a ? n : m, is_a ? m : n});
    const auto turned = [](const Tensor& tensor, std::int64_t rows, std::int64_t columns) {
      return Tensor(tensor.data(), tensor.dtype(), {columns, rows}, {1, columns});
    };
    const auto scales_of = [&](const Tensor& tensor) {
      return std::vector<Companion>{{tensor, ScaleBlock{1, in_row}, strided}};
    };
    const ScaledOperand weight =
        is_a ? ScaledOperand(codes.view(), scales_of(scale.view()), table)
             : ScaledOperand(turned(codes.view(), n, k),
                             scales_of(turned(scale.view(), n, k / in_row)), table);
    const GemmArguments arguments =
        is_a ? GemmArguments(weight, ScaledOperand(turned(x.view(), m, k)), out.view())
             : GemmArguments(ScaledOperand(x.view()), weight, out.view());
    expect_exact(arguments, out, [&](std::int64_t row, std::int64_t column) {
      const std::int64_t of_x = is_a ? column : row, of_w = is_a ? row : column;
      double sum = 0;
      for (std::int64_t at = 0; at < k; ++at)
        sum +=
            x.get(of_x * k + at) *
            static_cast<double>(table.values[static_cast<std::size_t>(codes.get(of_w * k + at))]) *
            flat_scales[static_cast<std::size_t>((of_w * k + at) / in_flat)];
      return sum;
    });
  }
}

// A weight in the order of fragments, with a scale for groups of k.
struct Prepared {
  Owned codes, scale;
  alignas(16) std::array<std::byte, 64 * 96> memory{};

  Tensor view() const {
    return Tensor(const_cast<std::byte*>(memory.data()), codes.dtype, {64, 96}, {1, 64});
  }
  ScaledOperand plain() const {
    return {codes.view(), {{scale.view(), scale_block::groups_of(32), strided}}};
  }
};

TEST_F(ScaledGemm, prepared_weights_give_equal_results_and_other_kernels) {
  for (const DType dtype :
       {DType::int4, DType::uint4, DType::float4_e2m1fn, DType::int8, DType::float8_e4m3fn})
    for (const bool has_table : {false, true}) {
      if (has_table && dtype != DType::uint4) continue;
      Owned a = operand(DType::float32, 7, 64);
      Prepared weight{.codes = operand(dtype, 64, 96), .scale = scales(DType::float32, 2, 96)};
      ScaledOperand plain = weight.plain();
      if (has_table)
        for (float& number : plain.table.emplace().values)
          number = static_cast<float>(small_integer());
      const ScaledOperand prepared = prepare_operand(plain, weight.view());
      EXPECT_EQ(prepared.order, ElementOrder::fragments);
      Owned out(DType::float32, {7, 96}), expected(DType::float32, {7, 96});
      const GemmArguments before(ScaledOperand(a.view()), plain, expected.view());
      const GemmArguments after(ScaledOperand(a.view()), prepared, out.view());
      EXPECT_NE(before.problem(), after.problem());
      const Kernel of_plain = get_kernels(before).front();
      const Kernel of_prepared = get_kernels(after).front();
      of_plain.run(before, {.stream = Stream::cpu()});
      expect_exact(after, out,
                   [&](std::int64_t m, std::int64_t n) { return expected.get(m * 96 + n); });
      // Each refuses the other's operand.
      EXPECT_NE(of_plain.supports(after).error().find("prepared"), std::string::npos);
      EXPECT_NE(of_prepared.supports(before).error().find("prepare_operand"), std::string::npos);
      EXPECT_EQ(find_kernel(of_prepared.name()), of_prepared);
      prepare_operand(plain, weight.view(), of_prepared);
      EXPECT_NE(std::string(tests::error_of([&] {
                              prepare_operand(plain, weight.view(), of_plain);
                            }).what())
                    .find("takes a prepared B"),
                std::string::npos);
    }
}

// Each group's weight is what a single one is, and its results are equal; groups may be empty.
TEST_F(ScaledGemm, row_57_prepared_weights_of_groups_are_those_of_one) {
  constexpr std::int64_t groups = 3, k = 64, n = 96, total = 13;
  const std::array<std::int32_t, groups> ends{5, 5, 12};
  for (const DType dtype : {DType::int4, DType::float8_e4m3fn}) {
    Owned a = operand(DType::float32, total, k), codes = operand(dtype, groups * k, n);
    Owned scale = scales(DType::float32, groups * 2, n);
    alignas(16) std::array<std::byte, groups * k * n> memory{}, single{};
    const ScaledOperand plain(Tensor(codes.view().data(), dtype, {groups, k, n}),
                              {{Tensor(scale.view().data(), DType::float32, {groups, 2, n}),
                                scale_block::groups_of(32), strided}});
    const Tensor stack(memory.data(), dtype, {groups, k, n}, {k * n, 1, k});
    const ScaledOperand prepared = prepare_operand(plain, stack);
    for (std::int64_t group = 0; group < groups; ++group) {
      const std::int64_t at = storage_bytes(dtype, group * k * n);
      prepare_operand(
          Tensor(static_cast<const std::byte*>(codes.view().data()) + at, dtype, {k, n}),
          Tensor(single.data(), dtype, {k, n}, {1, k}));
      EXPECT_TRUE(std::equal(single.begin(), single.begin() + storage_bytes(dtype, k * n),
                             memory.begin() + at));
    }
    Owned out(DType::float32, {total, n}), expected(DType::float32, {total, n});
    const auto arguments = [&](const ScaledOperand& weight, const Owned& result) {
      return GroupedGemmArguments(ScaledOperand(a.view()), weight, result.view(), DType::float32,
                                  {.sizes = std::span<const std::int32_t>(ends)})
          .as_gemm();
    };
    get_kernels(arguments(plain, expected))
        .front()
        .run(arguments(plain, expected), {.stream = Stream::cpu()});
    expect_exact(arguments(prepared, out), out, [&](std::int64_t row, std::int64_t column) {
      return expected.get(row * n + column);
    });
  }
}

TEST_F(ScaledGemm, weights_that_have_no_whole_fragments_are_not_prepared) {
  Prepared weight{.codes = operand(DType::int4, 64, 96), .scale = scales(DType::float32, 2, 96)};
  const auto refusal = [&](const ScaledOperand& given) {
    return std::string(tests::error_of([&] { prepare_operand(given, weight.view()); }).what());
  };
  const Tensor codes = weight.codes.view();
  EXPECT_NE(refusal(Tensor(codes.data(), DType::int4, {48, 96})).find("multiple of 32"),
            std::string::npos);
  EXPECT_NE(refusal(Tensor(codes.data(), DType::int4, {64, 72})).find("N of 32"),
            std::string::npos);
  EXPECT_NE(refusal(Tensor(codes.data(), DType::float16, {64, 32})).find("4 or 8 bits"),
            std::string::npos);
  EXPECT_NE(refusal(prepare_operand(weight.plain(), weight.view())).find("a prepared operand"),
            std::string::npos);
  EXPECT_NE(refusal(Tensor(codes.data(), DType::int4, {64, 64})).find("memory"), std::string::npos);
}

// S3 for random blocks of both operands, in types of all kinds.
TEST_F(ScaledGemm, any_blocks_and_types) {
  const DType types[] = {DType::float4_e2m1fn, DType::int4,        DType::float6_e3m2fn,
                         DType::float8_e4m3fn, DType::float8_e5m2, DType::int8,
                         DType::uint8,         DType::float16,     DType::bfloat16,
                         DType::float32};
  const DType scale_types[] = {DType::float32, DType::float16, DType::bfloat16,
                               DType::float8_e8m0fnu, DType::float8_e4m3fn};
  for (int trial = 0; trial < 60; ++trial) {
    const auto draw = [&](std::int64_t end) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(end));
    };
    const std::int64_t m = 1 + draw(20), n = 4 + 4 * draw(5), k = 4 + 4 * draw(18);
    Owned a = operand(types[draw(10)], m, k);
    // Integers times integers have floating-point sums only if a scale varies along k.
    DType b_type = types[draw(10)];
    if (is_integer(a.dtype) && is_integer(b_type)) b_type = DType::bfloat16;
    Owned b = operand(b_type, k, n);
    Owned out(DType::float32, {m, n});
    const ScaleBlock a_block{static_cast<std::int32_t>(draw(5)),
                             static_cast<std::int32_t>(draw(40))};
    const ScaleBlock b_block{static_cast<std::int32_t>(draw(5)),
                             static_cast<std::int32_t>(draw(40))};
    const auto block = [](std::int32_t size, std::int64_t extent) {
      return size == 0 ? extent : size;
    };
    const std::int64_t am = block(a_block.rows, m), ak = block(a_block.k, k);
    const std::int64_t bn = block(b_block.rows, n), bk = block(b_block.k, k);
    Owned sa = scales(scale_types[draw(5)], up(m, am), up(k, ak));
    Owned sb = scales(scale_types[draw(5)], up(k, bk), up(n, bn));
    const auto scale = [](Owned& owned, std::int64_t i) {
      return owned.dtype == DType::float8_e8m0fnu ? e8m0(owned.code(i)) : owned.get(i);
    };
    const GemmArguments arguments(ScaledOperand(a.view(), {{sa.view(), a_block, strided}}),
                                  ScaledOperand(b.view(), {{sb.view(), b_block, strided}}),
                                  out.view());
    expect_exact(arguments, out, [&](std::int64_t row, std::int64_t column) {
      double sum = 0;
      for (std::int64_t d = 0; d < k; ++d)
        sum += a.get(row * k + d) * scale(sa, row / am * up(k, ak) + d / ak) *
               b.get(d * n + column) * scale(sb, d / bk * up(n, bn) + column / bn);
      return sum;
    });
  }
}

// The integers of a weight with a scale and a zero point for each group of k (issue text M).
TEST_F(ScaledGemm, zero_points_are_subtracted_before_the_scale) {
  const std::int64_t m = 7, n = 12, k = 96;
  for (const DType zero_type :
       {DType::int8, DType::uint8, DType::int32, DType::float32, DType::float16, DType::bfloat16}) {
    Owned a = operand(DType::bfloat16, m, k);
    Owned b = operand(random() % 2 == 0 ? DType::uint8 : DType::uint4, k, n);
    Owned scale = scales(DType::bfloat16, 3, n), zero(zero_type, {3, n});
    fill(zero, [&] { return static_cast<double>(random() % 5); });
    Owned out(DType::float32, {m, n});
    const GemmArguments arguments(
        a.view(),
        ScaledOperand(b.view(), {{scale.view(), scale_block::groups_of(32), strided}},
                      Companion(zero.view(), scale_block::groups_of(32), strided)),
        out.view());
    expect_exact(arguments, out, [&](std::int64_t row, std::int64_t column) {
      double sum = 0;
      for (std::int64_t d = 0; d < k; ++d)
        sum += a.get(row * k + d) * (b.get(d * n + column) - zero.get(d / 32 * n + column)) *
               scale.get(d / 32 * n + column);
      return sum;
    });
  }
}

// The swizzled layout is a permutation of the linear one; bytes of padding are never read.
TEST_F(ScaledGemm, row_42_swizzled_and_linear_scales_give_equal_results) {
  const std::int64_t m = 130, n = 9, k = 160, blocks = 5;
  Owned a = operand(DType::float8_e4m3fn, m, k), b = operand(DType::float8_e5m2, k, n);
  Owned linear = scales(DType::float8_e8m0fnu, m, blocks);
  Owned tiles(DType::float8_e8m0fnu, {swizzled_scale_count(m, k, scale_block::mx)});
  std::fill(tiles.bytes.begin(), tiles.bytes.end(), std::byte{0xff});
  for (std::int64_t row = 0; row < m; ++row)
    for (std::int64_t block = 0; block < blocks; ++block)
      tiles.code(abi::swizzled_offset(row, block, abi::swizzled_tiles(blocks))) =
          linear.code(row * blocks + block);
  Owned out(DType::float32, {m, n});
  for (const bool is_swizzled : {false, true}) {
    const GemmArguments arguments(
        ScaledOperand(a.view(), {{is_swizzled ? tiles.view() : linear.view(), scale_block::mx,
                                  is_swizzled ? swizzled : strided}}),
        b.view(), out.view());
    expect_exact(arguments, out, [&](std::int64_t row, std::int64_t column) {
      double sum = 0;
      for (std::int64_t d = 0; d < k; ++d)
        sum +=
            a.get(row * k + d) * e8m0(linear.code(row * blocks + d / 32)) * b.get(d * n + column);
      return sum;
    });
  }
}

// alpha, beta and C beside scales of rows, and the rule that a factor of 0 hides NaN.
TEST_F(ScaledGemm, scales_of_rows_multiply_sums_before_alpha) {
  const std::int64_t m = 9, n = 11, k = 33;
  Owned a = operand(DType::int8, m, k), b = operand(DType::int8, k, n);
  Owned sa = scales(DType::float32, m, 1), sb = scales(DType::float32, 1, n);
  Owned c = operand(DType::float32, m, n), out(DType::float32, {m, n});
  const ScaledOperand left(a.view(), {{sa.view(), scale_block::row, strided}});
  const ScaledOperand right(b.view(), {{sb.view(), scale_block::row, strided}});
  GemmArguments arguments(left, right, out.view(), {.c = c.view(), .alpha = 2, .beta = 3});
  EXPECT_EQ(arguments.problem().accumulator, DType::int32);
  const auto sum = [&](std::int64_t row, std::int64_t column) {
    double value = 0;
    for (std::int64_t d = 0; d < k; ++d) value += a.get(row * k + d) * b.get(d * n + column);
    return value * sa.get(row) * sb.get(column);
  };
  expect_exact(arguments, out, [&](std::int64_t row, std::int64_t column) {
    return 2 * sum(row, column) + 3 * c.get(row * n + column);
  });
  fill(c, [] { return std::nan(""); });
  arguments.set_scalars(1, 0);
  expect_exact(arguments, out, sum);
  sa.set(2, std::nan(""));
  arguments.set_scalars(0, 0);
  expect_exact(arguments, out, [](std::int64_t, std::int64_t) { return 0.0; });
}

// 2^-127, 2^127 and NaN as scales of three rows: NaN stays in its row.
TEST_F(ScaledGemm, row_43_extreme_scales_of_mx) {
  const std::int64_t m = 3, n = 8, k = 32;
  Owned a = operand(DType::float8_e4m3fn, m, k), b(DType::float8_e4m3fn, {k, n});
  fill(b, [&] { return 1.0; });
  Owned scale(DType::float8_e8m0fnu, {m, 1}), out(DType::float64, {m, n});
  const std::uint8_t codes[] = {0x00, 0xfe, 0xff};
  for (std::int64_t row = 0; row < m; ++row) scale.code(row) = codes[row];
  const GemmArguments arguments(ScaledOperand(a.view(), {{scale.view(), scale_block::mx, strided}}),
                                b.view(), out.view(), DType::float64);
  for (const Kernel& kernel : get_kernels(arguments)) {
    kernel.run(arguments, {.stream = Stream::cpu()});
    for (std::int64_t column = 0; column < n; ++column) {
      for (std::int64_t row = 0; row < 2; ++row) {
        double sum = 0;
        for (std::int64_t d = 0; d < k; ++d) sum += a.get(row * k + d);
        EXPECT_EQ(out.get(row * n + column), sum * e8m0(codes[row])) << kernel.name();
      }
      EXPECT_TRUE(std::isnan(out.get(2 * n + column))) << kernel.name();
    }
  }
}

// A negative scale, and one of 0, are applied as they are.
TEST_F(ScaledGemm, row_32_negative_scales_and_zero) {
  Owned a = operand(DType::float8_e4m3fn, 5, 40), b = operand(DType::float8_e5m2, 40, 6);
  Owned scale(DType::float32, {1}), out(DType::float32, {5, 6});
  for (const double value : {-3.0, 0.0, 0.5}) {
    scale.set(0, value);
    const GemmArguments arguments(
        ScaledOperand(a.view(), {{scale.view(), scale_block::tensor, strided}}), b.view(),
        out.view());
    expect_exact(arguments, out, [&](std::int64_t row, std::int64_t column) {
      double sum = 0;
      for (std::int64_t d = 0; d < 40; ++d) sum += a.get(row * 40 + d) * b.get(d * 6 + column);
      return sum * value;
    });
  }
}

// Grouped rows, whose scales follow A's rows; B's are per group.
TEST_F(ScaledGemm, row_34_scales_of_grouped_rows) {
  const std::int64_t total = 12, n = 8, k = 32, groups = 3;
  Owned a = operand(DType::float8_e4m3fn, total, k), b(DType::float8_e4m3fn, {groups, k, n});
  for (std::int64_t i = 0; i < groups * k * n; ++i) b.set(i, small_integer());
  Owned sa = scales(DType::float32, total, 1), sb(DType::float32, {groups, 1, n});
  for (std::int64_t i = 0; i < groups * n; ++i) sb.set(i, power());
  Owned out(DType::float32, {total, n});
  const std::vector<std::int32_t> ends{5, 5, 12};
  const GroupedGemmArguments grouped(
      ScaledOperand(a.view(), {{sa.view(), scale_block::row, strided}}),
      ScaledOperand(b.view(), {{sb.view(), scale_block::row, strided}}), out.view(), DType::float32,
      {.sizes = std::span<const std::int32_t>(ends)});
  expect_exact(grouped.as_gemm(), out, [&](std::int64_t row, std::int64_t column) {
    const std::int64_t group = row < 5 ? 0 : 2;
    double sum = 0;
    for (std::int64_t d = 0; d < k; ++d)
      sum += a.get(row * k + d) * b.get((group * k + d) * n + column);
    return sum * sa.get(row) * sb.get(group * n + column);
  });
}

TEST_F(ScaledGemm, conversions_of_layouts_are_inverse) {
  const std::int64_t rows = 130, blocks = 6;
  Owned linear = scales(DType::float8_e8m0fnu, rows, blocks),
        again(DType::float8_e8m0fnu, {rows, blocks});
  Owned tiles(DType::float8_e8m0fnu, {swizzled_scale_count(rows, blocks, {1, 1})});
  swizzle_scales(linear.view(), tiles.view());
  EXPECT_EQ(tiles.code(abi::swizzled_offset(129, 5, 2)), linear.code(129 * blocks + 5));
  unswizzle_scales(tiles.view(), again.view());
  EXPECT_EQ(again.bytes, linear.bytes);
  EXPECT_THROW(swizzle_scales(linear.view(), again.view()), Error);
  // Memory from the last element backwards, and memory of both.
  const std::int64_t count = tiles.view().element_count();
  auto* const first = static_cast<std::byte*>(tiles.view().data());
  const Tensor backwards(first + count - 1, DType::float8_e8m0fnu, {count}, {-1});
  EXPECT_THROW(swizzle_scales(linear.view(), backwards), Error);
  const Tensor within(first + 1, DType::float8_e8m0fnu, {rows, blocks});
  EXPECT_THROW(unswizzle_scales(tiles.view(), within), Error);
}

TEST_F(ScaledGemm, kernels_are_found_by_their_names) {
  Owned a = operand(DType::float8_e4m3fn, 8, 64), b = operand(DType::float8_e4m3fn, 64, 8);
  Owned scale = scales(DType::float8_e8m0fnu, 8, 2), out(DType::float32, {8, 8});
  const GemmArguments arguments(ScaledOperand(a.view(), {{scale.view(), scale_block::mx, strided}}),
                                b.view(), out.view());
  for (const Kernel& kernel : get_kernels(arguments)) {
    EXPECT_NE(kernel.name().find("_scaled-e8m0-none"), std::string::npos) << kernel.name();
    EXPECT_EQ(find_kernel(kernel.name()), kernel);
  }
  const GemmArguments plain(a.view(), b.view(), out.view());
  const Status refused = get_kernels(arguments).front().supports(plain);
  EXPECT_NE(refused.error().find("A: expected scales e8m0"), std::string::npos) << refused.error();
}

TEST_F(ScaledGemm, a_family_without_a_line_about_scales_refuses_by_name) {
  Owned a = operand(DType::bfloat16, 8, 64), b = operand(DType::bfloat16, 64, 8);
  Owned scale = scales(DType::float32, 8, 2), out(DType::float32, {8, 8});
  const GemmProblem problem =
      GemmArguments(ScaledOperand(a.view(), {{scale.view(), {1, 32}, strided}}), b.view(),
                    out.view())
          .problem();
  bool is_refused = false;
  for (const Reason& reason : explain(problem, device_info(Device::cpu())).reasons)
    is_refused = is_refused || reason.failed.find("A: expected elements without") == 0;
  EXPECT_TRUE(is_refused);
}

}  // namespace
}  // namespace gemmery
