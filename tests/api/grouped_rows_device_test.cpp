// SPDX-License-Identifier: Apache-2.0
// Rows of the acceptance list of grouped GEMM (docs/grouped-rows.md) on the CPU and on emulated
// devices, for each family with grouped kernels. Extents of models are smaller than in the list;
// numbers of groups and their relative sizes are the list's.
#include <gemmery/gemmery.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <ostream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "driver/graph.hpp"
#include "tests/api/group_trial.hpp"
#include "tests/support/random_seed.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery {
namespace {

using tests::GroupCase;
using tests::GroupTrialResult;
using tests::SizesIn;

struct Place {
  const char* device;
  const char* family;

  friend void PrintTo(const Place& place, std::ostream* stream) {
    *stream << place.family << " on " << place.device;
  }
};

std::string name_of_place(const testing::TestParamInfo<Place>& place) {
  const std::string device = place.param.device;
  return device.substr(device.find(':') + 1) + "_" + place.param.family;
}

class GroupedRowsOf : public tests::WithNvrtc, public testing::WithParamInterface<Place> {
 protected:
  void SetUp() override {
    if (is_on("gpu") && devices().empty()) GTEST_SKIP() << "no GPU on this machine";
    if (!is_on("cpu")) WithNvrtc::SetUp();
  }
  static bool is_on(std::string_view device) { return device == GetParam().device; }
  static Device device() {
    return is_on("gpu") ? devices().front() : parse_device(GetParam().device).value();
  }

  static constexpr DType halves[] = {DType::float16, DType::bfloat16};

  // Runs every schedule, with sizes on the device and in host memory.
  void expect_right(const GroupCase& groups) const {
    // If there are no elements, most families leave the problem to simt.
    if (groups.counts.empty()) return expect_right_or_refused(groups);
    SCOPED_TRACE(to_string(groups));
    for (const SizesIn sizes : {SizesIn::device_memory, SizesIn::host_memory}) {
      if (sizes == SizesIn::host_memory && groups.counts.size() > 320) continue;
      const GroupTrialResult result = try_on(groups, sizes);
      if (leaves_to_sm80(result)) continue;
      EXPECT_GT(result.kernels, 0) << result.refusal;
      EXPECT_EQ(result.failure, "");
    }
  }
  // If the family lacks the type, the form or the alignment, its reason must say so.
  void expect_right_or_refused(const GroupCase& groups) const {
    SCOPED_TRACE(to_string(groups));
    const GroupTrialResult result = try_on(groups, SizesIn::device_memory);
    EXPECT_EQ(result.failure, "");
    EXPECT_TRUE(result.kernels > 0 || !result.refusal.empty()) << "no kernel, and no reason";
  }
  // Sizes and indices are random: some rows are read twice, some indices are -1.
  void expect_verified_or_refused(const std::string& text) const {
    SCOPED_TRACE(text);
    const ProblemLine line = parse_problem(text);
    for (const Kernel& kernel : get_kernels(line.problem, device_info(device())))
      if (kernel.family().name() == GetParam().family) {
        const VerifyReport report = verify(line, kernel, {.device = device()});
        EXPECT_TRUE(report.passed) << kernel.name() << ": " << report.first_failure;
        return;
      }
    EXPECT_NE(reason_of(explain(line.problem, device_info(device()))), "");
  }
  // The family's reason for having no kernel; empty if there is none.
  static std::string reason_of(const Explanation& explanation) {
    for (const Reason& reason : explanation.reasons)
      if (reason.family == GetParam().family && !reason.failed.empty()) return reason.failed;
    return {};
  }

