// SPDX-License-Identifier: Apache-2.0
// Operand programs: an elementwise program on the elements of A or B before they are multiplied, in
// the language of epilogues.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gemmery/epilogue.hpp>
#include <gemmery/export.hpp>

namespace gemmery {

enum class ProductOperand : std::uint8_t { a, b };

namespace epilogue {
// The element of an operand program, as an expression.
inline Expression element() { return accum(); }
}  // namespace epilogue

// A program on an operand, with the tensors and numbers that it reads. The caller owns the memory.
//
//   OperandProgram("A = relu(a) * gate", {{"gate", gate}})
//
// `a` is the element as it is decoded and scaled, `A` the one that is multiplied (`b` and `B` in a
// program of B). Tensors broadcast to A's (L, M, K), or B's (L, K, N), by NumPy's rule. The program
// computes in float32 (float64 with float64 accumulators). Its value is rounded once, to nearest
// even, to the type that is multiplied: that of an outermost cast to a float type, else the
// operand's own type if it is float16, bfloat16, float32, float64 or an 8-bit float, else the other
// operand's if that is one of these, else float32.
class GEMMERY_API OperandProgram {
 public:
  // Statements that assign A or B, or a Python function or lambda of a or b; other names are as in
  // epilogue::Program. Throws Error (invalid_argument) with line, column, the word and a hint: for
  // what a program cannot be, for reductions, and for results besides the element; and as
  // EpilogueArguments for `operands`.
  explicit OperandProgram(std::string_view text, std::vector<EpilogueOperand> operands = {});
  // An expression of element(), or a program whose accum is the element and whose D is the value,
  // for A or B.
  explicit OperandProgram(const epilogue::Expression& value,
                          std::vector<EpilogueOperand> operands = {})
      : OperandProgram(epilogue::Program{{"D", value}}, std::move(operands)) {}
  explicit OperandProgram(const epilogue::Program& program,
                          std::vector<EpilogueOperand> operands = {});

  // The program as an epilogue's: its accum is the element, its D the value.
  const epilogue::Program& program() const noexcept { return arguments_.program(); }
  // In the program's order.
  const std::vector<EpilogueOperand>& operands() const noexcept { return arguments_.operands(); }
  // The operand that the text names; none for an expression.
  std::optional<ProductOperand> operand() const noexcept { return operand_; }

 private:
  std::optional<ProductOperand> operand_;
  EpilogueArguments arguments_;
};

// A program of the operand as text, "A = gate * relu(a)", which OperandProgram reads back.
GEMMERY_API std::string operand_program_text(const epilogue::Program& program,
                                             ProductOperand operand);

}  // namespace gemmery
