// SPDX-License-Identifier: Apache-2.0
// cvt of single numbers with a float on either side. Every source is exact in double (64-bit
// integers after rounding to odd), so each pair of types needs a loader and a rounder.
#include "emulator/arithmetic/conversion.hpp"
#include "emulator/arithmetic/float_arithmetic.hpp"
#include "emulator/arithmetic/float_format.hpp"
#include "emulator/instruction/arithmetic/convert.hpp"
#include "emulator/instruction/arithmetic/float.hpp"
#include "emulator/instruction/lane_apply.hpp"

namespace gemmery::emulator {
namespace {

// --- the float types as lanes hold them ----------------------------------------------------------

struct F16 {
  std::uint16_t bits;
};
struct Bf16 {
  std::uint16_t bits;
};

double value_of(const Operation&, F16 a) { return widen<f16_format>(a.bits); }
double value_of(const Operation&, Bf16 a) { return widen<bf16_format>(a.bits); }
double value_of(const Operation& operation, float a) {
  return static_cast<double>(has_flag(operation, flag_ftz) ? flush(a) : a);
}
double value_of(const Operation&, double a) { return a; }

template <class To>
To round_float(const Operation& operation, double exact) {
  if (has_flag(operation, flag_integral)) exact = round_to_integral(exact, rounding_of(operation));
  if (has_flag(operation, flag_sat)) exact = saturate(exact);
  if constexpr (std::is_same_v<To, F16>)
    return {static_cast<std::uint16_t>(narrow<f16_format>(exact, narrowing_of(operation)))};
  if constexpr (std::is_same_v<To, Bf16>)
    return {static_cast<std::uint16_t>(narrow<bf16_format>(exact, narrowing_of(operation)))};
  if constexpr (std::is_same_v<To, float>) {
    const float made = canonical(round_to<float>(exact, rounding_of(operation)));
    return has_flag(operation, flag_ftz) ? flush(made) : made;
  }
  if constexpr (std::is_same_v<To, double>) return exact;
}

// --- float to float ------------------------------------------------------------------------------

// Conversions to and from f64 keep the payload of a NaN; all others return the canonical NaN.
template <class To>
To converted_nan(double nan) {
  if constexpr (std::is_same_v<To, F16>)
    return {static_cast<std::uint16_t>(narrow_nan<f16_format>(nan))};
  else if constexpr (std::is_same_v<To, Bf16>)
    return {static_cast<std::uint16_t>(narrow_nan<bf16_format>(nan))};
  else if constexpr (std::is_same_v<To, float>)
    return std::bit_cast<float>(narrow_nan<f32_format>(nan));
  else
    return quiet(nan);
}
double widened_nan(F16 nan) { return widen_nan<f16_format>(nan.bits); }
double widened_nan(Bf16 nan) { return widen_nan<bf16_format>(nan.bits); }
double widened_nan(float nan) { return static_cast<double>(nan); }
double widened_nan(double nan) { return nan; }

template <class From, class To>
To convert_lane(const Operation& operation, From a) {
  const double value = value_of(operation, a);
  constexpr bool keeps_nan = std::is_same_v<From, double> || std::is_same_v<To, double>;
  if constexpr (keeps_nan)
    if (value != value && !has_flag(operation, flag_sat)) return converted_nan<To>(widened_nan(a));
  return round_float<To>(operation, value);
}
std::uint32_t bf16_lane(std::uint32_t a) { return bf16_from_f32(a); }
std::uint32_t f16_lane(std::uint32_t a) { return f16_from_f32(a); }
std::uint32_t from_bf16_lane(std::uint32_t a) { return f32_from_bf16(a); }
std::uint32_t from_f16_lane(std::uint32_t a) { return f32_from_f16(a); }
std::uint32_t tf32_lane(const Operation& operation, float a) {
  return tf32_from_f32(a, narrowing_of(operation));
}

bool is_single_float(ScalarType type) {
  return type == ScalarType::f16 || type == ScalarType::bf16 || type == ScalarType::f32 ||
         type == ScalarType::f64;
}

// Calls `use` with a zero of the C++ type of `type`.
template <class Use>
auto with_float(ScalarType type, Use use) {
  switch (type) {
    case ScalarType::f16:
      return use(F16{});
    case ScalarType::bf16:
      return use(Bf16{});
    case ScalarType::f32:
      return use(float{});
    default:
      return use(double{});
  }
}

// The handler without modifiers; null if the pair of types has no fast path.
Execute fast_conversion(ScalarType to, ScalarType from) {
  if (from == ScalarType::f32 && to == ScalarType::bf16) return run_lanes<bf16_lane>;
  if (from == ScalarType::f32 && to == ScalarType::f16) return run_lanes<f16_lane>;
  if (from == ScalarType::bf16 && to == ScalarType::f32) return run_lanes<from_bf16_lane>;
  if (from == ScalarType::f16 && to == ScalarType::f32) return run_lanes<from_f16_lane>;
  return nullptr;
}

// Takes .rni .rzi .rmi .rpi; true if one of them is present.
bool take_integral_rounding(Form& form) {
  static constexpr std::string_view words[] = {"rni", "rzi", "rmi", "rpi"};
  static constexpr Rounding roundings[] = {Rounding::nearest_even, Rounding::toward_zero,
                                           Rounding::down, Rounding::up};
  const auto found = form.take_one_of(words);
  if (found) set_rounding(form, roundings[*found]);
  return found.has_value();
}

void decode_float_to_float(Form& form, ScalarType to, ScalarType from) {
  const bool is_narrower = bits_of(to) < bits_of(from);
  const bool is_integral = take_integral_rounding(form);
  const auto rounding = is_integral ? std::nullopt : form.take_rounding();
  const bool is_from_or_to_bf16 = from == ScalarType::bf16 || to == ScalarType::bf16;
  if (is_narrower && !rounding) form.refuse("a rounding mode is missing");
  if (is_integral && to != from) form.refuse("an integral rounding keeps the type");
  if (rounding && !is_narrower && !is_from_or_to_bf16)
    form.refuse("only narrower types need a rounding mode");
  if (rounding) set_rounding(form, *rounding);
  set_flag(form, flag_integral, is_integral);
  set_flag(form, flag_ftz, (from == ScalarType::f32 || to == ScalarType::f32) && form.take("ftz"));
  set_flag(form, flag_sat, form.take("sat"));
  set_flag(form, flag_relu, is_narrower && bits_of(to) == 16 && form.take("relu"));
  set_flag(form, flag_satfinite, is_narrower && bits_of(to) == 16 && form.take("satfinite"));
  Execute execute = form.operation().flags == 0 ? fast_conversion(to, from) : nullptr;
  if (execute == nullptr)
    execute = with_float(from, [&]<class From>(From) {
      return with_float(to,
                        []<class To>(To) { return Execute{run_lanes<convert_lane<From, To>>}; });
    });
  form.assign(execute, to, {from});
}

// cvt.rna.tf32.f32, and .rn and .rz.
void decode_to_tf32(Form& form) {
  if (form.take("rna"))
    set_rounding(form, Rounding::nearest_away);
  else if (const auto rounding = form.take_rounding())
    set_rounding(form, *rounding);
  else
    form.refuse("a rounding mode is missing");
  const Rounding rounding = rounding_of(form.operation());
  if (rounding == Rounding::up || rounding == Rounding::down)
    form.refuse("tf32 is rounded by .rna, .rn or .rz");
  set_flag(form, flag_relu, rounding != Rounding::nearest_away && form.take("relu"));
  set_flag(form, flag_satfinite, form.take("satfinite"));
  form.assign(run_lanes<tf32_lane>, ScalarType::b32, {ScalarType::f32});
}

// --- integer to float ----------------------------------------------------------------------------

template <class From, class To>
To float_lane(const Operation& operation, From a) {
  if constexpr (std::is_same_v<To, double>) {
    const double made = to_f64(a, rounding_of(operation));
    return has_flag(operation, flag_sat) ? saturate(made) : made;
  } else {
    return round_float<To>(operation, to_odd_double(a));
  }
}
// The most common conversion; the compiler vectorises it.
float float_of_s32(std::int32_t a) { return static_cast<float>(a); }

void refuse_wide_registers(Form& form, ScalarType to, ScalarType from) {
  for (const auto& [index, type] :
       {std::pair{std::size_t{0}, to}, std::pair{std::size_t{1}, from}}) {
    const Operand& operand = form.operand(index);
    if (operand.kind == Operand::Kind::reg && bits_of(type) < 64 &&
        bits_of(form.context().register_type(operand.reg)) == 64)
      form.refuse("a 64-bit register stands for a narrower type");
  }
}

void decode_integer_to_float(Form& form, ScalarType to, ScalarType from) {
  const auto rounding = form.take_rounding();
  if (!rounding) form.refuse("a rounding mode is missing");
  set_rounding(form, *rounding);
  set_flag(form, flag_sat, form.take("sat"));
  refuse_wide_registers(form, to, from);
  Execute execute = nullptr;
  if (form.operation().flags == 0 && to == ScalarType::f32 && from == ScalarType::s32)
    execute = run_lanes<float_of_s32>;
  else
    execute = with_integer(from, [&]<class From>(From) {
      return with_float(to, []<class To>(To) { return Execute{run_lanes<float_lane<From, To>>}; });
    });
  form.assign(execute, to, {from});
}

// --- float to integer ----------------------------------------------------------------------------

// NaN becomes zero; if f64 or a 64-bit integer takes part, only the top bit is set (PTX ISA, cvt).
template <class From, class To>
constexpr To integer_of_nan() {
  if constexpr (sizeof(From) < 8 && sizeof(To) < 8) return 0;
  return static_cast<To>(std::make_unsigned_t<To>{1} << (8 * sizeof(To) - 1));
}
template <class From, class To, class Held>
Held integer_lane(const Operation& operation, From a) {
  return static_cast<Held>(
      to_integer<To>(value_of(operation, a), rounding_of(operation), integer_of_nan<From, To>()));
}

template <class From, class To>
Execute integer_handler(int register_bits) {
  if constexpr (sizeof(To) == 8) return run_lanes<integer_lane<From, To, std::uint64_t>>;
  if constexpr (sizeof(To) <= 2)
    if (register_bits == 16) return run_lanes<integer_lane<From, To, std::uint16_t>>;
  return run_lanes<integer_lane<From, To, std::uint32_t>>;
}

void decode_float_to_integer(Form& form, ScalarType to, ScalarType from) {
  if (!take_integral_rounding(form)) form.refuse("a rounding mode is missing");
  set_flag(form, flag_ftz, from == ScalarType::f32 && form.take("ftz"));
  form.take("sat");  // out of range goes to the nearest end anyway
  refuse_wide_registers(form, to, from);
  const Operand& into = form.operand(0);
  const int register_bits = into.kind == Operand::Kind::reg
                                ? bits_of(form.context().register_type(into.reg))
                                : bits_of(to);
  const Execute execute = with_float(from, [&]<class From>(From) {
    return with_integer(to, [&]<class To>(To) { return integer_handler<From, To>(register_bits); });
  });
  form.assign(execute, to, {from});
}

}  // namespace

void decode_float_conversion(Form& form, ScalarType to, ScalarType from) {
  if (to == ScalarType::tf32 && from == ScalarType::f32) return decode_to_tf32(form);
  if (is_single_float(to) && is_single_float(from)) return decode_float_to_float(form, to, from);
  if (is_single_float(to) && is_integer(from)) return decode_integer_to_float(form, to, from);
  if (is_integer(to) && is_single_float(from)) return decode_float_to_integer(form, to, from);
  decode_pair_conversion(form, to, from);
}

}  // namespace gemmery::emulator