 private:
  // Whether the family refuses because TMA cannot copy from addresses within 16 bytes.
  static bool leaves_to_sm80(const GroupTrialResult& result) {
    return std::string_view(GetParam().family) == "sm90" && result.kernels == 0 &&
           result.refusal.find("multiples of 16 bytes") != std::string::npos;
  }
  static GroupTrialResult try_on(const GroupCase& groups, SizesIn sizes) {
    return try_groups(groups, GetParam().family, device(), sizes);
  }
};

// --- rows of all groups in one tensor -----------------------------------------------------------

TEST_P(GroupedRowsOf, row_01_no_groups) { expect_right({.counts = {}, .n = 8, .k = 8}); }

TEST_P(GroupedRowsOf, row_02_empty_groups_and_single_rows) {
  for (const DType dtype : halves)
    for (const std::vector<std::int32_t>& counts :
         {std::vector<std::int32_t>{0, 0, 0}, {1}, {5, 0}})
      expect_right({.counts = counts, .n = 64, .k = 64, .dtype = dtype});
}

TEST_P(GroupedRowsOf, row_03_257_groups_of_one_row) {
  expect_right({.counts = std::vector<std::int32_t>(257, 1), .n = 72, .k = 136});
}

const std::vector<std::int32_t> of_every_kind{0, 7, 1, 13, 0, 11};

TEST_P(GroupedRowsOf, row_04_groups_of_every_kind) {
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32})
    for (const bool is_column_major : {false, true})
      expect_right({.counts = of_every_kind,
                    .n = 48,
                    .k = 64,
                    .dtype = dtype,
                    .b = {.is_column_major = is_column_major}});
}

TEST_P(GroupedRowsOf, row_05_groups_about_a_tile) {
  expect_right({.counts = {128, 130, 65}, .n = 256, .k = 128});
}

TEST_P(GroupedRowsOf, row_06_groups_of_about_equal_size) {
  expect_right({.counts = {166, 90, 141, 115}, .n = 96, .k = 112});
}

TEST_P(GroupedRowsOf, row_07_skewed_groups) {
  expect_right({.counts = {14, 28, 43, 57, 71, 85, 100, 114}, .n = 112, .k = 64});
}

TEST_P(GroupedRowsOf, row_08_one_of_64_holds_all) {
  std::vector<std::int32_t> counts(64, 0);
  counts[37] = 130;
  expect_right({.counts = counts, .n = 32, .k = 112});
}

TEST_P(GroupedRowsOf, row_09_rows_behind_the_last_end_stay_as_they_are) {
  for (const std::int64_t tail : {0, 9}) {
    expect_right({.counts = {3, 4}, .n = 64, .k = 64, .tail = tail});
    expect_right({.counts = {3, 4}, .n = 64, .k = 64, .tail = tail, .out_dtype = DType::bfloat16});
  }
}

TEST_P(GroupedRowsOf, row_10_odd_extents_and_strides) {
  expect_right({.counts = {3, 5},
                .n = 63,
                .k = 65,
                .a = {.padding = 2},
                .b = {.padding = 4},
                .out = {.padding = 2}});
  for (const std::int32_t m : {36, 819})  // of users' reports
    expect_right({.counts = {m, 1}, .n = 37, .k = 19});
}

TEST_P(GroupedRowsOf, row_11_memory_of_any_alignment) {
  const tests::Placement shifted{.offset_bytes = 2};
  expect_right_or_refused({.counts = {16, 16},
                           .n = 64,
                           .k = 64,
                           .a = shifted,
                           .b = shifted,
                           .out = {.offset_bytes = 4}});
}

TEST_P(GroupedRowsOf, row_13_prefix_counts_and_wide_sizes) {
  for (const GroupSizes form : {GroupSizes::ends, GroupSizes::prefix, GroupSizes::counts})
    for (const int bits : {32, 64})
      expect_right(
          {.counts = of_every_kind, .n = 48, .k = 64, .tail = 3, .form = form, .bits = bits});
}

TEST_P(GroupedRowsOf, row_14_1025_groups) {
  std::vector<std::int32_t> counts;
  for (std::int32_t group = 0; group < 1025; ++group) counts.push_back(group * 7 % 9 / 3);
  expect_right({.counts = counts, .n = 16, .k = 16});
}

TEST_P(GroupedRowsOf, row_16_no_products_give_the_epilogue_of_zero) {
  expect_right({.counts = {3, 0, 7}, .n = 40, .k = 0, .tail = 2});
  expect_right({.counts = {3, 0, 7}, .n = 40, .k = 0, .has_program = true});
}

