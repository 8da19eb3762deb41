// SPDX-License-Identifier: Apache-2.0
// A short random run of every fuzz target: valid texts with bytes changed, dropped, doubled and
// joined.
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <gemmery/discovery.hpp>

#include "tests/conformance/random_source.hpp"
#include "tests/fuzz/targets.hpp"

namespace gemmery::fuzz {
namespace {

using conformance::Choices;

constexpr std::array<std::string_view, 13> problem_lines{
    "gemm 4096x4096x8192 a=bf16 b=bf16:c out=bf16 acc=f32",
    "gemm 1x2x3x4 a=f16 b=f16:c/ld=7/batch=99 out=f32 c=f32[l,n] alpha=0.5 beta=-1e-3",
    "gemm 8x8x8 a=f64/strides=-8,1 b=f64/strides=2,16/align=8 out=f64/strides=3,25",
    "gemm 0x0x0x0 a=s8 b=u8 out=s32 math=saturate",
    "conv2d_fprop 2x8x9x8 k=8 r=3 s=2 pad=1:0,2 stride=2,1 dilation=1,2 a=f16/ld=16 out=f32/ld=12",
    "conv1d_dgrad 1x14x3 k=5 s=3 pad=1 dilation=4 q=5 a=f32/strides=99,4 b=f32/strides=40,5",
    "conv3d_wgrad 1x3x4x5x4 k=6 t=2 r=2 s=2 groups=2 a=s8 out=s32 c=s32 beta=1",
    "gemm 5x5x5 a=tf32 b=tf32 epilogue=\"D = alpha * accum + beta * C\"",
    "gemm 2147483647x1x2147483647 a=e4m3/align=1 b=e5m2 out=e4m3 acc=f32 math=fp8_fast",
    "gemm 3x4x5 a=f32 c=f32[m] beta=nan alpha=inf",
    "gemm 3x4x5x6 a=f32/batch=0 b=f32/batch=-60 c=f32[1] beta=1",
    "gemm 7x7x7 a=f32/ld=4294967296 c=f32:c/ld=8 beta=2",
    "gemm 3x4x5 a=float16 b=half out=bfloat16 acc=f16"};

constexpr std::string_view ptx_text =
    ".version 9.0\n.target sm_90a\n.address_size 64\n.file 1 \"a.cu\"\n.extern .shared .align 16 "
    ".b8 "
    "raw[];\n.const .f32 c[2] = {0f3F000000, -2.5};\n.func (.param .b32 r) f (.param .b64 p) { "
    "ret; "
    "}\n.visible .entry k(.param .align 64 .b8 k_param_0[128]) .maxntid 384, 1, 1 {\n.reg .pred "
    "%p<3>; .reg .b32 %r<9>; .reg .b64 %rd<3>;\n.loc 1 2 3, function_name $L__i, inlined_at 1 1 1\n"
    "L: { .reg .pred p; mov.b64 %rd1, raw+4;\n@!%p1 bra L; T: .branchtargets L, M; M:\nx.y::z "
    "{%r1, "
    "_}, [%rd1+-8, {%r2, -7}], 0f3F800000, %r2|p, %tid.x; }\n{ .param .b32 a; .param .b64 b; call "
    "(a), f, (b); }\nret; }\n.section .debug_str { .b8 1 }\n";

// One edit at a random place.
void edit(std::string& text, Choices& choices, std::string_view other) {
  const auto at =
      static_cast<std::size_t>(choices.between(0, static_cast<std::int64_t>(text.size())));
  switch (choices.between(0, 5)) {
    case 0:
      text.insert(at, 1, static_cast<char>(choices.between(0, 255)));
      break;
    case 1:
      text.insert(at, 1, "0123456789x=:/,[]\" -.e"[choices.between(0, 21)]);
      break;
    case 2:
      text.erase(at, static_cast<std::size_t>(choices.between(1, 4)));
      break;
    case 3:
      text.insert(at, text.substr(at / 2, static_cast<std::size_t>(choices.between(1, 20))));
      break;
    case 4:
      text = text.substr(0, at) + std::string(other.substr(std::min(at, other.size())));
      break;
    default:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << choices.between(0, 7)));
  }
}

