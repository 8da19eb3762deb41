// SPDX-License-Identifier: Apache-2.0
// Machine code of sm90 kernels with epilogue programs: common ones fit the registers beside the
// accumulators, and no program serialises wgmmas. A short run compiles a few, GEMMERY_SOAK=1 many.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <gemmery/discovery.hpp>
#include <gemmery/error.hpp>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "jit/nvrtc.hpp"
#include "platform/parallel.hpp"
#include "tests/providers/templates/sm90/cubin_checks.hpp"
#include "tests/support/random_programs.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery::templates {
namespace {

struct Drawn {
  Kernel kernel;
  std::string problem;
};

std::string draw_product(std::mt19937_64& random) {
  constexpr std::array inputs{"bf16", "f16"};
  constexpr std::array layouts{"", ":c"};
  constexpr std::array outputs{"bf16", "f16", "f32"};
  const auto extent = [&] { return 8 * (1 + random() % 300); };
  const char* const input = inputs[random() % inputs.size()];
  return fmt::format("gemm {}x{}x{} a={}{} b={}{} out={}{}", extent(), extent(), extent(), input,
                     layouts[random() % 2], input, layouts[random() % 2],
                     outputs[random() % outputs.size()], layouts[random() % 2]);
}

// Random kernels that discovery offers for random programs; GEMMERY_TEST_NAME selects names that
// contain it ("_rotation_").
std::vector<Drawn> draw_kernels(std::size_t count, std::mt19937_64& random) {
  const char* const wanted = std::getenv("GEMMERY_TEST_NAME");
  const std::string part = wanted != nullptr ? wanted : "";
  const DeviceInfo device = *find_device_info("h200");
  std::vector<Drawn> drawn;
  while (drawn.size() < count) {
    const std::string line = tests::add_random_program(random, draw_product(random), {});
    std::vector<Kernel> fitting;
    for (const RankedKernel& kernel : get_kernels(parse_problem(line).problem, device))
      if (kernel.family().name() == "sm90" && kernel.name().find(part) != std::string::npos)
        fitting.push_back(kernel);
    if (!fitting.empty()) drawn.push_back({fitting[random() % fitting.size()], line});
  }
  return drawn;
}

struct Outcome {
  std::vector<std::string> refused;  // by the compiler; warnings are errors
  std::vector<std::string> faults;   // in resources
};

Outcome compile_all(const std::vector<Drawn>& drawn) {
  Outcome outcome;
  std::mutex mutex;
  const auto visit = [&](const Drawn& one) {
    const std::string what = one.kernel.name() + "\n  " + one.problem + "\n  ";
    try {
      const std::vector<std::string> faults =
          find_resource_faults(one.kernel, compile_sm90(one.kernel).usage);
      const std::scoped_lock lock(mutex);
      for (const std::string& fault : faults) outcome.faults.push_back(what + fault);
    } catch (const Error& error) {
      const std::scoped_lock lock(mutex);
      outcome.refused.push_back(what + error.what());
    }
  };
  platform::parallel_for(static_cast<std::int64_t>(drawn.size()), 1,
                         [&](std::int64_t begin, std::int64_t end) {
                           for (std::int64_t index = begin; index < end; ++index)
                             visit(drawn[static_cast<std::size_t>(index)]);
                         });
  return outcome;
}

class Sm90ProgramCubins : public tests::WithNvrtc {
 protected:
  static std::size_t count() { return std::getenv("GEMMERY_SOAK") != nullptr ? 300 : 6; }
};

TEST_F(Sm90ProgramCubins, that_come_first_for_everyday_programs_spill_nothing) {
  constexpr std::array programs{
      R"p(epilogue="D = gelu(accum + bias)" bias=bf16[n])p",
      R"p(epilogue="D = gelu_tanh(accum + bias)" bias=bf16[n])p",
      R"p(epilogue="D = accum + residual" residual=bf16)p",
      R"p(epilogue="D = sigmoid(accum) * aux" aux=bf16)p",
      R"p(epilogue="D = gelu(accum + bias) + residual" bias=bf16[n] residual=bf16)p",
      R"p(epilogue="D = gelu_tanh(accum * s + bias) * aux" s=f32[m] bias=f32[n] aux=bf16)p",
      R"p(epilogue="D = silu(accum + bias) * aux + row" bias=bf16[n] aux=bf16 row=f32[n])p",
      R"p(epilogue="D = gelu(accum + bias); peak = amax(D)" bias=bf16[n] peak=f32[1])p",
      R"p(out=e4m3 epilogue="scale = mx_scale(block_amax(accum, 1, 32), e4m3, rceil); )p"
      R"p(D = cast(accum / scale, e4m3, saturate)" scale=e8m0:swizzled)p"};
  constexpr std::array extents{"4096x4096x4096", "8192x8192x1024", "8192x4096x512",
                               "4096x4096x256"};
  const DeviceInfo device = *find_device_info("h200");
  const bool is_soak = std::getenv("GEMMERY_SOAK") != nullptr;
  std::mt19937_64 random(tests::compilation_seed());
  std::vector<Drawn> drawn;
  for (const char* const program : programs) {
    const std::size_t chosen = random() % extents.size();
    for (std::size_t index = 0; index < extents.size(); ++index) {
      if (!is_soak && index != chosen) continue;
      const std::string line = fmt::format("gemm {} a=bf16 b=bf16:c {}", extents[index], program);
      const Kernel first = get_kernels(parse_problem(line).problem, device).front();
      ASSERT_EQ(first.family().name(), "sm90") << line;
      drawn.push_back({first, line});
    }
  }
  const Outcome outcome = compile_all(drawn);
  for (const std::string& refusal : outcome.refused) ADD_FAILURE() << refusal;
  for (const std::string& fault : outcome.faults) ADD_FAILURE() << fault;
}

