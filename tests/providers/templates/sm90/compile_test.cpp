// SPDX-License-Identifier: Apache-2.0
// The compile time of sm90 kernels by NVRTC. No GPU is needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "jit/compiler.hpp"
#include "jit/nvrtc.hpp"
#include "providers/templates/sm90/family.hpp"

namespace gemmery::templates {
namespace {

constexpr Target hopper{90, 'a'};

// Processor time, on which other load has less effect; milliseconds, the median of 5.
struct CompileTimes {
  double elapsed;
  double work;
};

class Sm90Compile : public testing::Test {
 protected:
  void SetUp() override {
    const jit::CompilerStatus status = jit::compiler_status();
    if (!status.found) GTEST_SKIP() << status.searched;
    if (!jit::find_nvrtc().knows(hopper)) GTEST_SKIP() << "NVRTC does not know sm_90a";
  }

  static const Sm90Family& family() {
    static const Sm90Family sm90;
    return sm90;
  }

  static jit::CompiledCode compile(const Kernel& kernel) {
    const auto source = family().emit(kernel, hopper);
    return jit::compile({.source = source.text,
                         .entry = source.entry,
                         .target = hopper,
                         .extra_options = source.options});
  }

  static CompileTimes time(const Kernel& kernel) {
    std::vector<double> times;
    std::vector<double> work;
    for (int turn = 0; turn < 5; ++turn) {
      const std::clock_t begin = std::clock();
      times.push_back(compile(kernel).compile_ms);
      work.push_back(1000.0 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    }
    std::ranges::sort(times);
    std::ranges::sort(work);
    std::printf("%s: %.0f ms, %.0f of them at work, median of 5\n", kernel.name().c_str(), times[2],
                work[2]);
    return {times[2], work[2]};
  }
};

TEST_F(Sm90Compile, the_largest_tiles_compile_in_a_fraction_of_a_second) {
  for (const char* name : {"sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_128x256x64_1x1_coop_m8_s4",
                           "sm90v7_gemm_bf16c16_bf16r16_f32r16_acc-f32_256x128x64_2x1_coop_m8_s3",
                           "sm90v7_gemm_f16r16_f16c16_f16r16_acc-f32_256x208x64_1x2_coop_m8_s2"}) {
    const auto kernel = family().parse_name(name);
    ASSERT_TRUE(kernel) << name;
    EXPECT_LT(time(*kernel).work, 1500) << name;  // generous; the figure is printed
  }
}

// Tiles that are shared through the workspace, compared with the same tile alone: 1.2 to 2 times
// its processor time, and more on a busy machine.
TEST_F(Sm90Compile, parts_of_tiles_take_little_longer) {
  const std::string head = "sm90v7_gemm_bf16r16_bf16c16_bf16r16_acc-f32_";
  for (const char* const tile : {"128x256x64_1x1", "128x128x64_1x1", "256x128x64_2x1"}) {
    const auto kernel_of = [&](const std::string& split) {
      return family().parse_name(head + tile + split + "_coop_m8_s3").value();
    };
    const double alone = time(kernel_of("")).work;
    for (const char* const split : {"_parallel4", "_serial4", "_stream"})
      EXPECT_LT(time(kernel_of(split)).work, 3 * alone) << tile << split;
  }
}

}  // namespace
}  // namespace gemmery::templates
