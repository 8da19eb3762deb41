// SPDX-License-Identifier: Apache-2.0
// The layout of an entry: parameters, shared and local variables, registers, constants.
#include <gtest/gtest.h>

#include <cstring>

#include <gemmery/error.hpp>

#include "emulator/instruction/image/build_image.hpp"
#include "emulator/memory/address.hpp"
#include "emulator/program/parser.hpp"

namespace gemmery::emulator {
namespace {

struct Built {
  std::unique_ptr<GlobalMemory> memory = std::make_unique<GlobalMemory>(1 << 20);
  ModuleVariables variables;
  std::shared_ptr<const KernelImage> image;
};

Built build(const std::string& directives, const std::string& entry = "k") {
  Built built;
  auto program = std::make_shared<const Program>(
      parse_ptx(".version 9.0\n.target sm_90a\n.address_size 64\n" + directives));
  built.variables = place_variables(*program, *built.memory);
  built.image = build_image(program, entry, built.variables);
  return built;
}

TEST(BuildImage, parameters_are_aligned_as_they_ask) {
  const Built built = build(
      ".entry k(.param .u8 a, .param .align 64 .b8 b[128], .param .u16 c, .param .u64 d) { ret; }");
  EXPECT_EQ(built.image->parameter_offset, (std::vector<std::uint32_t>{0, 64, 192, 200}));
  EXPECT_EQ(built.image->parameter_size, (std::vector<std::uint32_t>{1, 128, 2, 8}));
  EXPECT_EQ(built.image->parameter_bytes, 208u);
}

TEST(BuildImage, shared_variables_are_those_that_the_entry_mentions) {
  const std::string module =
      ".shared .b32 a[4]; .shared .align 64 .b8 b[3]; .extern .shared .align 128 .b8 raw[];\n"
      ".entry k() { .reg .b32 %r<4>; mov.u32 %r1, a; mov.u32 %r2, b; mov.u32 %r3, raw; ret; }\n"
      ".entry other() { .reg .b32 %r<2>; mov.u32 %r1, a; ret; }";
  const Built both = build(module);
  EXPECT_EQ(both.image->static_shared_bytes, 67u);
  EXPECT_EQ(both.image->dynamic_shared_alignment, 128u);
  ASSERT_EQ(both.image->shared_constants.size(), 3u);
  const auto address = [&](std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value,
                both.image->constants.data() + both.image->shared_constants[at].offset + 31 * 4, 4);
    return value;
  };
  EXPECT_EQ(address(0), shared_reserved_bytes);
  EXPECT_EQ(address(1), shared_reserved_bytes + 64);
  EXPECT_EQ(address(2), shared_reserved_bytes + 128);
  EXPECT_EQ(build(module, "other").image->static_shared_bytes, 16u);
}

TEST(BuildImage, scopes_and_functions_have_local_places_of_their_own) {
  const Built built = build(
      ".func f(.param .b64 x) { .local .align 16 .b8 depot[24]; ret; }\n"
      ".entry k() { .reg .b64 %rd<2>; .local .b8 depot[5];\nmov.u64 %rd1, depot;\n{ .param .b64 p; "
      "st.param.b64 [p], 1; call f, (p); }\n{ .param .b64 p; st.param.b64 [p], 1; call f, (p); "
      "}\n}");
  // depot 5, p at 8 and 16, x at 24, depot at 32
  EXPECT_EQ(built.image->local_bytes, 64u);
}

TEST(BuildImage, only_registers_in_use_have_storage) {
  const Built none = build(".entry k() { .reg .b32 %r<1000>; .reg .b64 %rd<1000>; ret; }");
  const Built some = build(
      ".entry k() { .reg .b32 %r<1000>; .reg .b64 %rd<1000>; .reg .pred %p<9>; mov.u32 %r7, 1; "
      "mov.u64 %rd9, 1; @%p3 bra L; L: ret; }");
  EXPECT_EQ(some.image->register_count, none.image->register_count + 9);
  EXPECT_LE(none.image->register_bytes, 1024u);
  EXPECT_EQ(some.image->register_bytes, none.image->register_bytes + 128 + 256);
}

TEST(BuildImage, guards_are_read) {
  const Built built = build(".entry k() { .reg .pred %p<3>; @!%p2 bra L; L: ret; }");
  const Operation& branch = built.image->code.at(0);
  EXPECT_TRUE(branch.has_guard && branch.is_guard_negated);
  ASSERT_EQ(branch.reads.size(), 1u);
  EXPECT_EQ(built.image->register_name.at(branch.reads[0]), "%p2");
  EXPECT_EQ(built.image->register_offset.at(branch.reads[0]), branch.guard_offset);
}

TEST(BuildImage, constants_are_kept_once_in_the_type_of_their_use) {
  const Built built = build(
      ".entry k() { .reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .b16 %h<2>; mov.u32 %r1, 5; mov.u32 "
      "%r2, "
      "5; mov.u64 %rd1, 5; mov.f32 %r3, 0d3FF0000000000000; mov.f64 %rd2, 0f3F800000; mov.u16 %h1, "
      "-1; ret; }");
  EXPECT_EQ(built.image->code[0].slot[1].offset, built.image->code[1].slot[1].offset);
  EXPECT_NE(built.image->code[0].slot[1].offset, built.image->code[2].slot[1].offset);
  const auto constant = [&](std::size_t pc) {
    std::uint64_t value = 0;
    const std::size_t bytes = pc == 2 || pc == 4 ? 8 : 4;
    std::memcpy(&value,
                built.image->constants.data() + built.image->code[pc].slot[1].offset + 17 * bytes,
                bytes);
    return value;
  };
  EXPECT_EQ(constant(0), 5u);
  EXPECT_EQ(constant(2), 5u);
  EXPECT_EQ(constant(3), 0x3f800000u);
  EXPECT_EQ(constant(4), 0x3ff0000000000000u);
  EXPECT_EQ(constant(5), 0xffffu);
}

TEST(BuildImage, module_variables_hold_values_and_addresses) {
  Built built = build(
      ".global .u32 one = 7; .const .align 8 .u64 to[2] = {one, generic(one)+4};\n"
      ".global .b8 zeros[1000]; .extern .global .u32 elsewhere;\n.entry k() { ret; }");
  const std::uint64_t one = built.variables.addresses.at("one");
  std::uint32_t value = 0;
  ASSERT_TRUE(built.memory->copy_out(&value, one, 4));
  EXPECT_EQ(value, 7u);
  std::array<std::uint64_t, 2> addresses{};
  ASSERT_TRUE(built.memory->copy_out(addresses.data(), built.variables.addresses.at("to"), 16));
  EXPECT_EQ(addresses[0], one);
  EXPECT_EQ(addresses[1], one + 4);
  EXPECT_EQ(built.memory->count_unwritten(built.variables.addresses.at("zeros"), 1000), 0u);
  EXPECT_FALSE(built.variables.addresses.contains("elsewhere"));
}

void expect_error(const std::string& directives, ErrorKind kind, const std::string& words) {
  try {
    build(directives);
    ADD_FAILURE() << directives;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

TEST(BuildImage, what_cannot_be_laid_out_is_refused) {
  expect_error(".entry j() { ret; } .func f() { ret; }", ErrorKind::invalid_argument, "one of j");
  expect_error(".entry k() { .local .b8 x[600000]; ret; }", ErrorKind::unsupported, "local");
  expect_error(".entry k(.param .b8 x[40000]) { ret; }", ErrorKind::unsupported, "parameters");
  expect_error(".entry k() { .shared .b8 x[20000000]; ret; }", ErrorKind::unsupported, "shared");
  expect_error(".extern .global .u32 x;\n.entry k() { .reg .b64 %rd<2>; mov.u64 %rd1, x; }",
               ErrorKind::unsupported, "x is not a variable");
  expect_error(".entry k() { .reg .b64 %rd<2>; mov.u64 %rd1, k; }", ErrorKind::unsupported,
               "k is not a variable");
  expect_error(".global .b8 x[2000000];\n.entry k() { ret; }", ErrorKind::out_of_memory, "x");
  expect_error(".entry k() { .reg .b32 a; .reg .pred p; add.u32 a, p, 1; }", ErrorKind::unsupported,
               "p is a predicate");
  expect_error(".entry k() { .reg .b64 a; .reg .b32 b; add.u32 b, a, 1; }", ErrorKind::unsupported,
               "a has more bits");
  expect_error(".entry k() { .reg .b32 a; add.u64 a, a, 1; }", ErrorKind::unsupported,
               "fewer bits");
}

}  // namespace
}  // namespace gemmery::emulator
