// SPDX-License-Identifier: Apache-2.0
// The tensors that an epilogue reads, and its results other than out: the rules that follow from
// their layout, the same for operands in memory and for problems in text.
#pragma once

#include <gemmery/epilogue.hpp>
#include <gemmery/groups.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/tensor.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operation/matrix.hpp"

namespace gemmery::operation {

// A name of a program with its tensor. Strides are 0 along directions that are broadcast.
struct EpilogueMatrix {
  std::string name;
  bool is_number = false;
  MatrixType type = {};
  ScaleLayout layout = ScaleLayout::strided;
};

// Aligned to an element's width.
MatrixType with_own_alignment(MatrixType type) noexcept;

// If elements are not contiguous, they are read one by one. Their alignment is then an element's
// width, so that one kernel serves every alignment.
MatrixType settle_alignment(MatrixType type) noexcept;

// True if elements are contiguous along the extent that differs from group to group. A group may
// begin anywhere, so their alignment is then an element's width, too.
bool is_contiguous_along(const MatrixType& type, std::optional<Ragged> ragged) noexcept;

// A program whose results are all stored, with its inputs and results in its order.
struct DescribedEpilogue {
  EpilogueId id = default_epilogue;
  std::vector<MatrixType> operands;
};

// Interns the program; `ragged` is the extent of out that differs from group to group. Throws Error
// (invalid_argument, unsupported) with the operand and its place in the program's text: for an
// element type that is not a number by itself, a result of a reduction that has the shape of out,
// or one without reduction that has another shape.
DescribedEpilogue describe_epilogue(const epilogue::Program& program,
                                    const std::vector<EpilogueMatrix>& matrices,
                                    const MatrixExtents& extents,
                                    std::optional<Ragged> ragged = std::nullopt);

// True if the default path computes this: linear_combination() with numbers alpha and beta and a
// tensor C.
bool is_linear_combination(const EpilogueArguments& epilogue) noexcept;

// The operand with this name; nullptr if there is none.
const EpilogueOperand* find_operand(const std::vector<EpilogueOperand>& operands,
                                    std::string_view name) noexcept;

// What an epilogue's operands broadcast to.
struct OutDomain {
  Tensor elements;        // (L, M, N); the groups of a grouped problem are its batch
  std::int64_t matrices;  // of out: 1 if groups share it
};

// Operands as views of rank 3. Throws Error (invalid_argument) for shapes, devices and memory that
// do not fit.
std::vector<EpilogueOperand> view_operands(const EpilogueArguments& epilogue,
                                           const OutDomain& domain);

// The matrices of these operands; `program` tells which of them are reductions.
std::vector<EpilogueMatrix> matrices_of(const std::vector<EpilogueOperand>& views,
                                        const epilogue::Program& program);

// The reduction of the result with this name; none for other names.
epilogue::Reduction reduction_of(const epilogue::Program& program,
                                 std::string_view result) noexcept;

// The operands of the product, which also read and write memory.
struct ProductOperands {
  const Tensor& a;
  const Tensor& b;
  const Tensor& out;
};

// `views` are the program's inputs, then its results. Throws Error (invalid_argument) if a result
// shares memory with A, B, out or another result; if an input shares memory with a result or with
// out and is not exactly that tensor; and if an input shares memory with a reduction of all of out,
// which is written while other blocks still read.
void check_epilogue_overlaps(const std::vector<EpilogueOperand>& views,
                             const epilogue::Program& program, const ProductOperands& product);

// Throws Error (invalid_argument) if elements would be read from a null pointer or at addresses
// that are not multiples of their width.
void check_memory(std::string_view operand, const Tensor& tensor);
// Throws Error (invalid_argument) for a batch by pointers of another number of matrices.
void check_pointer_count(std::string_view operand, const Tensor& tensor, std::int64_t batches);
void check_device(std::string_view operand, const Tensor& tensor, Device device);

}  // namespace gemmery::operation
