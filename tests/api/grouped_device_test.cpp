// SPDX-License-Identifier: Apache-2.0
// Grouped GEMM on emulated devices: sizes that change between the launches of one graph, clipped
// stores at the ends of groups, broken promises, and refusals by name.
#include <gemmery/gemmery.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "driver/graph.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery {
namespace {

using tests::error_of;

constexpr float nan = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t T = 90, G = 5, K = 24, N = 40;

// Rows of groups on a device. Elements of A are the row's index mod 7, those of B the group's index
// + 1.
struct Rows {
  OwnedStream own;
  Stream stream;
  Buffer a, b, out, ends;

  explicit Rows(Device device)
      : own(device),
        stream(own.get()),
        a(T * K * sizeof(float), stream),
        b(G * K * N * sizeof(float), stream),
        out(T * N * sizeof(float), stream),
        ends(G * sizeof(std::int32_t), stream) {
    std::vector<float> rows, weights;
    for (std::int64_t i = 0; i < T * K; ++i) rows.push_back(static_cast<float>(i / K % 7));
    for (std::int64_t i = 0; i < G * K * N; ++i)
      weights.push_back(static_cast<float>(i / (K * N) + 1));
    write(a, rows);
    write(b, weights);
    poison();
  }
  template <class Value>
  void write(const Buffer& to, const std::vector<Value>& values) const {
    copy(to.data(), stream.device(), values.data(), Device::cpu(), values.size() * sizeof(Value),
         stream);
    synchronize(stream);
  }
  void poison() const { write(out, std::vector<float>(T * N, nan)); }
  void put(const std::vector<std::int32_t>& sizes) const { write(ends, sizes); }