TEST_P(GroupedRowsOf, row_17_operands_per_group_and_per_row) {
  expect_right({.counts = {0, 9, 130}, .n = 64, .k = 72, .has_program = true});
}

// --- columns, depth, stacks ---------------------------------------------------------------------

TEST_P(GroupedRowsOf, row_18_only_the_columns_of_groups_are_written) {
  for (const std::vector<std::int32_t>& counts :
       {std::vector<std::int32_t>{8, 0, 24, 16}, {1, 2, 3}})
    for (const bool is_column_major : {false, true})
      expect_right({.counts = counts,
                    .ragged = Ragged::n,
                    .m = 33,
                    .k = 64,
                    .tail = 5,
                    .b = {.is_column_major = is_column_major}});
}

TEST_P(GroupedRowsOf, row_19_groups_without_depth_give_beta_c) {
  for (const double beta : {0.0, 1.0})
    for (const std::vector<std::int32_t>& counts :
         {std::vector<std::int32_t>{128, 0, 256}, {0, 0, 0}})
      expect_right({.counts = counts, .ragged = Ragged::k, .m = 128, .n = 192, .beta = beta});
  // The sizes of a real gradient, and groups with K = 0 between others.
  for (const std::vector<std::int32_t>& counts :
       {std::vector<std::int32_t>{162, 0, 2577, 446, 0, 83}, {0, 256, 0, 128}})
    expect_right({.counts = counts, .ragged = Ragged::k, .m = 16, .n = 24});
}

TEST_P(GroupedRowsOf, row_20_depths_of_any_number) {
  std::vector<std::int32_t> every_depth;
  for (std::int32_t depth = 1; depth <= 33; ++depth) every_depth.push_back(depth);
  for (const bool is_k_major : {false, true}) {
    GroupCase groups{.counts = {1, 17, 44, 0},
                     .ragged = Ragged::k,
                     .m = 40,
                     .n = 72,
                     .a = {.is_column_major = !is_k_major},
                     .b = {.is_column_major = is_k_major}};
    expect_right(groups);
    groups.dtype = DType::float8_e4m3fn;
    expect_right_or_refused(groups);
    groups.counts = every_depth;
    expect_right_or_refused(groups);
  }
}

TEST_P(GroupedRowsOf, row_21_accumulates_in_place) {
  expect_right({.counts = {64, 80, 48, 96, 112, 33, 79, 0},
                .ragged = Ragged::k,
                .m = 64,
                .n = 112,
                .beta = 1});
}

TEST_P(GroupedRowsOf, row_22_masked_rows) {
  for (const DType dtype : {DType::bfloat16, DType::float8_e4m3fn})
    for (const std::int32_t most : {1, 8, 16, 32, 64, 192}) {
      const GroupCase groups{.counts = {0, 1, most},
                             .m = most,
                             .n = 128,
                             .k = 256,
                             .form = GroupSizes::masked,
                             .dtype = dtype};
      if (dtype == DType::bfloat16)
        expect_right(groups);
      else
        expect_right_or_refused(groups);
    }
}

TEST_P(GroupedRowsOf, row_23_masked_groups_of_about_20_rows) {
  std::vector<std::int32_t> counts;
  for (std::int32_t group = 0; group < 32; ++group) counts.push_back(16 + group * 5 % 9);
  GroupCase groups{.counts = counts, .m = 64, .n = 112, .k = 48, .form = GroupSizes::masked};
  expect_right(groups);
  groups.dtype = DType::float8_e4m3fn;
  expect_right_or_refused(groups);
}

TEST_P(GroupedRowsOf, row_24_a_wrong_expectation_changes_no_result) {
  for (const std::int64_t expected : {1, 5000})
    expect_right({.counts = {50, 3, 0},
                  .m = 64,
                  .n = 64,
                  .k = 64,
                  .form = GroupSizes::masked,
                  .expected = expected});
}

