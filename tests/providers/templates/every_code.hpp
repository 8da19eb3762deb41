// SPDX-License-Identifier: Apache-2.0
// Products of every code of a type, at every place of a register, with 16-bit ones: the numbers of
// the codes.
#pragma once

#include <gtest/gtest.h>
#include <gemmery/gemmery.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/number.hpp"

namespace gemmery::tests {

// Bytes on a device.
inline Buffer on_device(const std::vector<std::uint8_t>& bytes, Stream stream) {
  Buffer buffer(bytes.size(), stream);
  copy(buffer.data(), stream.device(), bytes.data(), Device::cpu(), bytes.size(), stream);
  return buffer;
}

// A row of 64 k for each code of a type, at each place of a register: zeros but for the code.
struct OneCodeEach {
  static constexpr std::int64_t k = 64;
  DType code;
  std::int64_t rows;

  explicit OneCodeEach(DType dtype) : code(dtype), rows((1 << bit_width(dtype)) * 8) {}
  std::uint32_t code_of(std::int64_t row) const {
    return static_cast<std::uint32_t>(row & ((1 << bit_width(code)) - 1));
  }
  std::vector<std::uint8_t> bytes() const {
    std::vector<std::uint8_t> all(static_cast<std::size_t>(storage_bytes(code, rows * k)));
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t at = (row >> bit_width(code)) + 8 * (row % 8);  // of the 64 k
      const std::int64_t bit = (row * k + at) * bit_width(code);
      all[static_cast<std::size_t>(bit / 8)] |=
          static_cast<std::uint8_t>(code_of(row) << (bit % 8));
    }
    return all;
  }
};

// Multiplies a row of every code at every place by ones, with a kernel by name.
inline void expect_every_code(DType code, DType half, bool is_a, const std::string& name,
                              const char* device_name) {
  const Device device = parse_device(device_name).value();
  const OwnedStream stream{device};
  const OneCodeEach rows(code);
  constexpr std::int64_t others = 8;
  const Buffer codes = on_device(rows.bytes(), stream);
  const std::uint32_t one = number::encode(number::float_format(half), 1.0);
  std::vector<std::uint8_t> ones;
  for (std::int64_t at = 0; at < others * rows.k; ++at) {
    ones.push_back(static_cast<std::uint8_t>(one));
    ones.push_back(static_cast<std::uint8_t>(one >> 8));
  }
  const Buffer numbers = on_device(ones, stream);
  const Tensor coded(
      codes.data(), code, is_a ? std::array{rows.rows, rows.k} : std::array{rows.k, rows.rows},
      is_a ? std::array{rows.k, std::int64_t{1}} : std::array{std::int64_t{1}, rows.k}, device);
  const Tensor plain(
      numbers.data(), half, is_a ? std::array{rows.k, others} : std::array{others, rows.k},
      is_a ? std::array{std::int64_t{1}, rows.k} : std::array{rows.k, std::int64_t{1}}, device);
  const auto m = is_a ? rows.rows : others;
  const auto n = is_a ? others : rows.rows;
  std::vector<float> got(static_cast<std::size_t>(m * n));
  Buffer out(got.size() * 4, stream);
  const GemmArguments arguments(is_a ? coded : plain, is_a ? plain : coded,
                                Tensor(out.data(), DType::float32, {m, n}, device));
  const auto kernel = find_kernel(name);
  ASSERT_TRUE(kernel) << name;
  kernel->run(arguments, {.stream = stream});
  copy(got.data(), Device::cpu(), out.data(), device, got.size() * 4, stream);
  synchronize(stream);
  for (std::int64_t row = 0; row < rows.rows; ++row)
    for (std::int64_t other = 0; other < others; ++other) {
      const float value =
          got[static_cast<std::size_t>(is_a ? row * others + other : other * rows.rows + row)];
      const double expected = number::decode(code, rows.code_of(row));
      if (std::isnan(expected))
        ASSERT_TRUE(std::isnan(value)) << name << " " << rows.code_of(row);
      else
        ASSERT_EQ(value, expected) << name << " " << rows.code_of(row);
    }
}

}  // namespace gemmery::tests
