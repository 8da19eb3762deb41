// SPDX-License-Identifier: Apache-2.0
// The text of struct Epilogue.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

#include <gemmery/epilogue.hpp>

#include "epilogue/emit_cuda.hpp"

namespace gemmery::epilogue {
namespace {

using testing::HasSubstr;
using testing::Not;

EpilogueId intern_with_tensors(std::string_view text) {
  const Program program(text);
  EpilogueRules rules{program, {}};
  for (const std::string& name : program.inputs())
    rules.operands.push_back({.name = name,
                              .is_number = name.starts_with("number"),
                              .dtype = DType::bfloat16,
                              .varies_n = true,
                              .adjacent = Adjacent::along_n,
                              .alignment = 16});
  for (const std::string& name : program.outputs())
    if (name != "D")
      rules.operands.push_back({.name = name,
                                .is_output = true,
                                .varies_l = true,
                                .varies_m = true,
                                .adjacent = Adjacent::along_m,
                                .alignment = 4});
  return intern(rules);
}

TEST(EmitStruct, has_a_line_for_each_operation) {
  const std::string text =
      emit_struct(intern_with_tensors("D = gelu(accum * number_x + bias); top = amax(D)"), false);
  EXPECT_THAT(text, HasSubstr("// D = gelu(n0 * accum + in0); out1 = amax(D)\n"));
  EXPECT_THAT(text, HasSubstr("inputs = 1;"));
  EXPECT_THAT(text, HasSubstr("outputs = 1;"));
  EXPECT_THAT(text, HasSubstr("numbers = 1;"));
  EXPECT_THAT(text, HasSubstr("const T v0 = gemmery::device::op::multiply(number[0], accum);"));
  EXPECT_THAT(text, HasSubstr("const T v1 = gemmery::device::op::add(v0, in[0]);"));
  EXPECT_THAT(text, HasSubstr("const T v2 = gemmery::device::op::gelu(v1);"));
  EXPECT_THAT(text, HasSubstr("out[0] = v2;"));
  EXPECT_THAT(text, HasSubstr("out[1] = v2;"));
}

TEST(EmitStruct, states_tensors_as_the_kernel_sees_them) {
  const EpilogueId id = intern_with_tensors("D = accum + bias; top = amax(D)");
  const std::string straight = emit_struct(id, false);
  EXPECT_THAT(straight, HasSubstr("DType::bfloat16, false, false, true, 16, "
                                  "gemmery::abi::Reduction::none}"));
  EXPECT_THAT(straight, HasSubstr("DType::float32, true, true, false, 0, "
                                  "gemmery::abi::Reduction::amax}"));
  const std::string turned = emit_struct(id, true);
  EXPECT_THAT(turned, HasSubstr("DType::bfloat16, false, true, false, 0, "));
  EXPECT_THAT(turned, HasSubstr("DType::float32, true, false, true, 4, "));
}

TEST(EmitStruct, holds_no_word_of_the_program) {
  const std::string text = emit_struct(
      intern_with_tensors("secret_out = accum * secret_in; D = secret_out + number_secret"), false);
  EXPECT_THAT(text, Not(HasSubstr("secret")));
}

TEST(EmitStruct, truth_values_are_bool_and_constants_exact) {
  const std::string text =
      emit_struct(intern_with_tensors("D = 0.1 if accum > -inf and not accum < 1 else nan"), false);
  EXPECT_THAT(text, HasSubstr("const bool v0 = "));
  EXPECT_THAT(text, HasSubstr("T(0x1.999999999999ap-4)"));
  EXPECT_THAT(text, HasSubstr("-T(__longlong_as_double(0x7ff0000000000000LL))"));
  EXPECT_THAT(text, HasSubstr("T(__longlong_as_double(0x7ff8000000000000LL))"));
}

// NVRTC warns about such literals, and sources must compile without warnings.
TEST(EmitStruct, constants_beyond_float_are_bits) {
  const std::string text =
      emit_struct(intern_with_tensors("D = min(max(accum, -1e39), 1e-46)"), false);
  EXPECT_THAT(text, HasSubstr("-T(__longlong_as_double(0x48078287f49c4a1dLL))"));
  EXPECT_THAT(text, HasSubstr(" T(__longlong_as_double(0x3662"));
}

TEST(EmitStruct, casts_name_type_rounding_and_overflow) {
  const std::string text = emit_struct(
      intern_with_tensors("D = cast(cast(accum, s8, toward_zero), e4m3, saturate)"), false);
  EXPECT_THAT(text, HasSubstr("op::cast<gemmery::abi::DType::int8, "
                              "gemmery::abi::Rounding::toward_zero, "
                              "gemmery::abi::Overflow::natural>(accum)"));
  EXPECT_THAT(text, HasSubstr("op::cast<gemmery::abi::DType::float8_e4m3fn, "
                              "gemmery::abi::Rounding::nearest_even, "
                              "gemmery::abi::Overflow::saturate>(v0)"));
}

// The goal is 50 us for ten operations on an idle machine; the limit here allows for sanitizers and
// a busy machine.
TEST(EmitStruct, ten_operations_are_read_checked_and_emitted_at_once) {
  constexpr std::string_view text =
      "t = gelu(accum * number_a + bias); "
      "D = cast(where(t > 0, t * scale, t / 3), bf16); top = amax(abs(t) + 1)";
  (void)emit_struct(intern_with_tensors(text), false);
  double least_us = 1e9;
  for (int round = 0; round < 20; ++round) {
    const auto start = std::chrono::steady_clock::now();
    (void)emit_struct(intern_with_tensors(text), false);
    const std::chrono::duration<double, std::micro> elapsed =
        std::chrono::steady_clock::now() - start;
    least_us = std::min(least_us, elapsed.count());
  }
  std::printf("text to CUDA C++, ten operations: %.1f us\n", least_us);
  EXPECT_LT(least_us, 2000);
}

}  // namespace
}  // namespace gemmery::epilogue
