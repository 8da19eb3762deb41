// SPDX-License-Identifier: Apache-2.0
// Repacking: operands that TMA cannot load are copied into the workspace, in lines that it can
// load. This file has the layouts of the copies and the launch of the copy kernel
// (device/copy/repack.cuh).
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

// True if a kernel with this rule for A or B repacks it: the rule accepts any alignment, and with
// LayoutRule::any any strides.
constexpr bool is_repacked(const OperandRule& rule) noexcept {
  return rule.alignment < widest_access;
}

// The rule of a repacked operand.
OperandRule repacked_rule(DType dtype, LayoutRule layout) noexcept;

// A or B as the kernel multiplies it: the operand itself or its copy.
struct ProductOperand {
  const char* name;
  OperandRule rule;  // of what TMA loads
  MatrixType source;
  MatrixType matrix;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t batches;
  bool is_copy;

  TmaView view() const { return view_of(rule, matrix, rows, columns, batches); }
  std::size_t copied_bytes() const;  // of the workspace; 0 without a copy
};
ProductOperand product_a(const OperandRules& rules, const GemmProblem& problem) noexcept;
ProductOperand product_b(const OperandRules& rules, const GemmProblem& problem) noexcept;

// Why neither TMA nor a repacked copy supports an operand, in words; empty if one does.
std::string find_misfit(const ProductOperand& operand);

// The problem after repacking.
GemmProblem problem_of_product(const OperandRules& rules, const GemmProblem& problem);

// Bytes that the copies read and write.
double bytes_moved(const OperandRules& rules, const GemmProblem& problem) noexcept;

// The design of the copy kernel; `rules` must have a repacked operand. `has_pointers`: sources may
// be batches by pointers.
abi::RepackDesign repack_design(const OperandRules& rules, bool has_pointers) noexcept;

// --- launches -----------------------------------------------------------------------------------

// An operand with its memory.
struct OperandData {
  const ProductOperand& operand;
  const void* data;
};

// Adds workspace for the copies after the plan's workspace, and returns the offset of each
// operand's copy. Copies of no elements take none.
std::array<std::size_t, 2> reserve_copies(const std::array<ProductOperand, 2>& operands,
                                          runtime::LaunchPlan& plan);

// Sets the plan's preparation, which copies the repacked ones of these operands.
void prepare_copies(const std::array<OperandData, 2>& operands,
                    const std::array<std::size_t, 2>& offsets, runtime::LaunchPlan& plan);

}  // namespace gemmery::templates
