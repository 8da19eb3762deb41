// SPDX-License-Identifier: Apache-2.0
// mma.sync in a kernel, compared with recorded results of hardware (tests/data/emulator/README.md),
// and the moves of 8x8 matrices.
#include <fstream>
#include <random>

#include "tests/emulator/instruction/ptx_runner.hpp"
#include "tests/emulator/recording/tensor_core_kernels.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::emulator {
namespace {

namespace recording = gemmery::tests::recording;

constexpr int cases_run = 24;  // of each form; the arithmetic is tested separately

std::vector<std::uint32_t> read_digests(std::ifstream& file, int count) {
  std::vector<std::uint32_t> digests(static_cast<std::size_t>(count));
  file.read(reinterpret_cast<char*>(digests.data()), 4 * count);
  return digests;
}

void run_form(const recording::Form& form, const std::vector<std::uint32_t>& digests) {
  PtxRunner runner(recording::kernel_of(form));
  const recording::Words words = recording::words_of(form);
  std::vector<std::uint32_t> in;
  for (int test_case = 0; test_case < cases_run; ++test_case) {
    const auto one = recording::arrange(form, test_case);
    in.insert(in.end(), one.begin(), one.end());
  }
  const auto per_case = static_cast<std::size_t>(words.lanes * words.c);
  const std::uint64_t from = runner.put(in), to = runner.reserve(cases_run * per_case * 4);
  runner.request.grid = {cases_run, 1, 1};
  runner.request.block = {static_cast<std::uint32_t>(words.lanes), 1, 1};
  const auto fault = runner.launch({from, to});
  ASSERT_FALSE(fault) << form.name << ": " << fault->report();
  const auto out = runner.get<std::uint32_t>(to, cases_run * per_case);
  for (std::size_t test_case = 0; test_case < cases_run; ++test_case) {
    const auto d = recording::rows_of(form, out.data() + test_case * per_case);
    ASSERT_EQ(recording::digest(d.data(), d.size()), digests[test_case])
        << form.name << ", case " << test_case;
  }
}

TEST(Matrix, every_recorded_form_runs_as_on_hardware) {
  std::ifstream file("tests/data/emulator/tensor_core.digests", std::ios::binary);
  ASSERT_TRUE(file) << "run from the root of the tree";
  for (const recording::Form& form : recording::all_forms())
    run_form(form, read_digests(file, form.cases));
}

// Writes 32 rows of 16 bytes to shared memory, executes `body` with their addresses in %t3 and
// returns %c0 to %c3.
std::string small_kernel(const std::string& body) {
  return std::string(recording::header) +
         ".shared .align 16 .b8 rows[512];\n"
         ".visible .entry run(.param .u64 in, .param .u64 out)\n{\n"
         ".reg .b32 %c<8>, %t<8>;\n.reg .b64 %d<8>;\n"
         "ld.param.u64 %d0, [in];\nld.param.u64 %d1, [out];\nmov.u32 %t1, %tid.x;\n"
         "mul.wide.u32 %d2, %t1, 16;\nadd.u64 %d0, %d0, %d2;\nadd.u64 %d1, %d1, %d2;\n"
         "mov.u32 %t2, rows;\nshl.b32 %t3, %t1, 4;\nadd.u32 %t3, %t3, %t2;\n"
         "ld.global.v4.b32 {%c0, %c1, %c2, %c3}, [%d0];\n" +
         body + "st.global.v4.b32 [%d1], {%c0, %c1, %c2, %c3};\nret;\n}\n";
}
const char* const store_rows = "st.shared.v4.b32 [%t3], {%c0, %c1, %c2, %c3};\nbar.warp.sync -1;\n";
const char* const load_rows = "bar.warp.sync -1;\nld.shared.v4.b32 {%c0, %c1, %c2, %c3}, [%t3];\n";

std::vector<std::uint16_t> random_rows() {
  std::mt19937_64 random(gemmery::tests::random_seed());
  std::vector<std::uint16_t> rows(32 * 8);
  for (auto& element : rows) element = static_cast<std::uint16_t>(random());
  return rows;
}
std::vector<std::uint16_t> run_small(const std::string& body,
                                     const std::vector<std::uint16_t>& rows) {
  PtxRunner runner(small_kernel(body));
  runner.request.block = {32, 1, 1};
  const std::uint64_t from = runner.put(rows), to = runner.reserve(512);
  const auto fault = runner.launch({from, to});
  EXPECT_FALSE(fault) << fault->report();
  return runner.get<std::uint16_t>(to, rows.size());
}

// Lane l's register i holds row l / 4 of matrix i, elements 2 (l % 4) and the next.
std::size_t at_lane(std::size_t matrix, std::size_t row, std::size_t column) {
  return (4 * row + column / 2) * 8 + 2 * matrix + column % 2;
}

TEST(Matrix, ldmatrix_gives_each_lane_two_elements_of_a_row) {
  const auto rows = random_rows();
  const auto out = run_small(std::string(store_rows) +
                                 "ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
                                 "{%c0, %c1, %c2, %c3}, [%t3];\n",
                             rows);
  for (std::size_t matrix = 0; matrix < 4; ++matrix)
    for (std::size_t row = 0; row < 8; ++row)
      for (std::size_t column = 0; column < 8; ++column)
        ASSERT_EQ(out[at_lane(matrix, row, column)], rows[(8 * matrix + row) * 8 + column]);
}

TEST(Matrix, transposed_ldmatrix_gives_each_lane_two_elements_of_a_column) {
  const auto rows = random_rows();
  const auto out = run_small(std::string(store_rows) +
                                 "ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 "
                                 "{%c0, %c1}, [%t3];\n",
                             rows);
  for (std::size_t matrix = 0; matrix < 2; ++matrix)
    for (std::size_t row = 0; row < 8; ++row)
      for (std::size_t column = 0; column < 8; ++column)
        ASSERT_EQ(out[at_lane(matrix, column, row)], rows[(8 * matrix + row) * 8 + column]);
}

TEST(Matrix, stmatrix_is_the_way_back) {
  const auto rows = random_rows();
  for (const std::string trans : {"", ".trans"}) {
    const auto out = run_small(std::string(store_rows) + "ldmatrix.sync.aligned.m8n8.x4" + trans +
                                   ".shared.b16 {%c0, %c1, %c2, %c3}, [%t3];\nbar.warp.sync -1;\n" +
                                   "stmatrix.sync.aligned.m8n8.x4" + trans +
                                   ".shared.b16 [%t3], {%c0, %c1, %c2, %c3};\n" + load_rows,
                               rows);
    EXPECT_EQ(out, rows) << trans;
  }
}

TEST(Matrix, movmatrix_transposes) {
  const auto rows = random_rows();
  const auto out = run_small(std::string(store_rows) +
                                 "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%c0}, [%t3];\n"
                                 "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%c1}, [%t3];\n"
                                 "movmatrix.sync.aligned.m8n8.trans.b16 %c2, %c0;\n",
                             rows);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    ASSERT_EQ(out[lane * 8 + 2], out[lane * 8 + 4]);
    ASSERT_EQ(out[lane * 8 + 3], out[lane * 8 + 5]);
  }
}

TEST(Matrix, ldmatrix_of_unwritten_rows_is_undefined_until_it_decides) {
  PtxRunner runner(
      small_kernel("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%c0}, [%t3];\n"
                   "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%c0}, [%c0];\n"));
  runner.request.block = {32, 1, 1};
  const std::uint64_t from = runner.put(random_rows()), to = runner.reserve(512);
  const auto fault = runner.launch({from, to});
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::unwritten_register) << fault->report();
}

}  // namespace
}  // namespace gemmery::emulator