std::string damaged(std::string_view text, Choices& choices, std::string_view other) {
  std::string result(text);
  for (std::int64_t edits = choices.between(1, 6); edits > 0; --edits) edit(result, choices, other);
  return result;
}

Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// The rows of a file; \n in a row means a line end.
std::vector<std::string> rows_of(const char* path) {
  std::ifstream file(path);
  std::vector<std::string> rows;
  for (std::string line; std::getline(file, line);) {
    for (std::size_t at = 0; (at = line.find("\\n", at)) != std::string::npos;)
      line.replace(at, 2, "\n");
    rows.push_back(line);
  }
  return rows;
}

class FuzzTargets : public testing::Test {
 protected:
  std::uint64_t seed = conformance::test_seed();
  testing::ScopedTrace trace{__FILE__, __LINE__, "seed " + std::to_string(seed)};
  Choices choices{seed};
  int rounds = conformance::is_soak() ? 2000000 : 50000;
};

TEST_F(FuzzTargets, damaged_problem_lines_are_read_or_refused) {
  for (const std::string_view line : problem_lines) fuzz_parse_problem(bytes_of(std::string(line)));
  for (int round = 0; round < rounds; ++round)
    fuzz_parse_problem(
        bytes_of(damaged(choices.one_of(problem_lines), choices, choices.one_of(problem_lines))));
}

TEST_F(FuzzTargets, random_dlpack_tensors_are_viewed_or_refused) {
  std::string bytes;
  for (int round = 0; round < rounds; ++round) {
    bytes.clear();
    // Mostly an existing type and device, so that shapes and strides are checked.
    const bool is_plausible = choices.percent(80);
    bytes += static_cast<char>(choices.between(-1, 6));
    bytes += is_plausible ? std::string{2, 32, 1, 0, 1, 0, 0, 0, 0} : std::string();
    for (int at = 0; at < 160; ++at)
      bytes +=
          static_cast<char>(choices.percent(40) ? choices.between(0, 4) : choices.between(0, 255));
    fuzz_from_dlpack(bytes_of(bytes));
  }
}

TEST_F(FuzzTargets, damaged_kernel_names_find_nothing_or_their_own_kernel) {
  std::vector<std::string> names;
  for_each_kernel([&](const Kernel& kernel) {
    if (choices.percent(1) || names.empty()) names.push_back(kernel.name());
  });
  for (int round = 0; round < rounds; ++round)
    fuzz_find_kernel(bytes_of(damaged(choices.one_of(names), choices, choices.one_of(names))));
}

TEST_F(FuzzTargets, damaged_ptx_is_read_or_refused) {
  fuzz_parse_ptx(bytes_of(std::string(ptx_text)));
  for (int round = 0; round < rounds / 10; ++round)
    fuzz_parse_ptx(bytes_of(damaged(ptx_text, choices, ptx_text)));
}

TEST_F(FuzzTargets, damaged_epilogues_are_read_or_refused) {
  std::vector<std::string> texts = rows_of("tests/data/epilogue/texts.txt");
  // Inputs that a fuzzer kept because they reached new code.
  const std::vector<std::string> corpus = rows_of("tests/data/epilogue/corpus.txt");
  ASSERT_FALSE(texts.empty() || corpus.empty());
  texts.insert(texts.end(), corpus.begin(), corpus.end());
  for (const std::string& text : texts) fuzz_parse_epilogue(bytes_of(text));
  for (int round = 0; round < rounds / 10; ++round)
    fuzz_parse_epilogue(bytes_of(damaged(choices.one_of(texts), choices, choices.one_of(texts))));
}

}  // namespace
}  // namespace gemmery::fuzz
