// SPDX-License-Identifier: Apache-2.0
// Codes of 4, 6 and 8 bits decoded by device code equal what the host decodes, for every code at
// every place of a register, and take no more instructions than stated. Numbers that device code
// encodes in 8 bits get the codes of the host.
#include <gtest/gtest.h>
#include <device/abi/dtype.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/number.hpp"
#include "jit/compiler.hpp"
#include "jit/disassembler.hpp"
#include "jit/nvrtc.hpp"
#include "tests/emulator/kernel_under_test.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery {
namespace {

// A conversion, and the most instructions for the codes of one register, before sm_89 and from
// there on.
struct Conversion {
  DType code;
  DType number;
  int most;
  int most_of_sm90;
  bool has_zero = false;
};

constexpr Conversion conversions[] = {
    {DType::int4, DType::float16, 9, 9},
    {DType::int4, DType::bfloat16, 11, 11},
    {DType::int4, DType::float16, 9, 9, true},
    {DType::int4, DType::bfloat16, 18, 15, true},  // ptxas makes constants again, for sm_80
    {DType::uint4, DType::float16, 9, 9, true},
    {DType::uint4, DType::bfloat16, 18, 15, true},
    {DType::float4_e2m1fn, DType::float16, 19, 19},
    {DType::float4_e2m1fn, DType::bfloat16, 19, 19},
    {DType::float6_e2m3fn, DType::float16, 17, 17},
    {DType::float6_e2m3fn, DType::bfloat16, 17, 17},
    {DType::float6_e3m2fn, DType::float16, 17, 17},
    {DType::float6_e3m2fn, DType::bfloat16, 17, 17},
    {DType::int8, DType::float16, 5, 5},
    {DType::int8, DType::bfloat16, 8, 8},
    {DType::int8, DType::bfloat16, 10, 10, true},
    {DType::uint8, DType::float16, 4, 4, true},
    {DType::uint8, DType::bfloat16, 10, 10, true},
    {DType::float8_e4m3fn, DType::float16, 13, 2},
    {DType::float8_e4m3fn, DType::bfloat16, 15, 8},
    {DType::float8_e5m2, DType::float16, 2, 2},
    {DType::float8_e5m2, DType::bfloat16, 8, 8},
};

std::string label(const Conversion& conversion) {
  return fmt::format("{} to {}{}", name(conversion.code), name(conversion.number),
                     conversion.has_zero ? " with a zero point" : "");
}

// A kernel whose threads decode `registers` adjacent registers.
std::string kernel_of(const Conversion& conversion, int registers, const std::string& entry) {
  return fmt::format(R"(
extern "C" __global__ void {}(const unsigned* codes, unsigned* pairs, unsigned minus_zero) {{
  constexpr DType code = DType::{};
  constexpr DType number = DType::{};
  constexpr int registers = {};
  constexpr int count = codes_per_register(code) / 2;
  unsigned word[registers];
#pragma unroll
  for (int at = 0; at < registers; ++at) word[at] = codes[threadIdx.x * registers + at];
#pragma unroll
  for (int at = 0; at < registers; ++at) {{
    unsigned decoded[count];
    decode_codes<code, number, {}>(decoded, word[at], IntegerOffset<code, number>({}));
#pragma unroll
    for (int pair = 0; pair < count; ++pair)
      pairs[(threadIdx.x * registers + at) * count + pair] = decoded[pair];
  }}
}}
)",
                     entry, name(conversion.code), name(conversion.number), registers,
                     conversion.has_zero, conversion.has_zero ? "minus_zero" : "");
}

constexpr std::string_view head = R"(#include <device/tile/decode_codes.cuh>
using namespace gemmery::device;
using gemmery::abi::DType;
)";

// Kernels of all conversions: "decode_3_4" has the fourth conversion for 4 registers.
std::string entry_of(std::size_t conversion, int registers) {
  return fmt::format("decode_{}_{}", conversion, registers);
}
std::string source_of(std::initializer_list<int> registers) {
  std::string text(head);
  for (std::size_t at = 0; at < std::size(conversions); ++at)
    for (const int count : registers)
      text += kernel_of(conversions[at], count, entry_of(at, count));
  return text;
}

jit::CompiledCode compile(const std::string& source, const std::string& entry, Target target,
                          CodeForm form) {
  return jit::compile(
      {.source = source, .entry = entry, .target = target, .form = form, .extra_options = {}});
}

int codes_per_register(DType code) { return bit_width(code) == 4 ? 8 : 4; }

