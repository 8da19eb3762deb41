// SPDX-License-Identifier: Apache-2.0
// wgmma: tiles with every kind of descriptor, compared with hardware, and the reports of missing
// fences, waits and values. (The arithmetic: matrix_test.cpp.)
#include <fstream>

#include "tests/emulator/instruction/ptx_runner.hpp"
#include "tests/emulator/recording/tensor_core_kernels.hpp"

namespace gemmery::emulator {
namespace {

namespace recording = gemmery::tests::recording;
using recording::LayoutForm;

constexpr int case_step = 3;  // only every third recorded case, since filling memory takes long

std::vector<std::uint64_t> descriptors_of(const LayoutForm& form) {
  std::vector<std::uint64_t> descriptors;
  for (int test_case = 0; test_case < recording::layout_cases; test_case += case_step) {
    const auto one = recording::layout_descriptors(form, test_case);
    descriptors.insert(descriptors.end(), {one.a.bits(), one.b.bits()});
  }
  return descriptors;
}

TEST(Wgmma, reads_tiles_under_any_descriptor_as_hardware_does) {
  std::ifstream file("tests/data/emulator/wgmma_layout.digests", std::ios::binary);
  ASSERT_TRUE(file) << "run from the root of the tree";
  constexpr std::size_t cases = recording::layout_cases / case_step;
  constexpr std::size_t words = 64 * recording::layout_n;
  for (const LayoutForm& form : recording::all_layout_forms()) {
    PtxRunner runner(recording::kernel_of(form));
    runner.request.grid = {cases, 1, 1};
    runner.request.block = {128, 1, 1};
    runner.request.dynamic_shared_bytes = recording::layout_image_bytes;
    const std::uint64_t image = runner.put(recording::layout_image(form));
    const std::uint64_t descriptors = runner.put(descriptors_of(form));
    const std::uint64_t to = runner.reserve(cases * words * 4);
    const auto fault = runner.launch({image, descriptors, to});
    ASSERT_FALSE(fault) << form.name << ": " << fault->report();
    const auto out = runner.get<std::uint32_t>(to, cases * words);
    std::vector<std::uint32_t> recorded(recording::layout_cases);
    file.read(reinterpret_cast<char*>(recorded.data()), 4 * recording::layout_cases);
    for (std::size_t test_case = 0; test_case < cases; ++test_case)
      ASSERT_EQ(recording::digest(out.data() + test_case * words, words),
                recorded[case_step * test_case])
          << form.name << ", case " << case_step * test_case;
  }
}

// --- faults -------------------------------------------------------------------------------------

recording::Form sound_form() {
  for (const recording::Form& form : recording::all_forms())
    if (form.name == "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16") return form;
  return {};
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  if (at != std::string::npos) text.replace(at, what.size(), with);
  return text;
}

std::optional<Fault> run_changed(const std::string& what, const std::string& with) {
  const recording::Form form = sound_form();
  PtxRunner runner(replaced(recording::kernel_of(form), what, with));
  runner.request.block = {128, 1, 1};
  const recording::Words words = recording::words_of(form);
  const std::uint64_t from = runner.put(recording::arrange(form, 0));
  const std::uint64_t to = runner.reserve(static_cast<std::uint64_t>(words.lanes * words.c * 4));
  return runner.launch({from, to});
}

TEST(Wgmma, a_sound_kernel_gives_no_alarm) {
  const auto fault = run_changed("ret;", "ret;");
  EXPECT_FALSE(fault) << fault->report();
}

struct WgmmaFaultRow {
  const char* name;
  const char* what;
  const char* with;
  FaultKind kind;
  const char* says;
};

class WgmmaFault : public testing::TestWithParam<WgmmaFaultRow> {};

TEST_P(WgmmaFault, is_reported) {
  const WgmmaFaultRow& row = GetParam();
  const auto fault = run_changed(row.what, row.with);
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, row.kind) << fault->report();
  EXPECT_NE(fault->message.find(row.says), std::string::npos) << fault->report();
}

constexpr WgmmaFaultRow fault_rows[] = {
    {"no_proxy_fence", "fence.proxy.async;", "", FaultKind::missing_proxy_fence, ""},
    {"no_wgmma_fence", "wgmma.fence.sync.aligned;", "", FaultKind::in_flight, "wgmma.fence"},
    {"register_written_behind_the_fence", "wgmma.fence.sync.aligned;",
     "wgmma.fence.sync.aligned;\nmov.b32 %a1, 0;", FaultKind::in_flight, "%a1 was written"},
    {"no_wait", "wgmma.wait_group.sync.aligned 0;", "", FaultKind::in_flight, "wait_group"},
    {"waits_for_too_few", "wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;",
     FaultKind::in_flight, "wait_group"},
    {"no_commit", "wgmma.commit_group.sync.aligned;", "", FaultKind::in_flight, "commit"},
    {"a_register_overwritten", "wgmma.commit_group.sync.aligned;",
     "wgmma.commit_group.sync.aligned;\nmov.b32 %a2, 0;", FaultKind::in_flight, "%a2"},
    {"tile_overwritten", "wgmma.commit_group.sync.aligned;",
     "wgmma.commit_group.sync.aligned;\nsetp.lt.u32 %p, %t1, 64;\n"
     "@%p st.shared.b32 [%t3], %t4;",
     FaultKind::race, ""},
    {"unwritten_tile", "@%p st.shared.b32 [%t3], %t4;", "", FaultKind::unwritten_read, ""},
    {"tile_outside", "cvt.u64.u32 %d4, %t2;", "mov.b64 %d4, 4000;", FaultKind::out_of_bounds, ""},
    {"descriptors_differ", "cvt.u64.u32 %d4, %t2;", "cvt.u64.u32 %d4, %t2;\nadd.u64 %d4, %d4, %d2;",
     FaultKind::illegal_instruction, "differs"},
};
std::string name_of_row(const testing::TestParamInfo<WgmmaFaultRow>& row) { return row.param.name; }
INSTANTIATE_TEST_SUITE_P(Each, WgmmaFault, testing::ValuesIn(fault_rows), name_of_row);

TEST(Wgmma, an_unwritten_accumulator_is_reported_unless_scale_d_drops_it) {
  const std::string load = "ld.global.b32 %c2, ";
  const auto fault = run_changed(load, "ld.global.b32 %t7, ");
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::unwritten_register) << fault->report();
  EXPECT_NE(fault->message.find("accumulator: %c2"), std::string::npos) << fault->report();
}

}  // namespace
}  // namespace gemmery::emulator
