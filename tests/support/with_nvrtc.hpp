// SPDX-License-Identifier: Apache-2.0
// Tests that compile kernels are skipped without a compiler, with the places that were searched.
#pragma once

#include <gtest/gtest.h>

#include "jit/nvrtc.hpp"

namespace gemmery::tests {

class WithNvrtc : public testing::Test {
 protected:
  void SetUp() override {
    const jit::CompilerStatus status = jit::compiler_status();
    if (!status.found) GTEST_SKIP() << status.searched;
  }
};

}  // namespace gemmery::tests
