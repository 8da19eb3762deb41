// SPDX-License-Identifier: Apache-2.0
// Groups with scales of blocks along k, against the formula in double: on the CPU, and by simt and
// sm90 on an emulated H200. Elements and scales of no group are NaN, and results of no group stay.
#include <gemmery/gemmery.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/number.hpp"
#include "device/abi/scale_layout.hpp"
#include "jit/nvrtc.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery {
namespace {

constexpr float poison = -17;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t block = 128;

// A tensor in the memory of a device, with its values in double.
class Values {
 public:
  Values(DType dtype, std::vector<std::int64_t> shape, const std::function<double()>& draw)
      : dtype_(dtype), shape_(std::move(shape)) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape_) count *= extent;
    for (std::int64_t i = 0; i < count; ++i) values_.push_back(draw());
  }
  double& at(std::int64_t index) { return values_[static_cast<std::size_t>(index)]; }
  double at(std::int64_t index) const { return values_[static_cast<std::size_t>(index)]; }

  void place(Stream stream) {
    std::vector<std::byte> bytes(values_.size() * byte_width(dtype_));
    for (std::size_t i = 0; i < values_.size(); ++i)
      number::store(dtype_, bytes.data(), static_cast<std::int64_t>(i), {values_[i], 0});
    memory_ = Buffer(bytes.size(), stream);
    copy(memory_.data(), stream.device(), bytes.data(), Device::cpu(), bytes.size(), stream);
    synchronize(stream);
  }
  void read(Stream stream) {
    std::vector<std::byte> bytes(values_.size() * byte_width(dtype_));
    copy(bytes.data(), Device::cpu(), memory_.data(), stream.device(), bytes.size(), stream);
    synchronize(stream);
    for (std::size_t i = 0; i < values_.size(); ++i)
      values_[i] = number::load(dtype_, bytes.data(), static_cast<std::int64_t>(i));
  }
  // `strides`: in elements; packed if there are none.
  Tensor view(std::vector<std::int64_t> strides = {}) const {
    if (strides.empty()) return Tensor(memory_.data(), dtype_, shape_, memory_.device());
    return Tensor(memory_.data(), dtype_, shape_, strides, memory_.device());
  }

 private:
  DType dtype_;
  std::vector<std::int64_t> shape_;
  std::vector<double> values_;
  Buffer memory_;
};

class ScaledGroups : public ::testing::Test {
 protected:
  std::mt19937_64 random_{tests::random_seed()};
  std::vector<std::string_view> families_{"simt", "sm90"};

  std::function<double()> integers() {
    return [this] { return static_cast<double>(random_() % 5) - 2; };
  }
  // Distinct powers of two: sums of small integers with these are exact.
  std::function<double()> powers() {
    return
        [this] { return std::ldexp(random_() % 2 == 0 ? 1 : -1, static_cast<int>(random_() % 5)); };
  }
  static std::function<double()> constant(double value) {
    return [value] { return value; };
  }

  // Calls check(device, family) for each place where the problem runs.
  template <class Check>
  void on_all(Check&& check) {
    check(Device::cpu(), "host");
    if (!jit::compiler_status().found) return;
    for (const std::string_view family : families_)
      check(parse_device("emulated:h200").value(), family);
  }

  static void run(const GemmArguments& arguments, std::string_view family, Stream stream) {
    for (const Kernel& kernel : get_kernels(arguments)) {
      if (family != "host" && kernel.family().name() != family) continue;
      kernel.run(arguments, {.stream = stream});
      return synchronize(stream);
    }
    FAIL() << family << " has no kernel";
  }
};

