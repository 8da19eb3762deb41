// SPDX-License-Identifier: Apache-2.0
// Planted faults are reported, each with its line; correct kernels give no report under any
// schedule.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/emulator/kernel_under_test.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::emulator {
namespace {

constexpr const char* pipeline_path = "tests/emulator/faults/pipeline.cu";
constexpr const char* threads_path = "tests/emulator/faults/threads.cu";

// --- what is expected ---------------------------------------------------------------------------

struct FaultRow {
  int number;
  const char* what;
  std::vector<FaultKind> kinds;  // any of them
};
void PrintTo(const FaultRow& row, std::ostream* out) { *out << row.number << ": " << row.what; }

// The report contains the marked line as the place, as the call of an inlined function, or as the
// other side.
void expect_reported(const FaultRow& row, const std::optional<Fault>& fault, const char* path) {
  ASSERT_TRUE(fault.has_value()) << row.what << " went unnoticed";
  EXPECT_NE(std::find(row.kinds.begin(), row.kinds.end(), fault->kind), row.kinds.end())
      << row.what << " was reported as\n"
      << fault->report();
  const std::vector<std::uint32_t> lines =
      lines_marked(path, "fault " + std::to_string(row.number));
  ASSERT_FALSE(lines.empty());
  const std::string report = fault->report();
  const bool is_named = std::any_of(lines.begin(), lines.end(), [&](std::uint32_t line) {
    const std::string mark = "kernel.cu:" + std::to_string(line);
    const std::size_t at = report.find(mark);
    return at != std::string::npos &&
           !std::isdigit(static_cast<unsigned char>((report + " ")[at + mark.size()]));
  });
  EXPECT_TRUE(is_named) << "no line marked `fault " << row.number << "` in\n" << report;
}

// --- the Hopper pipeline ------------------------------------------------------------------------

std::uint16_t to_bf16(float value) {
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
}
float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

struct PipelineParameters {
  std::uint64_t d;
  int m, n, k, tiles;
};

// M = N = 192, so that two CTAs compute several tiles each and reuse every buffer; small integers,
// so that the product is exact.
class Pipeline {
 public:
  Pipeline(int fault, int cluster, std::uint64_t data_seed)
      : cluster_(cluster),
        kernel_(compile_file_to_ptx(
                    pipeline_path, "pipeline",
                    {"-DFAULT=" + std::to_string(fault), "-DCLUSTER=" + std::to_string(cluster)}),
                "pipeline") {
    std::mt19937_64 random(data_seed);
    const auto fill = [&random](std::vector<std::uint16_t>& values) {
      for (std::uint16_t& value : values)
        value = to_bf16(static_cast<float>(static_cast<int>(random() % 5) - 2));
    };
    fill(a_), fill(b_);
    // The map reaches two rows beyond the allocation of A.
    reaches_beyond_ = fault == 14;
    const std::uint64_t rows = reaches_beyond_ ? size + 2 : size;
    map_a_ = map_2d(kernel_.put(a_), MapElement::bf16, rows, depth, 2 * depth, 64, 64, 128);
    map_b_ = map_2d(kernel_.put(b_), MapElement::bf16, size, depth, 2 * depth,
                    cluster == 2 ? 32 : 64, 64, 128);
    d_ = kernel_.put(std::vector<std::uint16_t>(size * size, 0xffff));
    map_d_ = map_2d(d_, MapElement::bf16, size, size, 2 * size, 64, 64, 128);
    kernel_.request.grid = {2, 1, 1};
    kernel_.request.block = {160, 1, 1};
    kernel_.request.cluster = {static_cast<std::uint32_t>(cluster), 1, 1};
    kernel_.request.dynamic_shared_bytes = 1024 + 2 * 16384 + 2 * 8192 + 64;
  }

  std::optional<Fault> run(std::uint64_t schedule) {
    kernel_.request.seed = schedule;
    // Tiles of 64 rows; a cluster takes two rows of tiles at a time, the last of which may be
    // empty.
    const int rows = cluster_ == 2 || reaches_beyond_ ? 4 : 3;
    return kernel_.launch(
        map_a_, map_b_, map_d_,
        PipelineParameters{.d = d_, .m = size, .n = size, .k = depth, .tiles = rows * 3});
  }

  std::size_t count_wrong() {
    const std::vector<std::uint16_t> d = kernel_.get<std::uint16_t>(d_, size * size);
    std::size_t wrong = 0;
    for (std::size_t row = 0; row < size; ++row) {
      for (std::size_t column = 0; column < size; ++column) {
        float sum = 0;
        for (std::size_t k = 0; k < depth; ++k)
          sum += from_bf16(a_[row * depth + k]) * from_bf16(b_[column * depth + k]);
        wrong += from_bf16(d[row * size + column]) != sum;
      }
    }
    return wrong;
  }

