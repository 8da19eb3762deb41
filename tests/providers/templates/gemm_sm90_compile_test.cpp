// SPDX-License-Identifier: Apache-2.0
// Sm90 kernels through NVRTC: a fresh sample of designs and layouts, without spills or serialised
// wgmmas (a warning, hence an error), and how long it takes. No GPU is needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "jit/compiler.hpp"
#include "jit/nvrtc.hpp"
#include "providers/templates/gemm_sm90.hpp"
#include "providers/templates/gemm_sm90_design.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::templates {
namespace {

constexpr Target hopper{90, 'a'};

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
};

TEST_F(Sm90Compile, designs_compile_without_spills) {
  std::vector<Kernel> all;
  family().enumerate([&](const Kernel& kernel) { all.push_back(kernel); });
  std::mt19937_64 random(tests::random_seed());
  const int count = std::getenv("GEMMERY_SOAK") != nullptr ? 400 : 40;
  std::vector<double> times;
  for (int turn = 0; turn < count; ++turn) {
    const Kernel& kernel = all[random() % all.size()];
    const auto code = compile(kernel);
    EXPECT_EQ(code.usage.spill_store_bytes, 0) << sm90_name(kernel);
    EXPECT_EQ(code.usage.stack_bytes, 0) << sm90_name(kernel);
    times.push_back(code.compile_ms);
  }
  std::ranges::sort(times);
  std::printf("%d kernels, median %.0f ms, longest %.0f ms\n", count, times[times.size() / 2],
              times.back());
}

TEST_F(Sm90Compile, the_largest_tiles_compile_in_a_fraction_of_a_second) {
  for (const char* name : {"sm90v2_gemm_bf16r16_bf16c16_bf16r16_acc-f32_128x256x64_1x1_coop_m8_s4",
                           "sm90v2_gemm_bf16c16_bf16r16_f32r16_acc-f32_256x128x64_2x1_coop_m8_s3",
                           "sm90v2_gemm_f16r16_f16c16_f16r16_acc-f32_256x208x64_1x2_coop_m8_s2"}) {
    const auto kernel = family().parse_name(name);
    ASSERT_TRUE(kernel) << name;
    std::vector<double> times;
    for (int turn = 0; turn < 5; ++turn) times.push_back(compile(*kernel).compile_ms);
    std::ranges::sort(times);
    std::printf("%s: %.0f ms, median of 5\n", name, times[2]);
    EXPECT_LT(times[2], 2000) << name;  // a machine may be busy; the figure is what is looked at
  }
}

}  // namespace
}  // namespace gemmery::templates
