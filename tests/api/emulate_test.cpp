// SPDX-License-Identifier: Apache-2.0
// emulate(): findings of launches that continue, results under several schedules, suppression
// rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <gemmery/gemmery.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "jit/nvrtc.hpp"

namespace gemmery::tests {
namespace {

using testing::HasSubstr;

// The message of the exception that a call throws; "" if it throws none.
template <class Body>
std::string refusal_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::vector<std::byte> bytes_of(const std::vector<float>& numbers) {
  std::vector<std::byte> bytes(4 * numbers.size());
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

std::vector<float> floats_of(const std::vector<std::byte>& bytes) {
  std::vector<float> numbers(bytes.size() / 4);
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

// Line numbers of findings count from the line after R"(.
class Emulate : public testing::Test {
 protected:
  void SetUp() override {
    const jit::CompilerStatus compiler = jit::compiler_status();
    if (!compiler.found) GTEST_SKIP() << compiler.searched;
  }
};

EmulationRequest request_for(const char* source, std::vector<EmulationArgument> arguments,
                             std::uint32_t grid = 1, std::uint32_t block = 64) {
  return {.code = source,
          .file = "mine.cu",
          .compile_options = {},
          .entry = {},
          .device = *parse_device("emulated:h200"),
          .launch = {.grid = {grid, 1, 1}, .block = {block, 1, 1}},
          .arguments = std::move(arguments),
          .schedules = 4,
          .rules = {}};
}

const EmulationFinding* find(const EmulationReport& report, const std::string& kind) {
  const auto found = std::ranges::find(report.findings, kind, &EmulationFinding::kind);
  return found == report.findings.end() ? nullptr : &*found;
}

TEST_F(Emulate, a_right_kernel_passes_and_leaves_its_results) {
  constexpr const char* source = R"(
__global__ void scale(float* numbers, unsigned count, float factor) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) numbers[i] *= factor;
})";
  std::vector<float> numbers(100);
  for (std::size_t at = 0; at < numbers.size(); ++at) numbers[at] = static_cast<float>(at);
  const EmulationReport report =
      emulate(request_for(source,
                          {EmulationArgument::buffer(bytes_of(numbers)),
                           EmulationArgument::number("100"), EmulationArgument::number("0.5f")},
                          2));
  EXPECT_TRUE(report.passed());
  EXPECT_TRUE(report.findings.empty());
  EXPECT_EQ(report.kernel, "scale(float*, unsigned int, float)");
  EXPECT_EQ(report.schedules, 4);
  ASSERT_EQ(report.outputs.size(), 1U);
  const std::vector<float> scaled = floats_of(report.outputs[0].bytes);
  for (std::size_t at = 0; at < numbers.size(); ++at) EXPECT_EQ(scaled[at], numbers[at] / 2);
}

// Three faults in sequence: the launch continues, and all are found with their lines.
TEST_F(Emulate, goes_on_behind_a_fault_and_reports_each_place_once) {
  constexpr const char* source = R"(
__global__ void faulty(const float* in, float* out, unsigned count) {
  __shared__ float tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  const float other = tile[63 - threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = other;
  out[threadIdx.x + 1] = other;
})";
  const EmulationReport report = emulate(
      request_for(source, {EmulationArgument::buffer(std::vector<std::byte>(4 * 60)),
                           EmulationArgument::unwritten(4 * 65), EmulationArgument::number("60")}));
  EXPECT_FALSE(report.passed());
  const EmulationFinding* const outside = find(report, "out of bounds");
  ASSERT_NE(outside, nullptr);
  EXPECT_EQ(outside->place.source_file, "mine.cu");
  EXPECT_EQ(outside->place.source_line, 4U);
  EXPECT_EQ(outside->count, 4U * 4);  // lanes times schedules
  EXPECT_EQ(outside->seeds, (std::vector<std::uint64_t>{1, 2, 3, 4}));
  const EmulationFinding* const race = find(report, "race");
  ASSERT_NE(race, nullptr);
  EXPECT_EQ(race->place.source_line + race->other.source_line, 4U + 5U) << race->report;
  EXPECT_GE(race->other.lane, 0);
  EXPECT_EQ(race->other.kernel, "faulty(float const*, float*, unsigned int)");
  EXPECT_TRUE(std::ranges::any_of(report.findings, [](const EmulationFinding& finding) {
    return finding.place.source_line + finding.other.source_line == 7 + 8;
  }));
  EXPECT_GE(report.outputs[1].unwritten_bytes, 4U * 4) << "copies of what is out of bounds";
}

// By the letter if both sides store the same bytes; not if the values differ, or if a third access
// reads.
TEST_F(Emulate, stores_of_the_same_value_are_a_race_by_the_letter) {
  constexpr const char* source = R"(
__global__ void mark(int* out, int step) {
  out[0] = 7 + step * (threadIdx.x / 32);
})";
  const auto report_with = [&](const char* step) {
    return emulate(
        request_for(source, {EmulationArgument::unwritten(4), EmulationArgument::number(step)}));
  };
  const EmulationReport same = report_with("0");
  ASSERT_EQ(same.findings.size(), 1U);
  EXPECT_EQ(same.findings[0].kind, "race");
  EXPECT_TRUE(same.findings[0].is_by_the_letter);
  EXPECT_TRUE(same.passed());
  const EmulationReport different = report_with("1");
  EXPECT_FALSE(different.passed());
  EXPECT_FALSE(find(different, "race")->is_by_the_letter);

