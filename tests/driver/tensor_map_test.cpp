// SPDX-License-Identifier: Apache-2.0
// The rules of tensor maps: an error names the violated one before the driver is called.
#include "driver/tensor_map.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "tests/driver/fake_driver.hpp"
#include "tests/support/error_of.hpp"

namespace gemmery::tests {
namespace {

alignas(128) char memory[256];

driver::TiledTensorMap good_view() {
  return {.address = memory,
          .dtype = DType::bfloat16,
          .rank = 2,
          .extents = {4096, 8192},
          .byte_strides = {8192},
          .box = {64, 128},
          .swizzle = driver::cuda::TensorMapSwizzle::bytes128};
}

// A change of a view that violates a rule, and the field in the error.
template <class View>
struct BrokenRule {
  const char* field;
  std::function<void(View&)> spoil;
};

template <class View, std::size_t count>
void expect_each_named(const View& good, const BrokenRule<View> (&rules)[count]) {
  for (const BrokenRule<View>& rule : rules) {
    View view = good;
    rule.spoil(view);
    const Error error = error_of([&] { driver::encode(install_fake_driver().api(), view); });
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    EXPECT_EQ(error.operand(), std::string("tensor map: ") + rule.field) << error.what();
    EXPECT_FALSE(error.expected().empty());
    EXPECT_FALSE(error.got().empty());
  }
}

TEST(TensorMap, a_view_that_keeps_the_rules_is_encoded) {
  EXPECT_NO_THROW(driver::encode(install_fake_driver().api(), good_view()));
}

TEST(TensorMap, each_broken_rule_is_named) {
  using View = driver::TiledTensorMap;
  const BrokenRule<View> rows[] = {
      {"rank", [](View& view) { view.rank = 0; }},
      {"rank", [](View& view) { view.rank = 6; }},
      {"address", [](View& view) { view.address = nullptr; }},
      {"address", [](View& view) { view.address = memory + 8; }},
      {"extent 1", [](View& view) { view.extents[1] = 0; }},
      {"extent 0", [](View& view) { view.extents[0] = (std::uint64_t{1} << 32) + 1; }},
      {"byte stride 1", [](View& view) { view.byte_strides[0] = 8; }},
      {"byte stride 1", [](View& view) { view.byte_strides[0] = std::uint64_t{1} << 40; }},
      {"box 1", [](View& view) { view.box[1] = 257; }},
      {"box 1", [](View& view) { view.box[1] = 0; }},
      {"box 0 in bytes", [](View& view) { view.box[0] = 7; }},
      {"box 0 in bytes", [](View& view) { view.box[0] = 128; }},
      {"element stride 0", [](View& view) { view.element_strides[0] = 9; }},
  };
  expect_each_named(good_view(), rows);
}

driver::Im2colTensorMap good_images() {
  return {.address = memory,
          .dtype = DType::float16,
          .rank = 4,
          .extents = {64, 56, 40, 32, 1},
          .byte_strides = {128, 56 * 128, 40 * 56 * 128},
          .lower_corner = {-1, -1},
          .upper_corner = {-1, -1},
          .channels = 64,
          .pixels = 256,
          .element_strides = {1, 2, 2, 1, 1},
          .swizzle = driver::cuda::TensorMapSwizzle::bytes128};
}

TEST(TensorMap, images_that_keep_the_rules_are_encoded) {
  EXPECT_NO_THROW(driver::encode(install_fake_driver().api(), good_images()));
}

TEST(TensorMap, each_broken_rule_of_images_is_named) {
  using View = driver::Im2colTensorMap;
  const BrokenRule<View> rows[] = {
      {"rank", [](View& view) { view.rank = 2; }},
      {"rank", [](View& view) { view.rank = 6; }},
      {"address", [](View& view) { view.address = memory + 8; }},
      {"extent 3", [](View& view) { view.extents[3] = 0; }},
      {"byte stride 2", [](View& view) { view.byte_strides[1] = 24; }},
      {"element stride 1", [](View& view) { view.element_strides[1] = 9; }},
      {"lower corner 0", [](View& view) { view.lower_corner[0] = -129; }},
      {"lower corner 0",
       [](View& view) {
         view.lower_corner = {-17, 0, 0}, view.rank = 5;
       }},
      {"upper corner 1", [](View& view) { view.upper_corner[1] = 128; }},
      {"pixel box 0", [](View& view) { view.upper_corner[0] = -57; }},
      {"pixel box 1", [](View& view) { view.lower_corner[1] = 39; }},
      {"channels", [](View& view) { view.channels = 0; }},
      {"channels", [](View& view) { view.channels = 257; }},
      {"channels in bytes", [](View& view) { view.channels = 72; }},
      {"channels in bytes", [](View& view) { view.channels = 7; }},
      {"pixels", [](View& view) { view.pixels = 1025; }},
      {"pixels", [](View& view) { view.pixels = 0; }},
  };
  expect_each_named(good_images(), rows);
}

TEST(TensorMap, images_of_one_dimension_have_wide_corners) {
  driver::Im2colTensorMap view = good_images();
  view.rank = 3;
  view.lower_corner[0] = -32768;
  view.upper_corner[0] = 32767;
  EXPECT_NO_THROW(driver::encode(install_fake_driver().api(), view));
}

TEST(TensorMap, a_type_that_the_hardware_does_not_know_is_unsupported) {
  driver::TiledTensorMap view = good_view();
  view.dtype = DType::float4_e2m1fn;
  EXPECT_EQ(error_of([&] { driver::encode(install_fake_driver().api(), view); }).kind(),
            ErrorKind::unsupported);
}

}  // namespace
}  // namespace gemmery::tests
