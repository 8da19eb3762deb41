// SPDX-License-Identifier: Apache-2.0
// Disassembly: parsing of its text, the search for the program, the disassembly of NVRTC's code.
#include "jit/disassembler.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <gemmery/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "jit/compiler.hpp"
#include "jit/nvrtc.hpp"
#include "platform/private_folder.hpp"

namespace gemmery::jit {
namespace {

constexpr std::string_view sample =
    "\t.section\t.text.kernel,\"ax\",@progbits\n"
    ".text.kernel:\n"
    "        /*0000*/                   LDC R1, c[0x0][0x28] ;\n"
    "        /*0010*/              @!P0 BRA `(.L_x_2) ;\n"
    ".L_x_2:\n"
    "        /*0020*/                   HGMMA.64x96x16.F32 R120, gdesc[UR20].tnspA, R120 ;\n"
    "        /*0030*/                   HGMMA.64x96x16.F32 R24, gdesc[UR20].tnspA, R24, gsb0 ;\n"
    "        /*0040*/                   HGMMA.64x8x16.F16 R24, gdesc[UR20], R24, gsb0 ;\n"
    "        /*0050*/              @UP1 UTMASTG.3D [UR16], [UR14] ;\n"
    "        /*0060*/                   NOP;\n";

class VariableSet {
 public:
  VariableSet(const char* name, const std::string& value) : name_(name) {
    const char* const before = std::getenv(name);
    if (before != nullptr) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~VariableSet() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  VariableSet(const VariableSet&) = delete;
  VariableSet& operator=(const VariableSet&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(DisassemblyText, instructions_come_with_guard_mnemonic_and_operands) {
  std::vector<SassInstruction> all;
  for_each_instruction(sample, [&](const SassInstruction& one) { all.push_back(one); });
  ASSERT_EQ(all.size(), 7U);
  EXPECT_EQ(all[0].guard, "");
  EXPECT_EQ(all[0].mnemonic, "LDC");
  EXPECT_EQ(all[0].operands, "R1, c[0x0][0x28]");
  EXPECT_EQ(all[1].guard, "@!P0");
  EXPECT_EQ(all[1].mnemonic, "BRA");
  EXPECT_EQ(all[2].operands, "R120, gdesc[UR20].tnspA, R120");
  EXPECT_EQ(all[6].mnemonic, "NOP");
  EXPECT_EQ(all[6].operands, "");
}

TEST(DisassemblyText, mnemonics_are_counted_with_their_modifiers) {
  const InstructionMix mix = count_instructions(sample);
  EXPECT_EQ(mix, (InstructionMix{{"BRA", 1},
                                 {"HGMMA.64x8x16.F16", 1},
                                 {"HGMMA.64x96x16.F32", 2},
                                 {"LDC", 1},
                                 {"NOP", 1},
                                 {"UTMASTG.3D", 1}}));
  EXPECT_EQ(count_of(mix, "HGMMA"), 3);
  EXPECT_EQ(count_of(mix, "HGMMA.64x96x16"), 2);
  EXPECT_EQ(count_of(mix, "HGMMA.64x8"), 0);
  EXPECT_EQ(count_of(mix, "LD"), 0);
}

TEST(DisassemblyText, text_of_another_form_has_no_instructions) {
  EXPECT_TRUE(count_instructions("").empty());
  EXPECT_TRUE(count_instructions("nvdisasm fatal : no such file; sorry\n/* no end").empty());
}

TEST(DisassemblerSearch, a_named_program_is_the_only_place) {
  const VariableSet named("GEMMERY_NVDISASM", "/nowhere/nvdisasm");
  EXPECT_EQ(disassembler_places(), std::vector<std::string>{"/nowhere/nvdisasm"});
  EXPECT_FALSE(find_disassembler());
}

TEST(DisassemblerSearch, a_relative_name_is_refused) {
  const VariableSet named("GEMMERY_NVDISASM", "bin/nvdisasm");
  EXPECT_THROW(find_disassembler(), Error);
}

TEST(DisassemblerSearch, hidden_cuda_leaves_no_place) {
  const VariableSet named("GEMMERY_NVDISASM", "");
  const VariableSet hidden("GEMMERY_HIDE_CUDA", "1");
  EXPECT_TRUE(disassembler_places().empty());
  EXPECT_FALSE(find_disassembler());
}

TEST(DisassemblerSearch, relative_folders_are_passed_over) {
  const VariableSet named("GEMMERY_NVDISASM", "");
  const VariableSet home("CUDA_HOME", "toolkit");
  const VariableSet path("PATH", ".:tools:/usr/bin:");
  const VariableSet packages("PYTHONPATH", "packages");
  for (const std::string& place : disassembler_places()) EXPECT_EQ(place.front(), '/') << place;
}

TEST(DisassemblerSearch, a_toolkit_goes_before_a_python_package) {
  const platform::PrivateFolder folder("gemmery-search-test");
  const auto put = [&](const std::string& name) {
    const std::string path = folder.write(name, "#!/bin/sh\n");
    ::chmod(path.c_str(), 0700);
    return path;
  };
  const VariableSet named("GEMMERY_NVDISASM", "");
  const VariableSet home("CUDA_HOME", folder.path() + "/toolkit");
  const VariableSet packages("PYTHONPATH", folder.path() + "/packages");
  const std::string in_package = put("packages/triton/backends/nvidia/bin/nvdisasm");
  const auto places = disassembler_places();
  EXPECT_NE(std::ranges::find(places, in_package), places.end());
  const std::string in_toolkit = put("toolkit/bin/nvdisasm");
  ASSERT_TRUE(find_disassembler());
  EXPECT_EQ(find_disassembler()->path(), in_toolkit);
}

TEST(Disassembler, one_that_fails_is_named_with_its_own_words) {
  const platform::PrivateFolder folder("gemmery-disassembler-test");
  const std::string path = folder.write("nvdisasm", "#!/bin/sh\necho too new >&2\nexit 3\n");
  ::chmod(path.c_str(), 0700);
  try {
    static_cast<void>(Disassembler(path).disassemble({}));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unavailable);
    const std::string text = error.what();
    EXPECT_NE(text.find(path), std::string::npos) << text;
    EXPECT_NE(text.find("exit code 3"), std::string::npos) << text;
  }
}

TEST(Disassembler, finds_what_was_written_in_a_kernel) {
  if (!compiler_status().found) GTEST_SKIP() << compiler_status().searched;
  const auto program = find_disassembler();
  if (!program) GTEST_SKIP() << "no nvdisasm";
  const auto code = compile({.source = "extern \"C\" __global__ void scale(float* x) {\n"
                                       "  x[threadIdx.x] = sqrtf(x[threadIdx.x]);\n}\n",
                             .entry = "scale",
                             .target = {90, 'a'},
                             .extra_options = {}});
  const InstructionMix mix = program->instruction_mix(code.cubin);
  EXPECT_GE(count_of(mix, "MUFU"), 1);
  EXPECT_GE(count_of(mix, "LDG"), 1);
  EXPECT_EQ(count_of(mix, "STG"), 1);
  EXPECT_EQ(count_of(mix, "HGMMA"), 0);
}

TEST(Disassembler, refuses_what_is_no_cubin) {
  const auto program = find_disassembler();
  if (!program) GTEST_SKIP() << "no nvdisasm";
  const std::string text = "no machine code";
  EXPECT_THROW(static_cast<void>(program->disassemble(std::as_bytes(std::span(text)))), Error);
}

}  // namespace
}  // namespace gemmery::jit
