// SPDX-License-Identifier: Apache-2.0
// Functions of one operand: rcp sqrt rsqrt ex2 lg2 sin cos tanh.
#include "emulator/arithmetic/approximation.hpp"
#include "emulator/arithmetic/float_arithmetic.hpp"
#include "emulator/instruction/arithmetic/float.hpp"
#include "emulator/instruction/lane_apply.hpp"

namespace gemmery::emulator {
namespace {

// --- lanes ---------------------------------------------------------------------------------------

template <auto function>
float approximate_lane(const Operation& operation, float a) {
  const bool flushes = has_flag(operation, flag_ftz);
  const float made = function(flushes ? flush(a) : a);
  return flushes ? flush(made) : made;
}
template <auto function, FloatFormat format>
std::uint16_t approximate_half(std::uint16_t a) {
  const auto exact = static_cast<double>(function(static_cast<float>(widen<format>(a))));
  return static_cast<std::uint16_t>(narrow<format>(exact, {}));
}
template <auto function, FloatFormat format>
std::uint32_t approximate_halves(std::uint32_t a) {
  const std::uint32_t low = approximate_half<function, format>(static_cast<std::uint16_t>(a));
  const std::uint32_t high =
      approximate_half<function, format>(static_cast<std::uint16_t>(a >> 16));
  return high << 16 | low;
}

template <class Float>
Float reciprocal_lane(const Operation& operation, Float a) {
  if constexpr (sizeof(Float) == 4) {
    const bool flushes = has_flag(operation, flag_ftz);
    const float made = divide(1.0f, flushes ? flush(a) : a, rounding_of(operation));
    return flushes ? flush(made) : made;
  } else {
    return divide(1.0, a, rounding_of(operation));
  }
}
template <class Float>
Float root_lane(const Operation& operation, Float a) {
  if constexpr (sizeof(Float) == 4) {
    const bool flushes = has_flag(operation, flag_ftz);
    return square_root(flushes ? flush(a) : a, rounding_of(operation));
  } else {
    return square_root(a, rounding_of(operation));
  }
}
double approximate_reciprocal_64(double a) { return approximate_reciprocal(a); }
double approximate_reciprocal_root_64(double a) { return approximate_reciprocal_root(a); }
double reciprocal_root_64(double a) { return 1.0 / std::sqrt(a); }
float approximate_reciprocal_32(float a) { return approximate_reciprocal(a); }
float approximate_reciprocal_root_32(float a) { return approximate_reciprocal_root(a); }

// --- decoders ------------------------------------------------------------------------------------

void require_approx(Form& form) {
  if (!form.take("approx")) form.refuse(".approx is missing");
}

// rcp and sqrt: an approximation, or a correctly rounded result.
struct RoundedFunction {
  Execute approximate_32, rounded_32, rounded_64, approximate_64;  // null: no such form
};
void decode_rounded(Form& form, const RoundedFunction& function) {
  const bool is_approximate = form.take("approx");
  const bool flushes = form.take("ftz");
  const auto rounding = form.take_rounding();
  const ScalarType type = form.take_type();
  if (!is_approximate && !rounding) form.refuse("a rounding mode is missing");
  set_rounding(form, rounding.value_or(Rounding::nearest_even));
  set_flag(form, flag_ftz, flushes);
  if (type == ScalarType::f32) {
    form.assign(is_approximate ? function.approximate_32 : function.rounded_32, type, {type});
    return;
  }
  if (type != ScalarType::f64) form.refuse("its types are .f32 and .f64");
  if (is_approximate && (!flushes || function.approximate_64 == nullptr))
    form.refuse("f64 has no such form");
  if (!is_approximate && flushes) form.refuse("f64 has no .ftz here");
  form.assign(is_approximate ? function.approximate_64 : function.rounded_64, type, {type});
}

void decode_rcp(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  decode_rounded(form, {.approximate_32 = run_lanes<approximate_lane<approximate_reciprocal_32>>,
                        .rounded_32 = run_lanes<reciprocal_lane<float>>,
                        .rounded_64 = run_lanes<reciprocal_lane<double>>,
                        .approximate_64 = run_lanes<approximate_reciprocal_64>});
}
void decode_sqrt(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  decode_rounded(form, {.approximate_32 = run_lanes<approximate_lane<approximate_square_root>>,
                        .rounded_32 = run_lanes<root_lane<float>>,
                        .rounded_64 = run_lanes<root_lane<double>>,
                        .approximate_64 = nullptr});
}
void decode_rsqrt(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  require_approx(form);
  const bool flushes = form.take("ftz");
  set_flag(form, flag_ftz, flushes);
  const ScalarType type = form.take_type();
  const TypedHandler rows[] = {
      {ScalarType::f32, run_lanes<approximate_lane<approximate_reciprocal_root_32>>},
      {ScalarType::f64,
       flushes ? run_lanes<approximate_reciprocal_root_64> : run_lanes<reciprocal_root_64>}};
  form.assign(find_handler(form, type, rows), type, {type});
}

template <auto function>
void decode_f32_function(DecodeContext& context, const Instruction& instruction,
                         Operation& operation) {
  Form form(context, instruction, operation);
  require_approx(form);
  set_flag(form, flag_ftz, form.take("ftz"));
  const ScalarType type = form.take_type();
  if (type != ScalarType::f32) form.refuse("its type is .f32");
  form.assign(run_lanes<approximate_lane<function>>, type, {type});
}
// ex2 and tanh, which exist for halves, too.
template <auto function, auto function_of_f16 = function>
void decode_half_function(DecodeContext& context, const Instruction& instruction,
                          Operation& operation) {
  static constexpr TypedHandler rows[] = {
      {ScalarType::f32, run_lanes<approximate_lane<function>>},
      {ScalarType::f16, run_lanes<approximate_half<function_of_f16, f16_format>>},
      {ScalarType::f16x2, run_lanes<approximate_halves<function_of_f16, f16_format>>},
      {ScalarType::bf16, run_lanes<approximate_half<function, bf16_format>>},
      {ScalarType::bf16x2, run_lanes<approximate_halves<function, bf16_format>>},
  };
  Form form(context, instruction, operation);
  require_approx(form);
  const bool flushes = form.take("ftz");
  set_flag(form, flag_ftz, flushes);
  const ScalarType type = form.take_type();
  if (flushes && (type == ScalarType::f16 || type == ScalarType::f16x2))
    form.refuse("f16 has no .ftz here");
  form.assign(find_handler(form, type, rows), type, {type});
}

}  // namespace

DecodeRows function_rows() {
  static constexpr DecodeRow rows[] = {
      {"rcp", decode_rcp},
      {"sqrt", decode_sqrt},
      {"rsqrt", decode_rsqrt},
      {"ex2", decode_half_function<approximate_exp2, approximate_exp2_of_f16>},
      {"lg2", decode_f32_function<approximate_log2>},
      {"sin", decode_f32_function<approximate_sine>},
      {"cos", decode_f32_function<approximate_cosine>},
      {"tanh", decode_half_function<approximate_tanh>},
  };
  return rows;
}

}  // namespace gemmery::emulator
