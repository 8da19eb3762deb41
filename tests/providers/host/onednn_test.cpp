// SPDX-License-Identifier: Apache-2.0
// The host's use of oneDNN: threads, fork, refusals, absence. Its results are tested in
// host_paths_test.cpp.
#include "providers/host/onednn.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <gemmery/error.hpp>
#include <gemmery/problem.hpp>

#include "providers/host/onednn_conv.hpp"
#include "providers/host/onednn_gemm.hpp"
#include "providers/host/onednn_library.hpp"
#include "providers/host/onednn_matmul.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::host::onednn {
namespace {

OperandShape packed(DataType type, std::int64_t rows, std::int64_t columns) {
  return {.type = type, .extents = {1, rows, columns}, .strides = {rows * columns, columns, 1}};
}

MatmulShape square(DataType type, std::int64_t side) {
  return {packed(type, side, side), packed(type, side, side), packed(DataType::f32, side, side)};
}

class Onednn : public testing::Test {
 protected:
  void SetUp() override {
    if (const gemmery::Status status = availability(); !status) GTEST_SKIP() << status.error();
  }
};

bool multiplies_ones(std::int64_t side) {
  const std::vector<float> ones(static_cast<std::size_t>(side * side), 1.0f);
  std::vector<float> sums(ones.size());
  multiply(square(DataType::f32, side), ones.data(), ones.data(), sums.data());
  return std::ranges::all_of(sums, [&](float sum) { return sum == static_cast<float>(side); });
}

// The exit status of a child that runs `body`.
template <class Body>
int in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST_F(Onednn, tells_its_version_and_its_implementation) {
  EXPECT_NE(version_text().find("libdnnl"), std::string::npos) << version_text();
  EXPECT_FALSE(implementation_name(square(DataType::f32, 64)).empty());
}

TEST_F(Onednn, serves_by_implementations_that_are_trusted) {
  const Version& version = *found_library().library->api().version();
  for (const DataType type : {DataType::f32, DataType::bf16, DataType::s8}) {
    MatmulShape shape = square(type, 64);
    if (type == DataType::s8) shape.destination.type = DataType::s32;
    if (!multiplies(type, type, shape.destination.type)) continue;
    const std::string name = implementation_name(shape);
    EXPECT_TRUE(is_trusted(version, name)) << version_text() << ": " << name;
  }
}

TEST(OnednnTrust, kernels_for_amx_are_trusted_in_versions_that_have_them_right) {
  const auto version = [](int major, int minor, int patch) {
    return Version{major, minor, patch, nullptr, 0, 0};
  };
  for (const Version& wrong : {version(2, 5, 0), version(2, 6, 3), version(2, 7, 3),
                               version(3, 0, 1), version(3, 7, 2), version(3, 13, 0)}) {
    for (const char* name : {"brg:avx512_core_amx_bf16", "brg:avx512_core_amx_int8",
                             "brg:avx512_core_amx", "brg_matmul:avx10_1_512_amx"})
      EXPECT_FALSE(is_trusted(wrong, name)) << wrong.major << "." << wrong.minor << ": " << name;
    for (const char* name : {"brg:avx512_core_bf16", "brg:avx512_core_vnni", "gemm:jit", "ref:any"})
      EXPECT_TRUE(is_trusted(wrong, name)) << wrong.major << "." << wrong.minor << ": " << name;
  }
  for (const Version& right : {version(3, 1, 0), version(3, 2, 1)})
    EXPECT_TRUE(is_trusted(right, "brg:avx512_core_amx")) << right.minor;
}

TEST_F(Onednn, many_threads_share_its_primitives) {
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int repeat = 0; repeat < 50; ++repeat)
        EXPECT_TRUE(multiplies_ones(16 + (t + repeat) % 5));
    });
}

TEST_F(Onednn, more_shapes_than_the_cache_holds_stay_right) {
  for (int round = 0; round < 2; ++round)
    for (std::int64_t side = 1; side <= 100; ++side) ASSERT_TRUE(multiplies_ones(side)) << side;
}

TEST_F(Onednn, a_refused_shape_is_an_error_and_not_a_crash) {
  MatmulShape shape = square(DataType::f32, 8);
  shape.weights.extents[1] = 9;  // K does not agree
  try {
    multiply(shape, nullptr, nullptr, nullptr);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  }
}

TEST_F(Onednn, a_child_of_a_process_that_used_it_is_refused_by_name) {
  ASSERT_TRUE(multiplies_ones(32));
  const int status = in_child([] {
    if (availability().error().find("forked child") == std::string::npos) return 1;
    if (multiplies(DataType::f32, DataType::f32, DataType::f32)) return 2;
    try {
      multiplies_ones(32);
    } catch (const Error& error) {
      return error.kind() == ErrorKind::unavailable ? 0 : 3;
    }
    return 4;
  });
  EXPECT_EQ(status, 0);
}

