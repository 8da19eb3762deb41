// SPDX-License-Identifier: Apache-2.0
// The tests of Hopper launches on the first GPU.
#include "tests/runtime/hopper_gemm.hpp"

namespace gemmery::tests {

INSTANTIATE_TEST_SUITE_P(First, HopperGemm, testing::Values(Device::cuda(0)));

}  // namespace gemmery::tests