// All codes at all places of a register, then random ones.
std::vector<std::uint32_t> registers_of(DType code) {
  const int bits = bit_width(code);
  const int count = codes_per_register(code);
  std::mt19937_64 random(tests::random_seed());
  std::vector<std::uint32_t> registers;
  for (int place = 0; place < count; ++place)
    for (std::uint32_t value = 0; value < 1u << bits; ++value) {
      const std::uint32_t mask = ((1u << bits) - 1) << bits * place;
      registers.push_back((static_cast<std::uint32_t>(random()) & ~mask) | value << bits * place);
    }
  return registers;
}

// The codes of a pair, as the header of the device code says.
std::pair<int, int> pair_of(DType code, int pair) {
  if (bit_width(code) == 4) return {pair, pair + 4};
  return {2 * pair, 2 * pair + 1};
}

double decoded(DType code, std::uint32_t word, int place) {
  const int bits = bit_width(code);
  return number::decode(code, word >> bits * place & ((1u << bits) - 1));
}

void expect_number(const Conversion& conversion, std::uint32_t word, int place, double zero,
                   std::uint32_t half) {
  const double got = number::decode(number::float_format(conversion.number), half & 0xffff);
  const double expected = decoded(conversion.code, word, place) - zero;
  if (std::isnan(expected))
    ASSERT_TRUE(std::isnan(got)) << label(conversion) << fmt::format(" {:x} {}", word, place);
  else
    ASSERT_EQ(got, expected) << label(conversion) << fmt::format(" {:x} {}", word, place);
}

void expect_decodes(const Conversion& conversion, const std::string& ptx,
                    const std::string& entry) {
  constexpr std::uint32_t threads = 256;
  std::vector<std::uint32_t> words = registers_of(conversion.code);
  words.resize((words.size() + threads - 1) / threads * threads);
  const auto per_register = static_cast<std::size_t>(codes_per_register(conversion.code) / 2);
  const double lowest = facts(conversion.code).kind == DTypeKind::signed_integer ? -128 : 0;
  const std::vector<double> zeros =
      conversion.has_zero ? std::vector{0.0, lowest, 7.0, 15.0, lowest + 255} : std::vector{0.0};
  for (const double zero : zeros) {
    for (std::size_t first = 0; first < words.size(); first += threads) {
      emulator::KernelUnderTest kernel(ptx, entry);
      kernel.request.block = {threads, 1, 1};
      const std::vector<std::uint32_t> some(
          words.begin() + static_cast<std::ptrdiff_t>(first),
          words.begin() + static_cast<std::ptrdiff_t>(first + threads));
      const std::uint64_t codes = kernel.put(some);
      const std::uint64_t pairs = kernel.reserve(some.size() * per_register * 4);
      const std::uint32_t minus = number::encode(number::float_format(conversion.number), -zero);
      const auto fault = kernel.launch(codes, pairs, minus * 0x10001u);
      ASSERT_FALSE(fault) << fault->what();
      const auto got = kernel.get<std::uint32_t>(pairs, some.size() * per_register);
      for (std::size_t at = 0; at < got.size(); ++at) {
        const auto [low, high] = pair_of(conversion.code, static_cast<int>(at % per_register));
        expect_number(conversion, some[at / per_register], low, zero, got[at]);
        expect_number(conversion, some[at / per_register], high, zero, got[at] >> 16);
      }
    }
  }
}

TEST(DecodeCodes, every_code_at_every_place_is_what_the_host_decodes) {
  if (const jit::CompilerStatus status = jit::compiler_status(); !status.found)
    GTEST_SKIP() << status.searched;
  for (const Target target : {Target{80, 0}, Target{90, 0}}) {
    const std::string ptx = compile(source_of({1}), entry_of(0, 1), target, CodeForm::ptx).ptx;
    for (std::size_t at = 0; at < std::size(conversions); ++at)
      expect_decodes(conversions[at], ptx, entry_of(at, 1));
  }
}

// Instructions of an entry that neither move nor control.
int arithmetic_of(std::string_view sass, const std::string& entry) {
  const std::string section = ".text." + entry + ",";
  sass.remove_prefix(std::min(sass.find(section), sass.size()));
  sass = sass.substr(0, sass.find("\t.section\t", 1));
  int count = 0;
  jit::for_each_instruction(sass, [&](const jit::SassInstruction& one) {
    const bool is_constant = one.operands.find("-RZ, RZ") != std::string_view::npos;
    for (const char* const kind : {"LOP3", "PRMT", "SHF", "HFMA2", "HADD2", "HMUL2", "F2F", "I2F",
                                   "IADD", "VIADD", "IMAD.SHL", "IMAD.U32", "LEA"})
      if (!is_constant && one.mnemonic.starts_with(kind)) {
        ++count;
        break;
      }
  });
  return count;
}

