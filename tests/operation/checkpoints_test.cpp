// SPDX-License-Identifier: Apache-2.0
// Weights are packed here as other libraries pack them, by their published loops; what is imported
// must be the codes, zero points and scales that were packed.
#include <gemmery/checkpoints.hpp>
#include <gemmery/error.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/number.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery {
namespace {

// A matrix of small numbers, row major.
struct Matrix {
  std::int64_t rows, columns;
  std::vector<int> values;

  Matrix(std::int64_t of_rows, std::int64_t of_columns)
      : rows(of_rows), columns(of_columns), values(static_cast<std::size_t>(rows * columns)) {}
  int& at(std::int64_t row, std::int64_t column) {
    return values[static_cast<std::size_t>(row * columns + column)];
  }
};

// A tensor with memory of its own; strides are packed, row or column major.
struct Owned {
  std::vector<std::byte> bytes;
  Tensor view;

  Owned(DType dtype, std::int64_t rows, std::int64_t columns, bool is_row_major = true)
      : bytes(static_cast<std::size_t>(storage_bytes(dtype, rows * columns)) + 4),
        view(bytes.data(), dtype, {rows, columns},
             is_row_major ? std::initializer_list<std::int64_t>{columns, 1}
                          : std::initializer_list<std::int64_t>{1, rows}) {}
  double get(std::int64_t row, std::int64_t column) const {
    return number::load(view.dtype(), bytes.data(), row * view.stride(0) + column * view.stride(1));
  }
  void set(std::int64_t row, std::int64_t column, double value) {
    number::store(view.dtype(), bytes.data(), row * view.stride(0) + column * view.stride(1),
                  {value, 0});
  }
  std::uint32_t& word(std::int64_t row, std::int64_t column) {
    return reinterpret_cast<std::uint32_t*>(
        bytes.data())[row * view.stride(0) + column * view.stride(1)];
  }
};

class Checkpoints : public ::testing::Test {
 protected:
  std::mt19937_64 random{tests::random_seed()};

