// SPDX-License-Identifier: Apache-2.0
#include <gemmery/error.hpp>
#include <gemmery/tensor.hpp>

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace gemmery {
namespace {

TEST(Tensor, packed_strides_are_row_major) {
  const Tensor tensor(nullptr, DType::float32, {2, 3, 4});
  EXPECT_EQ(std::vector(tensor.strides().begin(), tensor.strides().end()),
            (std::vector<std::int64_t>{12, 4, 1}));
  EXPECT_EQ(tensor.element_count(), 24);
}

TEST(Tensor, range_spans_negative_and_zero_strides) {
  std::array<float, 64> memory{};
  const Tensor tensor(&memory[40], DType::float32, {3, 4}, {-10, 1});
  const ByteRange range = byte_range(tensor);
  EXPECT_EQ(range.first, reinterpret_cast<std::uintptr_t>(&memory[20]));
  EXPECT_EQ(range.last, reinterpret_cast<std::uintptr_t>(&memory[44]));
  const ByteRange one = byte_range(Tensor(&memory[3], DType::float32, {5, 7}, {0, 0}));
  EXPECT_EQ(one.last - one.first, sizeof(float));
}

TEST(Tensor, zero_extents_touch_nothing) {
  const Tensor tensor(nullptr, DType::float64, {4, 0, 5});
  EXPECT_EQ(tensor.element_count(), 0);
  EXPECT_TRUE(byte_range(tensor).is_empty());
}

TEST(Tensor, refuses_shapes_that_no_memory_has) {
  const auto refuses = [](auto make) {
    try {
      make();
      return false;
    } catch (const Error& error) {
      return error.kind() == ErrorKind::invalid_argument && !error.expected().empty() &&
             !error.got().empty();
    }
  };
  EXPECT_TRUE(refuses([] { Tensor(nullptr, DType::int8, {1, 1, 1, 1, 1, 1}); }));
  EXPECT_TRUE(refuses([] { Tensor(nullptr, DType::int8, {-1}); }));
  EXPECT_TRUE(refuses([] { Tensor(nullptr, DType::int8, {2, 2}, {1}); }));
  EXPECT_TRUE(refuses([] { Tensor(nullptr, DType::float64, {INT64_MAX, INT64_MAX}); }));
  EXPECT_TRUE(refuses([] { Tensor(nullptr, DType::float64, {2}, {INT64_MIN}); }));
  EXPECT_TRUE(refuses([] {
    Tensor(nullptr, DType::float64, {INT64_MAX / 2, 3}, {1, INT64_MAX / 2});
  }));
}

TEST(Tensor, packed_elements_share_bytes_in_one_direction) {
  std::array<std::uint8_t, 64> memory{};
  const Tensor rows(&memory[8], DType::int4, {3, 5}, {-6, 1});
  const ByteRange range = byte_range(rows);
  EXPECT_EQ(range.first, reinterpret_cast<std::uintptr_t>(&memory[2]));
  EXPECT_EQ(range.last, reinterpret_cast<std::uintptr_t>(&memory[11]));
  const ByteRange six = byte_range(Tensor(memory.data(), DType::float6_e3m2fn, {2, 8}));
  EXPECT_EQ(six.last - six.first, 12u);
  EXPECT_EQ(byte_range(Tensor(memory.data(), DType::uint4, {5})).last,
            reinterpret_cast<std::uintptr_t>(&memory[3]));
  EXPECT_EQ(to_string(Tensor(memory.data(), DType::float4_e2m1fn, {1, 5})),
            "float4_e2m1fn (1, 5) strides (5, 1) on cpu");
  const auto refused = [&](std::initializer_list<std::int64_t> shape,
                           std::initializer_list<std::int64_t> strides, DType dtype) {
    try {
      (void)Tensor(memory.data(), dtype, shape, strides);
      return false;
    } catch (const Error& error) {
      return error.expected().find(name(dtype)) != std::string::npos;
    }
  };
  EXPECT_TRUE(refused({3, 5}, {5, 1}, DType::int4));
  EXPECT_TRUE(refused({3, 5}, {6, -1}, DType::uint4));
  EXPECT_TRUE(refused({3, 5}, {1, 1}, DType::float4_e2m1fn));
  EXPECT_TRUE(refused({3, 6}, {6, 1}, DType::float6_e2m3fn));
  EXPECT_FALSE(refused({3, 6}, {8, 1}, DType::float6_e2m3fn));
  EXPECT_FALSE(refused({1, 5}, {5, 1}, DType::int4));
  EXPECT_FALSE(refused({3, 5}, {10, 2}, DType::int4));
}

// A type like std::mdspan, which the compilers of this project do not have.
struct View {
  using element_type = const float;
  static constexpr std::size_t rank() { return 2; }
  const float* data_handle() const { return data; }
  std::size_t extent(std::size_t d) const { return d == 0 ? 3 : 5; }
  std::size_t stride(std::size_t d) const { return d == 0 ? 1 : 3; }
  const float* data;
};

TEST(Tensor, reads_views_of_the_form_of_mdspan) {
  const std::array<float, 15> memory{};
  const Tensor tensor = Tensor::from_mdspan(View{memory.data()});
  EXPECT_EQ(tensor.data(), memory.data());
  EXPECT_EQ(tensor.dtype(), DType::float32);
  EXPECT_EQ(to_string(tensor), "float32 (3, 5) strides (1, 3) on cpu");
}

}  // namespace
}  // namespace gemmery