// DeepGEMM's contiguous layout: groups begin at multiples of the alignment, padding has the label
// -1. Labels that change within a tile are refused.
TEST_P(GroupedRowsOf, row_25_labels) {
  GroupCase groups{.counts = {1, 0, 130, 128, 65},
                   .n = 64,
                   .k = 64,
                   .form = GroupSizes::labels,
                   .alignment = 128};
  expect_right_or_refused(groups);
  groups.alignment = 8;
  expect_right_or_refused(groups);
  groups = {.counts = {0},
            .n = 64,
            .k = 64,
            .tail = 128,
            .form = GroupSizes::labels,
            .alignment = 128};  // nothing but padding
  expect_right_or_refused(groups);
}

// --- lists --------------------------------------------------------------------------------------

// A matrix of bfloat16 or float32 on a device, with NaN in the padding after each row.
class MatrixOnDevice {
 public:
  MatrixOnDevice(std::int64_t rows, std::int64_t columns, DType dtype, std::int64_t padding,
                 Stream stream)
      : rows_(rows), columns_(columns), line_(columns + padding), dtype_(dtype), stream_(stream) {
    numbers_.assign(static_cast<std::size_t>(std::max<std::int64_t>(rows * line_, 1)),
                    std::numeric_limits<float>::quiet_NaN());
  }
  // Numbers from -1 to 1.
  MatrixOnDevice& fill(unsigned seed) {
    for (std::int64_t row = 0; row < rows_; ++row)
      for (std::int64_t column = 0; column < columns_; ++column)
        at(row, column) = static_cast<float>((seed + 3 * row + 5 * column * column) % 3) - 1;
    return *this;
  }
  float& at(std::int64_t row, std::int64_t column) {
    return numbers_[static_cast<std::size_t>(row * line_ + column)];
  }

  Tensor put() {
    std::vector<std::uint16_t> upper;
    for (const float number : numbers_)
      upper.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number) >> 16));
    const bool is_wide = dtype_ == DType::float32;
    const void* const source = is_wide ? static_cast<const void*>(numbers_.data()) : upper.data();
    const std::size_t bytes = numbers_.size() * byte_width(dtype_);
    memory_ = Buffer(bytes, stream_);
    copy(memory_.data(), stream_.device(), source, Device::cpu(), bytes, stream_);
    synchronize(stream_);
    return Tensor(memory_.data(), dtype_, {rows_, columns_}, {line_, 1}, stream_.device());
  }
  void fetch() {
    copy(numbers_.data(), Device::cpu(), memory_.data(), stream_.device(),
         numbers_.size() * sizeof(float), stream_);
    synchronize(stream_);
  }

 private:
  std::int64_t rows_, columns_, line_;
  DType dtype_;
  Stream stream_;
  std::vector<float> numbers_;
  Buffer memory_;
};

struct ListedExtents {
  std::int64_t m, n, k;
};

// Leading dimensions of A and B: odd ones, packed, or multiples of 16 bytes, as TMA requires.
enum class Lines : std::uint8_t { odd, packed, whole_units };

// alpha is 1, 2, ... and beta 0.5 if there is a C. Each matrix has a different leading dimension,
// or all problems share A and B.
class ListOnDevice {
 public:
  ListOnDevice(const std::vector<ListedExtents>& extents, bool has_c, bool are_shared,
               Stream stream, Lines lines = Lines::odd)
      : extents_(extents), has_c_(has_c), are_shared_(are_shared) {
    const auto rest = [&](std::int64_t columns, std::int64_t odd) {
      if (lines == Lines::packed) return std::int64_t{0};
      return lines == Lines::odd ? odd : (8 - columns % 8) % 8;
    };
    for (std::size_t i = 0; i < extents.size(); ++i) {
      const auto& [m, n, k] = extents[i];
      const auto padding =
          static_cast<std::int64_t>(are_shared || lines == Lines::packed ? 0 : 8 * (i % 3));
      if (i == 0 || !are_shared) {
        a_.emplace_back(m, k, DType::bfloat16, padding + rest(k, 0), stream).fill(1);
        b_.emplace_back(k, n, DType::bfloat16, padding + rest(n, 3), stream).fill(2);
      }
      if (has_c) c_.emplace_back(m, n, DType::float32, padding, stream).fill(0);
      out_.emplace_back(m, n, DType::float32, 1 + padding, stream);
    }
    for (std::size_t i = 0; i < extents.size(); ++i) {
      GemmOptions options{.alpha = static_cast<double>(i + 1)};
      if (has_c) {
        options.c = c_[i].put();
        options.beta = 0.5;
      }
      if (!are_shared || i == 0) {
        a_tensors_.push_back(a_[i].put());
        b_tensors_.push_back(b_[i].put());
      }
      problems_.push_back(
          {a_tensors_[are_shared ? 0 : i], b_tensors_[are_shared ? 0 : i], out_[i].put(), options});
    }
  }