  constexpr const char* with_reader = R"(
__global__ void mark(int* out) {
  if (threadIdx.x < 64) out[0] = 7;
  else out[1] = out[0];
})";
  EmulationRequest request =
      request_for(with_reader, {EmulationArgument::buffer(std::vector<std::byte>(8))}, 1, 96);
  request.schedules = 32;
  EXPECT_TRUE(std::ranges::all_of(emulate(request).findings, [&](const EmulationFinding& each) {
    return each.kind != "race" ||
           each.is_by_the_letter == (each.other.source_line == each.place.source_line);
  }));
  EXPECT_FALSE(emulate(request).passed());
}

// Kernels that name the runtime's part of shared memory may use it, as cooperative groups do.
TEST_F(Emulate, reserved_shared_memory_belongs_to_kernels_that_name_it) {
  constexpr const char* source = R"(
__global__ void scratch(unsigned* out) {
  unsigned at = 768;
  if (NAMES) asm("mov.u32 %0, %%reserved_smem_offset_1;" : "=r"(at));
  asm volatile("st.shared.u32 [%0], %1;" :: "r"(at + 4 * threadIdx.x), "r"(threadIdx.x) : "memory");
  __syncthreads();
  unsigned other;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(other) : "r"(at + 4 * (63 - threadIdx.x)) : "memory");
  out[threadIdx.x] = other;
})";
  EmulationRequest request = request_for(source, {EmulationArgument::unwritten(4 * 64)});
  request.compile_options = {"-DNAMES=1"};
  const EmulationReport right = emulate(request);
  EXPECT_TRUE(right.findings.empty()) << to_string(right);
  EXPECT_EQ(std::to_integer<int>(right.outputs[0].bytes[0]), 63);
  request.compile_options = {"-DNAMES=0"};
  EXPECT_NE(find(emulate(request), "out of bounds"), nullptr);
}

// A box of 8 x 16 numbers by TMA; what lies beyond the array's 12 columns comes as zeros.
TEST_F(Emulate, a_kernel_gets_tensor_maps_of_its_buffers) {
  constexpr const char* source = R"(
struct alignas(64) CUtensorMap { unsigned long long words[16]; };
__global__ void fetch(const __grid_constant__ CUtensorMap map, float* out) {
  __shared__ alignas(128) float tile[8 * 16];
  __shared__ unsigned long long arrived;
  const unsigned to = (unsigned)__cvta_generic_to_shared(tile);
  const unsigned barrier = (unsigned)__cvta_generic_to_shared(&arrived);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;\n fence.mbarrier_init.release.cluster;" :: "r"(barrier) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 512;" :: "r"(barrier) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {0, 2}], [%2];"
                 :: "r"(to), "l"(&map), "r"(barrier) : "memory");
  }
  __syncthreads();
  asm volatile("{ .reg .pred done;\n again: mbarrier.try_wait.parity.shared.b64 done, [%0], 0;\n @!done bra again; }"
               :: "r"(barrier) : "memory");
  for (int at = threadIdx.x; at < 128; at += 64) out[at] = tile[at];
})";
  std::vector<float> numbers(10 * 12);
  for (std::size_t at = 0; at < numbers.size(); ++at) numbers[at] = static_cast<float>(at);
  const std::array<std::uint64_t, 2> shape{10, 12};
  const std::array<std::uint32_t, 2> box{8, 16};
  const EmulationArgument map = EmulationArgument::tensor_map(
      EmulationArgument::buffer(bytes_of(numbers)), DType::float32, shape, box);
  const EmulationReport report =
      emulate(request_for(source, {map, EmulationArgument::unwritten(4 * 128)}));
  EXPECT_TRUE(report.findings.empty()) << to_string(report);
  ASSERT_EQ(report.outputs.size(), 2U) << "of the map, too";
  const std::vector<float> tile = floats_of(report.outputs[1].bytes);
  for (std::size_t at = 0; at < tile.size(); ++at) {
    const std::size_t row = 2 + at / 16, column = at % 16;
    EXPECT_EQ(tile[at], column < 12 ? numbers[row * 12 + column] : 0) << at;
  }
  EXPECT_THAT(refusal_of([&] {
                EmulationArgument::tensor_map(EmulationArgument::unwritten(4), DType::float32,
                                              shape, box);
              }),
              HasSubstr("a shape of the buffer's 4 bytes, got one of 480 bytes"));
  const std::array<std::uint32_t, 2> wide{8, 512};
  const EmulationArgument broken = EmulationArgument::tensor_map(
      EmulationArgument::buffer(bytes_of(numbers)), DType::float32, shape, wide);
  EXPECT_THAT(refusal_of([&] {
                emulate(request_for(source, {broken, EmulationArgument::unwritten(512)}));
              }),
              HasSubstr("256"));
}

