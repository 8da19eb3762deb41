// SPDX-License-Identifier: Apache-2.0
// The fixture of tests that run on any GPU, including the fake one, and operands for them.
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

// Whether DeviceType::emulated is the fake driver or the emulator. Each test program defines it.
bool is_fake_driver_wanted();

// Each test runs on every device with which the suite is instantiated.
class OnDevice : public testing::TestWithParam<Device> {
 protected:
  // Skips the test, with the reason, if there is no such device or no compiler.
  void SetUp() override;

  Device device() const { return GetParam(); }
  bool is_fake() const { return device().type == DeviceType::emulated && is_fake_driver_wanted(); }

  // A kernel that no other test has compiled.
  static Kernel new_kernel(DirectDesign design = {}, bool has_c = false);
};

struct Shape {
  std::int64_t m = 33, n = 17, k = 9, l = 2;
};

// Integers on a device, so small that every sum is exact, with the expected result.
class Operands {
 public:
  Operands(Shape shape, Stream stream);

  const GemmArguments& arguments() const { return *arguments_; }
  GemmArguments with_scalars(float alpha, float beta) const;

  // Writes new numbers to A and updates the expected result.
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
