// SPDX-License-Identifier: Apache-2.0
// Reports: what is written is escaped, needs nothing from elsewhere, and has every figure.
#include "cli/report.hpp"

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include <gemmery/error.hpp>

#include "cli/html.hpp"
#include "cli/report_chart.hpp"
#include "tests/support/temporary_folder.hpp"

namespace gemmery::cli {
namespace {

Record record_of(const std::string& problem, const std::string& kernel, double median_us) {
  return {{"problem", problem},
          {"kernel_name", kernel},
          {"device_name", "a <fast> CPU & more"},
          {"clock_ghz", 3.25},
          {"gemmery_version", "0.1.0"},
          {"versions", {{"oneDNN", "2.6.3"}, {"NVRTC", "not found"}}},
          {"median_us", median_us},
          {"quartile_low_us", 0.9 * median_us},
          {"quartile_high_us", 1.2 * median_us},
          {"samples_us", {0.9 * median_us, median_us, 1.2 * median_us, 9 * median_us}},
          {"flops_per_second", 1e12 / median_us},
          {"roofline_share", 0.5},
          {"arithmetic_us", 0.5 * median_us},
          {"memory_us", 0.1 * median_us},
          {"bytes", 4096}};
}

BenchRecord two_problems() {
  return read_records({record_of("gemm 8x8x8 a=f32", "host_plain_v1_f32", 10),
                       record_of("gemm 8x8x8 a=f32", "host_reference_v1_f32", 30),
                       record_of("gemm 9x9x9 a=f32 epilogue=\"D = accum < 1 ? 1 : accum\"",
                                 "sm90v7_gemm_bf16", 20)});
}

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

// Every element that is opened is closed, in order.
void expect_well_formed(const std::string& page) {
  static const std::regex tag("<(/?)([a-z0-9]+)[^>]*>");
  std::vector<std::string> open;
  for (std::sregex_iterator match(page.begin(), page.end(), tag); match != std::sregex_iterator();
       ++match) {
    const std::string name = (*match)[2];
    if (name == "meta") continue;
    if ((*match)[1].length() == 0) {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << name;
    EXPECT_EQ(open.back(), name);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
}

TEST(Html, escapes_text_and_values) {
  EXPECT_EQ(text("a<b> & \"c\" 'd'").markup(), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  EXPECT_EQ(element("p", {{"title", "\"><script>"}}, text("<")).markup(),
            "<p title=\"&quot;&gt;&lt;script&gt;\">&lt;</p>");
}

TEST(Chart, an_axis_maps_its_ends_to_0_and_100_and_has_ticks_between) {
  const Axis decades(Axis::Scale::logarithmic, 0.1, 1000);
  EXPECT_NEAR(decades.percent(10), 50, 1e-9);
  EXPECT_EQ(decades.percent(1e9), 100);
  EXPECT_EQ(decades.percent(1e-9), 0);
  EXPECT_EQ(decades.ticks().size(), 5u);
  const Axis one_value(Axis::Scale::logarithmic, 7, 7);
  EXPECT_GE(one_value.ticks().size(), 2u);
  EXPECT_NEAR(one_value.percent(7), 50, 1e-9);
  EXPECT_EQ(Axis(Axis::Scale::linear, 0, 0).percent(0), 0);
}

TEST(Report, is_one_well_formed_page_that_needs_nothing_else) {
  const std::string page = report_page(two_problems());
  expect_well_formed(page);
  for (const char* const outside : {"http:", "https:", "<script", "<link", "@import", "url("})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  EXPECT_NE(page.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_NE(page.find("lang=\"en\""), std::string::npos);
}

TEST(Report, escapes_what_comes_from_records) {
  const std::string page = report_page(two_problems());
  EXPECT_EQ(page.find("<fast>"), std::string::npos);
  EXPECT_NE(page.find("a &lt;fast&gt; CPU &amp; more"), std::string::npos);
  EXPECT_NE(page.find("accum &lt; 1"), std::string::npos);
}

TEST(BenchRecord, a_class_of_kernels_is_the_name_up_to_its_version) {
  constexpr std::pair<const char*, const char*> rows[] = {
      {"sm90v7_gemm_bf16r16_acc-f32_128x256x64", "sm90"},
      {"simt1_gemm_f32r16_acc-f32_8x8", "simt"},
      {"host_onednn_v1_f32_f32_out_f32", "host_onednn"},
      {"cublaslt", "cublaslt"},
      {"my_kernel_of_mine_v2", "my_kernel_of_mine_v2"}};
  for (const auto& [kernel, name] : rows)
    EXPECT_EQ(read_records({record_of("gemm 8x8x8 a=f32", kernel, 10)}).rows[0].kernel_class, name);
}

TEST(BenchRecord, a_race_is_a_kernel_and_its_competitor_with_their_ratio_by_pairs) {
  const Record line = {{"problem", "gemm 64x64x64 a=f32"},
                       {"kernel", "simt1_gemm_f32"},
                       {"ours_us", 2.0},
                       {"peer", "cublaslt"},
                       {"theirs_us", 3.0},
                       {"ratio_median", 1.49},
                       {"ratio_quartiles", {1.4, 1.6}}};
  const BenchRecord record =
      read_records({line, {{"problem", "gemm 64x64x64 a=f32"}, {"error", "refused"}}});
  ASSERT_EQ(record.rows.size(), 2u);
  EXPECT_EQ(record.rows[1].kernel_class, "cublaslt");
  EXPECT_GT(record.rows[1].bytes, 0);
  const std::string page = report_page(record);
  expect_well_formed(page);
  EXPECT_NE(page.find("cublaslt over simt"), std::string::npos);
  EXPECT_NE(page.find("1.49, from 1.4 to 1.6 by quartiles"), std::string::npos);
}

TEST(Report, has_every_part_and_a_row_for_every_kernel) {
  const std::string page = report_page(two_problems());
  for (const char* const part : {"Machine", "Roofline", "Ratio to each competitor", "Problems",
                                 "All figures", "3.25 GHz", "2.6.3", "not found"})
    EXPECT_NE(page.find(part), std::string::npos) << part;
  EXPECT_NE(page.find("host_reference over host_plain"), std::string::npos);
  // Each in the roofline's legend, the problems' legend and tables.
  for (const char* const kernel :
       {"host_plain_v1_f32", "host_reference_v1_f32", "sm90v7_gemm_bf16"})
    EXPECT_GE(count_of(page, kernel), 3) << kernel;
}

TEST(Report, every_picture_has_words) {
  const std::string page = report_page(two_problems());
  EXPECT_EQ(count_of(page, "role=\"img\""), count_of(page, "aria-label="));
  EXPECT_GE(count_of(page, "role=\"img\""), 1 + 2 * 3);
}

TEST(Report, draws_what_records_of_earlier_versions_have) {
  Record old = record_of("gemm 8x8x8 a=f32", "host_plain_v1_f32", 10);
  for (const char* const field : {"samples_us", "arithmetic_us", "memory_us", "bytes", "versions"})
    old.erase(field);
  expect_well_formed(report_page(read_records({old})));
}

TEST(Comparison, matches_kernels_and_tells_what_only_one_record_has) {
  BenchRecord before = two_problems();
  before.name = "a.json";
  BenchRecord after = read_records({record_of("gemm 8x8x8 a=f32", "host_plain_v1_f32", 5),
                                    record_of("gemm 1x1x1 a=f32", "host_plain_v1_f32", 5)});
  after.name = "b.json";
  const auto rows = compare_records(before, after);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_DOUBLE_EQ(rows.front().ratio(), 0.5);
  EXPECT_LT(rows.front().least_ratio(), 0.5);
  EXPECT_GT(rows.front().greatest_ratio(), 0.5);
  const std::string page = comparison_page(before, after);
  expect_well_formed(page);
  EXPECT_NE(page.find("Only in a.json"), std::string::npos);
  EXPECT_NE(page.find("gemm 1x1x1 a=f32: host_plain_v1_f32"), std::string::npos);
}

TEST(BenchRecord, files_are_read_line_by_line_and_refused_by_line) {
  const tests::TemporaryFolder folder;
  const std::string path = folder / "a.json";
  write_page(path, record_of("gemm 8x8x8 a=f32", "host_plain_v1_f32", 10).dump() + "\n");
  EXPECT_EQ(read_record_file(path).rows.front().kernel_class, "host_plain");
  EXPECT_EQ(read_record_file(path).name, "a.json");
  write_page(
      path, record_of("gemm 8x8x8 a=f32", "host_plain_v1_f32", 10).dump() + "\n{\"problem\": 1}\n");
  try {
    (void)read_record_file(path);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("a.json, line 2"), std::string::npos) << error.what();
  }
  EXPECT_THROW((void)read_record_file(folder / "none.json"), Error);
  EXPECT_THROW(write_page("/nowhere/report.html", ""), Error);
}

}  // namespace
}  // namespace gemmery::cli
