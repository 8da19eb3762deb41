// SPDX-License-Identifier: Apache-2.0
// The fixture of what launches of sm90 kernels must keep to, on an H200 and on an emulated one: a
// matrix whose columns move by one with every multiplication, so that results are exact and each
// launch of a chain shows.
#pragma once

#include <gtest/gtest.h>
#include <gemmery/gemmery.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace gemmery::tests {

class HopperGemm : public testing::TestWithParam<Device> {
 protected:
  // Skips, with the reason, where there is no such device, no compiler, or no sm90 kernel for it.
  void SetUp() override;

  Device device() const { return GetParam(); }
  bool is_emulated() const { return device().type == DeviceType::emulated; }
};

// Two buffers of m x n numbers of bfloat16 and the n x n matrix that moves columns by one.
class MovingColumns {
 public:
  MovingColumns(std::int64_t m, std::int64_t n, Stream stream);

  // From the first buffer into the second, or back.
  GemmArguments forth() const { return product(first_, second_); }
  GemmArguments back() const { return product(second_, first_); }

  // Fills the first buffer with new random whole numbers, the second with poison.
  void refill();

  // The numbers of the first buffer (after an even count of moves) or the second, against what was
  // filled in, its columns moved so often.
  void expect_moved(std::int64_t moves) const;

 private:
  GemmArguments product(const Buffer& from, const Buffer& to) const;

  std::int64_t m_, n_;
  Stream stream_;
  std::vector<std::uint16_t> host_;
  Buffer first_, second_, shift_;
};

// The sm90 kernels that discovery offers for a problem, and of them the first of each schedule and
// cluster: "coop 1x1", "pingpong 2x1", …
std::vector<Kernel> sm90_kernels(const GemmArguments& arguments);
std::vector<Kernel> one_of_each_design(const GemmArguments& arguments);
std::string design_class(const Kernel& kernel);

}  // namespace gemmery::tests