ConvolutionShape convolution(ConvolutionShape::Kind kind) {
  return {.kind = kind,
          .images = DataType::f32,
          .filters = DataType::f32,
          .outputs = DataType::f32,
          .image_count = 2,
          .channels = 32,
          .filter_count = 48,
          .image = {1, 14, 14},
          .filter = {1, 3, 3},
          .output = {1, 7, 7},
          .stride = {1, 2, 2},
          .dilation = {1, 1, 1},
          .lower = {0, 1, 1},
          .upper = {0, 1, 1}};
}

// Filters with their original strides would select it (slower by three orders of magnitude).
TEST_F(Onednn, its_reference_convolves_nothing) {
  for (const auto kind : {ConvolutionShape::Kind::forward, ConvolutionShape::Kind::backward_data,
                          ConvolutionShape::Kind::backward_weights}) {
    ConvolutionShape shape = convolution(kind);
    for (const std::int64_t groups : {1, 2, 16}) {
      shape.groups = groups;
      EXPECT_FALSE(implementation_name(shape).starts_with("ref")) << groups;
    }
  }
}

// Reordered filters are kept; a caller may write to its own between two calls.
TEST_F(Onednn, changed_filters_are_noticed) {
  const ConvolutionShape shape = convolution(ConvolutionShape::Kind::forward);
  const std::vector<float> x(2 * 14 * 14 * 32, 1.0f);
  std::vector<float> w(48 * 9 * 32, 1.0f);
  std::vector<float> y(2 * 7 * 7 * 48);
  for (int repeat = 0; repeat < 30; ++repeat) {
    const std::size_t filter = static_cast<std::size_t>(repeat) % 48;
    w[filter * 9 * 32 + 4 * 32] += 1;  // the middle tap, which lies in every image
    convolve(shape, {x.data(), w.data(), y.data()});
    const std::size_t middle = (3 * 7 + 3) * 48;  // a pixel without padding
    EXPECT_EQ(y[middle + filter], 9 * 32 + 1) << repeat;
    w[filter * 9 * 32 + 4 * 32] -= 1;
    convolve(shape, {x.data(), w.data(), y.data()});
    EXPECT_EQ(y[middle + filter], 9 * 32) << repeat;
  }
}

TEST_F(Onednn, convolutions_that_it_does_not_serve_are_refused_by_name) {
  const auto refusal = [](const char* line) {
    return std::string(onednn_serves_convolution(parse_problem(line).problem).error());
  };
  EXPECT_EQ(refusal("conv2d_fprop 2x8x8x8 k=8 r=3 s=3 a=f32"), "");
  EXPECT_EQ(refusal("conv2d_fprop 2x8x8x8 k=8 r=3 s=3 mode=convolution a=f32"),
            "mode: expected cross_correlation, got convolution");
  EXPECT_EQ(refusal("conv1d_dgrad 1x14x4 k=6 s=3 pad=1 dilation=4 q=5 a=f32"),
            "dy: expected the extents of the formula, got others");
  EXPECT_EQ(refusal("conv1d_fprop 1x4x16 k=8 s=2 pad=1 dilation=4 groups=4 a=s8 out=s32"),
            "filter: expected at most the image without its padding, 4, got a reach of 5");
  EXPECT_EQ(refusal("conv1d_fprop 1x9x16 k=8 s=2 groups=4 a=s8 out=s32"),
            "groups: expected 1 for integers, got 4");
  EXPECT_EQ(refusal("conv2d_dgrad 2x8x8x8 k=8 r=3 s=3 a=s8 out=s32"),
            "kind: expected fprop for integers, got dgrad");
  EXPECT_EQ(refusal("conv2d_fprop 2x8x8x256 k=8 r=3 s=3 a=s8 out=s32"),
            "k: expected at most 1024 products of a sum of integers, got 2304");
  EXPECT_EQ(refusal("conv2d_fprop 2x8x8x8 k=8 r=3 s=3 a=f32/strides=2000,100,10"),
            "A: expected pixels (or taps) at one distance, got other strides");
}

// --- products of many rows ----------------------------------------------------------------------

MatmulShape tall(DataType type, std::int64_t rows, std::int64_t k, std::int64_t columns) {
  MatmulShape shape{packed(type, rows, k), packed(type, k, columns), packed(type, rows, columns)};
  shape.weights.strides = {k * columns, 1, k};
  return shape;
}

TEST(OnednnTall, products_of_many_rows_and_transposed_weights_are_convolutions) {
  const MatmulShape shape = tall(DataType::f32, 4096, 64, 256);
  ASSERT_TRUE(as_convolution(shape));
  EXPECT_EQ(as_convolution(shape)->image, (ConvolutionShape::Numbers{1, 1, 4096}));
  EXPECT_EQ(as_convolution(shape)->channels, 64);
  EXPECT_EQ(as_convolution(shape)->filter_count, 256);
  EXPECT_FALSE(as_convolution(tall(DataType::f32, 3071, 64, 256)));
  EXPECT_FALSE(as_convolution(tall(DataType::f32, 4096, 8192, 4096)));
  EXPECT_FALSE(as_convolution(tall(DataType::s8, 4096, 64, 256)));
  EXPECT_FALSE(as_convolution(tall(DataType::bf16, 4096, 63, 256)));
  EXPECT_FALSE(as_convolution(tall(DataType::bf16, 4096, 64, 255)));
  MatmulShape other = shape;
  other.weights.strides = {64 * 256, 256, 1};
  EXPECT_FALSE(as_convolution(other)) << "weights stored by rows";
  other = shape;
  other.source.strides[1] = 65;
  EXPECT_FALSE(as_convolution(other)) << "padded rows";
  other = shape;
  other.destination.strides = {4096 * 256, 1, 4096};
  EXPECT_FALSE(as_convolution(other)) << "out stored by columns";
}

