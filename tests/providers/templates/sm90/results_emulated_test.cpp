// SPDX-License-Identifier: Apache-2.0
// Results that the default epilogue computes in statements of PTX (device/ptx/results.cuh), on an
// emulated H200. They are bit by bit those that kernels compute from C++ values: those of a kernel
// that splits k within a cluster, for operands whose accumulators are exact in any order.
// GEMMERY_SOAK=1 compares all types.
#include <gtest/gtest.h>
#include <gemmery/gemmery.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "tests/providers/templates/on_emulated_h200.hpp"

namespace gemmery {
namespace {

using Bytes = std::vector<std::uint8_t>;

// The types of a problem: those of A and B, with the codes of -1, 0 and 1, and wgmma's words.
struct Operands {
  DType dtype;
  DType accumulator;
  Math math;
  unsigned codes[3];
  std::string_view words;
};
constexpr Operands of_codes{
    DType::float8_e4m3fn, DType::float32, Math::fp8_fast, {0xb8, 0, 0x38}, "acc-f32_wgmma-fast"};
constexpr Operands of_promoted{
    DType::float8_e4m3fn, DType::float32, Math::native, {0xb8, 0, 0x38}, "acc-f32_wgmma-promoted"};
constexpr Operands of_integers{DType::int8, DType::int32, Math::native, {0xff, 0, 1}, "acc-s32"};
constexpr Operands of_halves{
    DType::float16, DType::float16, Math::native, {0xbc00, 0, 0x3c00}, "acc-f16"};

class Sm90Results : public tests::OnEmulatedH200 {
 protected:
  static constexpr std::int64_t m = 77, n = 139, k = 256;
  static constexpr std::int64_t pitch = 144;  // elements from row to row of out and C

  Bytes random_bytes(std::size_t count) {
    Bytes bytes(count);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random_());
    return bytes;
  }

  Bytes random_codes(const Operands& operands, std::int64_t count) {
    const std::size_t size = byte_width(operands.dtype);
    Bytes bytes;
    for (std::int64_t element = 0; element < count; ++element) {
      const unsigned code = operands.codes[random_() % 3];
      for (std::size_t byte = 0; byte < size; ++byte)
        bytes.push_back(static_cast<std::uint8_t>(code >> 8 * byte));
    }
    return bytes;
  }

  Buffer on_device(const Bytes& bytes) const {
    Buffer buffer(bytes.size(), stream_);
    copy(buffer.data(), h200_, bytes.data(), Device::cpu(), bytes.size(), stream_);
    synchronize(stream_);
    return buffer;
  }

  Tensor matrix(const Buffer& buffer, DType dtype) const {
    return Tensor(buffer.data(), dtype, {m, n}, {pitch, 1}, h200_);
  }

  // What a kernel stores. C is any bits, so that there are NaNs and values beyond out's range.
  struct Inputs {
    Buffer a, b, c;
    double alpha, beta;
  };
  Bytes results(const std::string& name, const Operands& operands, DType out, const DType* c,
                const Inputs& inputs) {
    const std::size_t out_bytes = static_cast<std::size_t>(m * pitch) * byte_width(out);
    const Buffer buffer(out_bytes, stream_);
    fill(buffer.data(), 0, out_bytes, stream_);
    GemmOptions options{.alpha = inputs.alpha, .math = operands.math};
    if (c != nullptr) {
      options.c = matrix(inputs.c, *c);
      options.beta = inputs.beta;
    }
    const GemmArguments arguments(Tensor(inputs.a.data(), operands.dtype, {m, k}, h200_),
                                  Tensor(inputs.b.data(), operands.dtype, {k, n}, {1, k}, h200_),
                                  matrix(buffer, out), operands.accumulator, options);
    const auto kernel = find_kernel(name);
    if (!kernel) {
      ADD_FAILURE() << name;
      return {};
    }
    kernel->run(arguments, {.stream = stream_});
    Bytes stored(out_bytes);
    copy(stored.data(), Device::cpu(), buffer.data(), h200_, out_bytes, stream_);
    synchronize(stream_);
    return stored;
  }

  void compare(const Operands& operands, DType out, const DType* c) {
    if (!sample_.takes_next()) return;
    const std::string_view type = alias(operands.dtype);
    const auto name = [&](std::string_view split) {
      return fmt::format("sm90v7_gemm_{0}r16_{0}c16_{1}r16_{2}_64x64x{3}_1x1_{4}coop_m8_s2{5}",
                         type, alias(out), operands.words, 128 / byte_width(operands.dtype), split,
                         c == nullptr ? "" : fmt::format("_c-{}r16", alias(*c)));
    };
    std::uniform_real_distribution<double> number(-40, 40);
    const Inputs inputs{on_device(random_codes(operands, m * k)),
                        on_device(random_codes(operands, k * n)),
                        on_device(random_bytes(static_cast<std::size_t>(m * pitch) * 4)),
                        number(random_), number(random_)};
    const Bytes stated = results(name(""), operands, out, c, inputs);
    EXPECT_EQ(stated, results(name("k2_"), operands, out, c, inputs)) << name("");
  }

  void compare_all(const Operands& operands, std::initializer_list<DType> outs,
                   std::initializer_list<DType> cs) {
    for (const DType out : outs) {
      compare(operands, out, nullptr);
      for (const DType c : cs) compare(operands, out, &c);
    }
  }

  const OwnedStream stream_{h200_};
  tests::RowSample sample_{10};
};

TEST_F(Sm90Results, of_float32_accumulators_are_those_of_values) {
  compare_all(
      of_codes,
      {DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2},
      {DType::float32, DType::float16, DType::bfloat16, DType::float8_e4m3fn, DType::float8_e5m2});
}

TEST_F(Sm90Results, of_promoted_accumulators_are_those_of_values) {
  compare_all(of_promoted, {DType::float32, DType::bfloat16, DType::float8_e5m2},
              {DType::bfloat16});
}

TEST_F(Sm90Results, of_int32_accumulators_are_those_of_values) {
  compare_all(of_integers, {DType::int32, DType::float32, DType::int8, DType::uint8},
              {DType::int32, DType::float32, DType::int8, DType::uint8});
}

TEST_F(Sm90Results, of_float16_accumulators_are_those_of_values) {
  compare_all(of_halves, {DType::float16, DType::float32, DType::bfloat16}, {DType::float16});
}

}  // namespace
}  // namespace gemmery
