// SPDX-License-Identifier: Apache-2.0
// Reads an instruction's modifiers and operands and fills in an Operation. finish() refuses every
// modifier that no decoder has taken, so none is ever ignored.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "emulator/arithmetic/rounding.hpp"
#include "emulator/instruction/decode.hpp"

namespace gemmery::emulator {

class Form {
 public:
  Form(DecodeContext& context, const Instruction& instruction, Operation& operation) noexcept
      : context_(context), instruction_(instruction), operation_(operation) {}

  // --- modifiers, each of which is taken once ---------------------------------------------------

  // Takes the word; false if it is not present.
  bool take(std::string_view word) noexcept;
  // Takes the first of `words` that is present and returns its index; nullopt if none is.
  std::optional<std::size_t> take_one_of(std::span<const std::string_view> words) noexcept;
  // Takes the next type; refuses the form if there is none.
  ScalarType take_type();
  // Takes .rn .rz .rm .rp; nullopt if none is present.
  std::optional<Rounding> take_rounding() noexcept;
  // Refuses the form if a modifier has not been taken.
  void finish();
  [[noreturn]] void refuse(std::string_view why);

  // --- operands ---------------------------------------------------------------------------------
  std::size_t operand_count() const noexcept { return instruction_.operands.size(); }
  const Operand& operand(std::size_t index);
  void expect_operands(std::size_t count);
  // Operand 0 is the destination and the others are sources, in slots of the same order.
  void assign(Execute execute, ScalarType destination, std::initializer_list<ScalarType> sources);
  std::size_t add_source(const Operand& operand, ScalarType type) {
    return context_.add_source(operation_, operand, type);
  }
  std::size_t add_destination(const Operand& operand, ScalarType type) {
    return context_.add_destination(operation_, operand, type);
  }

  DecodeContext& context() noexcept { return context_; }
  const Instruction& instruction() const noexcept { return instruction_; }
  Operation& operation() noexcept { return operation_; }

 private:
  bool is_taken(std::size_t index) const noexcept { return ((taken_ >> index) & 1) != 0; }
  void mark(std::size_t index) noexcept { taken_ |= std::uint64_t{1} << index; }

  DecodeContext& context_;
  const Instruction& instruction_;
  Operation& operation_;
  std::uint64_t taken_ = 0;  // a bit per modifier; longer lists are refused by finish()
};

// One handler per type of an instruction.
struct TypedHandler {
  ScalarType type;
  Execute execute;
};
// Refuses a type that has no row.
Execute find_handler(Form& form, ScalarType type, std::span<const TypedHandler> rows);

// The bN type of that width (8, 16, 32, 64 or 128), for operands whose bits alone matter.
ScalarType untyped(int bits) noexcept;

// Executes an instruction without an effect.
inline Step run_nothing(Warp&, const Operation&, LaneMask) { return Step::next; }

}  // namespace gemmery::emulator