// Accumulators that are kept during a reduction of whole tiles leave the fewest registers.
TEST_F(Sm90ProgramCubins, that_reduce_whole_tiles_spill_nothing) {
  constexpr std::array programs{
      R"p(epilogue="D = gelu(accum + bias); peak = amax(D)" bias=bf16[n] peak=f32[1])p",
      R"p(epilogue="D = gelu_tanh(accum + bias); peak = amax(D)" bias=bf16[n] peak=f32[1])p",
      R"p(epilogue="D = silu(accum + bias); peak = amax(accum + bias)" bias=bf16[n] peak=f16[1])p",
      R"p(epilogue="D = silu(accum); peak = amax(D)" peak=f32[1])p",
      R"p(out=bf16:c epilogue="D = gelu(accum); peak = amax(D)" peak=f32[1])p"};
  const DeviceInfo device = *find_device_info("h200");
  std::vector<Drawn> drawn;
  for (const char* const program : programs) {
    const std::string line = fmt::format("gemm 8192x4096x512 a=bf16 b=bf16:c {}", program);
    for (const RankedKernel& kernel : get_kernels(parse_problem(line).problem, device))
      if (kernel.name().find("_1x1_rotation") != std::string::npos) drawn.push_back({kernel, line});
  }
  EXPECT_EQ(drawn.size(), 8U);  // three that add a vector, too
  const Outcome outcome = compile_all(drawn);
  for (const std::string& refusal : outcome.refused) ADD_FAILURE() << refusal;
  for (const std::string& fault : outcome.faults) ADD_FAILURE() << fault;
}

// Other programs may spill, which is counted and printed; their results are correct.
TEST_F(Sm90ProgramCubins, of_any_program_serialise_no_wgmma) {
  std::mt19937_64 random(tests::compilation_seed() + 1);
  const Outcome outcome = compile_all(draw_kernels(count(), random));
  for (const std::string& refusal : outcome.refused) ADD_FAILURE() << refusal;
  std::printf("%zu kernels with random programs, %zu notes on spills and stack\n", count(),
              outcome.faults.size());
  for (const std::string& fault : outcome.faults) std::printf("%s\n", fault.c_str());
}

}  // namespace
}  // namespace gemmery::templates
