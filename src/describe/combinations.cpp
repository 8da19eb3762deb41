// SPDX-License-Identifier: Apache-2.0
// The table of combinations, and the search for the first field that no row has.
#include "describe/combinations.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "describe/refusal.hpp"

namespace gemmery::describe {
namespace {

using enum OpcodeClass;
using enum MathOperation;
using E = Element;
using InstructionShape = std::array<int, 3>;

constexpr InstructionShape scalar{1, 1, 1};
constexpr InstructionShape packed_scalar{1, 1, 4};
constexpr InstructionShape mma_8x8x4{8, 8, 4};
constexpr InstructionShape mma_16x8x8{16, 8, 8};
constexpr InstructionShape mma_16x8x16{16, 8, 16};
constexpr InstructionShape mma_16x8x32{16, 8, 32};

// Tensors have the types of the instruction.
constexpr Combination plain(OpcodeClass opcode_class, const InstructionShape& shape, E element,
                            E accumulator, DType dtype) {
  return {opcode_class, shape, element, element,     accumulator,
          multiply_add, dtype, dtype,   Math::native};
}
// Tensors are float32; the instruction has narrower types.
constexpr Combination narrowed(const InstructionShape& shape, E element, MathOperation operation,
                               Math math) {
  return {TensorOp,  shape,          element,        element, E::float32,
          operation, DType::float32, DType::float32, math};
}
constexpr Combination bytes(OpcodeClass opcode_class, const InstructionShape& shape, E a, E b,
                            MathOperation operation, DType dtype_a, DType dtype_b) {
  const Math math = operation == multiply_add_saturate ? Math::saturate : Math::native;
  return {opcode_class, shape, a, b, E::int32, operation, dtype_a, dtype_b, math};
}
constexpr Combination float8(E a, E b, DType dtype_a, DType dtype_b) {
  return {TensorOp, mma_16x8x32,    a, b, E::float32, multiply_add, dtype_a,
          dtype_b,  Math::fp8_fast, 89};
}

constexpr auto combination_rows = std::to_array<Combination>({
    plain(TensorOp, mma_8x8x4, E::float64, E::float64, DType::float64),
    narrowed(mma_16x8x8, E::float32, multiply_add, Math::tf32),
    narrowed(mma_16x8x8, E::tfloat32, multiply_add, Math::tf32),
    narrowed(mma_16x8x8, E::float32, multiply_add_fast_f32, Math::tf32x3),
    narrowed(mma_16x8x8, E::tfloat32, multiply_add_fast_f32, Math::tf32x3),
    narrowed(mma_16x8x8, E::float32, multiply_add_fast_f16, Math::f16),
    narrowed(mma_16x8x8, E::float16, multiply_add_fast_f16, Math::f16),
    narrowed(mma_16x8x16, E::float32, multiply_add_fast_f16, Math::f16),
    narrowed(mma_16x8x16, E::float16, multiply_add_fast_f16, Math::f16),
    narrowed(mma_16x8x8, E::float32, multiply_add_fast_bf16, Math::bf16),
    narrowed(mma_16x8x8, E::bfloat16, multiply_add_fast_bf16, Math::bf16),
    narrowed(mma_16x8x16, E::float32, multiply_add_fast_bf16, Math::bf16),
    narrowed(mma_16x8x16, E::bfloat16, multiply_add_fast_bf16, Math::bf16),
    plain(TensorOp, mma_16x8x8, E::float16, E::float32, DType::float16),
    plain(TensorOp, mma_16x8x8, E::bfloat16, E::float32, DType::bfloat16),
    plain(TensorOp, mma_16x8x16, E::float16, E::float32, DType::float16),
    plain(TensorOp, mma_16x8x16, E::float16, E::float16, DType::float16),
    plain(TensorOp, mma_16x8x16, E::bfloat16, E::float32, DType::bfloat16),
    bytes(TensorOp, mma_16x8x32, E::int8, E::int8, multiply_add, DType::int8, DType::int8),
    bytes(TensorOp, mma_16x8x32, E::int8, E::uint8, multiply_add, DType::int8, DType::uint8),
    bytes(TensorOp, mma_16x8x32, E::uint8, E::int8, multiply_add, DType::uint8, DType::int8),
    bytes(TensorOp, mma_16x8x32, E::uint8, E::uint8, multiply_add, DType::uint8, DType::uint8),
    bytes(TensorOp, mma_16x8x32, E::int8, E::int8, multiply_add_saturate, DType::int8, DType::int8),
    bytes(TensorOp, mma_16x8x32, E::int8, E::uint8, multiply_add_saturate, DType::int8,
          DType::uint8),
    bytes(TensorOp, mma_16x8x32, E::uint8, E::int8, multiply_add_saturate, DType::uint8,
          DType::int8),
    bytes(TensorOp, mma_16x8x32, E::uint8, E::uint8, multiply_add_saturate, DType::uint8,
          DType::uint8),
    float8(E::float8_e4m3fn, E::float8_e4m3fn, DType::float8_e4m3fn, DType::float8_e4m3fn),
    float8(E::float8_e4m3fn, E::float8_e5m2, DType::float8_e4m3fn, DType::float8_e5m2),
    float8(E::float8_e5m2, E::float8_e4m3fn, DType::float8_e5m2, DType::float8_e4m3fn),
    float8(E::float8_e5m2, E::float8_e5m2, DType::float8_e5m2, DType::float8_e5m2),
    plain(Simt, scalar, E::float64, E::float64, DType::float64),
    plain(Simt, scalar, E::float32, E::float32, DType::float32),
    plain(Simt, scalar, E::float16, E::float32, DType::float16),
    plain(Simt, scalar, E::bfloat16, E::float32, DType::bfloat16),
    bytes(Simt, packed_scalar, E::int8, E::int8, multiply_add, DType::int8, DType::int8),
    bytes(Simt, packed_scalar, E::int8, E::uint8, multiply_add, DType::int8, DType::uint8),
    bytes(Simt, packed_scalar, E::uint8, E::int8, multiply_add, DType::uint8, DType::int8),
    bytes(Simt, packed_scalar, E::uint8, E::uint8, multiply_add, DType::uint8, DType::uint8),
});

std::string text_of(const InstructionShape& shape) {
  return fmt::format("{}", fmt::join(shape, "x"));
}
template <class Word>
std::string text_of(Word word) {
  return std::string(name(word));
}

// The rows that agree with the fields of an instruction considered so far.
class Candidates {
 public:
  Candidates() {
    for (const Combination& row : combination_rows) left_.push_back(&row);
  }

