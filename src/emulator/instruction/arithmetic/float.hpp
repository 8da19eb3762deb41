// SPDX-License-Identifier: Apache-2.0
// Decoders of the floating-point forms of opcodes that integers have, too (arithmetic.cpp chooses),
// and the modifiers that handlers read from Operation::flags.
#pragma once

#include "emulator/arithmetic/float_format.hpp"
#include "emulator/arithmetic/rounding.hpp"
#include "emulator/instruction/form.hpp"

namespace gemmery::emulator {

// Each one decodes f32, f64 and the halves. The caller has taken `type` from the form.
void decode_float_sum(Form& form, ScalarType type);       // add, sub
void decode_float_multiply(Form& form, ScalarType type);  // mul
void decode_float_fma(Form& form, ScalarType type);       // fma, mad
void decode_float_divide(Form& form, ScalarType type);
void decode_float_sign(Form& form, ScalarType type);     // abs, neg
void decode_float_extreme(Form& form, ScalarType type);  // min, max

// f16, bf16 and their pairs.
bool is_half(ScalarType type) noexcept;
void decode_half_arithmetic(Form& form, ScalarType type);  // add sub mul fma
void decode_half_sign(Form& form, ScalarType type);
void decode_half_extreme(Form& form, ScalarType type);

// Rows for fma testp copysign, and for rcp sqrt rsqrt ex2 lg2 sin cos tanh.
DecodeRows float_rows();
DecodeRows function_rows();

// --- Operation::flags ---------------------------------------------------------------------------

inline constexpr std::uint32_t rounding_bits = 7;  // a Rounding
inline constexpr std::uint32_t flag_ftz = 1u << 3;
inline constexpr std::uint32_t flag_sat = 1u << 4;
inline constexpr std::uint32_t flag_relu = 1u << 5;
inline constexpr std::uint32_t flag_satfinite = 1u << 6;
inline constexpr std::uint32_t flag_nan = 1u << 7;  // min, max: NaN wins
inline constexpr std::uint32_t flag_xorsign = 1u << 8;
inline constexpr std::uint32_t flag_subtract = 1u << 9;
inline constexpr std::uint32_t flag_maximum = 1u << 10;
inline constexpr std::uint32_t flag_integral = 1u << 11;  // .rni …: rounded to an integral value

inline bool has_flag(const Operation& operation, std::uint32_t flag) noexcept {
  return (operation.flags & flag) != 0;
}
inline Rounding rounding_of(const Operation& operation) noexcept {
  return static_cast<Rounding>(operation.flags & rounding_bits);
}
inline Narrowing narrowing_of(const Operation& operation) noexcept {
  return {.rounding = rounding_of(operation),
          .saturates_finite = has_flag(operation, flag_satfinite),
          .is_relu = has_flag(operation, flag_relu)};
}
inline void set_flag(Form& form, std::uint32_t flag, bool is_set) noexcept {
  if (is_set) form.operation().flags |= flag;
}
inline void set_rounding(Form& form, Rounding rounding) noexcept {
  form.operation().flags |= static_cast<std::uint32_t>(rounding);
}

}  // namespace gemmery::emulator