// As cooperative_groups::grid_group::sync does it: a counter in the workspace that %envreg1 and 2
// point to; block 0 adds what completes its highest bit.
constexpr const char* grid_barrier_source = R"(
__device__ unsigned* workspace() {
  unsigned high, low;
  asm("mov.u32 %0, %%envreg1; mov.u32 %1, %%envreg2;" : "=r"(high), "=r"(low));
  return reinterpret_cast<unsigned*>((unsigned long long)high << 32 | low);
}
__device__ void wait_for_grid(unsigned* counter) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned own = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1;
    unsigned before, now;
    asm volatile("atom.add.release.gpu.u32 %0, [%1], %2;" : "=r"(before) : "l"(counter), "r"(own) : "memory");
    do asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(counter) : "memory");
    while (((before ^ now) & 0x80000000u) == 0);
  }
  __syncthreads();
}
__global__ void turn(int* middle, int* out) {
  const unsigned at = blockIdx.x * 64 + threadIdx.x;
  unsigned* const counter = workspace() + 1;
  for (int round = 0; round < 3; ++round) {
    middle[at] = at + round;
    wait_for_grid(counter);
    out[at] = middle[gridDim.x * 64 - 1 - at];
    wait_for_grid(counter);
  }
}
__global__ void place(unsigned** out) { *out = workspace(); })";

TEST_F(Emulate, kernels_with_a_barrier_of_the_grid_are_launched_cooperatively) {
  EmulationRequest request = request_for(
      grid_barrier_source,
      {EmulationArgument::unwritten(4 * 64 * 12), EmulationArgument::unwritten(4 * 64 * 12)}, 12);
  request.entry = "turn";
  const EmulationReport report = emulate(request);
  EXPECT_TRUE(report.findings.empty()) << to_string(report);
  std::vector<int> turned(12 * 64);
  std::memcpy(turned.data(), report.outputs[1].bytes.data(), 4 * turned.size());
  for (std::size_t at = 0; at < turned.size(); ++at)
    EXPECT_EQ(turned[at], static_cast<int>(turned.size() - 1 - at) + 2);
  request.launch.grid = {32 * 132 + 1, 1, 1};
  EXPECT_THAT(refusal_of([&] { emulate(request); }),
              HasSubstr("at most 4224 clusters (blocks), which the device holds at a time"));
}

TEST_F(Emulate, only_a_cooperative_launch_has_a_workspace) {
  const Device device = *parse_device("emulated:h200");
  const OwnedStream stream(device);
  const Buffer out(8, stream);
  const EmulatedModule module = EmulatedModule::compile(grid_barrier_source, device);
  const std::vector<std::string> entries = module.entries();
  const auto place = std::ranges::find_if(
      entries, [](const std::string& entry) { return entry.find("place") != std::string::npos; });
  ASSERT_NE(place, entries.end());
  for (const bool is_cooperative : {false, true}) {
    module.launch(*place, {.is_cooperative = is_cooperative}, out.data());
    std::uint64_t address = 0;
    copy(&address, Device::cpu(), out.data(), device, sizeof address, stream);
    EXPECT_EQ(address != 0, is_cooperative);
  }
}