  GroupedGemmArguments arguments() const { return {problems_, DType::float32}; }

  void expect_right() {
    for (std::size_t i = 0; i < extents_.size(); ++i) {
      const auto& [m, n, k] = extents_[i];
      out_[i].fetch();
      MatrixOnDevice& a = a_[are_shared_ ? 0 : i];
      MatrixOnDevice& b = b_[are_shared_ ? 0 : i];
      for (std::int64_t row = 0; row < m; ++row) {
        for (std::int64_t column = 0; column < n; ++column) {
          float sum = 0;
          for (std::int64_t depth = 0; depth < k; ++depth)
            sum += a.at(row, depth) * b.at(depth, column);
          const float addend = has_c_ ? 0.5F * c_[i].at(row, column) : 0;
          ASSERT_EQ(out_[i].at(row, column), static_cast<float>(i + 1) * sum + addend)
              << "problem " << i << ", " << row << ", " << column;
        }
        ASSERT_TRUE(std::isnan(out_[i].at(row, n))) << "behind row " << row << " of problem " << i;
      }
    }
  }

 private:
  std::vector<ListedExtents> extents_;
  bool has_c_;
  bool are_shared_;
  std::vector<MatrixOnDevice> a_, b_, c_, out_;
  std::vector<Tensor> a_tensors_, b_tensors_;
  std::vector<GroupedProblem> problems_;
};

class GroupedListsOf : public GroupedRowsOf {
 protected:
  void expect_right(const std::vector<ListedExtents>& extents, bool has_c,
                    bool are_shared = false) const {
    const OwnedStream own(device());
    const ListOnDevice list(extents, has_c, are_shared, own.get(), lines());
    const GroupedGemmArguments arguments = list.arguments();
    int count = 0;
    for (const Kernel& kernel : get_kernels(arguments)) {
      if (kernel.family().name() != GetParam().family || ++count > 3) continue;
      SCOPED_TRACE(kernel.name());
      ListOnDevice fresh(extents, has_c, are_shared, own.get(), lines());
      kernel.run(fresh.arguments(), {.stream = own.get()});
      fresh.expect_right();
    }
    EXPECT_GT(count, 0) << reason_of(explain(arguments));
  }
  static bool is_by_tma() { return std::string_view(GetParam().family) == "sm90"; }
  static Lines lines() { return is_by_tma() ? Lines::whole_units : Lines::odd; }
};

TEST_P(GroupedListsOf, row_26_every_problem_has_its_extents_strides_and_scalars) {
  const std::vector<ListedExtents> extents{{256, 512, 128}, {1, 1, 1},     {0, 5, 7},
                                           {33, 65, 0},     {130, 24, 70}, {16, 16, 48}};
  for (const bool has_c : {false, true}) expect_right(extents, has_c);
}

// Packed matrices of one row or column have both layouts, with lines one element apart.
TEST_P(GroupedListsOf, lines_of_one_element_promise_no_alignment) {
  const std::vector<ListedExtents> lists[] = {{{4, 4, 1}, {3, 1, 8}},
                                              {{4, 1, 3}, {1, 8, 3}},
                                              {{9, 0, 33}, {2, 17, 1}},
                                              {{3, 0, 3}, {4, 0, 1}, {2, 3, 1}}};
  for (const std::vector<ListedExtents>& extents : lists) {
    const OwnedStream own(device());
    const ListOnDevice list(extents, false, false, own.get(), Lines::packed);
    const GroupedGemmArguments arguments = list.arguments();
    int count = 0;
    for (const Kernel& kernel : get_kernels(arguments)) {
      if (kernel.family().name() != GetParam().family || ++count > 2) continue;
      SCOPED_TRACE(kernel.name());
      ListOnDevice fresh(extents, false, false, own.get(), Lines::packed);
      kernel.run(fresh.arguments(), {.stream = own.get()});
      fresh.expect_right();
    }
    if (is_by_tma()) {
      EXPECT_NE(reason_of(explain(arguments)).find("multiples of 16 bytes"), std::string::npos);
    } else {
      EXPECT_GT(count, 0);
    }
  }
}

