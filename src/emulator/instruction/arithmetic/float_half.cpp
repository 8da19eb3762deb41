// SPDX-License-Identifier: Apache-2.0
// Arithmetic of f16 and bf16, scalars and pairs. It computes in a wider format rounded to odd, then
// rounds once.
#include <cmath>

#include "emulator/arithmetic/float_arithmetic.hpp"
#include "emulator/instruction/arithmetic/float.hpp"
#include "emulator/instruction/lane_apply.hpp"

namespace gemmery::emulator {
namespace {

// --- one half ------------------------------------------------------------------------------------

struct F16Rules {
  static float load(std::uint32_t bits) { return std::bit_cast<float>(f32_from_f16(bits)); }
  static std::uint32_t round(float odd) { return f16_from_f32(std::bit_cast<std::uint32_t>(odd)); }
  static constexpr std::uint32_t exponent = 0x7c00;
  static constexpr std::uint32_t one = 0x3c00;
  static constexpr bool has_exact_products = true;
};
struct Bf16Rules {
  static float load(std::uint32_t bits) { return std::bit_cast<float>(f32_from_bf16(bits)); }
  static std::uint32_t round(float odd) { return bf16_from_f32(std::bit_cast<std::uint32_t>(odd)); }
  static constexpr std::uint32_t exponent = 0x7f80;
  static constexpr std::uint32_t one = 0x3f80;
  static constexpr bool has_exact_products = false;
};

// Rounds a double that was rounded to odd to f32, again to odd. Both half types can be rounded from
// that.
float odd_float(double exact) {
  const auto nearest = static_cast<float>(exact);
  const auto back = static_cast<double>(nearest);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  const std::uint32_t step = ~bits & 1;
  const auto is_too_large = static_cast<std::uint32_t>(std::fabs(back) > std::fabs(exact));
  const auto is_too_small = static_cast<std::uint32_t>(std::fabs(back) < std::fabs(exact));
  return std::bit_cast<float>(bits + (step & is_too_small) - (step & is_too_large));
}

template <class Half>
std::uint32_t flush_half(std::uint32_t bits) {
  return (bits & Half::exponent) == 0 ? bits & 0x8000 : bits;
}

template <class Half, bool has_modifiers>
float load_half(const Operation& operation, std::uint32_t bits) {
  if constexpr (has_modifiers)
    if (has_flag(operation, flag_ftz)) bits = flush_half<Half>(bits);
  return Half::load(bits);
}
// `odd` is rounded to odd.
template <class Half, bool has_modifiers>
std::uint32_t round_half(const Operation& operation, float odd) {
  std::uint32_t bits = Half::round(odd);
  if constexpr (has_modifiers) {
    const bool is_nan = odd != odd, is_negative = (bits & 0x8000) != 0;
    if (has_flag(operation, flag_ftz)) bits = flush_half<Half>(bits);
    if (has_flag(operation, flag_sat))
      bits = is_nan || is_negative ? 0 : (bits > Half::one ? Half::one : bits);
    if (has_flag(operation, flag_relu) && is_negative && !is_nan) bits = 0;
  }
  return bits;
}

enum class Calculation { sum, difference, product, fma };

// A product of f16 is exact in f32. A product of bf16 may overflow f32 and is exact in double.
template <class Half>
float half_product_and_sum(float a, float b, float c) {
  if constexpr (Half::has_exact_products) return sum_to_odd(a * b, c);
  return odd_float(
      sum_to_odd(static_cast<double>(a) * static_cast<double>(b), static_cast<double>(c)));
}
template <class Half>
float product(float a, float b) {
  if constexpr (Half::has_exact_products) return a * b;
  return odd_float(static_cast<double>(a) * static_cast<double>(b));
}

template <class Half, Calculation what, bool has_modifiers>
std::uint32_t calculate(const Operation& operation, std::uint32_t a, std::uint32_t b,
                        std::uint32_t c) {
  const float first = load_half<Half, has_modifiers>(operation, a);
  const float second = load_half<Half, has_modifiers>(operation, b);
  float odd = 0;
  if constexpr (what == Calculation::sum) odd = sum_to_odd(first, second);
  if constexpr (what == Calculation::difference) odd = sum_to_odd(first, -second);
  if constexpr (what == Calculation::product) odd = product<Half>(first, second);
  if constexpr (what == Calculation::fma)
    odd = half_product_and_sum<Half>(first, second, load_half<Half, has_modifiers>(operation, c));
  return round_half<Half, has_modifiers>(operation, odd);
}

// --- lanes: a half, or two -----------------------------------------------------------------------

template <class Half, Calculation what, bool has_modifiers, bool is_paired>
std::uint32_t calculate_lane(const Operation& operation, std::uint32_t a, std::uint32_t b,
                             std::uint32_t c) {
  const std::uint32_t low =
      calculate<Half, what, has_modifiers>(operation, a & 0xffff, b & 0xffff, c & 0xffff);
  if constexpr (!is_paired) return low;
  return low | calculate<Half, what, has_modifiers>(operation, a >> 16, b >> 16, c >> 16) << 16;
}
template <class Half, Calculation what, bool has_modifiers, bool is_paired>
std::uint32_t binary(const Operation& operation, std::uint32_t a, std::uint32_t b) {
  return calculate_lane<Half, what, has_modifiers, is_paired>(operation, a, b, 0);
}

template <class Half, Calculation what, bool is_paired>
Execute calculation_of(bool has_modifiers) {
  if constexpr (what == Calculation::fma)
    return has_modifiers ? run_lanes<calculate_lane<Half, what, true, is_paired>>
                         : run_lanes<calculate_lane<Half, what, false, is_paired>>;
  else
    return has_modifiers ? run_lanes<binary<Half, what, true, is_paired>>
                         : run_lanes<binary<Half, what, false, is_paired>>;
}
template <Calculation what>
Execute calculation_of(Form& form, ScalarType type, bool has_modifiers) {
  const TypedHandler rows[] = {
      {ScalarType::f16, calculation_of<F16Rules, what, false>(has_modifiers)},
      {ScalarType::f16x2, calculation_of<F16Rules, what, true>(has_modifiers)},
      {ScalarType::bf16, calculation_of<Bf16Rules, what, false>(has_modifiers)},
      {ScalarType::bf16x2, calculation_of<Bf16Rules, what, true>(has_modifiers)},
  };
  return find_handler(form, type, rows);
}

bool is_f16(ScalarType type) { return type == ScalarType::f16 || type == ScalarType::f16x2; }

// --- signs and extremes --------------------------------------------------------------------------

// Sign changes go through the adder: every NaN becomes the canonical one.
template <class Half, bool is_negation>
std::uint32_t sign_of_half(const Operation& operation, std::uint32_t a) {
  if (has_flag(operation, flag_ftz)) a = flush_half<Half>(a);
  if ((a & 0x7fff) > Half::exponent) return 0x7fff;
  return is_negation ? a ^ 0x8000 : a & 0x7fff;
}
template <class Half, bool is_negation>
std::uint32_t sign_of_halves(const Operation& operation, std::uint32_t a) {
  return sign_of_half<Half, is_negation>(operation, a & 0xffff) |
         sign_of_half<Half, is_negation>(operation, a >> 16) << 16;
}
template <bool is_negation>
constexpr TypedHandler sign_handlers[] = {
    {ScalarType::f16, run_lanes<sign_of_half<F16Rules, is_negation>>},
    {ScalarType::f16x2, run_lanes<sign_of_halves<F16Rules, is_negation>>},
    {ScalarType::bf16, run_lanes<sign_of_half<Bf16Rules, is_negation>>},
    {ScalarType::bf16x2, run_lanes<sign_of_halves<Bf16Rules, is_negation>>},
};

template <class Half>
std::uint32_t extreme_half(const Operation& operation, std::uint32_t a, std::uint32_t b) {
  if (has_flag(operation, flag_ftz)) a = flush_half<Half>(a), b = flush_half<Half>(b);
  const std::uint32_t sign = has_flag(operation, flag_xorsign) ? (a ^ b) & 0x8000 : 0;
  if (has_flag(operation, flag_xorsign)) a &= 0x7fff, b &= 0x7fff;
  const float nan = std::bit_cast<float>(f32_nan);
  const float made =
      extreme(Half::load(a), Half::load(b),
              has_flag(operation, flag_maximum) ? Extreme::maximum : Extreme::minimum,
              has_flag(operation, flag_nan), nan);
  if (made != made) return 0x7fff;
  return Half::round(made) ^ sign;
}
template <class Half>
std::uint32_t extreme_halves(const Operation& operation, std::uint32_t a, std::uint32_t b) {
  return extreme_half<Half>(operation, a & 0xffff, b & 0xffff) |
         extreme_half<Half>(operation, a >> 16, b >> 16) << 16;
}
template <class Half>
std::uint32_t extreme_of_three(const Operation& operation, std::uint32_t a, std::uint32_t b,
                               std::uint32_t c) {
  return extreme_halves<Half>(operation, extreme_halves<Half>(operation, a, b), c);
}

}  // namespace

bool is_half(ScalarType type) noexcept {
  return is_f16(type) || type == ScalarType::bf16 || type == ScalarType::bf16x2;
}

void decode_half_arithmetic(Form& form, ScalarType type) {
  const std::string_view opcode = form.instruction().opcode;
  const auto rounding = form.take_rounding();
  if (rounding && *rounding != Rounding::nearest_even) form.refuse("halves round to nearest only");
  const bool is_fma = opcode == "fma";
  if (is_fma && !rounding) form.refuse("a rounding mode is missing");
  if (is_f16(type)) {
    set_flag(form, flag_ftz, form.take("ftz"));
    set_flag(form, flag_sat, form.take("sat"));
  }
  set_flag(form, flag_relu, is_fma && form.take("relu"));
  const bool has_modifiers = form.operation().flags != 0;
  if (is_fma) {
    form.assign(calculation_of<Calculation::fma>(form, type, has_modifiers), type,
                {type, type, type});
    return;
  }
  if (opcode == "mad") form.refuse("halves have fma instead");
  const Execute execute =
      opcode == "add"   ? calculation_of<Calculation::sum>(form, type, has_modifiers)
      : opcode == "sub" ? calculation_of<Calculation::difference>(form, type, has_modifiers)
                        : calculation_of<Calculation::product>(form, type, has_modifiers);
  form.assign(execute, type, {type, type});
}

void decode_half_sign(Form& form, ScalarType type) {
  set_flag(form, flag_ftz, is_f16(type) && form.take("ftz"));
  const Execute execute = form.instruction().opcode == "neg"
                              ? find_handler(form, type, sign_handlers<true>)
                              : find_handler(form, type, sign_handlers<false>);
  form.assign(execute, type, {type});
}

void decode_half_extreme(Form& form, ScalarType type) {
  set_flag(form, flag_ftz, is_f16(type) && form.take("ftz"));
  set_flag(form, flag_nan, form.take("NaN"));
  const bool is_xorsign = form.take("xorsign");
  if (is_xorsign != form.take("abs")) form.refuse(".xorsign and .abs go together");
  set_flag(form, flag_xorsign, is_xorsign);
  set_flag(form, flag_maximum, form.instruction().opcode == "max");
  static constexpr TypedHandler of_two[] = {
      {ScalarType::f16, run_lanes<extreme_half<F16Rules>>},
      {ScalarType::f16x2, run_lanes<extreme_halves<F16Rules>>},
      {ScalarType::bf16, run_lanes<extreme_half<Bf16Rules>>},
      {ScalarType::bf16x2, run_lanes<extreme_halves<Bf16Rules>>},
  };
  static constexpr TypedHandler of_three[] = {
      {ScalarType::f16x2, run_lanes<extreme_of_three<F16Rules>>},
      {ScalarType::bf16x2, run_lanes<extreme_of_three<Bf16Rules>>},
  };
  if (form.operand_count() == 4)
    form.assign(find_handler(form, type, of_three), type, {type, type, type});
  else
    form.assign(find_handler(form, type, of_two), type, {type, type});
}

}  // namespace gemmery::emulator
