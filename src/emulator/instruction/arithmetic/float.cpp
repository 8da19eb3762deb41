// SPDX-License-Identifier: Apache-2.0
// f32 and f64: add sub mul fma div abs neg min max testp copysign. add, mul and fma of f32 without
// modifiers are the hot instructions of a kernel; their loops vectorise.
#include "emulator/instruction/arithmetic/float.hpp"

#include <cmath>

#include "emulator/arithmetic/approximation.hpp"
#include "emulator/arithmetic/float_arithmetic.hpp"
#include "emulator/instruction/lane_apply.hpp"
#include "emulator/instruction/predicate.hpp"

namespace gemmery::emulator {
namespace {

// --- modifiers -----------------------------------------------------------------------------------

float input(const Operation& operation, float value) {
  return has_flag(operation, flag_ftz) ? flush(value) : value;
}
float output(const Operation& operation, float value) {
  const float made = has_flag(operation, flag_ftz) ? flush(value) : value;
  return has_flag(operation, flag_sat) ? saturate(made) : made;
}
double input(const Operation&, double value) { return value; }
double output(const Operation&, double value) { return value; }

void take_float_modifiers(Form& form, ScalarType type) {
  if (type == ScalarType::f32) {
    set_flag(form, flag_ftz, form.take("ftz"));
    set_flag(form, flag_sat, form.take("sat"));
  }
}
bool is_plain(Form& form) {
  return (form.operation().flags & (rounding_bits | flag_ftz | flag_sat)) == 0;
}
bool is_plain_ftz(Form& form) {
  return (form.operation().flags & (rounding_bits | flag_ftz | flag_sat)) == flag_ftz;
}
void expect_float(Form& form, ScalarType type) {
  if (type != ScalarType::f32 && type != ScalarType::f64)
    form.refuse("." + std::string(name(type)) + " is not a type of it here");
}

// --- sums and products ---------------------------------------------------------------------------

float plain_sum(float a, float b) { return canonical(a + b); }
float plain_difference(float a, float b) { return canonical(a - b); }
float plain_product(float a, float b) { return canonical(a * b); }
float ftz_sum(float a, float b) { return flush(canonical(flush(a) + flush(b))); }
float ftz_difference(float a, float b) { return flush(canonical(flush(a) - flush(b))); }
float ftz_product(float a, float b) { return flush(canonical(flush(a) * flush(b))); }
double plain_sum_64(double a, double b) { return a + b; }
double plain_difference_64(double a, double b) { return a - b; }
double plain_product_64(double a, double b) { return a * b; }

template <class Float>
Float any_sum(const Operation& operation, Float a, Float b) {
  const Float second = has_flag(operation, flag_subtract) && b == b ? -b : b;
  return output(operation,
                add(input(operation, a), input(operation, second), rounding_of(operation)));
}
template <class Float>
Float any_product(const Operation& operation, Float a, Float b) {
  return output(operation,
                multiply(input(operation, a), input(operation, b), rounding_of(operation)));
}
template <class Float>
Float any_fma(const Operation& operation, Float a, Float b, Float c) {
  return output(operation, fma(input(operation, a), input(operation, b), input(operation, c),
                               rounding_of(operation)));
}

// --- fma: with the host's own instruction where it has one ---------------------------------------

// A product is exact in double. Adding c rounded to odd and then rounding to f32 is one rounding.
float portable_fma(float a, float b, float c) {
  return canonical(static_cast<float>(
      sum_to_odd(static_cast<double>(a) * static_cast<double>(b), static_cast<double>(c))));
}
float portable_ftz_fma(float a, float b, float c) {
  return flush(portable_fma(flush(a), flush(b), flush(c)));
}
double portable_fma_64(double a, double b, double c) { return std::fma(a, b, c); }

#if defined(__x86_64__)
#define GEMMERY_HAS_FMA_LOOPS 1

template <class Float, bool flushes>
__attribute__((target("avx2,fma"))) void fma_loop(StoredLane<Float>* to, const StoredLane<Float>* a,
                                                  const StoredLane<Float>* b,
                                                  const StoredLane<Float>* c) noexcept {
  GEMMERY_EACH_LANE
  for (int lane = 0; lane < lanes_per_warp; ++lane) {
    const Float first = std::bit_cast<Float>(a[lane]), second = std::bit_cast<Float>(b[lane]),
                third = std::bit_cast<Float>(c[lane]);
    if constexpr (sizeof(Float) == 8)
      to[lane] = std::bit_cast<std::uint64_t>(__builtin_fma(first, second, third));
    else if constexpr (flushes)
      to[lane] = std::bit_cast<std::uint32_t>(
          flush(canonical(__builtin_fmaf(flush(first), flush(second), flush(third)))));
    else
      to[lane] = std::bit_cast<std::uint32_t>(canonical(__builtin_fmaf(first, second, third)));
  }
}
template <class Float, bool flushes>
Step run_fma(Warp& warp, const Operation& operation, LaneMask active) {
  using Stored = StoredLane<Float>;
  const Stored* const a = warp.source<Stored>(operation, 1);
  const Stored* const b = warp.source<Stored>(operation, 2);
  const Stored* const c = warp.source<Stored>(operation, 3);
  write_lanes<Float>(warp, operation, 0, active,
                     [=](Stored* to) { fma_loop<Float, flushes>(to, a, b, c); });
  return Step::next;
}
bool host_has_fma() noexcept {
  return __builtin_cpu_supports("fma") != 0 && __builtin_cpu_supports("avx2") != 0;
}
#endif

Execute plain_fma(ScalarType type, bool flushes) {
#if defined(GEMMERY_HAS_FMA_LOOPS)
  if (host_has_fma()) {
    if (type == ScalarType::f64) return run_fma<double, false>;
    return flushes ? run_fma<float, true> : run_fma<float, false>;
  }
#endif
  if (type == ScalarType::f64) return run_lanes<portable_fma_64>;
  return flushes ? run_lanes<portable_ftz_fma> : run_lanes<portable_fma>;
}

// --- division ------------------------------------------------------------------------------------

template <class Float>
Float any_quotient(const Operation& operation, Float a, Float b) {
  return output(operation,
                divide(input(operation, a), input(operation, b), rounding_of(operation)));
}
template <auto function>
float approximate_binary(const Operation& operation, float a, float b) {
  return output(operation, function(input(operation, a), input(operation, b)));
}

// --- signs ---------------------------------------------------------------------------------------

// Sign changes go through the adder: an f32 NaN becomes the canonical NaN, an f64 NaN keeps its
// payload and becomes quiet.
float negated(float a) { return canonical(-a); }
float magnitude(float a) { return canonical(std::fabs(a)); }
float ftz_negated(float a) { return flush(canonical(-a)); }
float ftz_magnitude(float a) { return flush(canonical(std::fabs(a))); }
double negated_64(double a) { return a == a ? -a : quiet(a); }
double magnitude_64(double a) { return a == a ? std::fabs(a) : quiet(a); }
std::uint32_t with_sign_of(std::uint32_t sign, std::uint32_t value) {
  return (sign & 0x80000000) | (value & 0x7fffffff);
}
std::uint64_t with_sign_of_64(std::uint64_t sign, std::uint64_t value) {
  constexpr std::uint64_t top = std::uint64_t{1} << 63;
  return (sign & top) | (value & ~top);
}

void decode_copysign(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  const ScalarType type = form.take_type();
  expect_float(form, type);
  form.assign(type == ScalarType::f32 ? run_lanes<with_sign_of> : run_lanes<with_sign_of_64>, type,
              {type, type});
}

// --- smallest and largest ------------------------------------------------------------------------

float nan_of(float) { return std::bit_cast<float>(f32_nan); }
double nan_of(double) { return std::bit_cast<double>(std::uint64_t{0x7fffffffffffffff}); }

template <class Float>
Float choose_extreme(const Operation& operation, Float a, Float b) {
  return extreme(a, b, has_flag(operation, flag_maximum) ? Extreme::maximum : Extreme::minimum,
                 has_flag(operation, flag_nan), nan_of(a));
}
template <class Float>
Float extreme_lane(const Operation& operation, Float a, Float b) {
  const Float first = input(operation, a), second = input(operation, b);
  if (!has_flag(operation, flag_xorsign)) return choose_extreme(operation, first, second);
  const Float made = choose_extreme(operation, std::fabs(first), std::fabs(second));
  if (made != made) return made;
  return std::signbit(first) != std::signbit(second) ? -made : made;
}
float extreme_of_three(const Operation& operation, float a, float b, float c) {
  return choose_extreme(operation,
                        choose_extreme(operation, input(operation, a), input(operation, b)),
                        input(operation, c));
}
// Without modifiers: comparisons and selections that vectorise.
template <bool is_maximum>
float plain_extreme(float a, float b) {
  const std::uint32_t bits_a = std::bit_cast<std::uint32_t>(a);
  const std::uint32_t bits_b = std::bit_cast<std::uint32_t>(b);
  // Two zeros compare equal; -0 counts as the smaller one.
  const std::uint32_t equal = is_maximum ? bits_a & bits_b : bits_a | bits_b;
  const bool takes_a = is_maximum ? a > b : a < b;
  std::uint32_t made = takes_a ? bits_a : bits_b;
  made = a == b ? equal : made;
  made = b != b ? bits_a : made;
  return canonical(std::bit_cast<float>(made));
}

// --- testp ---------------------------------------------------------------------------------------

enum class Test : std::uint8_t { finite, infinite, number, notanumber, normal, subnormal };

template <class Float>
bool holds(const Operation& operation, Float value) {
  switch (static_cast<Test>(operation.immediate)) {
    case Test::finite:
      return std::isfinite(value);
    case Test::infinite:
      return std::isinf(value);
    case Test::number:
      return !std::isnan(value);
    case Test::notanumber:
      return std::isnan(value);
    case Test::normal:  // zeros count as normal
      return std::isnormal(value) || value == 0;
    case Test::subnormal:
      return std::fpclassify(value) == FP_SUBNORMAL;
  }
  return false;
}
template <class Float>
Step run_testp(Warp& warp, const Operation& operation, LaneMask active) {
  blend_predicate(warp.destination<LaneMask>(operation, 0),
                  lanes_where<holds<Float>>(warp, operation, 1), active);
  return Step::next;
}
void decode_testp(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  static constexpr std::string_view tests[] = {"finite",     "infinite", "number",
                                               "notanumber", "normal",   "subnormal"};
  Form form(context, instruction, operation);
  const auto test = form.take_one_of(tests);
  if (!test) form.refuse("it does not say what to test for");
  operation.immediate = *test;
  const ScalarType type = form.take_type();
  expect_float(form, type);
  form.assign(type == ScalarType::f32 ? run_testp<float> : run_testp<double>, ScalarType::pred,
              {type});
}

void decode_fma(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  decode_float_fma(form, form.take_type());
}

}  // namespace

void decode_float_sum(Form& form, ScalarType type) {
  if (is_half(type)) return decode_half_arithmetic(form, type);
  expect_float(form, type);
  const bool subtracts = form.instruction().opcode == "sub";
  set_flag(form, flag_subtract, subtracts);
  set_rounding(form, form.take_rounding().value_or(Rounding::nearest_even));
  take_float_modifiers(form, type);
  const bool is_f32 = type == ScalarType::f32;
  Execute execute = is_f32 ? run_lanes<any_sum<float>> : run_lanes<any_sum<double>>;
  if (is_plain(form))
    execute = is_f32 ? (subtracts ? run_lanes<plain_difference> : run_lanes<plain_sum>)
                     : (subtracts ? run_lanes<plain_difference_64> : run_lanes<plain_sum_64>);
  else if (is_plain_ftz(form))
    execute = subtracts ? run_lanes<ftz_difference> : run_lanes<ftz_sum>;
  form.assign(execute, type, {type, type});
}

void decode_float_multiply(Form& form, ScalarType type) {
  if (is_half(type)) return decode_half_arithmetic(form, type);
  expect_float(form, type);
  set_rounding(form, form.take_rounding().value_or(Rounding::nearest_even));
  take_float_modifiers(form, type);
  const bool is_f32 = type == ScalarType::f32;
  Execute execute = is_f32 ? run_lanes<any_product<float>> : run_lanes<any_product<double>>;
  if (is_plain(form))
    execute = is_f32 ? run_lanes<plain_product> : run_lanes<plain_product_64>;
  else if (is_plain_ftz(form))
    execute = run_lanes<ftz_product>;
  form.assign(execute, type, {type, type});
}

void decode_float_fma(Form& form, ScalarType type) {
  if (is_half(type)) return decode_half_arithmetic(form, type);
  expect_float(form, type);
  const auto rounding = form.take_rounding();
  if (!rounding) form.refuse("a rounding mode is missing");
  set_rounding(form, *rounding);
  take_float_modifiers(form, type);
  Execute execute =
      type == ScalarType::f32 ? run_lanes<any_fma<float>> : run_lanes<any_fma<double>>;
  if (is_plain(form)) execute = plain_fma(type, false);
  if (is_plain_ftz(form)) execute = plain_fma(type, true);
  form.assign(execute, type, {type, type, type});
}

void decode_float_divide(Form& form, ScalarType type) {
  expect_float(form, type);
  const bool is_approximate = form.take("approx"), is_full = form.take("full");
  const auto rounding = form.take_rounding();
  if (!is_approximate && !is_full && !rounding) form.refuse("a rounding mode is missing");
  set_rounding(form, rounding.value_or(Rounding::nearest_even));
  set_flag(form, flag_ftz, type == ScalarType::f32 && form.take("ftz"));
  Execute execute =
      type == ScalarType::f32 ? run_lanes<any_quotient<float>> : run_lanes<any_quotient<double>>;
  if (is_approximate || is_full) {
    if (type != ScalarType::f32 || rounding) form.refuse("only f32 has .approx and .full");
    execute = is_full ? run_lanes<approximate_binary<full_range_quotient>>
                      : run_lanes<approximate_binary<approximate_quotient>>;
  }
  form.assign(execute, type, {type, type});
}

void decode_float_sign(Form& form, ScalarType type) {
  if (is_half(type)) return decode_half_sign(form, type);
  expect_float(form, type);
  const bool is_negation = form.instruction().opcode == "neg";
  const bool flushes = type == ScalarType::f32 && form.take("ftz");
  Execute execute = is_negation ? run_lanes<negated_64> : run_lanes<magnitude_64>;
  if (type == ScalarType::f32)
    execute = is_negation ? (flushes ? run_lanes<ftz_negated> : run_lanes<negated>)
                          : (flushes ? run_lanes<ftz_magnitude> : run_lanes<magnitude>);
  form.assign(execute, type, {type});
}

void decode_float_extreme(Form& form, ScalarType type) {
  if (is_half(type)) return decode_half_extreme(form, type);
  expect_float(form, type);
  const bool is_maximum = form.instruction().opcode == "max";
  set_flag(form, flag_maximum, is_maximum);
  bool is_plain_form = true;
  if (type == ScalarType::f32) {
    set_flag(form, flag_ftz, form.take("ftz"));
    set_flag(form, flag_nan, form.take("NaN"));
    const bool is_xorsign = form.take("xorsign");
    if (is_xorsign != form.take("abs")) form.refuse(".xorsign and .abs go together");
    set_flag(form, flag_xorsign, is_xorsign);
    is_plain_form = (form.operation().flags & ~flag_maximum) == 0;
    if (form.operand_count() == 4) {
      if (is_xorsign) form.refuse("three operands do not go with .xorsign.abs");
      form.assign(run_lanes<extreme_of_three>, type, {type, type, type});
      return;
    }
  }
  Execute execute =
      type == ScalarType::f32 ? run_lanes<extreme_lane<float>> : run_lanes<extreme_lane<double>>;
  if (type == ScalarType::f32 && is_plain_form)
    execute = is_maximum ? run_lanes<plain_extreme<true>> : run_lanes<plain_extreme<false>>;
  form.assign(execute, type, {type, type});
}

DecodeRows float_rows() {
  static constexpr DecodeRow rows[] = {
      {"fma", decode_fma}, {"testp", decode_testp}, {"copysign", decode_copysign}};
  return rows;
}

}  // namespace gemmery::emulator
