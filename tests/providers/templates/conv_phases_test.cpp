// SPDX-License-Identifier: Apache-2.0
// The phases of a dgrad with a stride: the taps of each pixel are those of the definition, so that
// no products with zeros between pixels of dy are computed.
#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "providers/templates/conv_windows.hpp"
#include "tests/support/random_seed.hpp"

namespace gemmery::templates {
namespace {

Convolution draw_dimension(std::mt19937_64& random) {
  const auto from = [&](int least, int most) {
    return least + static_cast<std::int32_t>(random() % static_cast<unsigned>(most - least + 1));
  };
  Convolution convolution;
  convolution.kind = ConvKind::dgrad;
  convolution.stride = {1, 1, from(1, 12)};
  convolution.dilation = {1, 1, from(1, 12)};
  convolution.filter = {1, 1, from(1, 9)};
  convolution.lower = {0, 0, from(0, 9)};
  convolution.image = {1, 1, from(1, 40)};
  return convolution;
}

// Counts products and checks each of them.
struct Products {
  std::int64_t formed = 0;
  std::int64_t defined = 0;
};

Products count_products(const Convolution& convolution) {
  const std::int64_t stride = convolution.stride[2];
  const std::int64_t dilation = convolution.dilation[2];
  const abi::PhaseDimension along = phase_dimension(convolution, 2);
  const std::int64_t tap_step = along.tap_step.divisor;
  const std::int64_t output_step = dilation / along.common.divisor;
  Products products;
  std::int64_t pixels = 0;
  for (unsigned first = 0; first < phases_along(convolution, 2); ++first) {
    const abi::Phase phase = abi::find_phase(along, first);
    EXPECT_EQ(phase.pixels, pixels_along(convolution, 2, first));
    EXPECT_EQ(abi::divisor_of(along.pixels, phase.pixels).divisor, phase.pixels);
    if (phase.taps > 0) {
      EXPECT_EQ(abi::divisor_of(along.taps, phase.taps).divisor, phase.taps);
    }
    pixels += phase.pixels;
    for (std::int64_t m = 0; m < phase.pixels; ++m) {
      for (std::int64_t j = 0; j < phase.taps; ++j) {
        const std::int64_t tap = phase.tap + j * tap_step;
        EXPECT_LT(tap, convolution.filter[2]);
        EXPECT_EQ((phase.origin + m - j * output_step) * stride,
                  first + m * stride + convolution.lower[2] - tap * dilation);
        ++products.formed;
      }
    }
  }
  EXPECT_EQ(pixels, convolution.image[2]);
  for (std::int64_t h = 0; h < convolution.image[2]; ++h)
    for (std::int64_t r = 0; r < convolution.filter[2]; ++r)
      products.defined += (h + convolution.lower[2] - r * dilation) % stride == 0 ? 1 : 0;
  return products;
}

TEST(ConvPhases, form_the_products_of_the_definition_and_no_other) {
  std::mt19937_64 random{tests::random_seed()};
  for (int trial = 0; trial < 3000 && !HasFailure(); ++trial) {
    const Convolution convolution = draw_dimension(random);
    const Products products = count_products(convolution);
    EXPECT_EQ(products.formed, products.defined)
        << "H=" << convolution.image[2] << " R=" << convolution.filter[2]
        << " stride=" << convolution.stride[2] << " dilation=" << convolution.dilation[2]
        << " padding=" << convolution.lower[2];
  }
}

}  // namespace
}  // namespace gemmery::templates