  int draw(int end) { return static_cast<int>(random() % static_cast<std::uint64_t>(end)); }
  Matrix codes(std::int64_t rows, std::int64_t columns, int end = 16) {
    Matrix made(rows, columns);
    for (int& value : made.values) value = draw(end);
    return made;
  }
  static void expect_equal(const Owned& got, Matrix& expected, int minus = 0) {
    for (std::int64_t row = 0; row < expected.rows; ++row)
      for (std::int64_t column = 0; column < expected.columns; ++column)
        ASSERT_EQ(got.get(row, column), expected.at(row, column) - minus) << row << ", " << column;
  }
};

// Eight rows in a word.
Owned pack_rows(Matrix& values) {
  Owned packed(DType::int32, values.rows / 8, values.columns);
  for (std::int64_t row = 0; row < values.rows; ++row)
    for (std::int64_t column = 0; column < values.columns; ++column)
      packed.word(row / 8, column) |= static_cast<std::uint32_t>(values.at(row, column))
                                      << 4 * (row % 8);
  return packed;
}
// Eight columns in a word: the one in nibble i is order[i].
Owned pack_columns(Matrix& values, const std::vector<int>& order) {
  Owned packed(DType::int32, values.rows, values.columns / 8);
  for (std::int64_t row = 0; row < values.rows; ++row)
    for (std::int64_t word = 0; word < values.columns / 8; ++word)
      for (std::size_t place = 0; place < 8; ++place)
        packed.word(row, word) |=
            static_cast<std::uint32_t>(values.at(row, word * 8 + order[place])) << 4 * place;
  return packed;
}
const std::vector<int> ascending{0, 1, 2, 3, 4, 5, 6, 7};
const std::vector<int> of_awq{0, 2, 4, 6, 1, 3, 5, 7};

TEST_F(Checkpoints, row_56_gptq_of_both_versions_with_and_without_zero_points) {
  for (const int version : {1, 2})
    for (const std::int64_t group : {32, 0}) {
      const std::int64_t k = 96, n = 24, groups = group == 0 ? 1 : k / group;
      Matrix weight = codes(k, n), zeros = codes(groups, n);
      Owned qweight = pack_rows(weight), qzeros = pack_columns(zeros, ascending);
      Owned got(DType::uint4, k, n, false), got_zeros(DType::uint8, groups, n);
      EXPECT_FALSE(import_gptq(
          {.qweight = qweight.view, .qzeros = qzeros.view, .group = group, .version = version},
          got.view, got_zeros.view, std::nullopt));
      expect_equal(got, weight);
      expect_equal(got_zeros, zeros, version == 1 ? -1 : 0);
      Owned middle(DType::int4, k, n, false);
      EXPECT_FALSE(import_gptq({.qweight = qweight.view, .group = group}, middle.view, std::nullopt,
                               std::nullopt));
      expect_equal(middle, weight, 8);
    }
}

TEST_F(Checkpoints, row_56_gptq_in_activation_order) {
  const std::int64_t k = 104, n = 8, group = 32, groups = 4;  // the last group has 8
  Matrix weight = codes(k, n), zeros = codes(groups, n);
  std::vector<std::int32_t> g_idx(static_cast<std::size_t>(k));
  for (std::size_t at = 0; at < g_idx.size(); ++at)
    g_idx[at] = static_cast<std::int32_t>(at) / static_cast<std::int32_t>(group);
  std::ranges::shuffle(g_idx, random);
  Owned qweight = pack_rows(weight), qzeros = pack_columns(zeros, ascending);
  Owned got(DType::uint4, k, n, false), got_zeros(DType::uint8, groups, n);
  std::vector<std::int32_t> order(g_idx.size());
  const GptqWeight given{.qweight = qweight.view,
                         .qzeros = qzeros.view,
                         .g_idx = Tensor(g_idx.data(), DType::int32, {k}),
                         .group = group};
  EXPECT_TRUE(
      import_gptq(given, got.view, got_zeros.view, Tensor(order.data(), DType::int32, {k})));
  for (std::int64_t at = 0; at < k; ++at) {
    const auto from = order[static_cast<std::size_t>(at)];
    // Row `at` lies in the group that its row of the weight had.
    EXPECT_EQ(g_idx[static_cast<std::size_t>(from)], at / group);
    for (std::int64_t column = 0; column < n; ++column)
      EXPECT_EQ(got.get(at, column), weight.at(from, column));
  }
  std::ranges::sort(order);
  std::vector<std::int32_t> all(order.size());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(order, all);
  g_idx[0] = g_idx[0] == 0 ? 1 : 0;
  EXPECT_NE(std::string(tests::error_of([&] {
                          import_gptq(given, got.view, got_zeros.view,
                                      Tensor(order.data(), DType::int32, {k}));
                        }).what())
                .find("g_idx: expected 32 elements of k in group"),
            std::string::npos);
}

TEST_F(Checkpoints, row_56_awq_in_its_order_of_columns) {
  const std::int64_t k = 34, n = 40, group = 16, groups = 3;
  Matrix weight = codes(k, n), zeros = codes(groups, n);
  Owned qweight = pack_columns(weight, of_awq), qzeros = pack_columns(zeros, of_awq);
  Owned got(DType::uint4, k, n, false), got_zeros(DType::uint8, groups, n);
  import_awq({qweight.view, qzeros.view, group}, got.view, got_zeros.view);
  expect_equal(got, weight);
  expect_equal(got_zeros, zeros);
}

// The permutation of 1024 codes, tiles of 16x16 one after the other, as Marlin's packer builds it.
std::vector<int> marlin_permutation() {
  std::vector<int> permutation;
  for (int lane = 0; lane < 32; ++lane)
    for (int tile = 0; tile < 4; ++tile) {
      std::vector<int> of_lane;
      for (const int block : {0, 1})
        for (const int row :
             {2 * (lane % 4), 2 * (lane % 4) + 1, 2 * (lane % 4 + 4), 2 * (lane % 4 + 4) + 1})
          of_lane.push_back(16 * row + lane / 4 + 8 * block + 256 * tile);
      for (const int place : of_awq)
        permutation.push_back(of_lane[static_cast<std::size_t>(place)]);
    }
  return permutation;
}

TEST_F(Checkpoints, row_56_marlin_for_its_kernel) {
  const std::vector<int> permutation = marlin_permutation();
  for (const std::int64_t group : {128, 0}) {
    const std::int64_t k = 256, n = 128, groups = group == 0 ? 1 : k / group;
    Matrix weight = codes(k, n);
    Owned qweight(DType::int32, k / 16, 2 * n);
    for (std::int64_t tile_row = 0; tile_row < k / 16; ++tile_row)
      for (std::int64_t at = 0; at < 16 * n; ++at) {
        const std::int64_t from =
            at / 1024 * 1024 + permutation[static_cast<std::size_t>(at % 1024)];
        const std::int64_t row = tile_row * 16 + from % 256 / 16;
        const std::int64_t column = from / 256 * 16 + from % 16;
        qweight.word(tile_row, at / 8) |= static_cast<std::uint32_t>(weight.at(row, column))
                                          << 4 * (at % 8);
      }
    // Scales are permuted in runs of 64, or of 32 if there is one group.
    std::vector<std::int64_t> places;
    if (groups > 1)
      for (std::int64_t i = 0; i < 8; ++i)
        for (std::int64_t j = 0; j < 8; ++j) places.push_back(i + 8 * j);
    else
      for (std::int64_t i = 0; i < 4; ++i)
        for (const std::int64_t j : {0, 1, 8, 9, 16, 17, 24, 25}) places.push_back(2 * i + j);
    const auto run = static_cast<std::int64_t>(places.size());
    Matrix scales = codes(groups, n, 1000);
    Owned permuted(DType::float16, groups, n);
    for (std::int64_t row = 0; row < groups; ++row)
      for (std::int64_t at = 0; at < n; ++at)
        permuted.set(row, at,
                     scales.at(row, at / run * run + places[static_cast<std::size_t>(at % run)]));
    Owned got(DType::int4, k, n, false), got_scales(DType::float16, groups, n);
    import_marlin({qweight.view, permuted.view, group}, got.view, got_scales.view);
    expect_equal(got, weight, 8);
    expect_equal(got_scales, scales);
  }
}

TEST_F(Checkpoints, row_55_blocks_of_the_flattened_weight_and_nested_maxima) {
  for (const bool is_nested : {false, true}) {
    const std::int64_t n = 10, k = 96, block = 64, blocks = n * k / block, nested_block = 8;
    Matrix weight = codes(n, k);
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(n * k / 2));
    for (std::size_t at = 0; at < bytes.size(); ++at)
      bytes[at] = static_cast<std::uint8_t>(weight.values[2 * at] << 4 | weight.values[2 * at + 1]);
    std::vector<float> absmax(static_cast<std::size_t>(blocks)), code(256), outer(2);
    std::vector<std::uint8_t> quantised(absmax.size());
    for (float& value : code) value = static_cast<float>(draw(100)) / 64;
    for (float& value : outer) value = static_cast<float>(1 + draw(3));
    for (std::size_t at = 0; at < absmax.size(); ++at) {
      quantised[at] = static_cast<std::uint8_t>(draw(256));
      absmax[at] = is_nested ? code[quantised[at]] * outer[at / nested_block] + 0.25F
                             : static_cast<float>(draw(100));
    }
    const auto vector = [](auto& values, DType dtype) {
      return Tensor(values.data(), dtype, {static_cast<std::int64_t>(values.size())});
    };
    BlockwiseWeight given{
        .codes = vector(bytes, DType::uint8),
        .absmax = is_nested ? vector(quantised, DType::uint8) : vector(absmax, DType::float32),
        .nested_block = nested_block};
    if (is_nested) {
      given.nested_code = vector(code, DType::float32);
      given.nested_absmax = vector(outer, DType::float32);
      given.offset = 0.25;
    }
    EXPECT_EQ(scale_group(k, block), 32);
    Owned got(DType::uint4, k, n, false), scales(DType::float32, k / 32, n, false);
    import_blockwise(given, got.view, scales.view);
    for (std::int64_t row = 0; row < n; ++row)
      for (std::int64_t at = 0; at < k; ++at) {
        ASSERT_EQ(got.get(at, row), weight.at(row, at));
        ASSERT_EQ(scales.get(at / 32, row),
                  absmax[static_cast<std::size_t>((row * k + at) / block)]);
      }
  }
}

