// SPDX-License-Identifier: Apache-2.0
// The forms of mma.sp among the matrix forms: every type, k and selector.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/emulator/recording/matrix_forms.hpp"

namespace gemmery::recording {

std::vector<MatrixForm> sparse_forms();

// One warp a block; reads the inputs of its case and writes D, register by register.
std::string sparse_kernel(const MatrixForm& form);

// The registers of A as stored, of B and of C, and every lane's metadata.
std::vector<std::uint32_t> sparse_inputs(const MatrixForm& form, int test_case);

}  // namespace gemmery::recording
