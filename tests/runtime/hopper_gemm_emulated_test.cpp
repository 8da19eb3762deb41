// SPDX-License-Identifier: Apache-2.0
// The tests of Hopper launches on an emulated H200.
#include "tests/runtime/hopper_gemm.hpp"

namespace gemmery::tests {

INSTANTIATE_TEST_SUITE_P(H200, HopperGemm, testing::Values(Device::emulated(1)));

}  // namespace gemmery::tests
