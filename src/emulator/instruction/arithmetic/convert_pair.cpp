// SPDX-License-Identifier: Apache-2.0
// cvt to and from pairs: two f32 to a pair of halves or of fp8, fp8 to f16 and back. The first
// source operand becomes the upper element.
#include "emulator/arithmetic/float_format.hpp"
#include "emulator/instruction/arithmetic/convert.hpp"
#include "emulator/instruction/arithmetic/float.hpp"
#include "emulator/instruction/lane_apply.hpp"

namespace gemmery::emulator {
namespace {

// --- two f32 to a pair ---------------------------------------------------------------------------

template <FloatFormat format, class Pair>
Pair pair_lane(const Operation& operation, float upper, float lower) {
  constexpr int bits = 4 * sizeof(Pair);
  const Narrowing how = narrowing_of(operation);
  const std::uint32_t high = narrow<format>(static_cast<double>(upper), how);
  const std::uint32_t low = narrow<format>(static_cast<double>(lower), how);
  return static_cast<Pair>(high << bits | low);
}
std::uint32_t bf16_pair_lane(std::uint32_t upper, std::uint32_t lower) {
  return bf16_from_f32(upper) << 16 | bf16_from_f32(lower);
}
std::uint32_t f16_pair_lane(std::uint32_t upper, std::uint32_t lower) {
  return f16_from_f32(upper) << 16 | f16_from_f32(lower);
}

void decode_to_halves(Form& form, ScalarType to) {
  const auto rounding = form.take_rounding();
  if (!rounding || *rounding == Rounding::up || *rounding == Rounding::down)
    form.refuse("pairs of halves are rounded by .rn or .rz");
  set_rounding(form, *rounding);
  set_flag(form, flag_relu, form.take("relu"));
  set_flag(form, flag_satfinite, form.take("satfinite"));
  const bool is_f16 = to == ScalarType::f16x2;
  Execute execute = is_f16 ? run_lanes<pair_lane<f16_format, std::uint32_t>>
                           : run_lanes<pair_lane<bf16_format, std::uint32_t>>;
  if (form.operation().flags == 0)
    execute = is_f16 ? run_lanes<f16_pair_lane> : run_lanes<bf16_pair_lane>;
  form.assign(execute, ScalarType::b32, {ScalarType::f32, ScalarType::f32});
}

// --- fp8 -----------------------------------------------------------------------------------------

template <FloatFormat format>
std::uint16_t fp8_of_halves_lane(const Operation& operation, std::uint32_t halves) {
  const Narrowing how = narrowing_of(operation);
  const std::uint32_t high = narrow<format>(widen<f16_format>(halves >> 16), how);
  const std::uint32_t low = narrow<format>(widen<f16_format>(halves & 0xffff), how);
  return static_cast<std::uint16_t>(high << 8 | low);
}
template <FloatFormat format>
std::uint32_t halves_of_fp8_lane(const Operation& operation, std::uint16_t pair) {
  const Narrowing how = narrowing_of(operation);
  const std::uint32_t bits = pair;
  return narrow<f16_format>(widen<format>(bits >> 8), how) << 16 |
         narrow<f16_format>(widen<format>(bits & 255), how);
}

void take_nearest(Form& form) {
  const auto rounding = form.take_rounding();
  if (!rounding || *rounding != Rounding::nearest_even) form.refuse("fp8 is rounded by .rn");
  set_flag(form, flag_relu, form.take("relu"));
}

void decode_to_fp8(Form& form, ScalarType to, ScalarType from) {
  take_nearest(form);
  if (!form.take("satfinite")) form.refuse(".satfinite is missing");
  set_flag(form, flag_satfinite, true);
  const bool is_e4m3 = to == ScalarType::e4m3x2;
  if (from == ScalarType::f32) {
    form.assign(is_e4m3 ? run_lanes<pair_lane<e4m3_format, std::uint16_t>>
                        : run_lanes<pair_lane<e5m2_format, std::uint16_t>>,
                ScalarType::b16, {ScalarType::f32, ScalarType::f32});
    return;
  }
  if (from != ScalarType::f16x2) form.refuse("fp8 is made of .f32 or .f16x2");
  form.assign(is_e4m3 ? run_lanes<fp8_of_halves_lane<e4m3_format>>
                      : run_lanes<fp8_of_halves_lane<e5m2_format>>,
              ScalarType::b16, {ScalarType::f16x2});
}

void decode_from_fp8(Form& form, ScalarType from) {
  take_nearest(form);
  form.assign(from == ScalarType::e4m3x2 ? run_lanes<halves_of_fp8_lane<e4m3_format>>
                                         : run_lanes<halves_of_fp8_lane<e5m2_format>>,
              ScalarType::f16x2, {ScalarType::b16});
}

bool is_fp8_pair(ScalarType type) {
  return type == ScalarType::e4m3x2 || type == ScalarType::e5m2x2;
}

}  // namespace

void decode_pair_conversion(Form& form, ScalarType to, ScalarType from) {
  const bool is_halves = to == ScalarType::f16x2 || to == ScalarType::bf16x2;
  if (is_halves && from == ScalarType::f32) return decode_to_halves(form, to);
  if (is_fp8_pair(to)) return decode_to_fp8(form, to, from);
  if (is_fp8_pair(from) && to == ScalarType::f16x2) return decode_from_fp8(form, from);
  form.refuse("these types can't be converted");
}

}  // namespace gemmery::emulator