TEST_F(Checkpoints, tensors_that_a_format_has_not_are_refused_by_name) {
  Matrix weight = codes(64, 64), zeros = codes(2, 64);
  Owned qweight = pack_rows(weight), qzeros = pack_columns(zeros, ascending);
  Owned codes_out(DType::uint4, 64, 64, false), zeros_out(DType::uint8, 2, 64);
  Owned middle(DType::int4, 64, 64, false), row_major(DType::uint4, 64, 64);
  Owned scales(DType::float16, 2, 64), scales_out(DType::float16, 2, 64);
  const auto expect = [](const std::function<void()>& call, const char* text) {
    const std::string message = tests::error_of(call).what();
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  expect([&] { import_gptq({.qweight = qzeros.view, .group = 32}, middle.view, {}, {}); },
         "qweight: expected int32 (8, 64)");
  expect(
      [&] {
        import_gptq({.qweight = qweight.view, .qzeros = qzeros.view, .group = 16}, codes_out.view,
                    zeros_out.view, {});
      },
      "qzeros: expected int32 (4, 8)");
  expect(
      [&] {
        import_gptq({.qweight = qweight.view, .qzeros = qzeros.view, .group = 32, .version = 3},
                    codes_out.view, zeros_out.view, {});
      },
      "version: expected 1 or 2");
  expect(
      [&] {
        import_gptq({.qweight = qweight.view, .qzeros = qzeros.view, .group = 32}, row_major.view,
                    zeros_out.view, {});
      },
      "codes: expected strides (1, 64)");
  expect([&] { import_gptq({.qweight = qweight.view, .group = 32}, codes_out.view, {}, {}); },
         "codes: expected int4");
  expect(
      [&] {
        import_awq({qweight.view, qzeros.view, 32}, codes_out.view, zeros_out.view);
      },
      "qweight: expected int32 (64, 8)");
  expect(
      [&] {
        import_marlin({qweight.view, scales.view, 32}, middle.view, scales_out.view);
      },
      "qweight: expected int32 (4, 128)");
  std::vector<std::uint8_t> bytes(2048);
  std::vector<float> absmax(64);
  Owned blockwise_scales(DType::float32, 1, 64, false);
  expect(
      [&] {
        import_blockwise({.codes = Tensor(bytes.data(), DType::uint8, {2048}),
                          .absmax = Tensor(absmax.data(), DType::float32, {63})},
                         codes_out.view, blockwise_scales.view);
      },
      "absmax: expected float32 (64)");
}

}  // namespace
}  // namespace gemmery