// The graph contains the list, so it may outlive the arguments.
TEST_P(GroupedListsOf, are_captured_in_a_graph) {
  const OwnedStream own(device());
  const std::vector<ListedExtents> extents{{33, 65, 20}, {0, 5, 7}, {130, 24, 70}};
  ListOnDevice list(extents, true, false, own.get(), lines());
  std::optional<driver::Graph> graph;
  {
    const GroupedGemmArguments arguments = list.arguments();
    const auto kernels = get_kernels(arguments);
    const auto kernel = std::ranges::find(kernels, GetParam().family,
                                          [](const Kernel& one) { return one.family().name(); });
    ASSERT_NE(kernel, kernels.end());
    PreparedLaunch launch = kernel->compile(arguments).bind(arguments);
    driver::GraphCapture capture(own.get());
    launch.launch(own.get());
    graph.emplace(capture.end());
  }
  graph->launch(own.get());
  list.expect_right();
}

TEST_P(GroupedListsOf, row_27_problems_may_share_operands) {
  expect_right(std::vector<ListedExtents>(64, {9, 7, 8}), false, true);
}

INSTANTIATE_TEST_SUITE_P(Families, GroupedListsOf,
                         testing::Values(Place{"emulated:a100", "simt"},
                                         Place{"emulated:a100", "sm80"},
                                         Place{"emulated:h200", "sm90"}, Place{"gpu", "simt"},
                                         Place{"gpu", "sm80"}, Place{"gpu", "sm90"}),
                         name_of_place);

TEST(GroupedLists, of_more_problems_than_a_launch_holds_are_refused_by_name) {
  const DeviceInfo h200 = find_device_info("h200").value();
  const auto reason_for = [&](const char* line, std::string_view family) {
    for (const Reason& reason : explain(parse_problem(line).problem, h200).reasons)
      if (reason.family == family) return reason.failed;
    return std::string();
  };
  for (const char* const family : {"simt", "sm80", "sm90"}) {
    EXPECT_EQ(reason_for("grouped_gemm 64x64x64 groups=64 list=host a=bf16", family), "");
    EXPECT_EQ(reason_for("grouped_gemm 64x64x64 groups=65 list=host a=bf16", family),
              "groups: expected at most 64 problems in a list on a GPU, got 65");
    EXPECT_EQ(reason_for("grouped_gemm 64x64x64 groups=49 list=host a=bf16 c=bf16 beta=1", family),
              "groups: expected at most 48 problems in a list with C on a GPU, got 49");
  }
}

// Each problem contributes its own tiles and depth.
TEST(GroupedLists, of_small_problems_have_shorter_predicted_times_than_of_large_ones) {
  const Device h200 = parse_device("emulated:h200").value();
  const OwnedStream own(h200);
  const Buffer memory(1 << 20, own.get());
  const auto matrix = [&](std::int64_t rows, std::int64_t columns, std::size_t byte) {
    return Tensor(static_cast<std::byte*>(memory.data()) + byte, DType::bfloat16, {rows, columns},
                  {columns, 1}, h200);
  };
  const auto best_time = [&](std::int64_t small, std::int64_t depth) {
    std::vector<GroupedProblem> problems;
    for (std::size_t i = 0; i < 8; ++i) {
      const std::int64_t m = i == 3 ? 128 : small;
      const std::int64_t k = i == 3 ? 1024 : depth;
      problems.push_back({matrix(m, k, 0), matrix(k, 128, 0), matrix(m, 128, (8 + i) << 16)});
    }
    for (const RankedKernel& kernel : get_kernels(GroupedGemmArguments(problems, DType::float32)))
      if (kernel.family().name() == "sm90") return kernel.predicted_us;
    return 0.0;
  };
  EXPECT_GT(best_time(16, 64), 0);
  EXPECT_LT(best_time(16, 64), best_time(128, 1024));
}

