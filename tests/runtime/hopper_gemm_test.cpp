// SPDX-License-Identifier: Apache-2.0
// Launches of sm90 kernels: captured, replayed, back to back, on a part of the device.
#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "driver/graph.hpp"
#include "runtime/device_family.hpp"
#include "tests/runtime/hopper_gemm.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/moving_columns.hpp"
#include "tests/support/packed_plan.hpp"
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
  const Kernel& late = kernels.back();  // no other test uses it
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

// A launch that may begin before the previous one has ended must read that one's results, and must
// not overwrite memory that it still reads.
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

// --- reductions ---------------------------------------------------------------------------------

// Integers of a few bits as bfloat16, and the maximum of |A B|.
struct WholeMatrices {
  std::vector<std::uint16_t> a, b;
  float peak = 0;

  WholeMatrices(std::size_t m, std::size_t n, std::size_t k) : a(m * k), b(k * n) {
    std::mt19937_64 random(random_seed());
    std::vector<int> a_whole(a.size());
    std::vector<int> b_whole(b.size());
    const auto fill = [&](std::vector<std::uint16_t>& codes, std::vector<int>& whole) {
      for (std::size_t at = 0; at < codes.size(); ++at) {
        constexpr std::uint16_t code_of[] = {0xc000, 0xbf80, 0, 0x3f80, 0x4000};  // -2 to 2
        const auto drawn = static_cast<std::size_t>(random() % 5);
        codes[at] = code_of[drawn];
        whole[at] = static_cast<int>(drawn) - 2;
      }
    };
    fill(a, a_whole);
    fill(b, b_whole);
    std::vector<int> sums(n);
    for (std::size_t row = 0; row < m; ++row) {
      std::ranges::fill(sums, 0);
      for (std::size_t at = 0; at < k; ++at)
        for (std::size_t column = 0; column < n; ++column)
          sums[column] += a_whole[row * k + at] * b_whole[at * n + column];
      for (const int sum : sums) peak = std::max(peak, std::abs(static_cast<float>(sum)));
    }
  }
};

// Launches share a workspace that is cleared once, and a launch begins while the previous one ends:
// each must find the zeros that the previous one left.
TEST_P(HopperGemm, prepared_reductions_follow_each_other_unwaited) {
  const std::int64_t m = is_emulated() ? 150 : 1500;
  const std::int64_t n = is_emulated() ? 136 : 1032;
  constexpr std::int64_t k = 64;
  const int launches = is_emulated() ? 3 : 400;
  const WholeMatrices whole(static_cast<std::size_t>(m), static_cast<std::size_t>(n), k);
  const OwnedStream stream(device());
  const Buffer a(whole.a.size() * 2, stream);
  const Buffer b(whole.b.size() * 2, stream);
  const Buffer out(static_cast<std::size_t>(m * n) * 2, stream);
  const Buffer peaks(static_cast<std::size_t>(launches) * 4, stream);
  copy(a.data(), device(), whole.a.data(), Device::cpu(), a.bytes(), stream);
  copy(b.data(), device(), whole.b.data(), Device::cpu(), b.bytes(), stream);
  GemmOptions options;
  options.epilogue =
      EpilogueArguments("D = accum; peak = amax(accum)",
                        {{"peak", Tensor(peaks.data(), DType::float32, {1}, device())}});
  const GemmArguments arguments(Tensor(a.data(), DType::bfloat16, {m, k}, device()),
                                Tensor(b.data(), DType::bfloat16, {k, n}, device()),
                                Tensor(out.data(), DType::bfloat16, {m, n}, device()), options);
  const std::vector<float> expected(static_cast<std::size_t>(launches), whole.peak);
  const auto launch_all = [&](PreparedLaunch& launch) {
    for (int index = 0; index < launches; ++index) {
      launch.set_data("peak", static_cast<float*>(peaks.data()) + index);
      launch.launch(stream);
    }
  };
  const auto fetch = [&] {
    std::vector<float> got(expected.size());
    copy(got.data(), Device::cpu(), peaks.data(), device(), peaks.bytes(), stream);
    synchronize(stream);
    return got;
  };
  std::set<std::string> seen;
  for (const Kernel& kernel : sm90_kernels(arguments)) {
    if (!seen.insert(design_class(kernel)).second) continue;
    SCOPED_TRACE(kernel.name());
    PreparedLaunch launch = kernel.compile(arguments).bind(arguments);
    fill(peaks.data(), 0xff, peaks.bytes(), stream);
    launch_all(launch);
    EXPECT_EQ(fetch(), expected);
    driver::GraphCapture capture(stream);
    launch_all(launch);
    const driver::Graph graph = capture.end();
    for (int replay = 0; replay < 3; ++replay) {
      fill(peaks.data(), 0xff, peaks.bytes(), stream);
      graph.launch(stream);
      EXPECT_EQ(fetch(), expected) << "replay " << replay;
    }
    fill(peaks.data(), 0xff, peaks.bytes(), stream);
    launch_all(launch);
    EXPECT_EQ(fetch(), expected) << "after the graph";
  }
}

// --- part of the device -------------------------------------------------------------------------

// At most as many blocks as multiprocessors, in whole clusters, at least one.
std::uint32_t block_count(const Kernel& kernel, const GemmArguments& arguments, int limit) {
  const runtime::LaunchPlan plan = packed_plan(kernel, arguments, limit);
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
