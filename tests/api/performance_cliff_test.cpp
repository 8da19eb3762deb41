// SPDX-License-Identifier: Apache-2.0
// A warning names problems that would be much faster with padded operands, with the reason.
#include <gtest/gtest.h>

#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include <gemmery/discovery.hpp>

namespace gemmery {
namespace {

const DeviceInfo& h200() {
  static const DeviceInfo info = *find_device_info("h200");
  return info;
}
std::optional<PerformanceCliff> cliff_of(std::string_view line, const DeviceInfo& device = h200()) {
  return find_cliff(parse_problem(line).problem, device);
}

// `failed` is empty if there is no warning.
struct Row {
  std::string_view line;
  std::string_view failed;
};
std::ostream& operator<<(std::ostream& stream, const Row& row) { return stream << row.line; }

class CliffRow : public testing::TestWithParam<Row> {};

TEST_P(CliffRow, is_told_with_the_constraint_that_failed) {
  const auto cliff = cliff_of(GetParam().line);
  ASSERT_EQ(cliff.has_value(), !GetParam().failed.empty());
  if (!cliff) return;
  EXPECT_EQ(cliff->failed, GetParam().failed);
  EXPECT_EQ(cliff->missed.family().name(), "sm90");
  EXPECT_GE(cliff->predicted_us, 2 * cliff->padded_us);
  EXPECT_NE(to_string(*cliff).find(cliff->missed.name()), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Problems, CliffRow,
    testing::Values(
        // The copy of B takes longer than the product.
        Row{"gemm 256x4096x4096 a=bf16 b=bf16:c/ld=4097",
            "its fastest kernels ask for alignment in bytes of 16"},
        Row{"gemm 4096x4095x4096 a=bf16", ""}, Row{"gemm 4096x4096x4095 a=bf16", ""},
        Row{"gemm 4095x4096x4096 a=bf16", ""}, Row{"gemm 4096x4096x4096 a=bf16", ""},
        // These types have no faster kernel; a small problem is bound by latency.
        Row{"gemm 4096x4095x4096 a=f64", ""}, Row{"gemm 7x7x7 a=bf16", ""}));

TEST(Cliff, is_none_on_the_cpu_and_where_all_alignments_are_alike) {
  EXPECT_FALSE(cliff_of("gemm 4096x4095x4096 a=bf16", device_info(Device::cpu())));
  EXPECT_FALSE(cliff_of("gemm 4096x4095x4096 a=f32", *find_device_info("a100")));
}

}  // namespace
}  // namespace gemmery
