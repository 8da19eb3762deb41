// SPDX-License-Identifier: Apache-2.0
// The fast writer of metadata gives the same text as records.
#include <gtest/gtest.h>

#include <string>

#include <gemmery/discovery.hpp>

#include "cli/metadata_json.hpp"
#include "cli/records.hpp"

namespace gemmery::cli {
namespace {

TEST(MetadataJson, is_what_a_record_dumps_to) {
  MetadataJson json;
  int count = 0;
  for_each_kernel([&](const Kernel& kernel) {
    if (count++ % 499 != 0) return;
    ASSERT_EQ(json.write(kernel), to_record(kernel.metadata()).dump());
  });
  EXPECT_GT(count, 400'000);
}

TEST(MetadataJson, follows_every_change_from_kernel_to_kernel) {
  MetadataJson json;
  for (const char* const line :
       {"gemm 64x64x64 a=f32", "gemm 64x64x64 a=bf16 c=bf16", "gemm 64x64x64 a=s8 out=s32",
        "gemm 64x64x64 a=f32 epilogue=\"D = relu(accum)\"", "gemm 64x64x64 a=f64"})
    for (const char* const device : {"h200", "a100"})
      for (const Kernel& kernel :
           get_kernels(parse_problem(line).problem, find_device_info(device).value()))
        ASSERT_EQ(json.write(kernel), to_record(kernel.metadata()).dump());
}

}  // namespace
}  // namespace gemmery::cli