  // Keeps the rows whose field equals `asked`. Throws Error if none is left.
  template <class Value>
  void keep(std::string_view field, Value Combination::*member, const Value& asked) {
    std::vector<const Combination*> kept;
    std::ranges::copy_if(left_, std::back_inserter(kept),
                         [&](const Combination* row) { return row->*member == asked; });
    if (kept.empty()) refuse_field(field, member, asked);
    left_ = std::move(kept);
  }

  const Combination& only() const { return *left_.front(); }

 private:
  template <class Value>
  [[noreturn]] void refuse_field(std::string_view field, Value Combination::*member,
                                 const Value& asked) const {
    std::vector<std::string> served;
    for (const Combination* row : left_) {
      std::string text = text_of(row->*member);
      if (std::ranges::find(served, text) == served.end()) served.push_back(std::move(text));
    }
    refuse_unsupported(
        fmt::format("math_instruction.{}", field),
        fmt::format("{}{}", served.size() > 1 ? "one of " : "", fmt::join(served, ", ")),
        text_of(asked), "docs/describe.md lists the valid combinations");
  }

  std::vector<const Combination*> left_;
};

}  // namespace

std::span<const Combination> combinations() { return combination_rows; }

const Combination& find_combination(const MathInstruction& instruction) {
  Candidates candidates;
  candidates.keep("opcode_class", &Combination::opcode_class, instruction.opcode_class);
  candidates.keep("instruction_shape", &Combination::instruction_shape,
                  instruction.instruction_shape);
  candidates.keep("element_a", &Combination::element_a, instruction.element_a);
  candidates.keep("element_b", &Combination::element_b, instruction.element_b);
  candidates.keep("element_accumulator", &Combination::element_accumulator,
                  instruction.element_accumulator);
  candidates.keep("math_operation", &Combination::math_operation, instruction.math_operation);
  return candidates.only();
}

}  // namespace gemmery::describe
