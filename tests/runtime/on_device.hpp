// SPDX-License-Identifier: Apache-2.0
// The fixture of the tests that run on any GPU, the fake one included, and operands to run on.
#pragma once

#include <gtest/gtest.h>
#include <gemmery/arguments.hpp>
#include <gemmery/buffer.hpp>

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "driver/driver.hpp"
#include "tests/runtime/direct_family.hpp"

namespace gemmery::tests {

// Which driver serves DeviceType::emulated in a program: the fake one, or the emulator. Each
// program of the suite defines it.
bool is_fake_driver_wanted();

// Each test runs on every device that is named when the suite is instantiated.
class OnDevice : public testing::TestWithParam<Device> {
 protected:
  // Skips, with the reason, where there is no such device or no compiler.
  void SetUp() override;

  Device device() const { return GetParam(); }
  bool is_fake() const { return device().type == DeviceType::emulated && is_fake_driver_wanted(); }

  // A kernel that no other test has compiled.
  static Kernel new_kernel(DirectDesign design = {}, bool has_c = false);
};

struct Shape {
  std::int64_t m = 33, n = 17, k = 9, l = 2;
};

// Whole numbers small enough that every sum is exact, on a device, with the result that is
// expected.
class Operands {
 public:
  Operands(Shape shape, Stream stream);

  const GemmArguments& arguments() const { return *arguments_; }
  GemmArguments with_scalars(float alpha, float beta) const;

  // New numbers in A, in place; the expectation follows.
  void change_a();

  // Reads the result back and compares it; then overwrites it with poison.
  void expect_right(float alpha = 1, float beta = 0);
  void expect_untouched();

  const void* a() const { return a_.data(); }
  const void* out() const { return out_.data(); }

 private:
  void upload(const Buffer& buffer, const std::vector<float>& numbers) const;
  std::vector<float> download() const;
  void poison() const;
  Tensor tensor(const Buffer& buffer, std::int64_t rows, std::int64_t columns) const;

  Shape shape_;
  Stream stream_;
  std::vector<float> host_a_, host_b_, host_c_;
  Buffer a_, b_, c_, out_;
  std::optional<GemmArguments> arguments_;
};

}  // namespace gemmery::tests
