// SPDX-License-Identifier: Apache-2.0
// Compiles simt kernels by NVRTC: every tile, a sample of operands, every target; no spills, and
// the compile time. No GPU is needed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "jit/compiler.hpp"
#include "jit/nvrtc.hpp"
#include "providers/templates/simt/design.hpp"
#include "providers/templates/simt/family.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery::templates {
namespace {

class SimtCompile : public tests::WithNvrtc {
 protected:
  static jit::CompiledCode compile(const Kernel& kernel, Target target) {
    const auto source = family().emit(kernel, target);
    return jit::compile({.source = source.text,
                         .entry = source.entry,
                         .target = target,
                         .extra_options = source.options});
  }

  static const SimtFamily& family() {
    static const SimtFamily simt;
    return simt;
  }

  static Kernel kernel_named(const std::string& name) {
    const auto kernel = family().parse_name(name);
    if (!kernel) ADD_FAILURE() << name;
    return kernel.value();
  }

  // One kernel for every tile and every arithmetic, with random operands.
  static std::vector<Kernel> sample(std::size_t per_tile) {
    std::vector<Kernel> all;
    family().enumerate([&](const Kernel& kernel) { all.push_back(kernel); });
    std::mt19937_64 random(tests::compilation_seed());
    std::ranges::shuffle(all, random);
    std::vector<Kernel> chosen;
    std::vector<std::pair<DesignBytes, DType>> seen;
    for (const Kernel& kernel : all) {
      const std::pair key{kernel.design(), kernel.operands().accumulator};
      if (std::ranges::count(seen, key) >= static_cast<std::ptrdiff_t>(per_tile)) continue;
      seen.push_back(key);
      chosen.push_back(kernel);
    }
    return chosen;
  }
};

TEST_F(SimtCompile, every_tile_compiles_for_a_target_without_spills) {
  std::mt19937_64 random(tests::compilation_seed());
  const std::size_t per_tile = std::getenv("GEMMERY_SOAK") != nullptr ? 25 : 1;
  int count = 0;
  for (const Kernel& kernel : sample(per_tile)) {
    const auto targets = family().targets(kernel);
    const Target target = targets[random() % targets.size()];
    if (!jit::find_nvrtc().knows(target)) continue;
    const auto code = compile(kernel, target);
    EXPECT_EQ(code.usage.spill_store_bytes, 0) << simt_name(kernel) << " " << to_string(target);
    EXPECT_EQ(code.usage.stack_bytes, 0) << simt_name(kernel) << " " << to_string(target);
    ++count;
  }
  std::printf("%d kernels compiled\n", count);
}

TEST_F(SimtCompile, one_kernel_compiles_for_every_target) {
  const Kernel kernel = kernel_named("simt1_gemm_f32r16_f32c16_f32r16_acc-f32_128x128x8_8x8_k1_s4");
  for (const Target target : family().targets(kernel)) {
    if (!jit::find_nvrtc().knows(target)) continue;
    EXPECT_NO_THROW(compile(kernel, target)) << to_string(target);
  }
}

TEST_F(SimtCompile, a_kernel_compiles_in_a_fraction_of_a_second) {
  for (const char* name : {"simt1_gemm_f32r16_f32r16_f32r16_acc-f32_128x128x8_8x8_k1_s4",
                           "simt1_gemm_f32r16_f32c16_f32r16_acc-f32_32x32x64_4x4_k4_s3",
                           "simt1_gemm_f32r16_f32r16_f32r16_acc-f32_16x32x64_4x4_k8_s4"}) {
    std::vector<double> times;
    for (int turn = 0; turn < 5; ++turn)
      times.push_back(compile(kernel_named(name), {90, 0}).compile_ms);
    std::ranges::sort(times);
    std::printf("%s: %.0f ms, median of 5\n", name, times[2]);
    EXPECT_LT(times[2], 2000) << name;  // generous; the figure is printed
  }
}

}  // namespace
}  // namespace gemmery::templates
