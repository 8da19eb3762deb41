// SPDX-License-Identifier: Apache-2.0
// Operands as the line of a problem spells them, and matrices spelled again.
#pragma once

#include <gemmery/problem.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "operation/grammar_words.hpp"
#include "operation/matrix.hpp"

namespace gemmery::grammar {

using operation::MatrixExtents;

// Which operand it is decides what may be said of it.
enum class Role : std::uint8_t {
  matrix,    // A, B, out: no dims
  addend,    // C
  epilogue,  // a tensor of the epilogue's
  reduced,   // one of its results, to which elements are reduced
};

// An operand as it is spelled, before the extents are known.
struct OperandWords {
  Word word = {};
  Role role = Role::matrix;
  DType dtype = DType::float32;
  bool names_tf32 = false;
  Layout layout = Layout::row;
  std::optional<std::string> dims = {};
  std::optional<std::int64_t> leading = {};
  std::optional<std::int64_t> batch = {};
  std::optional<std::int64_t> alignment = {};
  std::optional<std::pair<std::int64_t, std::int64_t>> strides = {};  // of rows, of columns
};

// What a silent operand is: packed and row major.
OperandWords packed_operand(Role role, DType dtype);

// An element type; "tf32" names float32 and a way to compute.
DType read_dtype(const Word& word, std::string_view text, bool& names_tf32);

// `value` is what stands behind the word's "NAME=".
OperandWords read_operand(const Word& word, Role role, std::string_view value);

// The matrix that is spelled, beside an out of `extents` (for A and B: of their own).
MatrixType read_matrix(const OperandWords& operand, const MatrixExtents& extents);

// The spelling that, read back, gives this matrix again.
std::string matrix_text(const MatrixType& matrix, const MatrixExtents& extents,
                        Role role = Role::matrix);

}  // namespace gemmery::grammar
