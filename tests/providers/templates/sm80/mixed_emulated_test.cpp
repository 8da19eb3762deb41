// SPDX-License-Identifier: Apache-2.0
// Products of 16-bit floats and codes on emulated devices of sm_80, where 8-bit floats are decoded
// by shifts, and of sm_90, where an instruction decodes them: every code at every place, in A and
// in B, and problems whose extents fill no tile. GEMMERY_SOAK=1 runs 400 random problems.
#include <gtest/gtest.h>
#include <gemmery/gemmery.hpp>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "core/number.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery {
namespace {

class Sm80Mixed : public tests::WithNvrtc {
 protected:
  int draw(int least, int most) { return std::uniform_int_distribution<int>(least, most)(random_); }
  template <class T>
  T one_of(std::initializer_list<T> all) {
    return *(all.begin() + draw(0, static_cast<int>(all.size()) - 1));
  }
  std::mt19937_64 random_{tests::random_seed()};
};

bool is_soak() {
  const char* const text = std::getenv("GEMMERY_SOAK");
  return text != nullptr && std::string_view(text) == "1";
}

// Bytes on a device.
Buffer on_device(const std::vector<std::uint8_t>& bytes, Stream stream) {
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

void expect_every_code(DType code, DType half, bool is_a, const char* device_name) {
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
  const std::string name =
      fmt::format("sm80v1_gemm_{}r16_{}c16_f32r16_acc-f32_mma_64x64x64_2x2x1_none_m8_s4",
                  alias(is_a ? code : half), alias(is_a ? half : code));
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

TEST_F(Sm80Mixed, row_52_every_code_of_8_bits_is_exact_and_nan_stays_nan) {
  for (const DType code : {DType::float8_e4m3fn, DType::float8_e5m2})
    for (const DType half : {DType::float16, DType::bfloat16})
      expect_every_code(code, half, draw(0, 1) == 0, one_of({"emulated:a100", "emulated:h200"}));
}

TEST_F(Sm80Mixed, row_53_every_code_of_e2m1_is_exact) {
  for (const DType half : {DType::float16, DType::bfloat16})
    for (const bool is_a : {false, true})
      expect_every_code(DType::float4_e2m1fn, half, is_a, "emulated:a100");
}

TEST_F(Sm80Mixed, extents_alignments_tiles_and_splits_of_any_kind_are_right) {
  for (int round = 0; round < (is_soak() ? 400 : 10); ++round) {
    const char* const code = one_of({"e2m1", "e4m3", "e5m2"});
    const char* const half = one_of({"bf16", "f16"});
    const bool is_a = draw(0, 1) == 0;
    const int of_codes = one_of({4, 16});
    const int of_half = one_of({2, 4, 16});
    const char* const out = one_of({"bf16", "f16", "f32"});
    const char* const tile = one_of({"128x128x64_2x4x1", "64x128x64_2x2x1", "128x32x64_4x1x1",
                                     "16x128x64_1x4x1", "16x64x128_1x2x2", "64x16x128_2x1x2"});
    const std::string split = one_of({"none", "none", "serial2", "parallel3", "stream"});
    const std::string name =
        fmt::format("sm80v1_gemm_{}r{}_{}c{}_{}x{}_acc-f32_mma_{}_{}_m8_s3", is_a ? code : half,
                    is_a ? of_codes : of_half, is_a ? half : code, is_a ? of_half : of_codes, out,
                    std::string_view(out) == "f32" ? 4 : 2, tile, split);
    const auto kernel = find_kernel(name);
    ASSERT_TRUE(kernel) << name;
    const int k = draw(0, 300);
    const auto operand = [&](bool has_codes, const char* layout) {
      const int unit = has_codes ? 32 : 8;  // 16 bytes
      return fmt::format("{}{}/ld={}", has_codes ? code : half, layout, (k / unit + 1) * unit);
    };
    const ProblemLine line = parse_problem(
        fmt::format("gemm {}x{}x{}x{} a={} b={} out={} alpha={}", draw(1, 150), draw(1, 150), k,
                    draw(1, 2), operand(is_a, ""), operand(!is_a, ":c"), out, one_of({0, 1, 2})));
    const Device device = parse_device(one_of({"emulated:a100", "emulated:h200"})).value();
    const VerifyReport report = verify(
        line, *kernel,
        {.fill = one_of({Fill::normal, Fill::integers}), .seed = random_(), .device = device});
    EXPECT_TRUE(report.passed) << to_string(line) << " " << name << ": " << report.first_failure;
  }
}

}  // namespace
}  // namespace gemmery