// Rows of A of 1x128, B in 128x128.
TEST_F(ScaledGroups, row_38_scales_follow_the_rows_of_groups) {
  const std::int64_t total = 260, n = 72, k = 384, groups = 4, blocks = k / block;
  const std::vector<std::int32_t> ends{1, 1, 128, 257};
  Values a(DType::float8_e4m3fn, {total, k}, integers());
  Values b(DType::float8_e4m3fn, {groups, k, n}, integers());  // columns are adjacent to k
  Values sa(DType::float32, {total, blocks}, powers());
  Values sb(DType::float32, {groups, blocks, 1}, powers());
  for (std::int64_t i = ends.back() * k; i < total * k; ++i) a.at(i) = nan;
  for (std::int64_t i = ends.back() * blocks; i < total * blocks; ++i) sa.at(i) = nan;
  on_all([&](Device device, std::string_view family) {
    SCOPED_TRACE(family);
    const OwnedStream stream(device);
    Values out(DType::float32, {total, n}, constant(poison));
    Buffer sizes(ends.size() * 4, stream.get());
    copy(sizes.data(), device, ends.data(), Device::cpu(), ends.size() * 4, stream.get());
    for (Values* const values : {&a, &b, &sa, &sb, &out}) values->place(stream.get());
    run(GroupedGemmArguments(
            ScaledOperand(a.view(), {{sa.view(), scale_block::block_1x128, ScaleLayout::strided}}),
            ScaledOperand(b.view({k * n, 1, k}),
                          {{sb.view(), scale_block::block_128x128, ScaleLayout::strided}}),
            out.view(), DType::float32,
            {.sizes = GroupIndices(static_cast<const std::int32_t*>(sizes.data()), groups, device)})
            .as_gemm(),
        family, stream.get());
    out.read(stream.get());
    for (std::int64_t row = 0; row < total; ++row) {
      const std::int64_t group = row < 1 ? 0 : row < 128 ? 2 : 3;
      for (std::int64_t column = 0; column < n; ++column) {
        double sum = 0;
        for (std::int64_t d = 0; d < k; ++d)
          sum += a.at(row * k + d) * sa.at(row * blocks + d / block) *
                 b.at((group * n + column) * k + d) * sb.at(group * blocks + d / block);
        ASSERT_EQ(out.at(row * n + column), row < ends.back() ? sum : poison)
            << row << ", " << column;
      }
    }
  });
}

TEST_F(ScaledGroups, row_39_scales_of_masked_rows_beyond_are_not_used) {
  const std::int64_t most = 64, n = 40, k = 256, groups = 3, blocks = k / block;
  const std::vector<std::int32_t> used{0, 5, 64};
  Values a(DType::float8_e4m3fn, {groups, most, k}, integers());
  Values b(DType::float8_e4m3fn, {groups, k, n}, integers());
  Values sa(DType::float32, {groups, most, blocks}, powers());
  Values sb(DType::float32, {groups, blocks, n}, powers());
  for (std::int64_t row = 0; row < groups * most; ++row) {
    if (row % most < used[static_cast<std::size_t>(row / most)]) continue;
    for (std::int64_t d = 0; d < k; ++d) a.at(row * k + d) = nan;
    for (std::int64_t d = 0; d < blocks; ++d) sa.at(row * blocks + d) = nan;
  }
  on_all([&](Device device, std::string_view family) {
    SCOPED_TRACE(family);
    const OwnedStream stream(device);
    Values out(DType::float32, {groups, most, n}, constant(poison));
    Buffer sizes(used.size() * 4, stream.get());
    copy(sizes.data(), device, used.data(), Device::cpu(), used.size() * 4, stream.get());
    for (Values* const values : {&a, &b, &sa, &sb, &out}) values->place(stream.get());
    run(GroupedGemmArguments(
            ScaledOperand(a.view(), {{sa.view(), scale_block::block_1x128, ScaleLayout::strided}}),
            ScaledOperand(b.view({k * n, 1, k}),
                          {{sb.view(), scale_block::block_1x128, ScaleLayout::strided}}),
            out.view(), DType::float32,
            {.sizes = GroupIndices(static_cast<const std::int32_t*>(sizes.data()), groups, device),
             .form = GroupSizes::masked})
            .as_gemm(),
        family, stream.get());
    out.read(stream.get());
    for (std::int64_t row = 0; row < groups * most; ++row) {
      const std::int64_t group = row / most;
      const bool is_used = row % most < used[static_cast<std::size_t>(group)];
      for (std::int64_t column = 0; column < n; ++column) {
        double sum = 0;
        for (std::int64_t d = 0; d < k; ++d)
          sum += a.at(row * k + d) * sa.at(row * blocks + d / block) *
                 b.at((group * n + column) * k + d) *
                 sb.at((group * blocks + d / block) * n + column);
        ASSERT_EQ(out.at(row * n + column), is_used ? sum : poison) << row << ", " << column;
      }
    }
  });
}