// A plain store by the thread that has read the last arrival is ordered after all of them, but not
// after arrivals that it has not read.
TEST_F(Emulate, a_lock_may_be_reset_by_who_has_read_its_last_arrival) {
  constexpr const char* source = R"(
__global__ void arrive(unsigned* lock, unsigned expected) {
  if (blockIdx.x + 1 < gridDim.x) {
    asm volatile("fence.acq_rel.gpu;\n red.relaxed.gpu.global.add.u32 [%0], 1;" :: "l"(lock) : "memory");
    return;
  }
  unsigned seen;
  do asm volatile("ld.global.acquire.gpu.u32 %0, [%1];" : "=r"(seen) : "l"(lock) : "memory");
  while (seen < expected);
  __syncwarp();
  if (threadIdx.x == 0) *lock = 0;
})";
  const auto report_for = [&](const char* expected, std::uint32_t threads) {
    EmulationRequest request = request_for(
        source,
        {EmulationArgument::buffer(std::vector<std::byte>(4)), EmulationArgument::number(expected)},
        6, threads);
    request.schedules = 16;
    request.rules = "results differ";
    return emulate(request);
  };
  const EmulationReport one = report_for("5", 1);
  EXPECT_TRUE(one.findings.empty()) << to_string(one);
  EXPECT_FALSE(report_for("3", 1).passed());
}

TEST_F(Emulate, stops_at_the_first_fault_if_asked) {
  constexpr const char* source = R"(
__global__ void twice(float* out) {
  out[threadIdx.x + 1] = 1;
  out[threadIdx.x + 2] = 2;
})";
  EmulationRequest request = request_for(source, {EmulationArgument::unwritten(4 * 32)}, 1, 32);
  EXPECT_GE(emulate(request).findings.size(), 2U);
  request.stops_at_first = true;
  const EmulationReport report = emulate(request);
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].place.source_line, 3U);
  EXPECT_EQ(report.schedules, 1);
}

TEST_F(Emulate, a_deadlock_ends_its_block_and_the_others_go_on) {
  constexpr const char* source = R"(
__global__ void waits(float* out) {
  if (blockIdx.x != 1 || threadIdx.x < 32) asm volatile("barrier.sync 1, 64;");
  out[blockIdx.x * 64 + threadIdx.x] = 1;
})";
  const EmulationReport report =
      emulate(request_for(source, {EmulationArgument::unwritten(4 * 64 * 3)}, 3));
  const EmulationFinding* const stuck = find(report, "deadlock");
  ASSERT_NE(stuck, nullptr);
  EXPECT_TRUE(stuck->ended_block);
  EXPECT_EQ(stuck->count, 4U);
  EXPECT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.outputs[0].unwritten_bytes, 4U * 32) << "of the warp that waits";
}

TEST_F(Emulate, unwritten_decisions_are_reported_once_and_the_value_is_used) {
  constexpr const char* source = R"(
__global__ void decides(const int* flags, int* out) {
  if (flags[0] > 3) out[0] = 1;
  out[1] = 2;
})";
  const EmulationReport report = emulate(request_for(
      source, {EmulationArgument::unwritten(4), EmulationArgument::unwritten(8)}, 1, 1));
  const EmulationFinding* const unwritten = find(report, "unwritten register");
  ASSERT_NE(unwritten, nullptr);
  EXPECT_EQ(unwritten->place.source_line, 3U);
  EXPECT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.outputs[1].unwritten_bytes, 4U);
}

TEST_F(Emulate, results_that_depend_on_the_schedule_are_a_finding) {
  constexpr const char* source = R"(
__global__ void last(unsigned* out) {
  if (threadIdx.x % 32 == 0) atomicExch(out, threadIdx.x);
})";
  EmulationRequest request =
      request_for(source, {EmulationArgument::buffer(std::vector<std::byte>(4))}, 1, 256);
  request.schedules = 16;
  const EmulationReport report = emulate(request);
  const EmulationFinding* const differing = find(report, "results differ");
  ASSERT_NE(differing, nullptr);
  EXPECT_THAT(differing->message, HasSubstr("argument 0"));
  EXPECT_FALSE(report.passed());
  request.rules = "results differ";
  EXPECT_TRUE(emulate(request).passed());
}

TEST_F(Emulate, buffers_have_the_same_addresses_under_every_schedule) {
  constexpr const char* source = R"(
__global__ void keep(void** out) {
  out[threadIdx.x] = out + threadIdx.x;
})";
  EmulationRequest request = request_for(source, {EmulationArgument::unwritten(8 * 64)});
  request.schedules = 3;
  const EmulationReport report = emulate(request);
  EXPECT_TRUE(report.passed()) << to_string(report);
}

