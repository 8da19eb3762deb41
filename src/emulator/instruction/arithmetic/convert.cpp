// SPDX-License-Identifier: Apache-2.0
// cvt between integers, and the choice of the file that decodes each other form of cvt.
#include "emulator/instruction/arithmetic/convert.hpp"

#include <array>

#include "emulator/arithmetic/integer_functions.hpp"
#include "emulator/instruction/arithmetic/float.hpp"
#include "emulator/instruction/lane_apply.hpp"

namespace gemmery::emulator {
namespace {

// --- integer to integer --------------------------------------------------------------------------

// `Held` is the type of the destination register, which may be wider than the destination type and
// is then filled by extension. `Source` is the type of the source register.
template <class From, class To, class Held>
Held resize(From value) {
  return static_cast<Held>(static_cast<To>(value));
}
template <class From, class To, class Held>
Held resize_saturated(From value) {
  // A u64 above the maximum of s64 is above that of every narrower type, too, so clamping it to s64
  // first does not change the result.
  constexpr auto highest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if constexpr (std::is_same_v<To, std::uint64_t>) {
    return static_cast<Held>(value < 0 ? To{0} : static_cast<To>(value));
  } else {
    if constexpr (std::is_same_v<From, std::uint64_t>)
      return static_cast<Held>(
          saturate_to<To>(static_cast<std::int64_t>(value < highest ? value : highest)));
    else
      return static_cast<Held>(saturate_to<To>(static_cast<std::int64_t>(value)));
  }
}
// Takes the low bits of a source register that is wider than 32 bits.
template <class From, class To, class Held>
Held resize_wide(std::uint64_t held) {
  return resize<From, To, Held>(static_cast<From>(held));
}
template <class From, class To, class Held>
Held resize_wide_saturated(std::uint64_t held) {
  return resize_saturated<From, To, Held>(static_cast<From>(held));
}

// Indexed by whether the source register has 64 bits, and whether the form saturates.
using ResizeForms = std::array<std::array<Execute, 2>, 2>;
template <class From, class To, class Held>
constexpr ResizeForms resize_forms() {
  if constexpr (sizeof(Held) < sizeof(To))
    return {};
  else
    return {{{run_lanes<resize<From, To, Held>>, run_lanes<resize_saturated<From, To, Held>>},
             {run_lanes<resize_wide<From, To, Held>>,
              run_lanes<resize_wide_saturated<From, To, Held>>}}};
}
template <class From, class To>
ResizeForms resize_into(int register_bits) {
  switch (register_bits) {
    case 16:
      return resize_forms<From, To, std::uint16_t>();
    case 32:
      return resize_forms<From, To, std::uint32_t>();
    case 64:
      return resize_forms<From, To, std::uint64_t>();
    default:
      return {};
  }
}
template <class From>
ResizeForms resize_from(ScalarType to, int register_bits) {
  return with_integer(to, [&]<class To>(To) { return resize_into<From, To>(register_bits); });
}

int register_bits_of(Form& form, std::size_t index, ScalarType type) {
  const Operand& operand = form.operand(index);
  if (operand.kind != Operand::Kind::reg) return bits_of(type) < 16 ? 16 : bits_of(type);
  return bits_of(form.context().register_type(operand.reg));
}

void decode_resize(Form& form, ScalarType to, ScalarType from) {
  const bool saturates = form.take("sat");
  const int source_bits = register_bits_of(form, 1, from);
  const bool is_wide = source_bits == 64 && bits_of(from) < 64;
  const ResizeForms forms = with_integer(
      from, [&]<class From>(From) { return resize_from<From>(to, register_bits_of(form, 0, to)); });
  const Execute execute = forms[is_wide][saturates];
  if (execute == nullptr) form.refuse("the destination register is too narrow");
  form.assign(execute, to, {from});
}

// --- cvt.pack ------------------------------------------------------------------------------------

// Saturates both numbers to `bits` bits and puts `b` below `a`; the bits above come from c.
std::uint32_t pack_lane(const Operation& operation, std::int32_t a, std::int32_t b,
                        std::uint32_t c) {
  const auto bits = static_cast<std::uint32_t>(operation.immediate & 255);
  const bool is_signed = has_flag(operation, flag_packs_signed);
  const std::int64_t highest = (std::int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  const std::int64_t lowest = is_signed ? -highest - 1 : 0;
  const std::uint32_t mask = (1u << bits) - 1;
  const auto cut = [&](std::int64_t value) {
    return static_cast<std::uint32_t>(value < lowest    ? lowest
                                      : value > highest ? highest
                                                        : value) &
           mask;
  };
  const std::uint32_t pair = cut(a) << bits | cut(b);
  return bits == 16 ? pair : c << (2 * bits) | pair;
}
std::uint32_t pack_pair_lane(const Operation& operation, std::int32_t a, std::int32_t b) {
  return pack_lane(operation, a, b, 0);
}

void decode_pack(Form& form) {
  struct Row {
    std::string_view word;
    std::uint32_t bits;
    bool is_signed;
  };
  static constexpr Row rows[] = {{"s16", 16, true}, {"u16", 16, false}, {"s8", 8, true},
                                 {"u8", 8, false},  {"s4", 4, true},    {"u4", 4, false},
                                 {"s2", 2, true},   {"u2", 2, false}};
  if (!form.take("sat")) form.refuse(".sat is missing");
  const Row* found = nullptr;
  for (const Row& row : rows)
    if (found == nullptr && form.take(row.word)) found = &row;
  if (found == nullptr) form.refuse("the type to pack is not known");
  form.operation().immediate = found->bits;
  set_flag(form, flag_packs_signed, found->is_signed);
  if (form.take_type() != ScalarType::s32) form.refuse("it packs .s32");
  if (found->bits == 16) {
    form.assign(run_lanes<pack_pair_lane>, ScalarType::b32, {ScalarType::s32, ScalarType::s32});
    return;
  }
  if (form.take_type() != ScalarType::b32) form.refuse("it packs beside .b32");
  form.assign(run_lanes<pack_lane>, ScalarType::b32,
              {ScalarType::s32, ScalarType::s32, ScalarType::b32});
}

// --- cvt -----------------------------------------------------------------------------------------

void decode_cvt(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  if (form.take("pack")) return decode_pack(form);
  const ScalarType to = form.take_type();
  const ScalarType from = form.take_type();
  if (is_float(to) || is_float(from))
    decode_float_conversion(form, to, from);
  else if (is_integer(to) && is_integer(from))
    decode_resize(form, to, from);
  else
    form.refuse("these types can't be converted");
}

}  // namespace

bool is_integer(ScalarType type) noexcept {
  return (is_signed_integer(type) || is_unsigned_integer(type)) && bits_of(type) >= 8 &&
         type != ScalarType::u16x2 && type != ScalarType::s16x2;
}

DecodeRows convert_rows() {
  static constexpr DecodeRow rows[] = {{"cvt", decode_cvt}, {"mov", decode_mov}};
  return rows;
}

}  // namespace gemmery::emulator
