// SPDX-License-Identifier: Apache-2.0
#include "tests/support/moving_columns.hpp"

#include <cstring>

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

MovingColumns::MovingColumns(std::int64_t m, std::int64_t n, std::uint64_t seed, Stream stream)
    : m_(m),
      n_(n),
      stream_(stream),
      random_(seed),
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
  for (std::uint16_t& number : host_) number = to_bfloat16(static_cast<int>(random_() % 17) - 8);
  upload(first_, host_, stream_);
  upload(second_, std::vector<std::uint16_t>(host_.size(), poison), stream_);
}

std::int64_t MovingColumns::count_wrong(std::int64_t moves) const {
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
  return wrong;
}

}  // namespace gemmery::tests
