// SPDX-License-Identifier: Apache-2.0
// Operands in the line of a problem: parsing, and spelling matrices.
#pragma once

#include <gemmery/problem.hpp>
#include <gemmery/scale_layout.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operation/epilogue_operands.hpp"
#include "operation/grammar_words.hpp"
#include "operation/matrix.hpp"

namespace gemmery::grammar {

using operation::MatrixExtents;

// The role of an operand, which decides which modifiers it may have.
enum class Role : std::uint8_t {
  matrix,    // A, B, out: no dims
  addend,    // C
  epilogue,  // a tensor of the epilogue
  reduced,   // a result of the epilogue that is a reduction
  blocks,    // a result of the epilogue for blocks of out
  tensor,    // A, B, out of a convolution
};

// An operand as parsed, before the extents are known.
struct OperandWords {
  Word word = {};
  Role role = Role::matrix;
  DType dtype = DType::float32;
  bool names_tf32 = false;
  Layout layout = Layout::row;
  std::optional<std::string> dims = {};
  std::optional<std::int64_t> leading = {};
  std::optional<std::int64_t> batch = {};
  ScaleLayout values_layout = ScaleLayout::strided;  // of a result for blocks
  bool has_pointers = false;                         // instead of a batch stride
  std::optional<std::int64_t> alignment = {};
  std::optional<std::pair<std::int64_t, std::int64_t>> strides = {};  // of rows, of columns
  std::vector<std::int64_t> outer_strides = {};  // of a tensor: all except that of its channels
};

// The default of an operand without modifiers: packed and row major.
OperandWords packed_operand(Role role, DType dtype);

// An element type; "tf32" means float32 and a math.
DType read_dtype(const Word& word, std::string_view text, bool& names_tf32);

// `value` is the text after the word's "NAME=".
OperandWords read_operand(const Word& word, Role role, std::string_view value);

// The matrix for these words. `extents` are those of out (for A and B: their own).
MatrixType read_matrix(const OperandWords& operand, const MatrixExtents& extents);

// The spelling that reads back as this matrix. `names_batch`: dims have an `l`, for a tensor with a
// matrix per batch where out has none.
std::string matrix_text(const MatrixType& matrix, const MatrixExtents& extents,
                        Role role = Role::matrix, bool names_batch = false);

// A tensor of the epilogue: its name, and the word that binds it.
struct NamedWord {
  std::string name;
  Word word;
  std::string_view value;
};
// `before`: the program's inputs, if this is a result.
operation::EpilogueMatrix read_epilogue_tensor(const NamedWord& named,
                                               const epilogue::Program& program,
                                               const std::vector<operation::EpilogueMatrix>& before,
                                               const GemmProblem& problem);

// The spelling of a tensor of the problem's epilogue.
std::string epilogue_operand_text(const GemmProblem& problem, std::size_t operand);

}  // namespace gemmery::grammar
