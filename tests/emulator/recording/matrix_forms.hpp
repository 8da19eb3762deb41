// SPDX-License-Identifier: Apache-2.0
// Matrix instructions beside those of tensor_core_forms.hpp: wmma, whose fragments have no
// documented layout, mma.sync where sums end below the smallest subnormal number, and mma.sp.
// Inputs are determined by a form's name and the case number.
#pragma once

#include <gemmery/device.hpp>

#include <string>
#include <vector>

#include "tests/emulator/recording/tensor_core_forms.hpp"

namespace gemmery::recording {

enum class MatrixKind { wmma, tiny_sums, sparse };

struct MatrixForm {
  std::string name = {};             // unique: the opcode, and what its inputs are
  tests::recording::Form form = {};  // extents and types
  MatrixKind kind = MatrixKind::wmma;
  int selector = 0;  // of the lanes that hold a sparse form's metadata
};

inline constexpr int cases_per_matrix_form = 204;  // a dozen of each class of inputs

std::vector<MatrixForm> all_matrix_forms();

// Runs all cases of a form and returns a digest of D for each.
std::vector<std::uint32_t> run_matrix_form(const MatrixForm& form, Device device);

}  // namespace gemmery::recording
