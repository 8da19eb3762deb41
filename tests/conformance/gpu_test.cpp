// SPDX-License-Identifier: Apache-2.0
// The device suite on a GPU, for each family and for the kernels of families that random choice
// among all would rarely draw, and tests that only a GPU can run. GEMMERY_TEST_DEVICE selects the
// GPU (default 0); GEMMERY_SOAK=1 runs 20,000 cases of each on at most 600 kernels.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "tests/conformance/device_conformance.hpp"

namespace gemmery::conformance {
namespace {

DeviceUnderTest family_on_gpu(const char* family) {
  return {.device = "gpu",
          .scale = {.rounds = 1,
                    .kernels_per_round = 20,
                    .cases_per_round = 600,
                    .kernels_per_line = 4,
                    .repetitions = 60},
          .soak = {.rounds = 1,
                   .kernels_per_round = 600,
                   .cases_per_round = 20000,
                   .kernels_per_line = 200,
                   .repetitions = 1000},
          .limits = {.products = 1 << 19},
          .repeated_lines = {"gemm 517x389x1031 a=f32", "gemm 256x256x4096 a=f16 out=f32",
                             "gemm 520x392x1032 a=bf16", "gemm 200x300x500 a=f64"},
          .family = family};
}

// Only kernels whose names contain one of the words.
DeviceUnderTest part_of(const char* family, const char* name, std::vector<const char*> words) {
  DeviceUnderTest part = family_on_gpu(family);
  part.repeated_lines = {};
  part.words = std::move(words);
  part.name = name;
  return part;
}

INSTANTIATE_TEST_SUITE_P(Gpu, DeviceConformance,
                         testing::Values(family_on_gpu("sm90"), family_on_gpu("sm80"),
                                         family_on_gpu("simt"), family_on_gpu("skinny"),
                                         family_on_gpu("depthwise")),
                         name_of);
class GpuPart : public DeviceConformance {};

TEST_P(GpuPart, every_kernel_is_right_on_random_problems) { try_random_problems(); }

INSTANTIATE_TEST_SUITE_P(Gpu, GpuPart,
                         testing::Values(part_of("sm90", "sm90_conv", {"_conv"}),
                                         part_of("sm90", "sm90_groups", {"_groups"}),
                                         part_of("sm90", "sm90_splits", {"_parallel", "_stream"}),
                                         part_of("sm80", "sm80_conv", {"_conv"}),
                                         part_of("sm80", "sm80_groups", {"_groups"}),
                                         part_of("sm80", "sm80_codes",
                                                 {"_s4c", "_u4c", "_e2m1c", "_e4m3c", "_e5m2c"})),
                         name_of);

class GpuOnly : public DeviceConformance {};
INSTANTIATE_TEST_SUITE_P(Gpu, GpuOnly, testing::Values(family_on_gpu("")), name_of);

// --- beyond 2^31 elements -----------------------------------------------------------------------

// A is a column of ones with 2^31 + 96 rows, or has a stride that spans as much memory. Rows are
// sampled at both ends and in between.
struct FarCase {
  const char* name;
  std::int64_t rows;
  std::int64_t a_row_stride;
  std::int64_t out_row_stride;
};

void check_far_rows(const FarCase& far, Device device, std::uint64_t seed) {
  SCOPED_TRACE(fmt::format("{}, seed {}", far.name, seed));
  constexpr std::int64_t n = 8;
  constexpr std::int64_t k = 4;
  const OwnedStream stream(device);
  const auto a_bytes = static_cast<std::size_t>((far.rows - 1) * far.a_row_stride + k);
  const auto out_bytes = static_cast<std::size_t>((far.rows - 1) * far.out_row_stride + n);
  Buffer a(a_bytes, stream);
  Buffer b(static_cast<std::size_t>(k * n), stream);
  Buffer out(4 * out_bytes, stream);
  fill(a.data(), 0, a_bytes, stream);
  fill(out.data(), 0xff, 4 * out_bytes, stream);
  std::vector<std::int8_t> b_host;
  for (std::int64_t i = 0; i < k * n; ++i)
    b_host.push_back(static_cast<std::int8_t>(i * 7 % 19 - 9));
  copy(b.data(), device, b_host.data(), Device::cpu(), b_host.size(), stream);

  Choices choices(seed);
  std::vector<std::int64_t> rows{0,
                                 far.rows - 1,
                                 far.rows / 2,
                                 (std::int64_t{1} << 31) / far.a_row_stride,
                                 (std::int64_t{1} << 31) / far.out_row_stride,
                                 (std::int64_t{1} << 32) / far.out_row_stride};
  for (int sample = 0; sample < 50; ++sample) rows.push_back(choices.between(0, far.rows - 1));
  std::vector<std::array<std::int8_t, k>> values;
  for (std::int64_t& row : rows) {
    row = std::min(row, far.rows - 1);
    std::array<std::int8_t, k> value{};
    for (std::size_t column = 0; column < k; ++column)
      value[column] = static_cast<std::int8_t>(row * 31 % 101 + static_cast<std::int64_t>(column));
    values.push_back(value);
    copy(static_cast<std::byte*>(a.data()) + row * far.a_row_stride, device, values.back().data(),
         Device::cpu(), k, stream);
    synchronize(stream);
  }

  const GemmArguments arguments(
      Tensor(a.data(), DType::int8, {far.rows, k}, {far.a_row_stride, 1}, device),
      Tensor(b.data(), DType::int8, {k, n}, device),
      Tensor(out.data(), DType::int32, {far.rows, n}, {far.out_row_stride, 1}, device));
  for (const RankedKernel& kernel : get_kernels(arguments)) {
    SCOPED_TRACE(kernel.name());
    kernel.run(arguments, {.stream = stream});
    synchronize(stream);
    for (std::size_t sample = 0; sample < rows.size(); ++sample) {
      std::array<std::int32_t, n> got{};
      copy(got.data(), Device::cpu(),
           static_cast<std::int32_t*>(out.data()) + rows[sample] * far.out_row_stride, device,
           sizeof got, stream);
      synchronize(stream);
      for (std::size_t column = 0; column < n; ++column) {
        std::int32_t expected = 0;
        for (std::size_t i = 0; i < k; ++i) expected += values[sample][i] * b_host[i * n + column];
        ASSERT_EQ(got[column], expected) << "row " << rows[sample] << ", column " << column;
      }
    }
    if (!is_soak()) break;
  }
}

TEST_P(GpuOnly, offsets_beyond_31_bits_are_reached) {
  if (device_info(device()).memory_bytes < (std::int64_t{40} << 30))
    GTEST_SKIP() << "needs 40 GB of device memory";
  const std::uint64_t seed = test_seed();
  // More than 2^31 elements in A and in out; then few rows that are far apart.
  check_far_rows({"many rows", (std::int64_t{1} << 29) + 1000, 5, 8}, device(), seed);
  check_far_rows({"far rows", 5000, 1000003, 500009}, device(), seed);
}

TEST_P(GpuOnly, a_second_device_gives_the_same_bits) {
  const auto gpus = devices();
  if (gpus.size() < 2) GTEST_SKIP() << "one GPU on this machine";
  const std::uint64_t seed = test_seed();
  const ProblemLine line = parse_problem("gemm 333x222x111 a=f32");
  std::vector<std::vector<std::byte>> results;
  for (const Device device : {gpus[0], gpus[1]}) {
    const OwnedStream stream(device);
    DeviceOperands operands = DeviceOperands::make(line, seed, stream);
    fill(operands.out.data(), 0xff, operands.out.bytes(), stream);
    get_kernels(operands.arguments).front().run(operands.arguments, {.stream = stream});
    results.push_back(download(operands.out, stream));
  }
  EXPECT_TRUE(results[0] == results[1]) << "seed " << seed;
}

}  // namespace
}  // namespace gemmery::conformance
