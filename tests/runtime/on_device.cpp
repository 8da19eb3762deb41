// SPDX-License-Identifier: Apache-2.0
#include "tests/runtime/on_device.hpp"

#include <atomic>
#include <cmath>

#include "jit/nvrtc.hpp"
#include "tests/driver/fake_driver.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::tests {
namespace {

constexpr float poison_value = -12345.0F;

std::vector<float> random_numbers(std::int64_t count) {
  static std::atomic<std::uint64_t> calls = 0;
  std::mt19937_64 generator(random_seed() + calls++);
  std::uniform_int_distribution<int> numbers(-8, 8);
  std::vector<float> result(static_cast<std::size_t>(count));
  for (float& value : result) value = static_cast<float>(numbers(generator));
  return result;
}

std::size_t byte_count(const std::vector<float>& numbers) { return numbers.size() * sizeof(float); }

}  // namespace

void OnDevice::SetUp() {
  const jit::CompilerStatus compiler = jit::compiler_status();
  if (!compiler.found) GTEST_SKIP() << compiler.searched;
  if (is_fake()) {
    install_fake_driver();
  } else {
    const driver::DriverFinding finding = driver::find_driver(device().type);
    if (finding.driver == nullptr) GTEST_SKIP() << finding.reason;
    if (device().index >= finding.driver->device_count())
      GTEST_SKIP() << "there is no " << to_string(device());
  }
  reset_fake_counts();
}

Kernel OnDevice::new_kernel(DirectDesign design, bool has_c) {
  static std::atomic<std::int32_t> next = 1;
  design.number = next++;
  define_on_fake_driver(design);
  return DirectFamily::kernel(design, has_c);
}

Operands::Operands(Shape shape, Stream stream)
    : shape_(shape),
      stream_(stream),
      host_a_(random_numbers(shape.l * shape.m * shape.k)),
      host_b_(random_numbers(shape.l * shape.k * shape.n)),
      host_c_(random_numbers(shape.l * shape.m * shape.n)),
      a_(byte_count(host_a_) + 16, stream),
      b_(byte_count(host_b_) + 16, stream),
      c_(byte_count(host_c_) + 16, stream),
      out_(byte_count(host_c_) + 16, stream) {
  upload(a_, host_a_);
  upload(b_, host_b_);
  upload(c_, host_c_);
  poison();
  arguments_.emplace(tensor(a_, shape.m, shape.k), tensor(b_, shape.k, shape.n),
                     tensor(out_, shape.m, shape.n));
  synchronize(stream_);
}

GemmArguments Operands::with_scalars(float alpha, float beta) const {
  GemmOptions options{.c = std::nullopt, .alpha = alpha, .beta = beta};
  if (beta != 0) options.c = tensor(c_, shape_.m, shape_.n);
  return {tensor(a_, shape_.m, shape_.k), tensor(b_, shape_.k, shape_.n),
          tensor(out_, shape_.m, shape_.n), options};
}

void Operands::change_a() {
  host_a_ = random_numbers(shape_.l * shape_.m * shape_.k);
  upload(a_, host_a_);
  synchronize(stream_);
}

void Operands::expect_right(float alpha, float beta) {
  const std::vector<float> result = download();
  std::int64_t wrong = 0;
  for (std::int64_t batch = 0; batch < shape_.l; ++batch) {
    for (std::int64_t row = 0; row < shape_.m; ++row) {
      for (std::int64_t column = 0; column < shape_.n; ++column) {
        float sum = 0;
        for (std::int64_t k = 0; k < shape_.k; ++k) {
          sum += host_a_[static_cast<std::size_t>((batch * shape_.m + row) * shape_.k + k)] *
                 host_b_[static_cast<std::size_t>((batch * shape_.k + k) * shape_.n + column)];
        }
        const auto element = static_cast<std::size_t>((batch * shape_.m + row) * shape_.n + column);
        const float expected = alpha * sum + (beta != 0 ? beta * host_c_[element] : 0);
        wrong += result[element] == expected ? 0 : 1;
      }
    }
  }
  EXPECT_EQ(wrong, 0) << "elements of " << result.size();
  poison();
}

void Operands::expect_untouched() {
  for (const float value : download()) ASSERT_EQ(value, poison_value);
}

void Operands::upload(const Buffer& buffer, const std::vector<float>& numbers) const {
  copy(buffer.data(), buffer.device(), numbers.data(), Device::cpu(), byte_count(numbers), stream_);
}

std::vector<float> Operands::download() const {
  std::vector<float> numbers(host_c_.size());
  copy(numbers.data(), Device::cpu(), out_.data(), out_.device(), byte_count(numbers), stream_);
  synchronize(stream_);
  return numbers;
}

void Operands::poison() const {
  upload(out_, std::vector<float>(host_c_.size(), poison_value));
  synchronize(stream_);
}

Tensor Operands::tensor(const Buffer& buffer, std::int64_t rows, std::int64_t columns) const {
  return Tensor(buffer.data(), DType::float32, {shape_.l, rows, columns}, buffer.device());
}

}  // namespace gemmery::tests
