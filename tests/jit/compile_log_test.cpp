// SPDX-License-Identifier: Apache-2.0
#include "jit/compile_log.hpp"

#include <gtest/gtest.h>

namespace gemmery::jit {
namespace {

// Output of NVRTC 13.0, with invented spills.
constexpr std::string_view two_entries = R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'other' for 'sm_90a'
ptxas info    : Function properties for other
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
ptxas info    : Compile time = 1.664 ms
ptxas info    : Compiling entry function 'gemm' for 'sm_90a'
ptxas info    : Function properties for gemm
ptxas         .     48 bytes stack frame, 40 bytes spill stores, 44 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 256 bytes smem
ptxas info    : Compile time = 1.736 ms
)";

TEST(CompileLog, usage_is_that_of_the_entry_that_is_asked_for) {
  const CodeUsage expected{.registers = 255,
                           .static_shared_bytes = 256,
                           .spill_store_bytes = 40,
                           .spill_load_bytes = 44,
                           .stack_bytes = 48};
  EXPECT_EQ(parse_usage(two_entries, "gemm"), expected);
  EXPECT_EQ(parse_usage(two_entries, "other"), (CodeUsage{.registers = 8}));
}

TEST(CompileLog, an_entry_that_is_not_there_has_no_usage) {
  EXPECT_EQ(parse_usage(two_entries, "gem"), std::nullopt);
  EXPECT_EQ(parse_usage("", "gemm"), std::nullopt);
}

TEST(CompileLog, a_clean_log_has_no_warning) { EXPECT_EQ(find_warning(two_entries), std::nullopt); }

struct WarningRow {
  const char* description;
  std::string_view line;
};

TEST(CompileLog, warnings_of_every_origin_are_found) {
  const WarningRow rows[] = {
      {"front end",
       "kernel.cu(4): warning #177-D: variable \"x\" was declared but never referenced"},
      {"ptxas", "ptxas warning : Value of threads per SM for entry gemm is out of range"},
      {"serialised wgmma, 13.0",
       "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
       "serialized due to insufficient "
       "register resources for the wgmma pipeline in the function 'gemm'"},
      {"serialised wgmma without its number",
       "ptxas info    : wgmma.mma_async instructions are serialized"},
      {"options", "nvrtc: warning: architecture is deprecated"},
  };
  for (const WarningRow& row : rows) {
    const std::string log = std::string(two_entries) + std::string(row.line) + "\nlast line";
    EXPECT_EQ(find_warning(log), row.line) << row.description;
  }
}

TEST(CompileLog, the_problem_line_is_the_first_error) {
  EXPECT_EQ(find_problem_line("note\nkernel.cu(3): error: identifier \"foo\" is "
                              "undefined\nmore\nkernel.cu(4): error: bar"),
            "kernel.cu(3): error: identifier \"foo\" is undefined");
  EXPECT_EQ(find_problem_line("something else\nmore"), "something else");
  EXPECT_EQ(find_problem_line(""), "");
  EXPECT_EQ(find_problem_line("kernel.cu(2): warning #177-D: variable \"error\" is never used\n"
                              "  int error;\n\nkernel.cu(3): error: bar\n"),
            "kernel.cu(3): error: bar");
}

TEST(CompileLog, errors_stand_before_warnings_and_none_twice) {
  constexpr std::string_view log =
      "k.cu(1): warning #177-D: \"error\" is never used\n    int error;\n        ^\n\n"
      "k.cu(3): error: expected a \";\"\n    foo\n    ^\n\n"
      "k.cu(4): error: bar is undefined\n    bar\n    ^\n\n"
      "2 errors detected in the compilation of \"k.cu\".\n";
  EXPECT_EQ(errors_first(log, find_problem_line(log)),
            "\n    foo\n    ^\n\n"
            "k.cu(4): error: bar is undefined\n    bar\n    ^\n\n"
            "k.cu(1): warning #177-D: \"error\" is never used\n    int error;\n        ^\n\n"
            "2 errors detected in the compilation of \"k.cu\".\n");
  EXPECT_EQ(errors_first("one\ntwo\n", "no line of it"), "one\ntwo\n");
}

TEST(CompileLog, entries_are_named_by_log_and_ptx) {
  EXPECT_EQ(entries_of_log(two_entries), (std::vector<std::string>{"other", "gemm"}));
  EXPECT_EQ(entries_of_ptx(".visible .entry first(\n.param .u64 p)\n.visible .entry second ()"),
            (std::vector<std::string>{"first", "second"}));
  EXPECT_TRUE(entries_of_ptx("").empty());
}

}  // namespace
}  // namespace gemmery::jit
