// SPDX-License-Identifier: Apache-2.0
// Tests that run kernels on an emulated H200, on random inputs.
#pragma once

#include <gemmery/device.hpp>

#include <random>

#include "tests/support/random_seed.hpp"
#include "tests/support/row_sample.hpp"
#include "tests/support/with_nvrtc.hpp"

namespace gemmery::tests {

class OnEmulatedH200 : public WithNvrtc {
 protected:
  const Device h200_ = parse_device("emulated:h200").value();
  std::mt19937_64 random_{random_seed()};
  RowSample rows_;
};

}  // namespace gemmery::tests