// Blocks along k count from the beginning of all groups.
TEST_F(ScaledGroups, row_40_blocks_of_k_that_groups_divide) {
  const std::int64_t m = 64, n = 48, total = 400, groups = 3, blocks = 4;
  const std::vector<std::int32_t> ends{128, 128, 352};
  Values a(DType::float8_e4m3fn, {m, total}, integers());
  Values b(DType::float8_e4m3fn, {total, n}, integers());
  Values sa(DType::float32, {m, blocks}, powers());
  Values sb(DType::float32, {blocks, n}, powers());
  for (std::int64_t d = ends.back(); d < total; ++d) {
    for (std::int64_t row = 0; row < m; ++row) a.at(row * total + d) = nan;
    for (std::int64_t column = 0; column < n; ++column) b.at(column * total + d) = nan;
  }
  for (std::int64_t row = 0; row < m; ++row) sa.at(row * blocks + 3) = nan;
  on_all([&](Device device, std::string_view family) {
    SCOPED_TRACE(family);
    const OwnedStream stream(device);
    Values out(DType::float32, {groups, m, n}, constant(3));
    Buffer sizes(ends.size() * 4, stream.get());
    copy(sizes.data(), device, ends.data(), Device::cpu(), ends.size() * 4, stream.get());
    for (Values* const values : {&a, &b, &sa, &sb, &out}) values->place(stream.get());
    run(GroupedGemmArguments(
            ScaledOperand(a.view(), {{sa.view(), scale_block::block_1x128, ScaleLayout::strided}}),
            ScaledOperand(b.view({1, total}),
                          {{sb.view(), scale_block::block_1x128, ScaleLayout::strided}}),
            out.view(), DType::float32,
            {.sizes = GroupIndices(static_cast<const std::int32_t*>(sizes.data()), groups, device),
             .alignment = 32},
            {.c = out.view(), .beta = 1})
            .as_gemm(),
        family, stream.get());
    out.read(stream.get());
    for (std::int64_t group = 0; group < groups; ++group) {
      const std::int64_t begin = group == 0 ? 0 : ends[static_cast<std::size_t>(group - 1)];
      for (std::int64_t row = 0; row < m; ++row)
        for (std::int64_t column = 0; column < n; ++column) {
          double sum = 3;
          for (std::int64_t d = begin; d < ends[static_cast<std::size_t>(group)]; ++d)
            sum += a.at(row * total + d) * sa.at(row * blocks + d / block) *
                   b.at(column * total + d) * sb.at(d / block * n + column);
          ASSERT_EQ(out.at((group * m + row) * n + column), sum) << row << ", " << column;
        }
    }
  });
}

// Results of a grouped product quantised to MXFP8: scales of 1x32 follow out's rows, whose groups
// are empty or of odd rows, and no multiples of a tile. Those of no group stay.
class QuantisedGroups : public ScaledGroups {
 protected:
  static constexpr std::int64_t total = 260, n = 72, k = 64, groups = 4, blocks = 3;
  static constexpr std::int64_t padded = 384 * 4;  // swizzled, 128 rows by 4 blocks

  void SetUp() override {
    families_ = {"simt", "sm80", "sm90"};
    for (std::int64_t i = ends.back() * k; i < total * k; ++i) a.at(i) = nan;
  }

  static std::int64_t group_of(std::int64_t row) { return row < 1 ? 0 : row < 128 ? 2 : 3; }

