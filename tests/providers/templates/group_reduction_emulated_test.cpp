// SPDX-License-Identifier: Apache-2.0
// Reductions of all of out to one value on an emulated H200, to which every consumer of a launch
// contributes a partial result: few and many tiles per consumer, partial tiles, and the workspace
// before and after. Sums are of small integers, so that the order does not matter.
#include <gtest/gtest.h>
#include <gemmery/gemmery.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device_family.hpp"
#include "tests/providers/templates/on_emulated_h200.hpp"
#include "tests/support/packed_plan.hpp"

namespace gemmery {
namespace {

struct Extents {
  std::int64_t m, n, k, l;
};

std::string to_string(const Extents& extents) {
  return std::to_string(extents.m) + "x" + std::to_string(extents.n) + "x" +
         std::to_string(extents.k) + "x" + std::to_string(extents.l);
}

// D = accum + rows, with integers; rows are not 0, so that an element out of bounds would change
// the result.
class Operands {
 public:
  Operands(const Extents& extents, Device device, Stream stream, std::mt19937_64& random)
      : extents_(extents),
        device_(device),
        stream_(stream),
        a_(integers(extents.l * extents.m * extents.k, 0, 3, random)),
        b_(integers(extents.l * extents.n * extents.k, 0, 3, random)),
        rows_(integers(extents.m, 1, 9, random)),
        device_a_(upload(a_)),
        device_b_(upload(b_)),
        device_rows_(upload(rows_)),
        out_(static_cast<std::size_t>(extents.l * extents.m * pitch()) * sizeof(_Float16), stream),
        results_(results * sizeof(float), stream) {}

  // `program` writes some of total, least and peak, the reductions of all of out.
  GemmArguments arguments(const std::string& program) const {
    const auto& [m, n, k, l] = extents_;
    const auto result = [&](int at, std::int64_t count) {
      return Tensor(static_cast<float*>(results_.data()) + at, DType::float32, {count}, device_);
    };
    std::vector<EpilogueOperand> named;
    named.push_back({"rows", Tensor(device_rows_.data(), DType::float16, {m, 1}, device_)});
    for (const auto& [name, at] : {std::pair{"total", 0}, std::pair{"least", 1}, {"peak", 2}})
      if (program.find(name) != std::string::npos) named.push_back({name, result(at, 1)});
    GemmOptions options;
    options.epilogue = EpilogueArguments(program, std::move(named));
    return GemmArguments(
        Tensor(device_a_.data(), DType::float16, {l, m, k}, device_),
        Tensor(device_b_.data(), DType::float16, {l, k, n}, {n * k, 1, k}, device_),
        Tensor(out_.data(), DType::float16, {l, m, n}, {m * pitch(), pitch(), 1}, device_),
        options);
  }

  float total() const { return result(0); }
  float least() const { return result(1); }
  float peak() const { return result(2); }
  void forget_results() const { fill(results_.data(), 0x7f, results_.bytes(), stream_); }

  // The reductions of D, computed on the host.
  struct Expected {
    double total = 0;
    double least = std::numeric_limits<double>::infinity();
    double peak = 0;
  };
  Expected expected() const {
    Expected all;
    const auto& [m, n, k, l] = extents_;
    for (std::int64_t row = 0; row < l * m; ++row) {
      for (std::int64_t column = 0; column < n; ++column) {
        double value = at(rows_, row % m);
        for (std::int64_t step = 0; step < k; ++step)
          value += at(a_, row * k + step) * at(b_, (row / m * n + column) * k + step);
        all.total += value;
        all.least = std::min(all.least, value);
        all.peak = std::max(all.peak, value);
      }
    }
    return all;
  }

 private:
  static constexpr std::size_t results = 3;

  // TMA requires rows of a multiple of 16 bytes.
  std::int64_t pitch() const { return (extents_.n + 7) / 8 * 8; }

  static double at(const std::vector<_Float16>& values, std::int64_t index) {
    return static_cast<double>(values[static_cast<std::size_t>(index)]);
  }
  static std::vector<_Float16> integers(std::int64_t count, int least, int most,
                                        std::mt19937_64& random) {
    std::uniform_int_distribution<int> any(least, most);
    std::vector<_Float16> values(static_cast<std::size_t>(count));
    for (_Float16& value : values) value = static_cast<_Float16>(any(random));
    return values;
  }
  Buffer upload(const std::vector<_Float16>& values) const {
    const std::size_t bytes = values.size() * sizeof(_Float16);
    Buffer buffer(bytes, stream_);
    copy(buffer.data(), device_, values.data(), Device::cpu(), bytes, stream_);
    return buffer;
  }
  float result(std::size_t index) const {
    float values[results];
    copy(values, Device::cpu(), results_.data(), device_, sizeof values, stream_);
    synchronize(stream_);
    return values[index];
  }

  Extents extents_;
  Device device_;
  Stream stream_;
  std::vector<_Float16> a_, b_, rows_;
  Buffer device_a_, device_b_, device_rows_, out_, results_;
};

class GroupReductionEmulated : public tests::OnEmulatedH200 {
 protected:
  std::int64_t extent(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random_);
  }

  // The kernel with a design, whose name has no operands and no epilogue.
  Kernel kernel_of(const std::string& design, const GemmArguments& arguments) const {
    const std::string name = "sm90v7_gemm_f16r16_f16c16_f16r16_acc-f32_" + design + "_e-" +
                             digest(arguments.problem().epilogue);
    const auto kernel = find_kernel(name);
    if (!kernel) throw std::runtime_error("no kernel " + name);
    return *kernel;
  }

