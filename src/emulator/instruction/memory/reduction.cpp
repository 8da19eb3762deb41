// SPDX-License-Identifier: Apache-2.0
// Elementwise reductions, in a table by operation and type.
#include "emulator/instruction/memory/reduction.hpp"

#include <bit>
#include <cstring>

#include "emulator/arithmetic/float_arithmetic.hpp"
#include "emulator/arithmetic/float_format.hpp"

namespace gemmery::emulator {
namespace {

struct F16Element {
  std::uint16_t bits;
  float value() const { return std::bit_cast<float>(f32_from_f16(bits)); }
  static F16Element of(float value) {
    return {static_cast<std::uint16_t>(f16_from_f32(std::bit_cast<std::uint32_t>(value)))};
  }
};
struct Bf16Element {
  std::uint16_t bits;
  float value() const { return std::bit_cast<float>(f32_from_bf16(bits)); }
  static Bf16Element of(float value) {
    return {static_cast<std::uint16_t>(bf16_from_f32(std::bit_cast<std::uint32_t>(value)))};
  }
};

// f32 holds a sum of two f16 or bf16 precisely enough that the second rounding is harmless.
struct Add {
  template <class T>
  static T apply(T old, T operand) {
    return static_cast<T>(old + operand);
  }
  static F16Element apply(F16Element old, F16Element operand) {
    return F16Element::of(old.value() + operand.value());
  }
  static Bf16Element apply(Bf16Element old, Bf16Element operand) {
    return Bf16Element::of(old.value() + operand.value());
  }
  static float apply(float old, float operand) {
    return flush(add(flush(old), flush(operand), Rounding::nearest_even));
  }
  static double apply(double old, double operand) { return old + operand; }
};

template <Extreme which>
struct Pick {
  template <class T>
  static T apply(T old, T operand) {
    return (operand < old) == (which == Extreme::minimum) ? operand : old;
  }
  static F16Element apply(F16Element old, F16Element operand) {
    return F16Element::of(extreme(old.value(), operand.value(), which, false, f16_nan()));
  }
  static Bf16Element apply(Bf16Element old, Bf16Element operand) {
    return Bf16Element::of(extreme(old.value(), operand.value(), which, false, f16_nan()));
  }
  static float f16_nan() { return std::bit_cast<float>(f32_nan); }
};

struct Increment {
  static std::uint32_t apply(std::uint32_t old, std::uint32_t operand) {
    return old >= operand ? 0 : old + 1;
  }
};
struct Decrement {
  static std::uint32_t apply(std::uint32_t old, std::uint32_t operand) {
    return old == 0 || old > operand ? operand : old - 1;
  }
};
struct And {
  template <class T>
  static T apply(T old, T operand) {
    return old & operand;
  }
};
struct Or {
  template <class T>
  static T apply(T old, T operand) {
    return old | operand;
  }
};
struct Xor {
  template <class T>
  static T apply(T old, T operand) {
    return old ^ operand;
  }
};

template <class Operation, class T, std::size_t count>
void update(void* value, const void* operand) {
  T old[count], other[count];
  std::memcpy(old, value, sizeof old);
  std::memcpy(other, operand, sizeof other);
  for (std::size_t index = 0; index < count; ++index)
    old[index] = Operation::apply(old[index], other[index]);
  std::memcpy(value, old, sizeof old);
}

template <class Operation, class T>
constexpr Reduction of() {
  return {&update<Operation, T, 1>, &update<Operation, T, 16 / sizeof(T)>, sizeof(T)};
}

struct ReductionRow {
  std::string_view operation;
  ScalarType type;
  Reduction reduction;
};

using Minimum = Pick<Extreme::minimum>;
using Maximum = Pick<Extreme::maximum>;

constexpr ReductionRow reduction_rows[] = {
    {"add", ScalarType::u32, of<Add, std::uint32_t>()},
    {"add", ScalarType::s32, of<Add, std::uint32_t>()},
    {"add", ScalarType::u64, of<Add, std::uint64_t>()},
    {"add", ScalarType::f16, of<Add, F16Element>()},
    {"add", ScalarType::bf16, of<Add, Bf16Element>()},
    {"add", ScalarType::f32, of<Add, float>()},
    {"add", ScalarType::f64, of<Add, double>()},
    {"min", ScalarType::u32, of<Minimum, std::uint32_t>()},
    {"min", ScalarType::s32, of<Minimum, std::int32_t>()},
    {"min", ScalarType::u64, of<Minimum, std::uint64_t>()},
    {"min", ScalarType::s64, of<Minimum, std::int64_t>()},
    {"min", ScalarType::f16, of<Minimum, F16Element>()},
    {"min", ScalarType::bf16, of<Minimum, Bf16Element>()},
    {"max", ScalarType::u32, of<Maximum, std::uint32_t>()},
    {"max", ScalarType::s32, of<Maximum, std::int32_t>()},
    {"max", ScalarType::u64, of<Maximum, std::uint64_t>()},
    {"max", ScalarType::s64, of<Maximum, std::int64_t>()},
    {"max", ScalarType::f16, of<Maximum, F16Element>()},
    {"max", ScalarType::bf16, of<Maximum, Bf16Element>()},
    {"inc", ScalarType::u32, of<Increment, std::uint32_t>()},
    {"dec", ScalarType::u32, of<Decrement, std::uint32_t>()},
    {"and", ScalarType::b32, of<And, std::uint32_t>()},
    {"and", ScalarType::b64, of<And, std::uint64_t>()},
    {"or", ScalarType::b32, of<Or, std::uint32_t>()},
    {"or", ScalarType::b64, of<Or, std::uint64_t>()},
    {"xor", ScalarType::b32, of<Xor, std::uint32_t>()},
    {"xor", ScalarType::b64, of<Xor, std::uint64_t>()},
};

}  // namespace

Reduction find_reduction(std::string_view operation, ScalarType type) noexcept {
  for (const ReductionRow& row : reduction_rows)
    if (row.operation == operation && row.type == type) return row.reduction;
  return {};
}

}  // namespace gemmery::emulator
