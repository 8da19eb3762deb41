// SPDX-License-Identifier: Apache-2.0
// A product of ones in float8 with scales, whose results are exact.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/buffer.hpp>
#include <gemmery/scales.hpp>

#include <cstdint>
#include <vector>

namespace gemmery::tests {

// A (32 x 64) row major, B (64 x 48) column major, out in float32. Scales: 1, 2, 3, … for rows of
// A, 2, 4, 6, … for columns of B; or the first of each for the whole tensor.
class ScaledOnes {
 public:
  static constexpr std::int64_t M = 32, N = 48, K = 64;

  ScaledOnes(Device device, ScaleBlock block)
      : own_(device),
        a_(put(std::vector<std::uint8_t>(M * K, one))),
        b_(put(std::vector<std::uint8_t>(K * N, one))),
        out_(put(std::vector<float>(M * N, -1))),
        scale_a_(put(ascending(M, 1))),
        scale_b_(put(ascending(N, 2))),
        block_(block) {}

  Stream stream() const { return own_.get(); }
  bool is_of_rows() const { return block_ == scale_block::row; }

  GemmArguments arguments() const {
    const Device device = own_.get().device();
    const Tensor a(a_.data(), DType::float8_e4m3fn, {M, K}, device);
    const Tensor b(b_.data(), DType::float8_e4m3fn, {K, N}, {1, K}, device);
    return GemmArguments({a, {scale(scale_a_, {M, 1})}}, {b, {scale(scale_b_, {1, N})}},
                         Tensor(out_.data(), DType::float32, {M, N}, device));
  }

  // The number of wrong results.
  int count_wrong() const {
    std::vector<float> read(M * N);
    copy(read.data(), Device::cpu(), out_.data(), own_.get().device(), read.size() * sizeof(float),
         own_.get());
    synchronize(own_.get());
    int wrong = 0;
    for (std::int64_t i = 0; i < M; ++i)
      for (std::int64_t j = 0; j < N; ++j) {
        const auto factor = is_of_rows() ? (i + 1) * 2 * (j + 1) : 2;
        wrong +=
            read[static_cast<std::size_t>(i * N + j)] == static_cast<float>(K * factor) ? 0 : 1;
      }
    return wrong;
  }

 private:
  static constexpr std::uint8_t one = 0x38;  // 1.0 in e4m3

  static std::vector<float> ascending(std::int64_t count, float step) {
    std::vector<float> values;
    for (std::int64_t i = 1; i <= count; ++i) values.push_back(step * static_cast<float>(i));
    return values;
  }
  template <class Value>
  Buffer put(const std::vector<Value>& values) const {
    const Stream stream = own_.get();
    Buffer buffer(values.size() * sizeof(Value), stream);
    copy(buffer.data(), stream.device(), values.data(), Device::cpu(),
         values.size() * sizeof(Value), stream);
    synchronize(stream);
    return buffer;
  }
  Companion scale(const Buffer& values, std::vector<std::int64_t> shape) const {
    if (!is_of_rows()) shape = {1};
    return {Tensor(values.data(), DType::float32, shape, own_.get().device()), block_,
            ScaleLayout::strided};
  }

  OwnedStream own_;
  Buffer a_, b_, out_, scale_a_, scale_b_;
  ScaleBlock block_;
};

}  // namespace gemmery::tests
