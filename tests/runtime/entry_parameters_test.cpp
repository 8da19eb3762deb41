// SPDX-License-Identifier: Apache-2.0
// The parameters of entries, read from PTX and from cubins, valid and corrupt ones.
#include "runtime/entry_parameters.hpp"

#include <gtest/gtest.h>

#include <random>

#include "jit/compiler.hpp"
#include "jit/nvrtc.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery::runtime {
namespace {

TEST(EntryParameters, are_read_from_ptx) {
  constexpr std::string_view ptx = R"ptx(
.visible .entry first() { ret; }
.visible .entry second(.param .u64 .ptr .global .align 1 a, .param .s32 m,
                       .param .align 64 .b8 map[128], .param .f64 alpha, .param .u8 flag)
{ ret; }
.visible .entry second_half(
	.param .f32 x
)
{ ret; }
.entry broken(.param .u64)
)ptx";
  EXPECT_EQ(parameters_of_ptx(ptx, "first"), EntryParameters{});
  EXPECT_EQ(parameters_of_ptx(ptx, "second"), (EntryParameters{8, 4, 128, 8, 1}));
  EXPECT_EQ(parameters_of_ptx(ptx, "second_half"), (EntryParameters{4}));
  EXPECT_EQ(parameters_of_ptx(ptx, "third"), std::nullopt);
  EXPECT_EQ(parameters_of_ptx(ptx, "broken"), std::nullopt);
  EXPECT_EQ(describe({8, 8, 4}), "3 of 8, 8 and 4 bytes");
  EXPECT_EQ(describe({}), "none");
}

class CubinParameters : public tests::WithNvrtc {
 protected:
  static std::vector<std::byte> compile(std::string_view target) {
    return jit::compile({.source = R"cuda(
struct alignas(64) Map { unsigned long long words[16]; };
extern "C" __global__ void taken(float* out, const __grid_constant__ Map map, int m, long long ld,
                                 char flag) {
  out[ld] = m + flag + map.words[3];
}
)cuda",
                         .entry = "taken",
                         .target = parse_target(target),
                         .form = CodeForm::cubin,
                         .extra_options = {}})
        .cubin;
  }
};

TEST_F(CubinParameters, are_read_for_every_generation) {
  for (const char* const target : {"sm_80", "sm_90", "sm_90a", "sm_100", "sm_120"})
    EXPECT_EQ(parameters_of_cubin(compile(target), "taken"), (EntryParameters{8, 128, 4, 8, 1}))
        << target;
}

TEST_F(CubinParameters, of_damaged_code_are_something_or_nothing) {
  const std::vector<std::byte> whole = compile("sm_90");
  const std::span<const std::byte> bytes(whole);
  EXPECT_EQ(parameters_of_cubin(bytes, "other"), std::nullopt);
  for (std::size_t size = 0; size < bytes.size(); size += 7)
    (void)parameters_of_cubin(bytes.first(size), "taken");
  std::mt19937_64 random(tests::random_seed());
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::byte> damaged = whole;
    for (int change = 0; change < 4; ++change)
      damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    for (std::size_t at = 40; at < 64; ++at) {
      if (random() % 8 == 0) damaged[at] = static_cast<std::byte>(random());
    }
    (void)parameters_of_cubin(damaged, "taken");
  }
}

}  // namespace
}  // namespace gemmery::runtime
