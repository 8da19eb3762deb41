// SPDX-License-Identifier: Apache-2.0
// Output as JSON lines, comma-separated values and tables.
#include "cli/output.hpp"

#include <gtest/gtest.h>

namespace gemmery::cli {
namespace {

std::string written(Format format, const std::vector<Record>& records) {
  ::testing::internal::CaptureStdout();
  Output output(format);
  for (const Record& record : records) output.write_record(record);
  output.flush();
  return ::testing::internal::GetCapturedStdout();
}

TEST(Output, is_one_json_object_for_every_record) {
  EXPECT_EQ(written(Format::json, {{{"b", 1}, {"a", "x"}}, {{"b", 2}, {"a", nullptr}}}),
            "{\"b\":1,\"a\":\"x\"}\n{\"b\":2,\"a\":null}\n");
}

TEST(Output, keeps_a_record_of_one_field_an_object) {
  const Record record = {{"problem", "gemm"}};
  EXPECT_EQ(written(Format::json, {record}), "{\"problem\":\"gemm\"}\n");
}

TEST(Output, writes_valid_json_for_words_that_are_not_utf8) {
  EXPECT_TRUE(Record::accept(written(Format::json, {{{"word", "\xff\xfe"}, {"n", 1}}})));
}

TEST(Output, has_a_csv_header_and_quotes_what_needs_it) {
  EXPECT_EQ(written(Format::csv, {{{"a", "1,2"}, {"b", "say \"no\""}}, {{"a", 3}, {"b", true}}}),
            "a,b\n\"1,2\",\"say \"\"no\"\"\"\n3,true\n");
}

TEST(Output, flattens_nested_values_in_csv) {
  const Record record = {{"design", {{"tile", "64x64x8"}, {"stages", "2"}}},
                         {"targets", Record::array({"sm_80", "sm_90a"})}};
  EXPECT_EQ(written(Format::csv, {record}), "design,targets\ntile=64x64x8;stages=2,sm_80;sm_90a\n");
}

TEST(Table, aligns_its_columns) {
  ::testing::internal::CaptureStdout();
  Output output(Format::text);
  Table table{">n", "name", "note"};
  table.add_row({"1", "long name", "x"});
  table.add_row({"10", "é", "y"});
  table.print(output);
  output.flush();
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            " n  name       note\n 1  long name  x\n10  é          y\n");
}

TEST(Table, wraps_prose_and_shortens_names_to_the_width) {
  ::testing::internal::CaptureStdout();
  Output output(Format::text);
  Table prose{"family", "~answer"};
  prose.add_row({"skinny", "out: at most 8 rows or columns"});
  prose.print(output, 26);
  Table names{">n", "kernel"};
  names.add_row({"1", "sm90v7_gemm_bf16r16_acc-f32_128x128x64_m8"});
  names.print(output, 28);
  output.flush();
  EXPECT_EQ(::testing::internal::GetCapturedStdout(),
            "family  answer\nskinny  out: at most 8\n          rows or columns\n"
            "n  kernel\n1  sm90v7...32_128x128x64_m8\n");
}

TEST(Names, keep_family_and_design) {
  EXPECT_EQ(shortened("sm90v7_gemm_bf16r16_acc-f32_128x128x64_m8", 25), "sm90v7...32_128x128x64_m8");
  EXPECT_EQ(shortened("host_onednn_v1_f32_out_f32_math_native", 33),
            "host_onednn_v1..._f32_math_native");
  EXPECT_EQ(shortened("a_kernel_of_mine_without_version", 16), "a_kern...version");
  EXPECT_EQ(shortened("short", 16), "short");
}

}  // namespace
}  // namespace gemmery::cli