// Strides that do not fit a launch's parameters are refused before compilation.
TEST(GroupedLists, of_rows_that_are_too_far_apart_are_refused_by_name) {
  const Device h200 = parse_device("emulated:h200").value();
  const OwnedStream own(h200);
  const Buffer memory(4096, own.get());
  const auto at = [&](std::size_t byte) { return static_cast<std::byte*>(memory.data()) + byte; };
  const auto matrix = [&](std::int64_t rows, std::int64_t line) {
    return Tensor(at(2048), DType::bfloat16, {rows, 8}, {line, 1}, h200);
  };
  const auto reason_of = [&](std::int64_t line_of_a, std::string_view family) {
    const GroupedGemmArguments arguments(
        {{matrix(8, 8), matrix(8, 8), Tensor(at(0), DType::bfloat16, {8, 8}, {8, 1}, h200)},
         {matrix(2, line_of_a), matrix(8, 8),
          Tensor(at(256), DType::bfloat16, {2, 8}, {8, 1}, h200)}},
        DType::float32);
    for (const Reason& reason : explain(arguments).reasons)
      if (reason.family == family) return reason.failed;
    return std::string();
  };
  constexpr std::int64_t far = std::int64_t{1} << 31;
  for (const char* const family : {"simt", "sm80", "sm90"}) {
    EXPECT_EQ(reason_of(far - 8, family), "");
    EXPECT_EQ(reason_of(far, family),
              "A: expected rows (columns) less than 2^31 elements apart in a list on a GPU, got "
              "2147483648");
  }
  EXPECT_EQ(reason_of(-8, "simt"), "");
  EXPECT_NE(reason_of(-8, "sm90"), "");  // TMA does not support negative strides
}

TEST_P(GroupedRowsOf, row_28_rows_are_gathered) {
  for (const char* const line : {"grouped_gemm 70x24x33 groups=5 gather=i32/of=35/divide=2 a=bf16",
                                 "grouped_gemm 70x24x40 groups=5 gather=i32/of=35/divide=2 a=bf16",
                                 "grouped_gemm 70x24x33 groups=5 gather=i64/of=9 a=f16",
                                 "grouped_gemm 0x24x33 groups=3 gather=i32/of=8 a=bf16"})
    expect_verified_or_refused(line);
}

TEST_P(GroupedRowsOf, row_29_rows_are_scattered_with_weights) {
  for (const char* const line :
       {"grouped_gemm 70x24x33 groups=5 scatter=i32/of=90 a=bf16 out=f32 epilogue=\"D = w * "
        "accum\" "
        "w=f32[m]",
        "grouped_gemm 70x24x40 groups=5 scatter=i32/of=90 a=bf16 out=f32 epilogue=\"D = w * "
        "accum\" "
        "w=f32[m]",
        "grouped_gemm 70x24x33 groups=5 gather=i32/of=35/divide=2 scatter=i32/of=70 a=bf16 "
        "epilogue=\"D = w * accum\" w=f32[m]"})
    expect_verified_or_refused(line);
}

// --- all forms ----------------------------------------------------------------------------------

