// SPDX-License-Identifier: Apache-2.0
// Split k in float16 on an emulated A100: the sum of the slices is rounded once, like accumulators
// of the whole k. Partial sums are kept in the accumulator's type; in float16 they would be rounded
// once per slice. GEMMERY_SOAK=1 runs 500 cases.
#include <gtest/gtest.h>
#include <gemmery/gemmery.hpp>

#include <cstdlib>
#include <random>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "tests/support/random_seed.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery {
namespace {

class Sm80Split : public tests::WithNvrtc {
 protected:
  int draw(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  const Device a100_ = parse_device("emulated:a100").value();
  std::mt19937_64 random_{tests::random_seed()};
};

bool is_soak() {
  const char* const text = std::getenv("GEMMERY_SOAK");
  return text != nullptr && std::string_view(text) == "1";
}

// Integer sums that are exact in float32 and not in float16: rounded once, they have one value.
TEST_F(Sm80Split, sums_in_float16_are_rounded_once) {
  for (int round = 0; round < (is_soak() ? 500 : 24); ++round) {
    const int slices = draw(2, 7);
    const std::string split = draw(0, 2) == 0   ? "stream"
                              : draw(0, 1) == 0 ? fmt::format("serial{}", slices)
                                                : fmt::format("parallel{}", slices);
    const std::string name =
        fmt::format("sm80v1_gemm_f16r16_f16c16_f16x2_acc-f32_mma_{}_{}_m8_s3",
                    draw(0, 1) == 0 ? "64x32x64_2x1x1" : "32x64x64_1x2x2", split);
    const auto kernel = find_kernel(name);
    ASSERT_TRUE(kernel) << name;
    const ProblemLine line =
        parse_problem(fmt::format("gemm {}x{}x{}x{} a=f16/ld=1600 b=f16:c/ld=1600", draw(1, 150),
                                  draw(1, 100), draw(200, 1600), draw(1, 2)));
    const VerifyReport report =
        verify(line, *kernel,
               {.fill = Fill::integers, .seed = random_(), .guard_bands = true, .device = a100_});
    EXPECT_TRUE(report.passed) << to_string(line) << " " << name << ": " << report.first_failure;
    EXPECT_EQ(report.method, "exact integers");
  }
}

// With fewer blocks of k than requested slices, missing slices are not read.
TEST_F(Sm80Split, more_slices_than_blocks_of_k_are_as_many_as_there_are) {
  for (const char* const split : {"serial201", "parallel201"}) {
    const auto kernel = find_kernel(
        fmt::format("sm80v1_gemm_f16r16_f16c16_f16x2_acc-f32_mma_64x32x64_2x1x1_{}_m8_s3", split));
    ASSERT_TRUE(kernel) << split;
    for (const int k : {0, 1, 64, 65, 1000}) {
      const ProblemLine line =
          parse_problem(fmt::format("gemm 70x40x{} a=f16/ld=1024 b=f16:c/ld=1024", k));
      const VerifyReport report = verify(line, *kernel, {.seed = random_(), .device = a100_});
      EXPECT_TRUE(report.passed) << to_string(line) << " " << split << ": " << report.first_failure;
    }
  }
}

}  // namespace
}  // namespace gemmery