 private:
  static constexpr int size = 192, depth = 200;  // K is not a multiple of a block
  int cluster_;
  bool reaches_beyond_ = false;
  KernelUnderTest kernel_;
  std::vector<std::uint16_t> a_ = std::vector<std::uint16_t>(size * depth);
  std::vector<std::uint16_t> b_ = std::vector<std::uint16_t>(size * depth);
  TensorMapBytes map_a_, map_b_, map_d_;
  std::uint64_t d_ = 0;
};

class PipelineFaults : public testing::TestWithParam<FaultRow> {};

TEST_P(PipelineFaults, are_reported_with_their_line) {
  const FaultRow& row = GetParam();
  const int cluster = row.number == 11 || row.number == 22 ? 2 : 1;
  Pipeline pipeline(row.number, cluster, tests::random_seed());
  for (std::uint64_t schedule = 1; schedule <= 5; ++schedule) {
    SCOPED_TRACE("schedule " + std::to_string(schedule));
    expect_reported(row, pipeline.run(schedule), pipeline_path);
  }
}

using enum FaultKind;
INSTANTIATE_TEST_SUITE_P(
    Each, PipelineFaults,
    testing::Values(FaultRow{1, "missing full wait", {race, unwritten_read}},
                    FaultRow{2, "missing empty wait", {race, mbarrier_misuse}},
                    FaultRow{3, "too many bytes expected", {deadlock}},
                    FaultRow{4, "wrong parity", {deadlock}},
                    FaultRow{5, "missing proxy fence", {missing_proxy_fence}},
                    FaultRow{6, "missing wgmma wait", {in_flight}},
                    FaultRow{7, "early reuse of a store buffer", {race}},
                    FaultRow{8, "store one row past D", {out_of_bounds}},
                    FaultRow{9, "overlapping stages", {race}},
                    FaultRow{10, "mismatched named barrier", {barrier_misuse, deadlock}},
                    FaultRow{11, "early exit in a cluster", {early_exit}},
                    FaultRow{13, "read of an unwritten accumulator", {unwritten_register}},
                    FaultRow{14, "tensor map beyond its allocation", {out_of_bounds}},
                    FaultRow{20, "empty barrier counts too few", {race, mbarrier_misuse}},
                    FaultRow{21, "mbarriers never initialised", {mbarrier_misuse}},
                    FaultRow{
                        22, "no cluster barrier after initialisation", {race, mbarrier_misuse}},
                    FaultRow{23, "missing wgmma.fence", {in_flight}},
                    FaultRow{26, "too few bytes expected", {deadlock, mbarrier_misuse, race}}),
    [](const auto& param) { return "fault_" + std::to_string(param.param.number); });

class SoundPipeline : public testing::TestWithParam<int> {};

TEST_P(SoundPipeline, raises_no_alarm_and_is_right_over_50_schedules) {
  Pipeline pipeline(0, GetParam(), tests::random_seed());
  for (std::uint64_t schedule = 1; schedule <= 50; ++schedule) {
    const std::optional<Fault> fault = pipeline.run(schedule);
    ASSERT_FALSE(fault.has_value()) << "schedule " << schedule << "\n" << fault->report();
    ASSERT_EQ(pipeline.count_wrong(), 0u) << "schedule " << schedule;
  }
}

INSTANTIATE_TEST_SUITE_P(Clusters, SoundPipeline, testing::Values(1, 2));

// --- threads without tensor cores ---------------------------------------------------------------

struct ThreadsRow {
  FaultRow fault;
  const char* kernel;
};
void PrintTo(const ThreadsRow& row, std::ostream* out) { PrintTo(row.fault, out); }

class ThreadFaults : public testing::TestWithParam<ThreadsRow> {
 protected:
  void compile(int fault) {
    ptx_ =
        compile_file_to_ptx(threads_path, GetParam().kernel, {"-DFAULT=" + std::to_string(fault)});
  }
  std::optional<Fault> run(std::uint64_t schedule) {
    const std::string name = GetParam().kernel;
    KernelUnderTest kernel(ptx_, name);
    std::mt19937_64 random(tests::random_seed());
    std::vector<float> values(1024);
    for (float& value : values) value = static_cast<float>(random() % 64);
    const std::uint64_t in = kernel.put(values), out = kernel.put(std::vector<float>(512, -1.f));
    kernel.request.block = {128, 1, 1};
    kernel.request.grid = {name == "reduce" ? 4u : 1u, 1, 1};
    kernel.request.seed = schedule;
    if (name == "beyond") kernel.request.dynamic_shared_bytes = 128 * sizeof(float);
    if (name == "reverse") return kernel.launch(in, out, 128);
    if (name == "stages") return kernel.launch(in, out, 8);
    return kernel.launch(in, out);
  }

 private:
  std::string ptx_;
};

TEST_P(ThreadFaults, are_reported_with_their_line) {
  const FaultRow& row = GetParam().fault;
  compile(row.number);
  for (std::uint64_t schedule = 1; schedule <= 5; ++schedule)
    expect_reported(row, run(schedule), threads_path);
}

TEST_P(ThreadFaults, are_not_seen_in_the_sound_kernel) {
  compile(0);
  for (std::uint64_t schedule = 1; schedule <= 50; ++schedule) {
    const std::optional<Fault> fault = run(schedule);
    ASSERT_FALSE(fault.has_value()) << "schedule " << schedule << "\n" << fault->report();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Each, ThreadFaults,
    testing::Values(
        ThreadsRow{{12, "wrong cp.async group count", {race, unwritten_read, unwritten_register}},
                   "stages"},
        ThreadsRow{{15, "racing reduction", {race}}, "reduce"},
        ThreadsRow{{16, "missing __syncthreads", {race}}, "reverse"},
        ThreadsRow{{17, "missing __syncwarp", {race}}, "exchange"},
        ThreadsRow{{18, "divergent barrier", {divergent_barrier}}, "part_way"},
        ThreadsRow{{19, "misaligned vector", {misaligned}}, "wide"},
        ThreadsRow{{24, "unwritten memory decides", {unwritten_register, unwritten_read}},
                   "unwritten"},
        ThreadsRow{{25, "beyond shared memory", {out_of_bounds}}, "beyond"}),
    [](const auto& param) { return "fault_" + std::to_string(param.param.fault.number); });

}  // namespace
}  // namespace gemmery::emulator