TEST(DecodeCodes, takes_as_few_instructions_as_stated) {
  if (const jit::CompilerStatus status = jit::compiler_status(); !status.found)
    GTEST_SKIP() << status.searched;
  const auto disassembler = jit::find_disassembler();
  if (!disassembler) GTEST_SKIP() << "no nvdisasm";
  for (const Target target : {Target{80, 0}, Target{90, 0}}) {
    const std::string sass = disassembler->disassemble(
        compile(source_of({4, 12}), entry_of(0, 4), target, CodeForm::cubin).cubin);
    for (std::size_t at = 0; at < std::size(conversions); ++at) {
      const Conversion& conversion = conversions[at];
      const int most = target.architecture == 80 ? conversion.most : conversion.most_of_sm90;
      const int of_eight =
          arithmetic_of(sass, entry_of(at, 12)) - arithmetic_of(sass, entry_of(at, 4));
      EXPECT_GT(of_eight, 0) << label(conversion);
      EXPECT_LE(of_eight, 8 * most) << label(conversion) << " for " << to_string(target);
    }
  }
}

TEST(DecodeCodes, e2m1_becomes_e4m3_in_seven_instructions) {
  if (const jit::CompilerStatus status = jit::compiler_status(); !status.found)
    GTEST_SKIP() << status.searched;
  const std::string source = R"(#include <device/tile/decode_codes.cuh>
extern "C" __global__ void decode(const unsigned* codes, unsigned* bytes) {
  unsigned decoded[2];
  gemmery::device::decode_e2m1_to_e4m3(decoded, codes[threadIdx.x]);
  bytes[2 * threadIdx.x] = decoded[0];
  bytes[2 * threadIdx.x + 1] = decoded[1];
}
)";
  emulator::KernelUnderTest kernel(compile(source, "decode", {80, 0}, CodeForm::ptx).ptx, "decode");
  const std::vector<std::uint32_t> words = registers_of(DType::float4_e2m1fn);
  ASSERT_EQ(words.size(), 128u);
  kernel.request.block = {128, 1, 1};
  const std::uint64_t bytes = kernel.reserve(1024);
  const auto fault = kernel.launch(kernel.put(words), bytes);
  ASSERT_FALSE(fault) << fault->what();
  const auto got = kernel.get<std::uint8_t>(bytes, 1024);
  for (std::size_t at = 0; at < got.size(); ++at) {
    const int place = static_cast<int>(at % 4 * 2 + at / 4 % 2);
    ASSERT_EQ(number::decode(DType::float8_e4m3fn, got[at]) * 64,
              decoded(DType::float4_e2m1fn, words[at / 8], place));
  }
}

// A kernel whose threads look the codes of `registers` adjacent registers up.
std::string look_up_kernel(DType number, int registers) {
  return fmt::format(R"(
struct Table {{ float values[16]; }};
extern "C" __global__ void look_up(const unsigned* codes, unsigned* pairs, const __grid_constant__ Table given) {{
  constexpr int registers = {};
  const RegisterTable table = make_register_table<DType::{}>(given.values);
  unsigned word[registers];
#pragma unroll
  for (int at = 0; at < registers; ++at) word[at] = codes[threadIdx.x * registers + at];
#pragma unroll
  for (int at = 0; at < registers; ++at) {{
    unsigned decoded[4];
    look_up_codes(decoded, word[at], table);
#pragma unroll
    for (int pair = 0; pair < 4; ++pair)
      pairs[(threadIdx.x * registers + at) * 4 + pair] = decoded[pair];
  }}
}}
)",
                     registers, name(number));
}

TEST(DecodeCodes, a_table_of_sixteen_numbers_is_looked_up_at_every_place) {
  if (const jit::CompilerStatus status = jit::compiler_status(); !status.found)
    GTEST_SKIP() << status.searched;
  std::mt19937_64 random(tests::random_seed());
  const std::vector<std::uint32_t> words = registers_of(DType::uint4);
  for (const DType number : {DType::float16, DType::bfloat16}) {
    const std::string source = std::string(head) + look_up_kernel(number, 1);
    emulator::KernelUnderTest kernel(compile(source, "look_up", {80, 0}, CodeForm::ptx).ptx,
                                     "look_up");
    struct {
      float values[16];
    } table{};
    for (float& value : table.values)
      value = static_cast<float>(number::rounded_to(
          number, {std::ldexp(static_cast<double>(random() >> 40), -20) - 8, 0}));
    kernel.request.block = {static_cast<std::uint32_t>(words.size()), 1, 1};
    const std::uint64_t pairs = kernel.reserve(words.size() * 16);
    const auto fault = kernel.launch(kernel.put(words), pairs, table);
    ASSERT_FALSE(fault) << fault->what();
    const auto got = kernel.get<std::uint16_t>(pairs, words.size() * 8);
    for (std::size_t at = 0; at < got.size(); ++at)
      ASSERT_EQ(number::decode(number::float_format(number), got[at]),
                table.values[words[at / 8] >> 4 * (at % 8) & 15]);
  }
}

