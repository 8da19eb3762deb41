// SPDX-License-Identifier: Apache-2.0
// Launches of sm90 kernels: captured, replayed, one behind the other, on part of the device.
#include <algorithm>

#include <algorithm>

#include "driver/driver.hpp"
#include "driver/graph.hpp"
#include "runtime/device_family.hpp"
#include "tests/runtime/hopper_gemm.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/moving_columns.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::tests {
namespace {

constexpr std::int64_t chain_length = 20;

// --- captures -----------------------------------------------------------------------------------

TEST_P(HopperGemm, the_first_launch_after_compiling_may_be_captured) {
  const OwnedStream stream(device());
  MovingColumns columns(136, 72, random_seed(), stream);
  for (const Kernel& kernel : one_of_each_design(columns.forth())) {
    SCOPED_TRACE(kernel.name());
    columns.refill();
    const Artifact artifact = kernel.compile(columns.forth());
    driver::GraphCapture capture(stream);
    kernel.run(columns.forth(), {.stream = stream});
    const driver::Graph graph = capture.end();
    graph.launch(stream);
    EXPECT_EQ(columns.count_wrong(1), 0);
  }
}

TEST_P(HopperGemm, what_is_not_compiled_is_refused_in_a_capture_that_stays_valid) {
  const OwnedStream stream(device());
  MovingColumns columns(64, 48, random_seed(), stream);
  const std::vector<Kernel> kernels = sm90_kernels(columns.forth());
  const Kernel& late = kernels.back();  // of which no other test makes use
  const Kernel& early = kernels.front();
  early.compile(columns.forth());
  driver::GraphCapture capture(stream);
  const Error error = error_of([&] { late.run(columns.forth(), {.stream = stream}); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_NE(error.hint().find("compile"), std::string::npos) << error.what();
  early.run(columns.forth(), {.stream = stream});
  driver::Graph graph;
  ASSERT_NO_THROW(graph = capture.end());
  graph.launch(stream);
  EXPECT_EQ(columns.count_wrong(1), 0);
}

TEST_P(HopperGemm, a_graph_of_dependent_launches_replays_right) {
  const OwnedStream stream(device());
  MovingColumns columns(is_emulated() ? 72 : 200, is_emulated() ? 40 : 136, random_seed(), stream);
  for (const Kernel& kernel : one_of_each_design(columns.forth())) {
    SCOPED_TRACE(kernel.name());
    kernel.compile(columns.forth());
    driver::GraphCapture capture(stream);
    for (std::int64_t launch = 0; launch < chain_length; ++launch)
      kernel.run(launch % 2 == 0 ? columns.forth() : columns.back(), {.stream = stream});
    const driver::Graph graph = capture.end();
    for (int replay = 0; replay < (is_emulated() ? 1 : 10); ++replay) {
      columns.refill();
      graph.launch(stream);
      graph.launch(stream);
      EXPECT_EQ(columns.count_wrong(2 * chain_length), 0);
    }
  }
}

// --- one behind the other -----------------------------------------------------------------------

// A launch that may begin before the one ahead has ended still reads what that one has written, and
// writes nothing that it still reads.
TEST_P(HopperGemm, each_launch_sees_all_that_the_one_before_has_stored) {
  const OwnedStream stream(device());
  MovingColumns columns(is_emulated() ? 200 : 2056, 136, random_seed(), stream);
  const std::int64_t launches = is_emulated() ? 6 : 2000;
  for (const Kernel& kernel : one_of_each_design(columns.forth())) {
    SCOPED_TRACE(kernel.name());
    columns.refill();
    const Artifact artifact = kernel.compile(columns.forth());
    PreparedLaunch forth = artifact.bind(columns.forth());
    PreparedLaunch back = artifact.bind(columns.back());
    for (std::int64_t launch = 0; launch < launches; ++launch)
      (launch % 2 == 0 ? forth : back).launch(stream);
    EXPECT_EQ(columns.count_wrong(launches), 0);
  }
}

TEST_P(HopperGemm, kernels_of_two_families_take_turns) {
  const OwnedStream stream(device());
  MovingColumns columns(is_emulated() ? 72 : 520, 136, random_seed(), stream);
  const GemmArguments arguments = columns.forth();
  std::vector<Kernel> pair{sm90_kernels(arguments).front()};
  for (const RankedKernel& kernel : get_kernels(arguments)) {
    if (pair.size() == 1 && kernel.family().name() == "simt") pair.push_back(kernel);
  }
  if (pair.size() == 1) GTEST_SKIP() << "no simt kernel takes bfloat16 here";
  const std::int64_t rounds = is_emulated() ? 2 : 250;
  for (std::int64_t launch = 0; launch < 4 * rounds; ++launch) {
    const Kernel& kernel = pair[static_cast<std::size_t>(launch / 2 % 2)];
    kernel.run(launch % 2 == 0 ? columns.forth() : columns.back(), {.stream = stream});
  }
  EXPECT_EQ(columns.count_wrong(4 * rounds), 0);
}

// --- part of the device -------------------------------------------------------------------------

// As many blocks as multiprocessors at most, in whole clusters, at least one.
std::uint32_t block_count(const Kernel& kernel, const GemmArguments& arguments, int limit) {
  const driver::GpuDevice& gpu = driver::open_device(arguments.device());
  const driver::ScopedContext current(gpu);
  runtime::LaunchPlan plan;
  dynamic_cast<const runtime::DeviceFamily&>(kernel.family())
      .pack({.kernel = kernel,
             .arguments = arguments,
             .device = gpu.info(),
             .max_multiprocessors = limit,
             .driver = gpu.api()},
            plan);
  EXPECT_EQ(plan.shape.grid[0] % plan.shape.cluster[0], 0U);
  return plan.shape.grid[0];
}

TEST_P(HopperGemm, any_number_of_multiprocessors_covers_all_tiles) {
  const OwnedStream stream(device());
  MovingColumns columns(is_emulated() ? 330 : 2600, 200, random_seed(), stream);
  const int all = device_info(device()).multiprocessors;
  const std::vector<int> limits =
      is_emulated() ? std::vector<int>{1, 3}
                    : std::vector<int>{1, 2, 3, 5, 7, 66, 67, all - 1, all, all + 1};
  for (const Kernel& kernel : one_of_each_design(columns.forth())) {
    const Artifact artifact = kernel.compile(columns.forth());
    for (const int limit : limits) {
      SCOPED_TRACE(kernel.name() + " on " + std::to_string(limit));
      const Metadata metadata = kernel.metadata();
      const int pair = metadata.design_value("cluster") == "1x1" ? 1 : 2;
      const int cluster = pair * std::atoi(std::string(metadata.design_value("split_k")).c_str());
      EXPECT_LE(block_count(kernel, columns.forth(), limit),
                static_cast<std::uint32_t>(std::max(limit, cluster)));
      columns.refill();
      kernel.run(columns.forth(),
                 {.artifact = &artifact, .stream = stream, .max_multiprocessors = limit});
      EXPECT_EQ(columns.count_wrong(1), 0);
    }
  }
}

}  // namespace
}  // namespace gemmery::tests