// Elements in float32 or bfloat16, with `behind` elements after them.
class Elements {
 public:
  Elements(DataType type, std::int64_t count, std::int64_t behind, float value)
      : width_(type == DataType::bf16 ? 2 : 4),
        bytes_(static_cast<std::size_t>((count + behind) * width_)) {
    for (std::int64_t i = 0; i < count + behind; ++i) set(i, value);
  }
  void* data() { return bytes_.data(); }
  // The upper half of a float32 is a bfloat16.
  void set(std::int64_t at, float value) {
    std::memcpy(place(at), reinterpret_cast<const std::byte*>(&value) + (4 - width_),
                static_cast<std::size_t>(width_));
  }
  float operator[](std::int64_t at) {
    float value = 0;
    std::memcpy(reinterpret_cast<std::byte*>(&value) + (4 - width_), place(at),
                static_cast<std::size_t>(width_));
    return value;
  }

 private:
  std::byte* place(std::int64_t at) { return bytes_.data() + at * width_; }
  std::int64_t width_;
  std::vector<std::byte> bytes_;
};

// Small integers, so that every sum is exact; NaN lies behind the operands, and what lies behind
// out must remain.
void expect_right(const MatmulShape& shape, std::mt19937_64& random) {
  constexpr std::int64_t behind = 64;
  constexpr float guard = 77;
  const auto [batches, k, columns] = shape.weights.extents;
  const std::int64_t rows = shape.destination.extents[1];
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Elements source(shape.source.type, rows * k, behind, nan);
  Elements weights(shape.weights.type, k * columns, behind, nan);
  Elements sums(shape.destination.type, rows * columns, behind, guard);
  const auto draw = [&] { return static_cast<float>(random() % 3) - 1; };
  for (std::int64_t i = 0; i < rows * k; ++i) source.set(i, draw());
  for (std::int64_t i = 0; i < k * columns; ++i) weights.set(i, draw());
  multiply(shape, source.data(), weights.data(), sums.data());
  std::int64_t wrong = 0;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column) {
      float sum = 0;
      for (std::int64_t i = 0; i < k; ++i) sum += source[row * k + i] * weights[column * k + i];
      wrong += sums[row * columns + column] != sum;
    }
  EXPECT_EQ(wrong, 0) << rows << "x" << k << "x" << columns;
  for (std::int64_t i = 0; i < behind; ++i) EXPECT_EQ(sums[rows * columns + i], guard);
}

TEST_F(Onednn, products_of_many_rows_are_exact) {
  std::mt19937_64 random(tests::random_seed());
  const auto from = [&](std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most - least + 1));
  };
  for (int repeat = 0; repeat < 6; ++repeat)
    for (const DataType type : {DataType::f32, DataType::bf16}) {
      if (!multiplies(type, type, DataType::f32)) continue;
      const std::int64_t unit = type == DataType::bf16 ? 2 : 1;
      // At most 128 products, whose sum is exact in bfloat16.
      MatmulShape shape =
          tall(type, from(3072, 3300), unit * from(1, 128 / unit), unit * from(1, 130 / unit));
      ASSERT_TRUE(as_convolution(shape));
      if (repeat % 2 == 0) shape.destination.type = DataType::f32;
      expect_right(shape, random);
    }
}

TEST_F(Onednn, forks_during_a_storm_of_calls_end) {
  std::atomic<bool> done = false;
  std::jthread storm([&] {
    while (!done) multiplies_ones(24);
  });
  for (int repeat = 0; repeat < 20; ++repeat)
    EXPECT_EQ(
        in_child([] {
          return availability() || !multiplies(DataType::f32, DataType::f32, DataType::f32) ? 0 : 1;
        }),
        0);
  done = true;
}

// Searches for oneDNN at another path. Prints the reason why it is not available; then exits with
// 0.
[[noreturn]] void look_elsewhere() {
  setenv("GEMMERY_ONEDNN_LIBRARY", "/nowhere/libdnnl.so.3", 1);
  const gemmery::Status status = availability();
  const gemmery::Status types =
      onednn_serves_types(DType::float32, DType::float32, DType::float32, Math::native);
  std::fprintf(stderr, "%s\n", status.error().c_str());
  std::_Exit(status || types ? 1 : 0);
}

TEST(OnednnAbsentDeathTest, is_reported_with_what_was_looked_for) {
  testing::FLAGS_gtest_death_test_style =
      "threadsafe";  // a process of its own, since the library is looked for once
  EXPECT_EXIT(look_elsewhere(), testing::ExitedWithCode(0),
              "unavailable: .*(/nowhere/libdnnl.so.3|sanitizer builds)");
}

}  // namespace
}  // namespace gemmery::host::onednn
