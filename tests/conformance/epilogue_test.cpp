// SPDX-License-Identifier: Apache-2.0
// Random epilogues on the CPU, on the emulator and on a GPU if there is one. GEMMERY_SOAK=1 runs at
// least 300 programs on each; GEMMERY_TEST_PROGRAMS sets the number. GEMMERY_TEST_FAMILY and
// GEMMERY_TEST_NAME restrict the GPU kernels to a family and to a part of the name ("_rotation_").
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>

#include <gemmery/gemmery.hpp>

#include "platform/parallel.hpp"
#include "tests/conformance/random_epilogues.hpp"
#include "tests/conformance/random_source.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::conformance {
namespace {

std::string wanted_family() {
  const char* const name = std::getenv("GEMMERY_TEST_FAMILY");
  return name != nullptr ? name : "";
}

std::string wanted_name() {
  const char* const part = std::getenv("GEMMERY_TEST_NAME");
  return part != nullptr ? part : "";
}

int program_count(int usual, int soak) {
  const char* const count = std::getenv("GEMMERY_TEST_PROGRAMS");
  if (count != nullptr) return std::atoi(count);
  return is_soak() ? soak : usual;
}

void expect_right(const EpilogueOptions& options) {
  const EpilogueReport report = run_random_epilogues(options);
  std::cout << to_string(report);
  EXPECT_TRUE(report.failures.empty());
  EXPECT_GE(report.all.programs, options.programs) << "most are refused";
  EXPECT_LE(report.silent, report.all.programs) << "most verdicts say nothing";
}

TEST(EpilogueConformance, on_the_cpu) {
  expect_right({.device = Device::cpu(),
                .programs = program_count(40, 2000),
                .kernels_per_program = 4,
                .seed = tests::random_seed()});
}

// Few programs, since each is compiled and every warp instruction is emulated.
TEST(EpilogueConformance, on_an_emulated_gpu) {
  expect_right({.device = parse_device("emulated:h200").value(),
                .family = wanted_family(),
                .name_part = wanted_name(),
                .programs = program_count(8, 300),
                .kernels_per_program = 2,
                .seed = tests::random_seed()});
}

// A block computes several tiles; lanes without accumulators proceed to the next one.
TEST(EpilogueConformance, simt_kernels_on_few_multiprocessors) {
  expect_right({.device = parse_device("emulated:h200").value(),
                .family = "simt",
                .family_on_few = "simt",
                .programs = program_count(1, 300),
                .kernels_per_program = 2,
                .seed = tests::random_seed()});
}

// The staged epilogue of sm80, also with several tiles per block.
TEST(EpilogueConformance, sm80_kernels_on_an_emulated_gpu) {
  expect_right({.device = parse_device("emulated:a100").value(),
                .family = "sm80",
                .family_on_few = "sm80",
                .programs = program_count(4, 300),
                .kernels_per_program = 2,
                .seed = tests::random_seed()});
}

// Few rows or columns, out transposed or not, also with k in slices.
TEST(EpilogueConformance, skinny_kernels_on_an_emulated_gpu) {
  expect_right({.device = parse_device("emulated:a100").value(),
                .family = "skinny",
                .family_on_few = "skinny",
                .programs = program_count(4, 300),
                .kernels_per_program = 2,
                .seed = tests::random_seed(),
                .most_rows = 8});
}

// Groups along M, N and K in all forms; reductions over a group, or over its rows or columns.
TEST(EpilogueConformance, groups_on_the_cpu) {
  expect_right({.device = Device::cpu(),
                .programs = program_count(20, 1000),
                .kernels_per_program = 2,
                .seed = tests::random_seed(),
                .groups = true});
}

TEST(EpilogueConformance, groups_on_emulated_gpus) {
  for (const char* const family : {"simt", "sm80", "sm90"})
    expect_right({.device = parse_device("emulated:h200").value(),
                  .family = family,
                  .family_on_few = family,
                  .programs = program_count(3, 200),
                  .kernels_per_program = 2,
                  .seed = tests::random_seed(),
                  .groups = true});
}

TEST(EpilogueConformance, on_a_gpu) {
  if (devices().empty()) GTEST_SKIP() << "no GPU";
  expect_right({.device = devices().front(),
                .family = wanted_family(),
                .name_part = wanted_name(),
                .programs = program_count(20, 1000),
                .kernels_per_program = 3,
                .seed = tests::random_seed(),
                .threads = std::min(platform::thread_count(), 16),
                .most_extent = 300});
}

}  // namespace
}  // namespace gemmery::conformance
