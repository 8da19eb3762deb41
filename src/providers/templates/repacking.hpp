// SPDX-License-Identifier: Apache-2.0
// Operands that TMA cannot walk, as their copies in the workspace, which it can; the launch of the
// kernel that copies them (device/copy/repack.cuh).
#pragma once

#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>
#include <gemmery/tensor.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "device/abi/repack.hpp"
#include "providers/templates/name_words.hpp"
#include "providers/templates/tma_view.hpp"
#include "runtime/launch_plan.hpp"

namespace gemmery::templates {

// Whether a kernel with this rule for A or B multiplies a copy: it takes the operand at any
// alignment, and with LayoutRule::any at any strides.
constexpr bool is_repacked(const OperandRule& rule) noexcept {
  return rule.alignment < widest_access;
}

// The rule for an operand of which a copy is multiplied.
OperandRule repacked_rule(DType dtype, LayoutRule layout) noexcept;

// A or B as a kernel multiplies it: as it lies, or as its copy does.
struct ProductOperand {
  const char* name;
  OperandRule rule;  // what TMA walks
  MatrixType source;
  MatrixType matrix;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t batches;
  bool is_copy;

  TmaView view() const { return view_of(rule, matrix, rows, columns, batches); }
  std::size_t copied_bytes() const;  // of the workspace; 0 where there is no copy
};
ProductOperand product_a(const OperandRules& rules, const GemmProblem& problem) noexcept;
ProductOperand product_b(const OperandRules& rules, const GemmProblem& problem) noexcept;

// What neither TMA nor a copy can say of an operand, in words; empty where they can.
std::string find_misfit(const ProductOperand& operand);

// The problem that is left when the operands are copied.
GemmProblem problem_of_product(const OperandRules& rules, const GemmProblem& problem);

// Bytes that the copies read and write.
double bytes_moved(const OperandRules& rules, const GemmProblem& problem) noexcept;

// What the copy kernel is compiled for; `rules` has an operand that is copied. `has_pointers`:
// where sources may be batches by pointers.
abi::RepackDesign repack_design(const OperandRules& rules, bool has_pointers) noexcept;

// --- launches -----------------------------------------------------------------------------------

// One operand and where its elements are.
struct OperandData {
  const ProductOperand& operand;
  const void* data;
};

// Asks for workspace behind what the plan asks for already, and says where each operand's copy
// begins in it. Copies of no elements take none.
std::array<std::size_t, 2> reserve_copies(const std::array<ProductOperand, 2>& operands,
                                          runtime::LaunchPlan& plan);

// Sets the plan's preparation: it copies what of these is to be copied.
void prepare_copies(const std::array<OperandData, 2>& operands,
                    const std::array<std::size_t, 2>& offsets, runtime::LaunchPlan& plan);

}  // namespace gemmery::templates