TEST_P(GroupedRowsOf, row_58_every_form_with_extents_about_powers_of_two) {
  static constexpr std::array extents{1, 7, 8, 9, 15, 16, 17, 31, 33, 63, 65, 127, 129};
  const std::uint64_t seed = tests::random_seed();
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  const auto extent = [&] { return std::int64_t{extents[below(extents.size())]}; };
  const int count = std::getenv("GEMMERY_SOAK") != nullptr ? 24 : 8;
  for (int i = 0; i < count && !HasFailure(); ++i) {
    GroupCase groups{.ragged = static_cast<Ragged>(below(3)),
                     .m = extent(),
                     .n = extent(),
                     .k = extent(),
                     .form = static_cast<GroupSizes>(below(3)),
                     .bits = below(2) == 0 ? 32 : 64,
                     .dtype = halves[below(2)],
                     .a = {.is_column_major = below(2) == 0},
                     .b = {.is_column_major = below(2) == 0},
                     .out = {.is_column_major = below(2) == 0}};
    if (below(3) == 0) groups.form = GroupSizes::masked;
    const bool is_masked = groups.form == GroupSizes::masked;
    const std::int64_t most = groups.ragged == Ragged::m   ? groups.m
                              : groups.ragged == Ragged::n ? groups.n
                                                           : groups.k;
    for (std::size_t group = below(5); group > 0; --group)
      groups.counts.push_back(
          static_cast<std::int32_t>(is_masked       ? below(static_cast<std::size_t>(most) + 1)
                                    : below(3) == 0 ? 0U
                                                    : below(70)));
    expect_right(groups);
  }
  if (HasFailure()) ADD_FAILURE() << "seed " << seed;
}

// A short run leaves out sm80 on Hopper, whose code an A100 runs, too.
std::vector<Place> places() {
  std::vector<Place> all{{"cpu", "host_reference"}, {"cpu", "host_plain"},
                         {"emulated:a100", "simt"}, {"emulated:a100", "sm80"},
                         {"emulated:h200", "sm90"}, {"gpu", "simt"},
                         {"gpu", "sm80"},           {"gpu", "sm90"}};
  if (std::getenv("GEMMERY_SOAK") != nullptr) all.push_back({"emulated:h200", "sm80"});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Families, GroupedRowsOf, testing::ValuesIn(places()), name_of_place);

// Inputs that TMA loads need space in the launch's parameters, besides the table.
TEST(GroupedTables, leave_room_for_few_operands_and_refuse_more_by_number) {
  const DeviceInfo h200 = find_device_info("h200").value();
  const auto line_of = [](int inputs) {
    std::string program = "D = accum";
    std::string operands;
    for (int i = 0; i < inputs; ++i) {
      program += " + v" + std::to_string(i);
      operands += " v" + std::to_string(i) + "=f32[m,n]";
    }
    return "grouped_gemm 256x64x64 groups=4 ends=i32/host a=bf16 out=f32 epilogue=\"" + program +
           "\"" + operands;
  };
  bool is_refused = false;
  for (int inputs = 1; inputs <= 20; ++inputs) {
    std::string failed;
    for (const Reason& reason : explain(parse_problem(line_of(inputs)).problem, h200).reasons)
      if (reason.family == "sm90") failed = reason.failed;
    if (is_refused) {
      EXPECT_NE(failed, "") << inputs << " served though fewer are not";
    }
    is_refused = is_refused || !failed.empty();
    if (!failed.empty()) {
      EXPECT_NE(failed.find("operands of an epilogue"), std::string::npos);
    }
  }
  EXPECT_TRUE(is_refused);
}

// TMA does not support negative strides of an operand that it must load.
TEST(GroupedReasons, are_those_of_the_tile_that_comes_closest) {
  const DeviceInfo h200 = find_device_info("h200").value();
  const auto reason_for = [&](const char* line) {
    for (const Reason& reason : explain(parse_problem(line).problem, h200).reasons)
      if (reason.family == "sm90") return reason.failed;
    return std::string();
  };
  EXPECT_EQ(reason_for("grouped_gemm 256x64x64 groups=4 a=bf16 out=f32 epilogue=\"D = accum + x\" "
                       "x=f32[m,n]/strides=-64,1"),
            "epilogue operand x: expected a stride of 16 to 2^40 bytes in steps of 16, got -256");
  EXPECT_EQ(reason_for("grouped_gemm 2147480000x2147480000x64 groups=4 a=bf16"),
            "out: expected at most 2147483647 tiles of groups, got 4 x 2147480000x2147480000 "
            "elements");
  EXPECT_EQ(reason_for("grouped_gemm 256x64x64 groups=4 labels=i32/align=8 a=bf16"),
            "labels: expected ones that change at multiples of 64 (alignment of groups), got 8");
}

}  // namespace
}  // namespace gemmery