  double sum_of(std::int64_t row, std::int64_t column) const {
    double sum = 0;
    for (std::int64_t d = 0; d < k; ++d)
      sum += a.at(row * k + d) * b.at((group_of(row) * k + d) * n + column);
    return sum;
  }

  // The least power of two for which the block's elements are at most 448.
  double scale_of(std::int64_t row, std::int64_t at) const {
    double most = 0;
    for (std::int64_t column = 32 * at; column < std::min(32 * at + 32, n); ++column)
      most = std::max(most, std::fabs(sum_of(row, column)));
    return most == 0 ? 0x1p-127 : std::exp2(std::ceil(std::log2(most / 448)));
  }

  void expect_quantised(ScaleLayout layout, const Values& out, const Values& q,
                        const Values& scale) const {
    std::vector<bool> is_expected(static_cast<std::size_t>(padded));
    const bool is_swizzled = layout == ScaleLayout::swizzled_128x4;
    for (std::int64_t row = 0; row < ends.back(); ++row)
      for (std::int64_t at = 0; at < blocks; ++at) {
        const double expected = scale_of(row, at);
        const std::int64_t place =
            is_swizzled ? abi::swizzled_offset(row, at, 1) : row * blocks + at;
        is_expected[static_cast<std::size_t>(place)] = true;
        ASSERT_EQ(scale.at(place), expected) << row << ", " << at;
        for (std::int64_t column = 32 * at; column < std::min(32 * at + 32, n); ++column) {
          const double sum = sum_of(row, column);
          ASSERT_EQ(out.at(row * n + column), sum) << row << ", " << column;
          ASSERT_EQ(q.at(row * n + column),
                    number::rounded_to(DType::float8_e4m3fn, {sum / expected, 0}))
              << row << ", " << column;
        }
      }
    for (std::int64_t i = 0; i < (is_swizzled ? padded : total * blocks); ++i)
      ASSERT_TRUE(is_expected[static_cast<std::size_t>(i)] || scale.at(i) == 64) << i;
    for (std::int64_t i = ends.back() * n; i < total * n; ++i)
      ASSERT_TRUE(out.at(i) == poison && q.at(i) == -16) << i;
  }

  const std::vector<std::int32_t> ends{1, 1, 128, 257};
  Values a{DType::bfloat16, {total, k}, integers()};
  Values b{DType::bfloat16, {groups, k, n}, integers()};
};

TEST_F(QuantisedGroups, row_47_results_of_groups_with_scales_in_both_layouts) {
  on_all([&](Device device, std::string_view family) {
    SCOPED_TRACE(family);
    const OwnedStream stream(device);
    Buffer sizes(ends.size() * 4, stream.get());
    copy(sizes.data(), device, ends.data(), Device::cpu(), ends.size() * 4, stream.get());
    for (const ScaleLayout layout : {ScaleLayout::strided, ScaleLayout::swizzled_128x4}) {
      const bool is_swizzled = layout == ScaleLayout::swizzled_128x4;
      Values out(DType::float32, {total, n}, constant(poison));
      Values q(DType::float8_e4m3fn, {total, n}, constant(-16));
      Values scale(DType::float8_e8m0fnu,
                   is_swizzled ? std::vector{padded} : std::vector{total, blocks}, constant(64));
      for (Values* const values : {&a, &b, &out, &q, &scale}) values->place(stream.get());
      const EpilogueArguments epilogue(
          "scale = mx_scale(block_amax(accum, 1, 32), e4m3, rceil); q = cast(accum / scale, e4m3, "
          "saturate); D = accum",
          {{"q", q.view()}, {"scale", scale.view(), layout}});
      run(GroupedGemmArguments(
              a.view(), b.view(), out.view(), DType::float32,
              {.sizes =
                   GroupIndices(static_cast<const std::int32_t*>(sizes.data()), groups, device)},
              {.epilogue = epilogue})
              .as_gemm(),
          family, stream.get());
      for (Values* const values : {&out, &q, &scale}) values->read(stream.get());
      expect_quantised(layout, out, q, scale);
    }
  });
}

}  // namespace
}  // namespace gemmery
