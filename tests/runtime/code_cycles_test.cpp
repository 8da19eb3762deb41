// SPDX-License-Identifier: Apache-2.0
// Code that is compiled, loaded and unloaded repeatedly (RELIABILITY G16): the memory of the
// process and of the device does not grow.
#include <gtest/gtest.h>

#include <cstdlib>
#include <span>
#include <string>

#include "driver/code.hpp"
#include "jit/compiler.hpp"
#include "jit/nvrtc.hpp"
#include "tests/support/resident_memory.hpp"
#include "tests/support/sanitizers.hpp"

namespace gemmery::tests {
namespace {

class CodeCycles : public testing::TestWithParam<Device> {
 protected:
  void SetUp() override {
    const jit::CompilerStatus compiler = jit::compiler_status();
    if (!compiler.found) GTEST_SKIP() << compiler.searched;
    const driver::DriverFinding finding = driver::find_driver(GetParam().type);
    if (finding.driver == nullptr) GTEST_SKIP() << finding.reason;
    if (GetParam().index >= finding.driver->device_count())
      GTEST_SKIP() << "there is no " << to_string(GetParam());
  }

  const driver::GpuDevice& device() const { return driver::open_device(GetParam()); }

  // The code depends on the number.
  void compile_load_and_let_go(int number) const {
    const CodeForm form = device().driver().code_form();
    const jit::CompiledCode code = jit::compile(
        {.source = "extern \"C\" __global__ void entry(int* out) { out[threadIdx.x] = " +
                   std::to_string(number) + "; }\n",
         .entry = "entry",
         .target = device().info().target,
         .form = form,
         .extra_options = {}});
    const auto bytes = form == CodeForm::ptx ? std::as_bytes(std::span(code.ptx))
                                             : std::span<const std::byte>(code.cubin);
    const auto loaded = driver::LoadedCode::load(device().driver(), bytes, "entry");
    EXPECT_NE(loaded->prepare(device(), 0), nullptr);
  }

  double device_mib_in_use() const {
    const driver::ScopedContext current(device());
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    driver::check(device().api(), device().api().cuMemGetInfo(&free_bytes, &total_bytes),
                  "cuMemGetInfo");
    return static_cast<double>(total_bytes - free_bytes) / (1 << 20);
  }
};
INSTANTIATE_TEST_SUITE_P(Emulated, CodeCycles, testing::Values(Device::emulated(1)));
INSTANTIATE_TEST_SUITE_P(Gpu, CodeCycles, testing::Values(Device::cuda(0)));

TEST_P(CodeCycles, keep_memory_flat) {
  if (is_sanitized) GTEST_SKIP() << "the sanitizer keeps what is freed";
  const int cycles = std::getenv("GEMMERY_SOAK") != nullptr ? 1'000 : 40;
  constexpr int warm = 30;
  for (int number = 0; number < warm; ++number) compile_load_and_let_go(number);
  const double resident_before = resident_mib();
  const double device_before = device_mib_in_use();
  for (int number = 0; number < cycles; ++number) compile_load_and_let_go(warm + number);
  const double resident_grown = resident_mib() - resident_before;
  const double device_grown = device_mib_in_use() - device_before;
  std::printf("%d cycles on %s: resident %+.1f MiB, on the device %+.1f MiB\n", cycles,
              to_string(GetParam()).c_str(), resident_grown, device_grown);
  // A cubin has some 4 KiB and a PTX text 1 KiB, so a leak of a thousand of them is detected.
  EXPECT_LT(resident_grown, 4);
  EXPECT_LT(device_grown, 4);
}

}  // namespace
}  // namespace gemmery::tests