  OwnedStream stream_{h200_};
};

constexpr const char* sum_alone = "D = accum + rows; total = sum(D)";
constexpr const char* several =
    "D = accum + rows; total = sum(D); least = min(D); peak = amax(accum + rows)";

// One consumer, two by rows, two by columns, ping-pong, rotation, clusters, split k.
const std::vector<std::string>& designs() {
  static const std::vector<std::string> all{
      "64x64x64_1x1_coop_m8_s4",     "128x96x64_1x1_coop_m8_s3",      "64x128x64_1x1_coop_n2_s3",
      "64x96x64_1x1_pingpong_m8_s4", "128x128x64_1x1_rotation_m8_s4", "64x64x64_2x1_coop_m8_s3",
      "64x64x64_1x1_k4_coop_m8_s3"};
  return all;
}

// At most one tile, with rows for at most one consumer and columns of a few staging tiles. The
// other consumers still write partial results.
TEST_F(GroupReductionEmulated, consumers_without_a_tile_count_as_nothing) {
  for (const std::string& design : designs()) {
    for (const char* const program : {sum_alone, several}) {
      const Extents extents{extent(1, 64), extent(1, 64), extent(1, 5) * 8, 1};
      SCOPED_TRACE(design + " " + to_string(extents) + " " + program);
      const Operands operands(extents, h200_, stream_, random_);
      const GemmArguments arguments = operands.arguments(program);
      kernel_of(design, arguments).run(arguments, {.stream = stream_});
      const Operands::Expected expected = operands.expected();
      EXPECT_EQ(operands.total(), expected.total);
      if (program == several) {
        EXPECT_EQ(operands.least(), expected.least);
        EXPECT_EQ(operands.peak(), expected.peak);
      }
    }
  }
}

// Whole staging tiles and a partial one, and blocks that have many tiles, few or none.
TEST_F(GroupReductionEmulated, any_number_of_multiprocessors_gives_the_value_of_all_of_out) {
  for (const std::string& design : designs()) {
    const Extents extents{extent(130, 200), extent(130, 200), 8, extent(2, 3)};
    const Operands operands(extents, h200_, stream_, random_);
    const Operands::Expected expected = operands.expected();
    for (const char* const program : {sum_alone, several}) {
      const GemmArguments arguments = operands.arguments(program);
      const Kernel kernel = kernel_of(design, arguments);
      for (const int limit : {1, 3, 0}) {
        SCOPED_TRACE(design + " " + to_string(extents) + " " + program + " on " +
                     std::to_string(limit));
        operands.forget_results();
        kernel.run(arguments, {.stream = stream_, .max_multiprocessors = limit});
        EXPECT_EQ(operands.total(), expected.total);
        if (program == several) {
          EXPECT_EQ(operands.least(), expected.least);
          EXPECT_EQ(operands.peak(), expected.peak);
        }
      }
    }
  }
}

// out ends at each column of a staging tile, and at each of a tile's last ones.
TEST_F(GroupReductionEmulated, out_may_end_at_any_column_of_a_staging_tile) {
  const std::int64_t m = extent(1, 40);
  for (std::int64_t n = 120; n <= 200; ++n) {
    const Extents extents{m, n, 8, 1};
    SCOPED_TRACE(to_string(extents));
    const Operands operands(extents, h200_, stream_, random_);
    const GemmArguments arguments = operands.arguments(sum_alone);
    kernel_of("64x128x64_1x1_coop_m8_s3", arguments).run(arguments, {.stream = stream_});
    EXPECT_EQ(operands.total(), operands.expected().total);
  }
}

TEST_F(GroupReductionEmulated, a_launch_leaves_the_zeros_that_it_found) {
  for (const std::string& design : designs()) {
    const Extents extents{extent(65, 200), extent(65, 200), 8, 1};
    const Operands operands(extents, h200_, stream_, random_);
    const GemmArguments arguments = operands.arguments(several);
    const Kernel kernel = kernel_of(design, arguments);
    const Artifact artifact = kernel.compile(arguments);
    const Operands::Expected expected = operands.expected();
    for (const int limit : {1, 0}) {
      SCOPED_TRACE(design + " " + to_string(extents) + " on " + std::to_string(limit));
      const runtime::LaunchPlan plan = tests::packed_plan(kernel, arguments, limit);
      const std::size_t zeroed = plan.zeroed_workspace_bytes;
      const Buffer workspace(plan.workspace_bytes, stream_);
      fill(workspace.data(), 0xa5, workspace.bytes(), stream_);
      for (int replay = 0; replay < 2; ++replay) {
        operands.forget_results();
        kernel.run(arguments, {.artifact = &artifact,
                               .stream = stream_,
                               .workspace = {workspace.data(), workspace.bytes()},
                               .max_multiprocessors = limit});
        EXPECT_EQ(operands.total(), expected.total);
        EXPECT_EQ(operands.least(), expected.least);
        EXPECT_EQ(operands.peak(), expected.peak);
        std::vector<unsigned char> bytes(workspace.bytes());
        copy(bytes.data(), Device::cpu(), workspace.data(), h200_, bytes.size(), stream_);
        synchronize(stream_);
        ASSERT_GE(zeroed, 3 * sizeof(std::uint64_t) * plan.shape.grid[0]);
        const auto behind = bytes.begin() + static_cast<std::ptrdiff_t>(zeroed);
        EXPECT_TRUE(std::all_of(bytes.begin(), behind, [](auto byte) { return byte == 0; }));
        EXPECT_TRUE(std::all_of(behind, bytes.end(), [](auto byte) { return byte == 0xa5; }));
      }
    }
  }
}

}  // namespace
}  // namespace gemmery
