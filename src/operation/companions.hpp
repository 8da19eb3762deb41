// SPDX-License-Identifier: Apache-2.0
// Scales and zero points: their extents, their rules, the same for operands in memory and for
// problems in text, and their views.
#pragma once

#include <gemmery/arguments.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/scales.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operation/matrix.hpp"

namespace gemmery::operation {

// An operand's scales are read in a kernel of at most so many.
inline constexpr std::size_t most_scales = 2;

// The extents of an operand: `rows` are those of A, columns of B. Its companions have up to `batch`
// matrices; one only if they have values for rows, or for blocks of k, that are divided among
// groups
// (`are_rows_ragged`, `is_k_ragged`).
struct OperandExtents {
  std::int64_t batch = 1;
  std::int64_t rows = 0;
  std::int64_t k = 0;
  bool are_rows_ragged = false;
  bool is_k_ragged = false;
};
OperandExtents operand_extents(const GemmProblem& problem, bool is_a) noexcept;

// True if the groups divide the rows of A (columns of B) among them.
bool are_rows_ragged(const std::optional<Groups>& groups, bool is_a) noexcept;
bool is_k_ragged(const std::optional<Groups>& groups) noexcept;

// A block that reaches over a whole extent gets 0 there; one of swizzled scales keeps its row.
ScaleBlock settle_block(ScaleBlock block, ScaleLayout layout,
                        const OperandExtents& extents) noexcept;

// The extents of a companion's matrix, (row blocks, k blocks), or (1, values) if it is swizzled.
MatrixExtents companion_extents(ScaleBlock block, ScaleLayout layout,
                                const OperandExtents& extents) noexcept;

// "scale_a", "scale_a.1" for the second scale, "zero_a"; likewise of B.
std::string scale_name(bool is_a, std::size_t index);
// The same as a word of an epilogue: "scale_a_1".
std::string scale_word(bool is_a, std::size_t index);
std::string_view zero_point_name(bool is_a) noexcept;
std::string_view table_name(bool is_a) noexcept;
std::string_view order_name(bool is_a) noexcept;

// True if a scale can multiply the sums in an epilogue: it does not vary along k, and has a value
// for every row or one for all of them.
bool is_of_sums(const CompanionType& scale) noexcept;
bool has_companions(const GemmProblem& problem) noexcept;
// The bytes of all companions, each once.
double companion_bytes(const GemmProblem& problem) noexcept;

// True if the elements lie one behind the other, in the order of the extents.
bool has_packed_elements(const Tensor& tensor) noexcept;

// True if an operand enters products as a floating-point number though it is an integer.
bool is_product_decoded(const GemmProblem& problem) noexcept;

// Throws Error (invalid_argument, unsupported) naming the companion: for types, blocks, layouts and
// forms of problems that no arguments can have. `a` and `b` need no strides yet.
void check_companions(const GemmProblem& problem);

// One operand's companions as given, with views of the tensors.
struct CompanionViews {
  OperandCompanions types;
  BoundCompanions memory;
};
// Throws Error (invalid_argument) for shapes, devices and memory that do not fit the operand.
CompanionViews view_companions(const ScaledOperand& operand, bool is_a,
                               const OperandExtents& extents, Device device);

// A companion's memory in arguments, and its name.
struct NamedCompanion {
  std::string name;
  Tensor* view;
  const MatrixType* type;
};
void append_companions(bool is_a, BoundCompanions& memory, const OperandCompanions& types,
                       std::vector<NamedCompanion>& list);

// Throws Error (invalid_argument) if a companion shares memory with a result.
void check_companion_overlaps(bool is_a, const BoundCompanions& memory,
                              const GemmArguments& arguments);

}  // namespace gemmery::operation