TEST_F(Emulate, comments_of_the_source_are_rules_for_their_line_or_the_next) {
  const auto report_with = [&](const char* first, const char* second) {
    const std::string source = std::string("__global__ void mark(int* out) {\n") + first +
                               "\n\n  out[0] = threadIdx.x;  " + second + "\n}\n";
    return emulate(request_for(source.c_str(), {EmulationArgument::unwritten(4)}));
  };
  EXPECT_FALSE(report_with("", "").passed());
  EXPECT_FALSE(report_with("", "// gemmery: allow race").passed()) << "results differ, too";
  const char* const any_result = "// gemmery: allow results differ";
  const EmulationReport beside = report_with(any_result, "// gemmery: allow race: the last counts");
  EXPECT_TRUE(beside.passed()) << to_string(beside);
  EXPECT_EQ(beside.findings.at(0).rule, "mine.cu:4: allow race");
  EXPECT_TRUE(report_with("  // gemmery: allow race", any_result).passed()) << "the line above";
  const EmulationReport unused = report_with("  // gemmery: allow deadlock", any_result);
  EXPECT_FALSE(unused.passed());
  EXPECT_EQ(unused.unused_rules, (std::vector<std::string>{"mine.cu:2: allow deadlock"}));
  EXPECT_THAT(refusal_of([&] { report_with("// gemmery: allow raec", ""); }),
              HasSubstr("mine.cu:2: expected a kind of finding"));
}

TEST_F(Emulate, rules_suppress_by_kind_place_and_kernel) {
  constexpr const char* source = R"(
template <class T>
__global__ void fill(T* out) { out[0] = static_cast<T>(threadIdx.x); }
template __global__ void fill<float>(float*);)";
  EmulationRequest request = request_for(source, {EmulationArgument::unwritten(4)});
  request.entry = "fill<float>";
  EXPECT_FALSE(emulate(request).passed());
  request.rules =
      "# known\nrace, mine.cu:3, fill  # the last one wins\nresults differ\ndeadlock, other.cu\n";
  const EmulationReport report = emulate(request);
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.unused_rules, (std::vector<std::string>{"deadlock, other.cu"}));
  const EmulationFinding* const race = find(report, "race");
  ASSERT_NE(race, nullptr);
  EXPECT_EQ(race->rule, "race, mine.cu:3, fill");
  for (const char* const rule : {"race, mine.cu:4", "race, *, empty", "race, yours.cu"}) {
    request.rules = std::string(rule) + "\nresults differ";
    EXPECT_FALSE(emulate(request).passed()) << rule;
  }
  request.rules = "\nraces";
  request.rules_file = "known.txt";
  EXPECT_THAT(refusal_of([&] { emulate(request); }), HasSubstr("known.txt:2"));
}

TEST_F(Emulate, a_place_in_an_inlined_function_has_its_call) {
  constexpr const char* source = R"(
__device__ void put(float* to, float value) {
  to[threadIdx.x] = value;
}
__global__ void fill(float* out) {
  put(out, 1);
})";
  EmulationRequest request = request_for(source, {EmulationArgument::unwritten(4 * 63)});
  const EmulationReport report = emulate(request);
  const EmulationFinding* const outside = find(report, "out of bounds");
  ASSERT_NE(outside, nullptr);
  EXPECT_EQ(outside->place.source_line, 3U);
  EXPECT_EQ(outside->place.call_line, 6U);
  for (const char* const rule : {"out of bounds, mine.cu:3", "out of bounds, mine.cu:6"}) {
    request.rules = rule;
    EXPECT_TRUE(emulate(request).passed()) << rule;
  }
}

TEST_F(Emulate, variables_of_the_module_begin_anew_in_each_schedule) {
  constexpr const char* source = R"(
__device__ unsigned calls = 5;
__global__ void count(unsigned* out) { out[0] = ++calls; })";
  const EmulationReport report =
      emulate(request_for(source, {EmulationArgument::unwritten(4)}, 1, 1));
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(std::to_integer<int>(report.outputs[0].bytes[0]), 6);
}

