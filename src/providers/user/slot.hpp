// SPDX-License-Identifier: Apache-2.0
// One parameter of a user's entry: its meaning, operand and type, and the word that declares it.
#pragma once

#include <gemmery/epilogue.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/problem.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gemmery::user {

enum class SlotKind : std::uint8_t {
  pointer,
  extent,
  stride,
  alpha,
  beta,
  number,  // a number of the epilogue
  constant,
  workspace,
  tensor_map
};

enum class SlotType : std::uint8_t { i32, u32, i64, u64, f32, f64, pointer, tensor_map };
constexpr bool is_float(SlotType type) noexcept {
  return type == SlotType::f32 || type == SlotType::f64;
}
std::size_t size_of(SlotType type) noexcept;
std::size_t alignment_of(SlotType type) noexcept;

enum class Axis : std::uint8_t { batch, row, column };

// Operands by number: A, B, C and out, then those of the epilogue in order.
enum OperandNumber : int { operand_a, operand_b, operand_c, operand_out, first_of_epilogue };

struct Slot {
  SlotKind kind = SlotKind::constant;
  SlotType type = SlotType::i32;
  int operand = operand_a;
  Axis axis = Axis::row;  // for a stride
  char extent = 'm';      // m, n, k or l
  double constant = 0;
  std::array<std::uint32_t, 3> box{1, 1, 1};  // for a tensor map: batches, rows, columns
  bool has_batches = false;                   // the map has three dimensions
  int swizzle_bytes = 0;
};

// The names that a word may use.
struct SlotScope {
  const OperandRules& operands;
  const EpilogueRules* epilogue;  // nullptr: the default program
};

// Throws Error (invalid_argument), which names the word.
Slot parse_slot(std::string_view word, const SlotScope& scope);

// "A", or the operand's name in the epilogue.
std::string operand_name(int operand, const SlotScope& scope);

// The rule of A, B, C or out.
const OperandRule& rule_of(int operand, const OperandRules& rules) noexcept;

// The operand's matrix in a problem that has the operand.
const MatrixType& matrix_of(int operand, const GemmProblem& problem) noexcept;
std::int64_t stride_of(const MatrixType& matrix, Axis axis) noexcept;

}  // namespace gemmery::user
