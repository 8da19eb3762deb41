// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic: add sub mul mad mul24 mad24 div rem abs neg min max sad dp4a dp2a, and the
// packed forms of halves.
#include "emulator/instruction/arithmetic/integer.hpp"

#include <algorithm>
#include <cstdlib>

#include "emulator/arithmetic/integer_functions.hpp"
#include "emulator/instruction/lane_apply.hpp"
#include "emulator/instruction/lane_rows.hpp"

namespace gemmery::emulator {
namespace {

constexpr auto sum_of = [](auto a, auto b) { return wrapping(a) + wrapping(b); };
constexpr auto difference_of = [](auto a, auto b) { return wrapping(a) - wrapping(b); };
constexpr auto product_of = [](auto a, auto b) { return wrapping(a) * wrapping(b); };
constexpr auto high_product_of = [](auto a, auto b) { return multiply_high(a, b); };
constexpr auto integer_product_and_sum = [](auto a, auto b, auto c) {
  return wrapping(a) * wrapping(b) + wrapping(c);
};
constexpr auto high_product_and_sum = [](auto a, auto b, auto c) {
  return wrapping(multiply_high(a, b)) + wrapping(c);
};
constexpr auto quotient_of = [](auto a, auto b) { return divide(a, b); };
constexpr auto remainder_of = [](auto a, auto b) { return remainder(a, b); };
constexpr auto negated_integer = [](auto a) { return 0 - wrapping(a); };
constexpr auto magnitude_of = [](auto a) { return a < 0 ? 0 - wrapping(a) : wrapping(a); };
constexpr auto smaller_of = [](auto a, auto b) { return a < b ? a : b; };
constexpr auto larger_of = [](auto a, auto b) { return a < b ? b : a; };
constexpr auto distance_plus = [](auto a, auto b, auto c) {
  return (a < b ? wrapping(b) - wrapping(a) : wrapping(a) - wrapping(b)) + wrapping(c);
};

// --- halves of a register ------------------------------------------------------------------------

template <auto generic, class T>
std::uint32_t halves_lane(std::uint32_t a, std::uint32_t b) {
  const auto half = [](std::uint32_t value) { return static_cast<T>(value & 0xffff); };
  const auto low = static_cast<std::uint16_t>(generic(half(a), half(b)));
  const auto high = static_cast<std::uint16_t>(generic(half(a >> 16), half(b >> 16)));
  return std::uint32_t{high} << 16 | low;
}
template <auto generic>
constexpr TypedHandler binary_halves[] = {
    {ScalarType::u16x2, run_lanes<halves_lane<generic, std::uint16_t>>},
    {ScalarType::s16x2, run_lanes<halves_lane<generic, std::int16_t>>},
};
bool is_pair(ScalarType type) { return type == ScalarType::u16x2 || type == ScalarType::s16x2; }

// --- products wider or narrower than their operands ----------------------------------------------

template <class Narrow, class Wide>
Wide wide_product(Narrow a, Narrow b) {
  return static_cast<Wide>(static_cast<Wide>(a) * static_cast<Wide>(b));
}
template <class Narrow, class Wide>
Wide wide_product_and_sum(Narrow a, Narrow b, Wide c) {
  return static_cast<Wide>(wrapping(wide_product<Narrow, Wide>(a, b)) + wrapping(c));
}
constexpr TypedHandler wide_products[] = {
    {ScalarType::u16, run_lanes<wide_product<std::uint16_t, std::uint32_t>>},
    {ScalarType::s16, run_lanes<wide_product<std::int16_t, std::int32_t>>},
    {ScalarType::u32, run_lanes<wide_product<std::uint32_t, std::uint64_t>>},
    {ScalarType::s32, run_lanes<wide_product<std::int32_t, std::int64_t>>},
};
constexpr TypedHandler wide_products_and_sums[] = {
    {ScalarType::u16, run_lanes<wide_product_and_sum<std::uint16_t, std::uint32_t>>},
    {ScalarType::s16, run_lanes<wide_product_and_sum<std::int16_t, std::int32_t>>},
    {ScalarType::u32, run_lanes<wide_product_and_sum<std::uint32_t, std::uint64_t>>},
    {ScalarType::s32, run_lanes<wide_product_and_sum<std::int32_t, std::int64_t>>},
};

ScalarType twice_as_wide(ScalarType type) {
  switch (type) {
    case ScalarType::u16:
      return ScalarType::u32;
    case ScalarType::s16:
      return ScalarType::s32;
    case ScalarType::u32:
      return ScalarType::u64;
    default:
      return ScalarType::s64;
  }
}

// --- saturating s32 ------------------------------------------------------------------------------

std::int32_t saturated_sum(std::int32_t a, std::int32_t b) {
  return saturate_to<std::int32_t>(std::int64_t{a} + b);
}
std::int32_t saturated_difference(std::int32_t a, std::int32_t b) {
  return saturate_to<std::int32_t>(std::int64_t{a} - b);
}
std::int32_t saturated_high_product_and_sum(std::int32_t a, std::int32_t b, std::int32_t c) {
  return saturate_to<std::int32_t>(std::int64_t{multiply_high(a, b)} + c);
}

// --- 24 bits: slow on today's hardware, but legal ------------------------------------------------

template <class T, int shift>
T product_24(T a, T b) {
  return static_cast<T>(multiply_24(a, b) >> shift);
}
template <class T, int shift>
T product_24_and_sum(T a, T b, T c) {
  return static_cast<T>(wrapping(product_24<T, shift>(a, b)) + wrapping(c));
}
std::int32_t saturated_product_24_and_sum(std::int32_t a, std::int32_t b, std::int32_t c) {
  return saturate_to<std::int32_t>(std::int64_t{product_24<std::int32_t, 16>(a, b)} + c);
}

// .hi takes bits 16 to 47 of the product.
bool takes_high_24(Form& form) {
  if (form.take("hi")) return true;
  if (!form.take("lo")) form.refuse("it says neither .lo nor .hi");
  return false;
}
void decode_mul24(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  static constexpr TypedHandler low[] = {
      {ScalarType::u32, run_lanes<product_24<std::uint32_t, 0>>},
      {ScalarType::s32, run_lanes<product_24<std::int32_t, 0>>},
  };
  static constexpr TypedHandler high[] = {
      {ScalarType::u32, run_lanes<product_24<std::uint32_t, 16>>},
      {ScalarType::s32, run_lanes<product_24<std::int32_t, 16>>},
  };
  const bool takes_high = takes_high_24(form);
  const ScalarType type = form.take_type();
  form.assign(takes_high ? find_handler(form, type, high) : find_handler(form, type, low), type,
              {type, type});
}
void decode_mad24(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  static constexpr TypedHandler low[] = {
      {ScalarType::u32, run_lanes<product_24_and_sum<std::uint32_t, 0>>},
      {ScalarType::s32, run_lanes<product_24_and_sum<std::int32_t, 0>>},
  };
  static constexpr TypedHandler high[] = {
      {ScalarType::u32, run_lanes<product_24_and_sum<std::uint32_t, 16>>},
      {ScalarType::s32, run_lanes<product_24_and_sum<std::int32_t, 16>>},
  };
  static constexpr TypedHandler saturated[] = {
      {ScalarType::s32, run_lanes<saturated_product_24_and_sum>},
  };
  const bool takes_high = takes_high_24(form);
  const bool saturates = takes_high && form.take("sat");
  const ScalarType type = form.take_type();
  const Execute execute = saturates    ? find_handler(form, type, saturated)
                          : takes_high ? find_handler(form, type, high)
                                       : find_handler(form, type, low);
  form.assign(execute, type, {type, type, type});
}

void decode_sad(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  const ScalarType type = form.take_type();
  form.assign(find_handler(form, type, ternary_integers<distance_plus>), type, {type, type, type});
}

// --- dot products --------------------------------------------------------------------------------

template <bool a_is_signed, bool b_is_signed>
std::uint32_t dot_4_lane(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  return dot_4(a, b, c, a_is_signed, b_is_signed);
}
template <bool a_is_signed, bool b_is_signed, bool takes_high>
std::uint32_t dot_2_lane(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  return dot_2(a, b, c, a_is_signed, b_is_signed, takes_high);
}

// Takes the two types of a dot product; returns 0 to 3, with a's signedness in bit 1 and b's in bit
// 0.
std::size_t take_signs(Form& form) {
  std::size_t signs = 0;
  for (int operand = 0; operand < 2; ++operand) {
    const ScalarType type = form.take_type();
    if (type != ScalarType::u32 && type != ScalarType::s32)
      form.refuse("its operands are .u32 or .s32");
    signs = signs << 1 | static_cast<std::size_t>(type == ScalarType::s32);
  }
  return signs;
}
void assign_dot(Form& form, Execute execute) {
  form.assign(execute, ScalarType::b32, {ScalarType::b32, ScalarType::b32, ScalarType::b32});
}
void decode_dp4a(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  static constexpr Execute by_signs[] = {
      run_lanes<dot_4_lane<false, false>>, run_lanes<dot_4_lane<false, true>>,
      run_lanes<dot_4_lane<true, false>>, run_lanes<dot_4_lane<true, true>>};
  Form form(context, instruction, operation);
  assign_dot(form, by_signs[take_signs(form)]);
}
void decode_dp2a(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  static constexpr Execute low[] = {
      run_lanes<dot_2_lane<false, false, false>>, run_lanes<dot_2_lane<false, true, false>>,
      run_lanes<dot_2_lane<true, false, false>>, run_lanes<dot_2_lane<true, true, false>>};
  static constexpr Execute high[] = {
      run_lanes<dot_2_lane<false, false, true>>, run_lanes<dot_2_lane<false, true, true>>,
      run_lanes<dot_2_lane<true, false, true>>, run_lanes<dot_2_lane<true, true, true>>};
  Form form(context, instruction, operation);
  const bool takes_high = form.take("hi");
  if (!takes_high && !form.take("lo")) form.refuse("it says neither .lo nor .hi");
  const std::size_t signs = take_signs(form);
  assign_dot(form, takes_high ? high[signs] : low[signs]);
}

}  // namespace

void decode_integer_add(Form& form, ScalarType type) {
  const bool subtracts = form.instruction().opcode == "sub";
  Execute execute = nullptr;
  if (form.take("sat")) {
    if (type != ScalarType::s32) form.refuse(".sat is for .s32 alone");
    execute = subtracts ? run_lanes<saturated_difference> : run_lanes<saturated_sum>;
  } else if (is_pair(type)) {
    if (subtracts) form.refuse("pairs of halves have no sub");
    execute = find_handler(form, type, binary_halves<sum_of>);
  } else {
    execute = subtracts ? find_handler(form, type, binary_integers<difference_of>)
                        : find_handler(form, type, binary_integers<sum_of>);
  }
  form.assign(execute, type, {type, type});
}

void decode_integer_multiply(Form& form, ScalarType type) {
  if (form.take("wide")) {
    form.assign(find_handler(form, type, wide_products), twice_as_wide(type), {type, type});
    return;
  }
  const bool takes_high = form.take("hi");
  if (!takes_high && !form.take("lo")) form.refuse("it says none of .lo, .hi, .wide");
  form.assign(takes_high ? find_handler(form, type, binary_integers<high_product_of>)
                         : find_handler(form, type, binary_integers<product_of>),
              type, {type, type});
}

void decode_integer_multiply_add(Form& form, ScalarType type) {
  if (form.take("wide")) {
    const ScalarType sum = twice_as_wide(type);
    form.assign(find_handler(form, type, wide_products_and_sums), sum, {type, type, sum});
    return;
  }
  const bool takes_high = form.take("hi");
  if (!takes_high && !form.take("lo")) form.refuse("it says none of .lo, .hi, .wide");
  Execute execute = nullptr;
  if (form.take("sat")) {
    if (!takes_high || type != ScalarType::s32) form.refuse(".sat is for mad.hi.s32 alone");
    execute = run_lanes<saturated_high_product_and_sum>;
  } else {
    execute = takes_high ? find_handler(form, type, ternary_integers<high_product_and_sum>)
                         : find_handler(form, type, ternary_integers<integer_product_and_sum>);
  }
  form.assign(execute, type, {type, type, type});
}

void decode_integer_divide(Form& form, ScalarType type) {
  form.assign(form.instruction().opcode == "rem"
                  ? find_handler(form, type, binary_integers<remainder_of>)
                  : find_handler(form, type, binary_integers<quotient_of>),
              type, {type, type});
}

void decode_integer_sign(Form& form, ScalarType type) {
  if (!is_signed_integer(type)) form.refuse("it is for signed integers");
  form.assign(form.instruction().opcode == "abs"
                  ? find_handler(form, type, unary_integers<magnitude_of>)
                  : find_handler(form, type, unary_integers<negated_integer>),
              type, {type});
}

void decode_integer_extreme(Form& form, ScalarType type) {
  const bool is_minimum = form.instruction().opcode == "min";
  if (form.take("relu")) {
    // max(min(a, b), 0); only s32 and s16x2 have it.
    static constexpr auto smaller_relu = [](auto a, auto b) {
      const auto least = smaller_of(a, b);
      return larger_of(least, decltype(least){0});
    };
    static constexpr auto larger_relu = [](auto a, auto b) {
      const auto most = larger_of(a, b);
      return larger_of(most, decltype(most){0});
    };
    static constexpr TypedHandler minima[] = {
        {ScalarType::s32, run_lanes<binary_lane<smaller_relu, std::int32_t>>},
        {ScalarType::s16x2, run_lanes<halves_lane<smaller_relu, std::int16_t>>},
    };
    static constexpr TypedHandler maxima[] = {
        {ScalarType::s32, run_lanes<binary_lane<larger_relu, std::int32_t>>},
        {ScalarType::s16x2, run_lanes<halves_lane<larger_relu, std::int16_t>>},
    };
    form.assign(is_minimum ? find_handler(form, type, minima) : find_handler(form, type, maxima),
                type, {type, type});
    return;
  }
  Execute execute = nullptr;
  if (is_pair(type))
    execute = is_minimum ? find_handler(form, type, binary_halves<smaller_of>)
                         : find_handler(form, type, binary_halves<larger_of>);
  else
    execute = is_minimum ? find_handler(form, type, binary_integers<smaller_of>)
                         : find_handler(form, type, binary_integers<larger_of>);
  form.assign(execute, type, {type, type});
}

DecodeRows integer_rows() {
  static constexpr DecodeRow rows[] = {
      {"mul24", decode_mul24}, {"mad24", decode_mad24}, {"sad", decode_sad},
      {"dp4a", decode_dp4a},   {"dp2a", decode_dp2a},
  };
  return rows;
}

}  // namespace gemmery::emulator