TEST_F(Emulate, a_trace_has_the_steps_and_results_of_one_warp) {
  constexpr const char* source = R"(
__global__ void halve(float* numbers) {
  if (threadIdx.x % 32 >= 8) return;
  numbers[blockIdx.x * 64 + threadIdx.x] *= 0.5f;
})";
  std::vector<float> numbers(128, 3);
  numbers[64 + 32] = 5;
  EmulationRequest request = request_for(source, {EmulationArgument::buffer(bytes_of(numbers))}, 2);
  request.trace = EmulatedTrace{.block = {1, 0, 0}, .warp = 1};
  const EmulationReport report = emulate(request);
  ASSERT_FALSE(report.trace.empty());
  EXPECT_TRUE(std::ranges::all_of(report.trace, [](const EmulatedStep& step) {
    return step.place.warp == 1 && step.place.block[0] == 1;
  }));
  EXPECT_EQ(report.trace.front().lanes, ~0U);
  const auto multiplied = std::ranges::find_if(report.trace, [](const EmulatedStep& step) {
    return step.place.ptx_text.find("mul.f32") != std::string::npos;
  });
  ASSERT_NE(multiplied, report.trace.end());
  EXPECT_EQ(multiplied->lanes, 0xffU);
  EXPECT_THAT(multiplied->result, HasSubstr(" = 2.5")) << "of lane 0";
  EXPECT_EQ(multiplied->place.source_line, 4U);
  request.trace->most_steps = 2;
  EXPECT_EQ(emulate(request).trace.size(), 2U);
}

TEST_F(Emulate, sampled_blocks_and_coverage_tell_what_ran) {
  constexpr const char* source = R"(
__global__ void marks(unsigned* out, unsigned limit) {
  if (blockIdx.x >= limit) { asm volatile("bar.warp.sync 1;"); return; }
  out[blockIdx.x] = 1;
})";
  EmulationRequest request = request_for(
      source, {EmulationArgument::unwritten(400), EmulationArgument::number("1000")}, 100, 1);
  request.schedules = 1;
  request.sampled_clusters = 10;
  request.wants_coverage = true;
  const EmulationReport report = emulate(request);
  EXPECT_EQ(report.outputs[0].unwritten_bytes, 4U * 90);
  ASSERT_FALSE(report.coverage.empty());
  const auto has_run = [&](std::uint32_t line) {
    return std::ranges::any_of(report.coverage, [line](const EmulatedLine& each) {
      return each.source_line == line && each.has_run;
    });
  };
  EXPECT_TRUE(has_run(4));
  EXPECT_TRUE(std::ranges::any_of(report.coverage, [](const EmulatedLine& each) {
    return each.source_line == 3 && !each.has_run;
  }));
}

TEST_F(Emulate, time_that_runs_out_is_told) {
  constexpr const char* source = R"(
__global__ void spins(volatile unsigned* flag) { while (*flag == 0) {} })";
  EmulationRequest request =
      request_for(source, {EmulationArgument::buffer(std::vector<std::byte>(4))}, 1, 1);
  request.timeout_s = 0.2;
  const auto began = std::chrono::steady_clock::now();
  const EmulationReport report = emulate(request);
  EXPECT_TRUE(report.timed_out);
  EXPECT_FALSE(report.passed());
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(60));
}

TEST_F(Emulate, each_refusal_names_what_is_wrong) {
  constexpr const char* source = R"(
__global__ void one(float* out, unsigned count, float factor, unsigned char small) {}
__global__ void two(float* out) {})";
  const auto refusal = [&](const char* entry, std::vector<EmulationArgument> arguments) {
    EmulationRequest request = request_for(source, std::move(arguments));
    request.entry = entry;
    return refusal_of([&] { emulate(request); });
  };
  const auto buffer = EmulationArgument::unwritten(4);
  const auto number = EmulationArgument::number;
  EXPECT_THAT(refusal("", {}), HasSubstr("one(float*"));
  EXPECT_THAT(refusal("three", {}), HasSubstr("'three'"));
  EXPECT_THAT(refusal("two", {}), HasSubstr("arguments of two(float*)"));
  EXPECT_THAT(refusal("one", {buffer, number("1.5"), number("1"), number("1")}),
              HasSubstr("argument 1"));
  EXPECT_THAT(refusal("one", {buffer, number("1"), number("x"), number("1")}),
              HasSubstr("argument 2"));
  EXPECT_THAT(refusal("one", {buffer, number("1"), number("1"), number("256")}),
              HasSubstr("argument 3"));
  EXPECT_THAT(refusal("one", {buffer, buffer, number("1"), number("1")}), HasSubstr("argument 1"));
  EXPECT_EQ(refusal("one", {buffer, number("0xff"), number("-1.5f"), number("255")}), "");
}

}  // namespace
}  // namespace gemmery::tests
