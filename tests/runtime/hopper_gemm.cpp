// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/hopper_gemm.hpp"

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "driver/driver.hpp"
#include "jit/nvrtc.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::tests {
namespace {

constexpr std::uint16_t poison = 0x4eb0;  // 1.5e9 in bfloat16: no result

// -8 to 8, which bfloat16 holds exactly.
std::uint16_t to_bfloat16(int whole) {
  const auto value = static_cast<float>(whole);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}

std::size_t byte_count(const std::vector<std::uint16_t>& numbers) { return 2 * numbers.size(); }

void upload(const Buffer& buffer, const std::vector<std::uint16_t>& numbers, Stream stream) {
  copy(buffer.data(), stream.device(), numbers.data(), Device::cpu(), byte_count(numbers), stream);
  synchronize(stream);
}

}  // namespace

void HopperGemm::SetUp() {
  const jit::CompilerStatus compiler = jit::compiler_status();
  if (!compiler.found) GTEST_SKIP() << compiler.searched;
  const driver::DriverFinding finding = driver::find_driver(device().type);
  if (finding.driver == nullptr) GTEST_SKIP() << finding.reason;
  if (device().index >= finding.driver->device_count())
    GTEST_SKIP() << "there is no " << to_string(device());
  const Target target = device_info(device()).target;
  if (!runs_on(Target{90, 'a'}, target))
    GTEST_SKIP() << "sm90 kernels need sm_90a, this is " << to_string(target);
}

MovingColumns::MovingColumns(std::int64_t m, std::int64_t n, Stream stream)
    : m_(m),
      n_(n),
      stream_(stream),
      host_(static_cast<std::size_t>(m * n)),
      first_(byte_count(host_), stream),
      second_(byte_count(host_), stream),
      shift_(static_cast<std::size_t>(2 * n * n), stream) {
  std::vector<std::uint16_t> shift(static_cast<std::size_t>(n * n), 0);
  for (std::int64_t column = 0; column < n; ++column)
    shift[static_cast<std::size_t>(column * n + (column + 1) % n)] = to_bfloat16(1);
  upload(shift_, shift, stream);
  refill();
}

GemmArguments MovingColumns::product(const Buffer& from, const Buffer& to) const {
  const auto matrix = [&](const Buffer& buffer, std::int64_t rows) {
    return Tensor(buffer.data(), DType::bfloat16, {rows, n_}, stream_.device());
  };
  return GemmArguments(matrix(from, m_), matrix(shift_, n_), matrix(to, m_), DType::float32);
}

void MovingColumns::refill() {
  static std::mt19937_64 random(random_seed());
  for (std::uint16_t& number : host_) number = to_bfloat16(static_cast<int>(random() % 17) - 8);
  upload(first_, host_, stream_);
  upload(second_, std::vector<std::uint16_t>(host_.size(), poison), stream_);
}

void MovingColumns::expect_moved(std::int64_t moves) const {
  const Buffer& result = moves % 2 == 0 ? first_ : second_;
  std::vector<std::uint16_t> got(host_.size());
  copy(got.data(), Device::cpu(), result.data(), stream_.device(), byte_count(got), stream_);
  synchronize(stream_);
  std::int64_t wrong = 0;
  for (std::int64_t row = 0; row < m_; ++row) {
    for (std::int64_t column = 0; column < n_; ++column) {
      const std::int64_t source = ((column - moves) % n_ + n_) % n_;
      wrong += got[static_cast<std::size_t>(row * n_ + column)] !=
               host_[static_cast<std::size_t>(row * n_ + source)];
    }
  }
  EXPECT_EQ(wrong, 0) << "of " << m_ * n_ << " after " << moves << " moves";
}

std::vector<Kernel> sm90_kernels(const GemmArguments& arguments) {
  std::vector<Kernel> kernels;
  for (const RankedKernel& kernel : get_kernels(arguments)) {
    if (kernel.family().name() == "sm90") kernels.push_back(kernel);
  }
  return kernels;
}

std::string design_class(const Kernel& kernel) {
  const Metadata metadata = kernel.metadata();
  return std::string(metadata.design_value("schedule")) + " " +
         std::string(metadata.design_value("cluster"));
}

std::vector<Kernel> one_of_each_design(const GemmArguments& arguments) {
  std::vector<Kernel> chosen;
  std::set<std::string> seen;
  for (const Kernel& kernel : sm90_kernels(arguments)) {
    if (seen.insert(design_class(kernel)).second) chosen.push_back(kernel);
  }
  return chosen;
}

}  // namespace gemmery::tests
