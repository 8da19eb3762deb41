// SPDX-License-Identifier: Apache-2.0
// parse_ptx: directives, names, operands, and texts that are not PTX.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gemmery/error.hpp>

#include "emulator/program/parser.hpp"
#include "tests/emulator/program/program_text.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::emulator {
namespace {

using Kind = Operand::Kind;

Function parse_body(const std::string& body) { return parse_ptx(entry_of(body)).functions.at(0); }

Operand parse_operand(const std::string& operand) {
  return parse_body(".reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;\nop " + operand + ";")
      .code.at(0)
      .operands.at(0);
}

// --- directives ---------------------------------------------------------------------------------

TEST(ParsePtx, header_and_files_are_kept) {
  const Program program = parse_ptx(
      "// a comment\n/* another\n*/.version 9.0\n.target sm_90a, debug\n.address_size 64\n"
      ".file 1 \"a.cu\"\n.file\t3 \"b \\\"q\\\".h\", 123, 45\n");
  EXPECT_EQ(program.version, "9.0");
  EXPECT_EQ(program.target, "sm_90a");
  EXPECT_EQ(program.files, (std::vector<std::string>{"", "a.cu", "", "b \"q\".h"}));
  EXPECT_EQ(program.text.at(2), "*/.version 9.0");
}

TEST(ParsePtx, trailing_zeros_are_not_text) {
  const std::string text = module_of("") + std::string(2, '\0');
  EXPECT_EQ(parse_ptx(text).text.size(), 3u);
}

TEST(ParsePtx, entries_know_their_shape) {
  const Program program = parse_ptx(module_of(
      ".visible .entry kernel(\n.param .align 64 .b8 kernel_param_0[128],\n.param .u64 .ptr "
      ".global "
      ".align 16 kernel_param_1,\n.param .f32 kernel_param_2\n)\n.maxntid 384, 1, 1\n.minnctapersm "
      "2\n.explicitcluster\n.reqnctapercluster 2, 1, 1\n.maxnreg 168\n.reqntid 128\n{ ret; }"));
  const Function& kernel = program.functions.at(0);
  EXPECT_TRUE(kernel.is_entry && kernel.has_body);
  EXPECT_EQ(kernel.max_threads, (std::array<std::uint32_t, 3>{384, 1, 1}));
  EXPECT_EQ(kernel.required_threads, (std::array<std::uint32_t, 3>{128, 1, 1}));
  EXPECT_EQ(kernel.required_cluster, (std::array<std::uint32_t, 3>{2, 1, 1}));
  EXPECT_EQ(kernel.max_registers, 168u);
  ASSERT_EQ(kernel.parameters.size(), 3u);
  EXPECT_EQ(kernel.parameters[0].alignment, 64u);
  EXPECT_EQ(kernel.parameters[0].bytes, 128u);
  EXPECT_EQ(kernel.parameters[1].alignment, 8u);
  EXPECT_EQ(kernel.parameters[2].bytes, 4u);
  EXPECT_EQ(kernel.parameters[2].space, Space::param);
}

TEST(ParsePtx, a_definition_takes_the_place_of_its_declaration) {
  const Program program = parse_ptx(module_of(
      ".func (.param .b32 r) f (.param .b64 p);\n.extern .func (.param .b32 r) vprintf (.param "
      ".b64 "
      "a, .param .b64 b);\n.func (.param .b32 r) f(.param .b64 p)\n.noreturn\n{ .reg .b32 %r<2>; "
      "mov.u32 %r1, 1; ret; }\n.func g() { ret; }"));
  ASSERT_EQ(program.functions.size(), 3u);
  EXPECT_TRUE(program.find_function("f")->has_body);
  EXPECT_EQ(program.find_function("f")->results.size(), 1u);
  EXPECT_FALSE(program.find_function("vprintf")->has_body);
  EXPECT_EQ(program.find_function("h"), nullptr);
}

TEST(ParsePtx, variables_begin_with_what_their_text_says) {
  const Program program = parse_ptx(module_of(
      ".global .align 4 .u32 one = 0x12345678;\n.global .align 1 .b8 text[8] = {72, 105, -1};\n"
      ".const .f32 half[2] = {0f3F000000, -2.5};\n.extern .shared .align 16 .b8 raw[];\n"
      ".global .u64 places[3] = {one, generic(text), generic(text)+4};\n"
      ".global .align 16 .v4 .f32 grid[2][3];\n.visible .global .attribute(.managed) .b16 m = 0U;\n"
      ".global .b8 word[4] = \"ab\";"));
  const auto bytes_of_variable = [&](std::size_t at) { return program.variables.at(at).initial; };
  const auto as_bytes = [](std::initializer_list<int> values) {
    std::vector<std::byte> bytes;
    for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
    return bytes;
  };
  EXPECT_EQ(bytes_of_variable(0), as_bytes({0x78, 0x56, 0x34, 0x12}));
  EXPECT_EQ(bytes_of_variable(1), as_bytes({72, 105, 255}));
  EXPECT_EQ(program.variables[1].bytes, 8u);
  EXPECT_EQ(program.variables[2].space, Space::constant);
  EXPECT_EQ(bytes_of_variable(2), as_bytes({0, 0, 0, 0x3f, 0, 0, 0x20, 0xc0}));
  EXPECT_TRUE(program.variables[3].is_extern);
  EXPECT_EQ(program.variables[3].bytes, 0u);
  ASSERT_EQ(program.variables[4].addresses.size(), 3u);
  EXPECT_EQ(program.variables[4].addresses[2].at, 16u);
  EXPECT_EQ(program.variables[4].addresses[2].variable, "text");
  EXPECT_EQ(program.variables[4].addresses[2].offset, 4);
  EXPECT_EQ(program.variables[5].bytes, 96u);
  EXPECT_EQ(bytes_of_variable(7), as_bytes({'a', 'b'}));
}

TEST(ParsePtx, debug_sections_and_pragmas_are_passed_over) {
  EXPECT_EQ(parse_ptx(module_of(".section .debug_str\n{\n$L__info_string0:\n.b8 95,90 // }\n.b32 "
                                "$L__tmp0\n}\n.section .debug_loc { }\n.pragma \"nounroll\";\n"
                                ".global .u32 x;"))
                .variables.size(),
            1u);
  EXPECT_EQ(parse_body(".pragma \"nounroll\";\nret;").code.size(), 1u);
}

// --- instructions -------------------------------------------------------------------------------

TEST(ParsePtx, opcodes_split_at_dots_and_keep_double_colons) {
  const Function kernel = parse_body(
      ".reg .b32 "
      "%r<3>;\ncp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::"
      "bytes [%r1], [%r2];\nret;");
  const Instruction& copy = kernel.code.at(0);
  EXPECT_EQ(copy.opcode, "cp");
  EXPECT_EQ(copy.modifiers.back(), "mbarrier::complete_tx::bytes");
  EXPECT_TRUE(copy.has("shared::cluster"));
  EXPECT_FALSE(copy.has("shared"));
  EXPECT_EQ(copy.full_opcode(),
            "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes");
  EXPECT_EQ(copy.ptx_line, 6u);
}

TEST(ParsePtx, guards_are_registers_with_a_sign) {
  const Function kernel = parse_body(".reg .pred %p<3>;\n@%p1 bra L;\n@!%p2 ret;\nL: exit;");
  EXPECT_EQ(kernel.code[0].guard, 1u);
  EXPECT_FALSE(kernel.code[0].is_guard_negated);
  EXPECT_EQ(kernel.code[1].guard, 2u);
  EXPECT_TRUE(kernel.code[1].is_guard_negated);
  EXPECT_EQ(kernel.code[2].guard, no_register);
  EXPECT_EQ(kernel.labels.at("L"), 2u);
}

TEST(ParsePtx, lines_are_those_of_the_innermost_location) {
  const Function kernel = parse_body(
      ".loc 1 314 0\nmembar.gl;\n.loc\t2 194 32, function_name $L__info_string0, inlined_at 1 321 5"
      "\nmembar.gl;\n.loc 2 7 1, function_name $L__info_string0+12, inlined_at 1 9 9 ret;"
      "\n.loc 1 0 5\nexit;");
  EXPECT_EQ(kernel.code[0].source.file, 1u);
  EXPECT_EQ(kernel.code[0].source.line, 314u);
  EXPECT_EQ(kernel.code[1].source.file, 2u);
  EXPECT_EQ(kernel.code[1].source.line, 194u);
  EXPECT_EQ(kernel.code[1].call_site.line, 321u);
  EXPECT_EQ(kernel.code[2].source.line, 7u);
  EXPECT_EQ(kernel.code[3].source.line, 7u) << "line 0 belongs to the line before";
  EXPECT_EQ(kernel.code[3].call_site.line, 9u);
}

struct ImmediateRow {
  const char* text;
  std::uint64_t bits;
  bool is_float = false, is_double = false;
};

TEST(ParsePtx, immediates_in_every_notation) {
  for (const ImmediateRow& row :
       {ImmediateRow{"0", 0}, ImmediateRow{"-1", ~std::uint64_t{0}}, ImmediateRow{"010", 8},
        ImmediateRow{"0x1F", 31}, ImmediateRow{"0b101", 5}, ImmediateRow{"12U", 12},
        ImmediateRow{"18446744073709551615", ~std::uint64_t{0}},
        ImmediateRow{"-9223372036854775808", std::uint64_t{1} << 63},
        ImmediateRow{"0f3F800000", 0x3f800000, true}, ImmediateRow{"-0f3F800000", 0xbf800000, true},
        ImmediateRow{"0D3FF0000000000000", 0x3ff0000000000000, true, true},
        ImmediateRow{"1.5", 0x3ff8000000000000, true, true},
        ImmediateRow{"-1e0", 0xbff0000000000000, true, true}, ImmediateRow{"(-3)", 0ull - 3},
        ImmediateRow{"WARP_SZ", 32}}) {
    const Operand operand = parse_operand(row.text);
    EXPECT_EQ(operand.kind, Kind::immediate) << row.text;
    EXPECT_EQ(operand.bits, row.bits) << row.text;
    EXPECT_EQ(operand.is_float_immediate, row.is_float) << row.text;
    EXPECT_EQ(operand.is_double_immediate, row.is_double) << row.text;
  }
}

struct AddressRow {
  const char* text;
  RegisterIndex reg;
  const char* symbol;
  std::int64_t offset;
};

TEST(ParsePtx, addresses_have_a_base_and_an_offset) {
  // %p0-3 are registers 0-3, %r0-7 4-11, %rd0-3 12-15
  for (const AddressRow& row :
       {AddressRow{"[%rd1]", 13, "", 0}, AddressRow{"[%rd1+16]", 13, "", 16},
        AddressRow{"[%rd1+-16]", 13, "", -16}, AddressRow{"[ %r2 - 4 ]", 6, "", -4},
        AddressRow{"[kernel_param_0+4]", no_register, "kernel_param_0", 4},
        AddressRow{"[0x400]", no_register, "", 1024}}) {
    const Operand operand = parse_operand(row.text);
    EXPECT_EQ(operand.kind, Kind::address) << row.text;
    EXPECT_EQ(operand.reg, row.reg) << row.text;
    EXPECT_EQ(operand.text, row.symbol) << row.text;
    EXPECT_EQ(operand.offset, row.offset) << row.text;
  }
}

TEST(ParsePtx, tensors_pairs_lists_and_sinks) {
  const Operand tensor = parse_operand("[%rd2, {%r1, 0}]");
  ASSERT_EQ(tensor.kind, Kind::tensor);
  EXPECT_EQ(tensor.items.at(0).kind, Kind::address);
  EXPECT_EQ(tensor.items.at(1).items.size(), 2u);

  const Operand pair = parse_operand("_|%p2");
  ASSERT_EQ(pair.kind, Kind::predicate_pair);
  EXPECT_EQ(pair.items.at(0).kind, Kind::sink);
  EXPECT_EQ(pair.items.at(1).reg, 2u);

  const Operand list = parse_operand("{%r0, _, 5, %r7}");
  ASSERT_EQ(list.kind, Kind::list);
  EXPECT_EQ(list.items.at(1).kind, Kind::sink);
  EXPECT_EQ(list.items.at(3).reg, 11u);

  EXPECT_TRUE(parse_operand("!%p1").is_negated);
  EXPECT_EQ(parse_operand("%ctaid.y").text, "%ctaid.y");
  EXPECT_EQ(parse_operand("%ctaid.y").kind, Kind::special);
  EXPECT_EQ(parse_operand("kernel_param_0+8").offset, 8);
}

TEST(ParsePtx, calls_give_results_function_arguments) {
  const Program program =
      parse_ptx(module_of(".extern .func (.param .b32 r) f (.param .b64 a);\n.func g() { ret; "
                          "}\n.entry k() {\n.reg .b64 "
                          "%rd<2>;\n{ .param .b32 retval0; .param .b64 param0;\ncall.uni "
                          "(retval0),\nf,\n(\nparam0\n);\n"
                          "}\ncall g;\n{ .param .b64 param0;\nprototype_1 : .callprototype (.param "
                          ".b32 _) _ (.param .b64 "
                          "_);\ncall (_), %rd1, (param0), prototype_1; } }"));
  const std::vector<Instruction>& code = program.find_function("k")->code;
  EXPECT_EQ(code[0].operands[0].items.at(0).text, "retval0@1");
  EXPECT_EQ(code[0].operands[1].text, "f");
  EXPECT_EQ(code[0].operands[2].items.at(0).text, "param0@1");
  EXPECT_EQ(code[1].operands[1].text, "g");
  EXPECT_TRUE(code[1].operands[0].items.empty() && code[1].operands[2].items.empty());
  EXPECT_EQ(code[2].operands[1].kind, Kind::reg);
  EXPECT_EQ(code[2].operands[2].items.at(0).text, "param0@2");
}

// --- scopes -------------------------------------------------------------------------------------

TEST(ParsePtx, inner_registers_hide_outer_ones_until_their_scope_ends) {
  const Function kernel = parse_body(
      ".reg .b32 %r<2>; .reg .pred p;\n{ .reg .b64 p; .reg .b64 %r1; a p, %r1, %r0; }\na p, %r1, "
      "%r0;\n{ .reg .b32 %r<1>; a %r0, %r1; }");
  const auto registers_of = [&](std::size_t at) {
    std::vector<RegisterIndex> found;
    for (const Operand& operand : kernel.code.at(at).operands) found.push_back(operand.reg);
    return found;
  };
  EXPECT_EQ(registers_of(0), (std::vector<RegisterIndex>{3, 4, 0}));
  EXPECT_EQ(registers_of(1), (std::vector<RegisterIndex>{2, 1, 0}));
  EXPECT_EQ(registers_of(2), (std::vector<RegisterIndex>{5, 1}));
}

TEST(ParsePtx, labels_belong_to_their_scope) {
  const Function kernel = parse_body(
      "bra DONE;\n{ bra DONE; DONE: a; bra OUT; }\n{ DONE: b; { bra DONE; } }\nDONE: c; OUT:");
  EXPECT_EQ(kernel.labels.at(kernel.code[0].operands[0].text), 6u);
  EXPECT_EQ(kernel.labels.at(kernel.code[1].operands[0].text), 2u);
  EXPECT_EQ(kernel.labels.at(kernel.code[3].operands[0].text), 7u);  // behind the last
  EXPECT_EQ(kernel.labels.at(kernel.code[5].operands[0].text), 4u);
}

TEST(ParsePtx, directives_may_stand_between_a_label_and_its_instruction) {
  const Function kernel = parse_body(
      "a;\nL:\n.pragma \"nounroll\";\n.loc 1 2 3\nb;\nM: .reg .b32 %r<1>;\nbra L; bra M;");
  EXPECT_EQ(kernel.labels.at("L"), 1u);
  EXPECT_EQ(kernel.labels.at("M"), 2u);
}

TEST(ParsePtx, branch_targets_are_labels_too) {
  const Function kernel =
      parse_body(".reg .b32 %r<2>;\n{ T: .branchtargets A, B, A;\nbrx.idx %r1, T;\nA: a; }\nB: b;");
  const auto& table = kernel.branch_targets.at(kernel.code[0].operands[1].text);
  ASSERT_EQ(table.size(), 3u);
  EXPECT_EQ(kernel.labels.at(table[0]), 1u);
  EXPECT_EQ(kernel.labels.at(table[1]), 2u);
  EXPECT_EQ(kernel.labels.at(table[2]), 1u);
}

// --- what is not PTX ----------------------------------------------------------------------------

struct FaultyRow {
  const char* body;
  std::uint32_t line;  // 5 is the first of the body
  const char* words;   // part of the message
};

TEST(ParsePtx, faulty_bodies_are_refused_with_their_line) {
  for (const FaultyRow& row : {
           FaultyRow{"mov.u32 %r1, 0;", 5, "register that is declared, not %r1"},
           FaultyRow{"\n\nbra NOWHERE;", 7, "NOWHERE"},
           FaultyRow{".reg .b32 %r<3>;\nadd.s32 %r3, %r1, 1;", 6, "%r3"},
           FaultyRow{".reg .b32 %r01; .reg .b32 %q<3>;\nop %q01;", 6, "%q01"},
           FaultyRow{".reg .b32 %r<3>, %r<4>;", 5, "once"},
           FaultyRow{".reg .b32 a; .reg .f32 a;", 5, "once"},
           FaultyRow{".reg .f99 a;", 5, "a type"},
           FaultyRow{".reg .v4 .f32 a;", 5, "a type"},
           FaultyRow{"L: a;\nL: b;", 6, "once"},
           FaultyRow{".shared .b32 x;\n.local .b32 x;", 6, "once"},
           FaultyRow{".shared .b32 x = {1, 2};", 5, "at most 4 bytes"},
           FaultyRow{".shared .align 3 .b32 x;", 5, "power of two"},
           FaultyRow{".shared .b32 x[1099511627777];", 5, "2^40"},
           FaultyRow{".shared .b8 x[1048576][1048576][1048576];", 5, "2^40"},
           FaultyRow{".wrong .b32 x;", 5, "\".wrong\""},
           FaultyRow{"mov.u32", 6, "a name"},
           FaultyRow{"mov..u32 a;", 5, "a word behind '.'"},
           FaultyRow{"op 1\n op 2;", 6, "';'"},
           FaultyRow{"op 0f3F80;", 5, "8 hexadecimal digits"},
           FaultyRow{"op 99999999999999999999;", 5, "64 bits"},
           FaultyRow{"op 0x;", 5, "a digit"},
           FaultyRow{"op 089;", 5, "end of a number"},
           FaultyRow{"op 1e99999;", 5, "double"},
           FaultyRow{"op [1.5];", 5, "whole number"},
           FaultyRow{"op {{{{{1}}}}};", 5, "fewer lists"},
           FaultyRow{"op [L;", 5, "']'"},
           FaultyRow{"@%p0 op;", 5, "%p0"},
           FaultyRow{".reg .b32 a; @a op;", 5, "a predicate as a guard"},
           FaultyRow{"op !5;", 5, "a name"},
           FaultyRow{"op \"text\";", 5, "a name"},
           FaultyRow{".loc 1 2;", 5, "a number"},
           FaultyRow{".loc 1 2 3, nonsense 5", 5, "function_name or inlined_at"},
           FaultyRow{".pragma \"x\"", 7, "';'"},
           FaultyRow{".reg .b32 %r<4000000000>;", 5, "whole number up to"},
           FaultyRow{"{", 7, "'}'"},
           FaultyRow{"op 1;\x01", 5, "\\x01"},
       }) {
    try {
      parse_ptx(entry_of(row.body));
      ADD_FAILURE() << row.body;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
      EXPECT_EQ(error.operand(), "PTX line " + std::to_string(row.line)) << row.body;
      EXPECT_NE(std::string(error.what()).find(row.words), std::string::npos)
          << row.body << ": " << error.what();
    }
  }
}

TEST(ParsePtx, faulty_modules_are_refused) {
  const std::string header = module_of("");
  for (const std::string& text : std::vector<std::string>{
           "",
           "nonsense",
           ".target sm_90",
           ".version 9",
           ".version 9.0 .entry",
           ".version 9.0 .target",
           header + "x",
           header + ".address_size 32",
           header + ".entry",
           header + ".entry k(",
           header + ".entry k(.reg .b32 x) { }",
           header + ".entry k() { ret; ",
           header + ".entry k() { } .entry k() { }",
           header + ".func f(.param .b32 a, .param .b32 a) { }",
           header + ".global .u32 x; .global .u32 x;",
           header + ".global .u64 x = y;",
           header + ".global .u32 y; .global .u32 x = y;",
           header + ".global .u32 x = 0xFF(y);",
           header + ".global .u32 x[2][2] = {{1, 2}, {3, 4}};",
           header + ".global .pred x;",
           header + ".file x",
           header + ".file 1 \"abc",
           header + ".file 4294967295 \"a\"",
           header + ".section .debug_str { .b8 1",
           header + ".entry k() .maxntid 1,2,3,4 { }",
           header + ".entry k() .unknown { }",
           header + "/* no end",
           header + std::string(".entry k() { ") + std::string(100, '{'),
       }) {
    if (text.ends_with("no end")) {
      EXPECT_NO_THROW(parse_ptx(text));  // a comment to the end
      continue;
    }
    try {
      parse_ptx(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.operand().rfind("PTX line ", 0), 0u) << text;
    }
  }
}

TEST(ParsePtx, registers_of_a_module_are_bounded) {
  std::string text = module_of("");
  for (int function = 0; function < 3; ++function)
    text += ".entry k" + std::to_string(function) + "() { .reg .b32 %r<100000>; }\n";
  EXPECT_THROW(parse_ptx(text), Error);
}

// Text that is cut anywhere, or has any byte changed, is parsed or refused.
TEST(ParsePtx, damaged_text_is_read_or_refused) {
  const std::string sound = entry_of(
      ".reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<3>;\n.shared .align 8 .b8 s[16];\n.loc 1 2 "
      "3, function_name $L__i, inlined_at 1 1 1\nL: { .reg .pred p; mov.b64 %rd1, s+4;\n@!%p1 bra "
      "L;\n"
      "x.y::z {%r1, _}, [%rd1, {%r2, -7}], 0f3F800000, %r2|p; T: .branchtargets L, L; }\ncall (a), "
      "f,"
      " (s);\nret;");
  std::mt19937_64 random(tests::random_seed());
  for (int round = 0; round < 5000; ++round) {
    std::string text = sound;
    for (std::uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 30));
          break;
        default:
          text[at] = "{}[]();,.:@!|<>+-\"%0f"[random() % 21];
      }
      if (text.empty()) break;
    }
    try {
      parse_ptx(text);
    } catch (const Error& error) {
      EXPECT_NE(std::strlen(error.what()), 0u);
    }
  }
}

TEST(ParsePtx, two_thousand_lines_take_a_few_milliseconds) {
  std::string body = ".reg .pred %p<900>; .reg .b32 %r<4000>; .reg .b64 %rd<900>;\n";
  for (int line = 0; line < 2000; ++line)
    body += "mad.lo.s32 \t%r" + std::to_string(line + 1) + ", %r" + std::to_string(line) +
            ", 12, %r1;\n";
  const std::string text = entry_of(body);
  const auto begin = std::chrono::steady_clock::now();
  const Program program = parse_ptx(text);
  const auto elapsed = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(program.functions[0].code.size(), 2000u);
  // 2 ms on an idle machine; sanitizers and other processes may slow it down.
  EXPECT_LT(elapsed, std::chrono::milliseconds(500));
}

}  // namespace
}  // namespace gemmery::emulator
