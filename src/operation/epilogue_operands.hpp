// SPDX-License-Identifier: Apache-2.0
// What an epilogue reads and stores beside out: the rules that follow from how it lies in memory,
// one answer for operands in memory and for problems that are spelled.
#pragma once

#include <gemmery/epilogue.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/tensor.hpp>

#include <string>
#include <string_view>
#include <vector>

#include "operation/matrix.hpp"

namespace gemmery::operation {

// A name of a program with the memory that belongs to it. Strides are 0 along what does not vary.
struct EpilogueMatrix {
  std::string name;
  bool is_number = false;
  MatrixType type = {};
};

// Elements that have no neighbours are read one by one, wherever they are: no more is promised of
// their addresses than an element's width, so that one kernel serves them all.
MatrixType settle_alignment(MatrixType type) noexcept;

// A program whose results are all stored, with what it reads and stores in its order.
struct DescribedEpilogue {
  EpilogueId id = default_epilogue;
  std::vector<MatrixType> operands;
};

// Interns. Throws Error (invalid_argument, unsupported) naming the operand and where the program's
// text has it: an element type that is no number by itself, a result of a reduction that has the
// shape of out, one without reduction that has not.
DescribedEpilogue describe_epilogue(const epilogue::Program& program,
                                    const std::vector<EpilogueMatrix>& matrices,
                                    const MatrixExtents& extents);

// Whether the default path computes this: linear_combination() with numbers alpha and beta and a
// tensor C.
bool is_linear_combination(const EpilogueArguments& epilogue) noexcept;

// The operand that is called so; nullptr where none is.
const EpilogueOperand* find_operand(const std::vector<EpilogueOperand>& operands,
                                    std::string_view name) noexcept;

// Operands as views of rank 3 of a problem whose out is (L, M, N). Throws Error (invalid_argument)
// for shapes, devices and memory that do not fit.
std::vector<EpilogueOperand> view_operands(const EpilogueArguments& epilogue, const Tensor& out);

// Their matrices; `program` tells which of them elements are reduced to.
std::vector<EpilogueMatrix> matrices_of(const std::vector<EpilogueOperand>& views,
                                        const epilogue::Program& program);

// How elements are reduced to the result that is called so; none for what is no result.
epilogue::Reduction reduction_of(const epilogue::Program& program,
                                 std::string_view result) noexcept;

// Who else reads and writes memory.
struct ProductOperands {
  const Tensor& a;
  const Tensor& b;
  const Tensor& out;
};

// `views` are the program's inputs, then its results. Throws Error (invalid_argument) where a
// result shares memory with A, B, out or another result; where a tensor that is read shares some
// with a result or with out and is not exactly that; and where it shares any with what all of out
// is reduced to, which is written while others still read.
void check_epilogue_overlaps(const std::vector<EpilogueOperand>& views,
                             const epilogue::Program& program, const ProductOperands& product);

// Throws Error (invalid_argument) where elements would be read from nowhere or at addresses that
// are no multiple of their width.
void check_memory(std::string_view operand, const Tensor& tensor);
void check_device(std::string_view operand, const Tensor& tensor, Device device);

}  // namespace gemmery::operation