TEST(DecodeCodes, a_table_takes_as_few_instructions_as_stated) {
  if (const jit::CompilerStatus status = jit::compiler_status(); !status.found)
    GTEST_SKIP() << status.searched;
  const auto disassembler = jit::find_disassembler();
  if (!disassembler) GTEST_SKIP() << "no nvdisasm";
  constexpr int most = 21;
  for (const Target target : {Target{80, 0}, Target{90, 0}})
    for (const DType number : {DType::float16, DType::bfloat16}) {
      const auto count = [&](int registers) {
        return arithmetic_of(
            disassembler->disassemble(compile(std::string(head) + look_up_kernel(number, registers),
                                              "look_up", target, CodeForm::cubin)
                                          .cubin),
            "look_up");
      };
      const int of_eight = count(12) - count(4);
      EXPECT_GT(of_eight, 0);
      EXPECT_LE(of_eight, 8 * most) << to_string(target) << " " << name(number);
    }
}

// Every number of a type, those halfway between two, and the neighbours of all of them; zeros,
// infinities, NaN.
std::vector<float> numbers_around(DType dtype) {
  std::vector<float> middle{0.0F, std::numeric_limits<float>::max(),
                            std::numeric_limits<float>::denorm_min()};
  std::vector<float> values;
  for (std::uint32_t code = 0; code < 256; ++code) {
    const double value = number::decode(dtype, code);
    if (std::isfinite(value) && value >= 0) values.push_back(static_cast<float>(value));
  }
  std::ranges::sort(values);
  for (std::size_t at = 0; at < values.size(); ++at) {
    middle.push_back(values[at]);
    if (at > 0) middle.push_back(values[at - 1] + (values[at] - values[at - 1]) / 2);
  }
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> all{infinity, -infinity, std::numeric_limits<float>::quiet_NaN()};
  for (const float value : middle)
    for (const float near : {value, std::nextafter(value, 0.0F), std::nextafter(value, infinity)}) {
      all.push_back(near);
      all.push_back(-near);
    }
  return all;
}

TEST(EncodeNumbers, numbers_and_their_middles_get_the_codes_of_the_host) {
  if (const jit::CompilerStatus status = jit::compiler_status(); !status.found)
    GTEST_SKIP() << status.searched;
  for (const Target target : {Target{80, 0}, Target{90, 0}})
    for (const DType dtype : {DType::float8_e8m0fnu, DType::float8_e4m3fn, DType::float8_e5m2}) {
      const std::string source = fmt::format(R"(#include <device/tile/element.cuh>
extern "C" __global__ void encode(const float* numbers, unsigned* codes) {{
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  codes[at] = gemmery::device::encode<gemmery::abi::DType::{}>(numbers[at]) & 255U;
}}
)",
                                             name(dtype));
      emulator::KernelUnderTest kernel(compile(source, "encode", target, CodeForm::ptx).ptx,
                                       "encode");
      constexpr std::uint32_t threads = 128;
      std::vector<float> numbers = numbers_around(dtype);
      numbers.resize((numbers.size() + threads - 1) / threads * threads);
      kernel.request.block = {threads, 1, 1};
      kernel.request.grid = {static_cast<std::uint32_t>(numbers.size()) / threads, 1, 1};
      const std::uint64_t codes = kernel.reserve(numbers.size() * 4);
      const auto fault = kernel.launch(kernel.put(numbers), codes);
      ASSERT_FALSE(fault) << fault->what();
      const auto got = kernel.get<std::uint32_t>(codes, numbers.size());
      for (std::size_t at = 0; at < got.size(); ++at) {
        const std::uint32_t expected = number::encode(dtype, numbers[at]);
        const bool are_nan = std::isnan(number::decode(dtype, expected)) &&
                             std::isnan(number::decode(dtype, got[at]));
        ASSERT_TRUE(are_nan || got[at] == expected)
            << name(dtype) << fmt::format(" {:a}: {:x}, {:x}", numbers[at], got[at], expected);
      }
    }
}

}  // namespace
}  // namespace gemmery