  Tensor of(const Buffer& memory, std::initializer_list<std::int64_t> shape) const {
    return Tensor(memory.data(), DType::float32, shape, stream.device());
  }
  // Products are of integers, which are exact in tf32.
  GemmArguments arguments(Math math, GroupOffsets offsets = {}) const {
    if (offsets.sizes.data == nullptr)
      offsets.sizes =
          GroupIndices(static_cast<const std::int32_t*>(ends.data()), G, stream.device());
    return GroupedGemmArguments(of(a, {T, K}), of(b, {G, K, N}), of(out, {T, N}), DType::float32,
                                offsets, {.math = math})
        .as_gemm();
  }
  // `is_zero`: rows outside of groups are 0; otherwise they are still poisoned.
  void expect(const std::vector<std::int32_t>& sizes, bool is_zero = false) const {
    std::vector<float> got(T * N);
    copy(got.data(), Device::cpu(), out.data(), stream.device(), got.size() * sizeof(float),
         stream);
    synchronize(stream);
    std::int64_t begin = 0;
    for (std::size_t group = 0; group < G; ++group)
      for (; begin < sizes[group]; ++begin)
        for (std::int64_t column = 0; column < N; ++column)
          ASSERT_EQ(got[static_cast<std::size_t>(begin * N + column)],
                    static_cast<float>(K * (begin % 7) * static_cast<std::int64_t>(group + 1)))
              << begin << ", " << column;
    for (; begin < T; ++begin)
      for (std::int64_t column = 0; column < N; ++column) {
        const float value = got[static_cast<std::size_t>(begin * N + column)];
        ASSERT_TRUE(is_zero ? value == 0 : std::isnan(value)) << begin << ", " << column;
      }
  }
};

const std::vector<std::vector<std::int32_t>> cases{{18, 36, 54, 72, 90},
                                                   {0, 0, 1, 1, 90},
                                                   {90, 90, 90, 90, 90},
                                                   {0, 0, 0, 0, 0},
                                                   {7, 8, 25, 25, 83}};

// simt multiplies float32 directly, sm80 and sm90 as tf32.
class GroupedEmulated : public tests::WithNvrtc, public testing::WithParamInterface<const char*> {
 protected:
  static constexpr Math maths[] = {Math::native, Math::tf32};
  const Device device_ = parse_device(GetParam()).value();
  const bool has_sm90_ = std::string_view(GetParam()) == "emulated:h200";
};

INSTANTIATE_TEST_SUITE_P(Devices, GroupedEmulated,
                         testing::Values("emulated:a100", "emulated:h200"),
                         [](const auto& device) { return std::string(device.param).substr(9); });

// The best and the second-best kernel of each family and schedule.
std::vector<Kernel> two_of_each(const GemmArguments& arguments) {
  std::map<std::string, int> seen;
  std::vector<Kernel> kernels;
  for (const Kernel& kernel : get_kernels(arguments)) {
    const std::string kind = std::string(kernel.family().name()) +
                             std::string(kernel.metadata().design_value("schedule"));
    if (kernel.operands().b.alignment == 16 && seen[kind]++ < 2) kernels.push_back(kernel);
  }
  return kernels;
}

// Sizes in host memory are known exactly, in any order of queries.
TEST_P(GroupedEmulated, predicted_times_depend_on_sizes_that_were_read) {
  if (!has_sm90_) return;
  constexpr std::int64_t rows = 8192, groups = 16, k = 512, n = 512;
  const OwnedStream own(device_);
  const Buffer a(rows * k * 2, own.get()), b(groups * k * n * 2, own.get()),
      out(rows * n * 2, own.get());
  const auto predicted_us = [&](std::int64_t size_of_first) {
    std::vector<std::int32_t> ends;
    for (std::int64_t group = 0; group < groups; ++group)
      ends.push_back(
          static_cast<std::int32_t>(size_of_first + group * (rows - size_of_first) / (groups - 1)));
    const GroupedGemmArguments arguments(
        Tensor(a.data(), DType::bfloat16, {rows, k}, device_),
        Tensor(b.data(), DType::bfloat16, {groups, k, n}, device_),
        Tensor(out.data(), DType::bfloat16, {rows, n}, device_), DType::float32,
        {.sizes = std::span<const std::int32_t>(ends), .read_now = true});
    for (const RankedKernel& kernel : get_kernels(arguments.as_gemm()))
      if (kernel.name().find("128x128x64_1x1") != std::string::npos) return kernel.predicted_us;
    ADD_FAILURE() << "no kernel of sm90";
    return 0.0;
  };
  // Equal groups have 64 tiles of rows; 15 groups of one row each and one of all others have 79.
  const double even_us = predicted_us(rows / groups);
  EXPECT_GT(predicted_us(rows - 15), even_us * 1.1);
  EXPECT_EQ(predicted_us(rows / groups), even_us);
}

// Launches one graph with different sizes, which are not known when it is captured.
void expect_right_in_one_graph(const Rows& rows, const GemmArguments& arguments,
                               bool zeros_outside) {
  const std::vector<Kernel> kernels = two_of_each(arguments);
  ASSERT_FALSE(kernels.empty());
  for (const Kernel& kernel : kernels) {
    SCOPED_TRACE(kernel.name());
    rows.put({-1, -1, -1, -1, -1});
    PreparedLaunch launch = kernel.compile(arguments).bind(arguments);
    driver::GraphCapture capture(rows.stream);
    launch.launch(rows.stream);
    const driver::Graph graph = capture.end();
    for (const auto& sizes : cases) {
      rows.poison();
      rows.put(sizes);
      graph.launch(rows.stream);
      rows.expect(sizes, zeros_outside);
    }
  }
}

// Row 30 of the acceptance list.
TEST_P(GroupedEmulated, row_30_sizes_change_between_launches_of_one_graph) {
  const Rows rows(device_);
  for (const Math math : maths) expect_right_in_one_graph(rows, rows.arguments(math), false);
}

TEST_P(GroupedEmulated, rows_outside_of_groups_become_zero_in_one_graph) {
  const Rows rows(device_);
  for (const Math math : maths)
    expect_right_in_one_graph(rows, rows.arguments(math, {.outside = OutsideGroups::zero}), true);
}

// A graph has the sizes that were in host memory when it was captured.
TEST_P(GroupedEmulated, tables_of_the_host_are_in_the_launch) {
  const Rows rows(device_);
  for (const auto& sizes : cases) {
    const GemmArguments arguments =
        rows.arguments(Math::tf32, {.sizes = std::span<const std::int32_t>(sizes)});
    const std::vector<Kernel> kernels = two_of_each(arguments);
    ASSERT_FALSE(kernels.empty());
    for (const Kernel& kernel : kernels) {
      SCOPED_TRACE(kernel.name());
      EXPECT_NE(kernel.name().find("_groups-host"), std::string::npos);
      PreparedLaunch launch = kernel.compile(arguments).bind(arguments);
      driver::GraphCapture capture(rows.stream);
      launch.launch(rows.stream);
      const driver::Graph graph = capture.end();
      rows.poison();
      graph.launch(rows.stream);
      rows.expect(sizes);
    }
  }
}

// Fills B with numbers whose sums depend on their order.
void draw_weights(const Rows& rows) {
  std::vector<float> numbers;
  std::minstd_rand random(17);
  for (std::int64_t i = 0; i < G * K * N; ++i)
    numbers.push_back(static_cast<float>(random()) / 1e9F);
  rows.write(rows.b, numbers);
}

std::vector<std::uint32_t> bits_of(const Rows& rows) {
  std::vector<std::uint32_t> bits(T * N);
  copy(bits.data(), Device::cpu(), rows.out.data(), rows.stream.device(), bits.size() * 4,
       rows.stream);
  synchronize(rows.stream);
  return bits;
}

// The three schedules differ in how a tile is found, not in its computation.
TEST_P(GroupedEmulated, every_schedule_gives_the_same_bits) {
  const Rows rows(device_);
  draw_weights(rows);
  const std::vector<std::int32_t>& sizes = cases.back();
  rows.put(sizes);
  const GemmArguments of_device = rows.arguments(Math::tf32);
  const GemmArguments of_host =
      rows.arguments(Math::tf32, {.sizes = std::span<const std::int32_t>(sizes)});
  std::vector<std::vector<std::uint32_t>> results;
  const auto kernels = get_kernels(of_host);  // the three schedules are those of sm80
  const auto of_sm80 = std::ranges::find_if(
      kernels, [](const Kernel& kernel) { return kernel.family().name() == "sm80"; });
  ASSERT_NE(of_sm80, kernels.end());
  const std::string name = of_sm80->name();
  const std::string tile = name.substr(0, name.rfind("_groups"));
  for (const char* const schedule : {"_groups", "_groups-persistent", "_groups-host"}) {
    const Kernel kernel = find_kernel(tile + schedule).value();
    rows.poison();
    const bool is_of_host = kernel.metadata().design_value("schedule") == "host";
    kernel.run(is_of_host ? of_host : of_device, {.stream = rows.stream});
    results.push_back(bits_of(rows));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

// Row 31: a row's bits do not depend on other groups.
TEST_P(GroupedEmulated, row_31_rows_keep_their_bits_beside_other_groups) {
  const Rows rows(device_);
  draw_weights(rows);
  for (const Math math : maths) {
    const GemmArguments arguments = rows.arguments(math);
    for (const Kernel& kernel : two_of_each(arguments)) {
      SCOPED_TRACE(kernel.name());
      std::vector<std::vector<std::uint32_t>> results;
      for (const std::vector<std::int32_t>& sizes :
           {std::vector<std::int32_t>{18, 36, 54, 72, 90}, {18, 18, 19, 83, 84}}) {
        rows.put(sizes);
        kernel.run(arguments, {.stream = rows.stream});
        results.push_back(bits_of(rows));
        results.back().resize(18 * N);
      }
      EXPECT_EQ(results[0], results[1]);
    }
  }
}

TEST_P(GroupedEmulated, few_blocks_stride_over_all_tiles) {
  const Rows rows(device_);
  for (const Math math : maths) {
    const GemmArguments arguments = rows.arguments(math);
    for (const Kernel& kernel : two_of_each(arguments)) {
      for (const auto& sizes : cases) {
        rows.poison();
        rows.put(sizes);
        kernel.run(arguments, {.stream = rows.stream, .max_multiprocessors = 2});
        rows.expect(sizes);
      }
    }
  }
}

// Row 15: rows of A, groups of B or rows of out more than 2^32 bytes apart. An emulated device
// allocates only memory that is accessed.
struct FarStrides {
  std::int64_t a_row, b_group, out_row;  // in elements
};

class FarRows {
 public:
  static constexpr std::int64_t rows = 5, groups = 3, k = 8, n = 8;

  FarRows(const FarStrides& strides, const Stream& stream)
      : strides_(strides),
        stream_(stream),
        a_(((rows - 1) * strides.a_row + k) * width, stream),
        b_(((groups - 1) * strides.b_group + k * n) * width, stream),
        out_(((rows - 1) * strides.out_row + n) * width, stream),
        ends_(groups * sizeof(std::int32_t), stream) {
    for (std::int64_t row = 0; row < rows; ++row) {
      put(a_, row * strides.a_row, std::vector<float>(k, static_cast<float>(row + 1)));
      put(out_, row * strides.out_row, std::vector<float>(n, nan));
    }
    for (std::int64_t group = 0; group < groups; ++group)
      put(b_, group * strides.b_group, std::vector<float>(k * n, static_cast<float>(group + 1)));
    const std::vector<std::int32_t> sizes{1, 2, rows};
    copy(ends_.data(), stream.device(), sizes.data(), Device::cpu(), sizes.size() * 4, stream);
    synchronize(stream);
  }
  GemmArguments arguments(Math math) const {
    const Device device = stream_.device();
    return GroupedGemmArguments(
               Tensor(a_.data(), DType::float32, {rows, k}, {strides_.a_row, 1}, device),
               Tensor(b_.data(), DType::float32, {groups, k, n}, {strides_.b_group, n, 1}, device),
               Tensor(out_.data(), DType::float32, {rows, n}, {strides_.out_row, 1}, device),
               DType::float32,
               {.sizes =
                    GroupIndices(static_cast<const std::int32_t*>(ends_.data()), groups, device)},
               {.math = math})
        .as_gemm();
  }
  // The last element of every row.
  void expect() const {
    for (std::int64_t row = 0; row < rows; ++row) {
      float got = 0;
      copy(&got, Device::cpu(), at(out_, row * strides_.out_row + n - 1), stream_.device(), width,
           stream_);
      synchronize(stream_);
      EXPECT_EQ(got, static_cast<float>(k * (row + 1) * std::min<std::int64_t>(row + 1, groups)));
    }
  }

 private:
  static constexpr std::size_t width = sizeof(float);
  static std::byte* at(const Buffer& memory, std::int64_t element) {
    return static_cast<std::byte*>(memory.data()) + element * static_cast<std::int64_t>(width);
  }
  void put(const Buffer& to, std::int64_t element, const std::vector<float>& values) const {
    copy(at(to, element), stream_.device(), values.data(), Device::cpu(), values.size() * width,
         stream_);
  }

  FarStrides strides_;
  Stream stream_;
  Buffer a_, b_, out_, ends_;
};

TEST_P(GroupedEmulated, row_15_elements_may_be_far_from_each_other) {
  constexpr std::int64_t far = std::int64_t{1} << 30;
  const OwnedStream own(device_);
  for (const FarStrides& strides :
       {FarStrides{far, 64, 8}, FarStrides{8, 2 * far, 8}, FarStrides{8, 64, far}}) {
    const FarRows rows(strides, own.get());
    for (const Math math : maths)
      for (const Kernel& kernel : two_of_each(rows.arguments(math))) {
        SCOPED_TRACE(kernel.name());
        kernel.run(rows.arguments(math), {.stream = own.get()});
        rows.expect();
      }
  }
}

// Rows 3, 14 and 17: more groups than lanes of a warp or threads of a block; operands of an
// epilogue that vary with the group, with rows of all groups, or with neither.
TEST_P(GroupedEmulated, rows_03_14_and_17_by_every_schedule) {
  // If a group may begin within 16 bytes, sm90 supports no epilogue with operands along its
  // columns.
  const auto check = [&](const std::string& text, bool is_for_sm90 = true) {
    SCOPED_TRACE(text);
    const ProblemLine line = parse_problem(text);
    std::set<std::string> seen;
    for (const Kernel& kernel : get_kernels(line.problem, device_info(device_))) {
      const std::string schedule = std::string(kernel.family().name()) +
                                   std::string(kernel.metadata().design_value("schedule"));
      if (kernel.family().name() == "simt" || !seen.insert(schedule).second) continue;
      const VerifyReport report = verify(line, kernel, {.device = device_});
      EXPECT_TRUE(report.passed) << kernel.name() << ": " << report.first_failure;
    }
    const bool is_on_host = text.find("/host") != std::string::npos;
    EXPECT_EQ(seen.size(), (is_on_host ? 1U : 2U) + (has_sm90_ && is_for_sm90 ? 1U : 0U));
  };
  check("grouped_gemm 514x72x40 groups=257 a=bf16");
  check("grouped_gemm 1500x16x16 groups=1025 ends=i64 a=bf16");
  for (const char* const ends : {" ends=i32", " ends=i64/host"}) {
    check("grouped_gemm 139x64x72 groups=3" + std::string(ends) +
          " a=bf16 epilogue=\"D = silu(accum + bias) * scale\" bias=f32[l,n] scale=f32[l,1]");
    check("grouped_gemm 64x139x72 groups=5 ragged=n" + std::string(ends) +
              " a=bf16 epilogue=\"D = gelu(accum + bias) * w; E = accum\" bias=bf16[l,m] w=f32[n] "
              "E=f32",
          false);
  }
  check(
      "grouped_gemm 139x64x72 groups=3 a=bf16 out=bf16:c epilogue=\"D = gelu(accum + bias) + "
      "rows\" "
      "bias=bf16[l,n] rows=f32[m]",
      false);
  check(
      "grouped_gemm 64x144x72 groups=5 ragged=n ends=i32/align=16 a=bf16 epilogue=\"D = gelu(accum "
      "+ "
      "bias) * w; E = accum\" bias=bf16[l,m] w=f32[n] E=f32");
  check("grouped_gemm 64x40x172 groups=5 ragged=k ends=i32/align=8 a=bf16:c out=f32 c=f32 beta=1");
}

// The emulator detects accesses to other memory.
TEST_P(GroupedEmulated, sizes_that_make_no_sense_reach_no_other_memory) {
  const Rows rows(device_);
  for (const Math math : maths) {
    const GemmArguments arguments = rows.arguments(math);
    const Kernel kernel = get_kernels(arguments).front();
    rows.put({-5, 1 << 30, 2000000000, 2000000000, 2000000000});
    kernel.run(arguments, {.stream = rows.stream});
    rows.expect({0, T, T, T, T});
  }
}

// On a GPU indices out of range are treated like -1.
TEST_P(GroupedEmulated, indices_out_of_range_are_read_as_zeros_and_go_nowhere) {
  const Rows rows(device_);
  std::vector<std::int64_t> read(T, 3), written(T);
  for (std::size_t row = 0; row < T; ++row) written[row] = static_cast<std::int64_t>(T - 1 - row);
  read[1] = T;
  read[2] = std::int64_t{1} << 40;
  read[4] = -7;
  written[5] = T;
  written[6] = std::int64_t{1} << 33;
  written[7] = -5;
  const Buffer gather(T * sizeof(std::int64_t), rows.stream);
  const Buffer scatter(T * sizeof(std::int64_t), rows.stream);
  rows.write(gather, read);
  rows.write(scatter, written);
  rows.put({T, T, T, T, T});
  const auto indices = [&](const Buffer& memory) {
    return GroupIndices(static_cast<const std::int64_t*>(memory.data()), T, rows.stream.device());
  };
  const GemmArguments arguments =
      rows.arguments(Math::native, {.gather = indices(gather), .scatter = indices(scatter)});
  for (const Kernel& kernel : get_kernels(arguments)) {
    if (kernel.operands().b.alignment != 16) continue;  // one of each tile
    SCOPED_TRACE(kernel.name());
    rows.poison();
    kernel.run(arguments, {.stream = rows.stream});
    std::vector<float> got(T * N);
    copy(got.data(), Device::cpu(), rows.out.data(), rows.stream.device(),
         got.size() * sizeof(float), rows.stream);
    synchronize(rows.stream);
    for (std::size_t row = 0; row < T; ++row) {
      const float value = got[(T - 1 - row) * N];
      if (row >= 5 && row <= 7) {
        EXPECT_TRUE(std::isnan(value)) << row;
      } else {
        EXPECT_EQ(value, row == 1 || row == 2 || row == 4 ? 0 : 3 * K) << row;
      }
    }
  }
}

// Sizes of groups, indices and operands are random for each kernel.
TEST_P(GroupedEmulated, programs_are_of_the_rows_that_indices_name) {
  for (
      const char* const line :
      {"grouped_gemm 70x24x33 groups=3 counts=i64/align=8 gather=i32/of=50 scatter=i32/of=90 a=f16 "
       "epilogue=\"D = w * (accum + bias)\" w=f32[m] bias=f16[l,n]",
       "grouped_gemm 26x75x33 groups=3 ragged=n gather=i64/of=50/divide=2 scatter=i32/of=90 a=bf16 "
       "b=bf16:c out=bf16:c epilogue=\"D = w * accum + x; y = relu(accum)\" w=f32[n] x=f16 y=f32:c",
       "grouped_gemm 70x24x33 groups=5 gather=i32/of=90 a=f64 "
       "epilogue=\"D = w * accum + C; y = accum\" w=f64[l,1] C=f64 y=f32",
       "grouped_gemm 70x24x33 groups=5 scatter=i32/of=90 a=s8 out=s32 c=s32 beta=1"}) {
    const ProblemLine problem = parse_problem(line);
    const auto kernels = get_kernels(problem.problem, device_info(device_));
    ASSERT_FALSE(kernels.empty()) << line;
    for (std::size_t i = 0; i < std::min<std::size_t>(kernels.size(), 3); ++i) {
      const Kernel& kernel = kernels[i * (kernels.size() - 1) / 2];
      const VerifyReport report = verify(problem, kernel, {.device = device_});
      EXPECT_TRUE(report.passed) << kernel.name() << ": " << report.first_failure;
    }
  }
}

// DeepGEMM's contiguous layout: aligned labels in any order, with padding after each group.
TEST_P(GroupedEmulated, tiles_take_the_label_of_their_first_row) {
  for (const char* const line :
       {"grouped_gemm 520x40x33 groups=4 labels=i32/align=64 a=f32",
        "grouped_gemm 40x520x33 groups=7 ragged=n labels=i64/align=128 a=bf16 out=f32 c=f32 beta=1",
        "grouped_gemm 300x40x33 groups=3 labels=i32/align=32 gather=i32/of=70 scatter=i64/of=500 "
        "a=f16 epilogue=\"D = relu(accum + bias)\" bias=f16[l,n]"}) {
    const ProblemLine problem = parse_problem(line);
    const auto kernels = get_kernels(problem.problem, device_info(device_));
    ASSERT_FALSE(kernels.empty()) << line;
    for (std::size_t i = 0; i < std::min<std::size_t>(kernels.size(), 3); ++i) {
      const Kernel& kernel = kernels[i * (kernels.size() - 1) / 2];
      const VerifyReport report = verify(problem, kernel, {.device = device_});
      EXPECT_TRUE(report.passed) << kernel.name() << ": " << report.first_failure;
    }
  }
}

// Row 12: groups overlap, so two blocks write one row.
TEST_P(GroupedEmulated, row_12_decreasing_ends_are_a_race_there) {
  const Rows rows(device_);
  const GemmArguments arguments = rows.arguments(Math::native);
  const Kernel kernel = get_kernels(arguments).front();
  rows.put({90, 0, 90, 90, 90});
  const Error error = error_of([&] {
    kernel.run(arguments, {.stream = rows.stream});
    synchronize(rows.stream);
  });
  EXPECT_NE(std::string(error.what()).find("race"), std::string::npos) << error.what();
}

TEST_P(GroupedEmulated, what_is_not_served_is_refused_by_name) {
  const DeviceInfo a100 = *find_device_info("a100");
  const auto of_line = [&](const char* line) {
    const Explanation explanation = explain(parse_problem(line).problem, a100);
    return std::ranges::find(explanation.reasons, "simt", &Reason::family)->failed;
  };
  EXPECT_EQ(of_line("grouped_gemm 64x64x64 groups=0 outside=zero a=f32"),
            "groups: expected at least one with zeros outside of groups, got none");
  EXPECT_EQ(of_line("grouped_gemm 64x64x64 groups=4 outside=zero a=f32 epilogue=\"D = accum; E = "
                    "D * 2\" E=f32"),
            "groups: expected an epilogue whose only result is out with zeros outside of groups, "
            "got further results");
  EXPECT_EQ(of_line("grouped_gemm 64x64x64 groups=4 labels=i32/align=8 a=f32"),
            "labels: expected ones that change at multiples of 16 (alignment of groups), got 8");
  EXPECT_NE(
      of_line("grouped_gemm 64x64x64 groups=4 labels=i32/host/align=64 a=f32").find("on the host"),
      std::string::npos);
  EXPECT_NE(of_line("grouped_gemm 64x64x64 groups=400 ends=i32/host a=f32").find("at most 320"),
            std::string::npos);
  EXPECT_NE(of_line("grouped_gemm 64x64x64 groups=4 ends=i32/host gather=i32 a=f32")
                .find("a gather by indices"),
            std::string::npos);
  EXPECT_EQ(of_line("grouped_gemm 64x64x64 groups=4 scatter=i32 a=f32 epilogue=\"D = accum; s = "
                    "sum(D)\" s=f32[l,n]"),
            "");
  EXPECT_NE(of_line("grouped_gemm 64x64x64 groups=1 labels=i32/align=64 a=f32 epilogue=\"D = "
                    "accum; s = sum(D)\" s=f32[n]")
                .find("with labels"),
            std::string::npos);
}

TEST(GroupedKernels, are_of_grouped_problems_only_and_have_names_that_read_back) {
  const DeviceInfo h200 = *find_device_info("h200");
  const GemmProblem grouped = parse_problem("grouped_gemm 96x64x64 groups=4 a=bf16").problem;
  const GemmProblem plain = parse_problem("gemm 96x64x64 a=bf16").problem;
  const auto of_simt = [](const RankedKernel& kernel) { return kernel.family().name() == "simt"; };
  const auto of_all = get_kernels(grouped, h200);
  const Kernel of_groups = *std::ranges::find_if(of_all, of_simt);
  EXPECT_EQ(find_kernel(of_groups.name()), of_groups);
  EXPECT_NE(of_groups.name().find("_groups"), std::string::npos);
  EXPECT_EQ(of_groups.supports(plain, h200).error(),
            "groups: expected a grouped problem, got one GEMM");
  const GemmProblem gathered =
      parse_problem("grouped_gemm 96x64x64 groups=4 gather=i32/of=50 a=bf16").problem;
  const auto of_gathered = get_kernels(gathered, h200);
  const Kernel of_rows = *std::ranges::find_if(of_gathered, of_simt);
  EXPECT_EQ(find_kernel(of_rows.name()), of_rows);
  EXPECT_TRUE(of_rows.name().ends_with("_groups-rows"));
  EXPECT_EQ(of_groups.supports(gathered, h200).error(),
            "groups: expected elements in their groups' order, got rows by index");
  EXPECT_EQ(of_rows.supports(grouped, h200).error(),
            "groups: expected rows by index, got elements in their groups' order");
  const auto kernels = get_kernels(plain, h200);
  const auto simt = std::ranges::find_if(
      kernels, [](const Kernel& kernel) { return kernel.family().name() == "simt"; });
  ASSERT_NE(simt, kernels.end());
  EXPECT_EQ(simt->supports(grouped, h200).error(),
            "groups: expected one GEMM, got a grouped problem");
}

// A column-major A is read in wide accesses only if groups are promised to start at multiples of
// them.
TEST(GroupedKernels, wide_accesses_along_the_extent_that_differs_need_a_promise) {
  const DeviceInfo h200 = *find_device_info("h200");
  const auto widest = [&](const char* line) {
    int bytes = 0;
    for (const RankedKernel& kernel : get_kernels(parse_problem(line).problem, h200))
      bytes = std::max<int>(bytes, kernel.operands().a.alignment);
    return bytes;
  };
  EXPECT_EQ(widest("grouped_gemm 96x64x64 groups=4 a=bf16:c"), 2);
  EXPECT_EQ(widest("grouped_gemm 96x64x64 groups=4 ends=i32/align=8 a=bf16:c"), 16);
  EXPECT_EQ(widest("grouped_gemm 96x64x64 groups=4 a=bf16"), 16);
}

}  // namespace
}  // namespace gemmery
