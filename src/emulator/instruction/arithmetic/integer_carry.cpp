// SPDX-License-Identifier: Apache-2.0
// Multi-word arithmetic: add.cc addc sub.cc subc mad.cc madc, through each lane's carry flag
// (Warp::carry). A subtraction leaves the borrow in the flag.
#include "emulator/arithmetic/integer_functions.hpp"
#include "emulator/instruction/arithmetic/integer.hpp"
#include "emulator/instruction/lane_apply.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::uint32_t reads_carry = 1;
constexpr std::uint32_t writes_carry = 2;

template <class T>
struct Carried {
  T value;
  bool carry;
};

template <class T>
Carried<T> add_words(T a, T b, bool carry) {
  const T sum = a + b;
  const T made = sum + T{carry};
  return {made, sum < a || made < sum};
}
template <class T>
Carried<T> subtract_words(T a, T b, bool borrow) {
  const T difference = a - b;
  return {static_cast<T>(difference - T{borrow}), a < b || difference < T{borrow}};
}

enum class Words { add, subtract, add_low_product, add_high_product };

template <Words kind, class T>
Carried<T> combine_words(Warp& warp, const Operation& operation, int lane, bool carry) {
  using Bits = std::make_unsigned_t<T>;
  const auto word = [&](std::size_t slot) {
    return load_lane<Bits>(warp.source<Bits>(operation, slot)[lane]);
  };
  Carried<Bits> made{};
  if constexpr (kind == Words::add) {
    made = add_words<Bits>(word(1), word(2), carry);
  } else if constexpr (kind == Words::subtract) {
    made = subtract_words<Bits>(word(1), word(2), carry);
  } else {
    const Bits product =
        kind == Words::add_low_product
            ? static_cast<Bits>(word(1) * word(2))
            : static_cast<Bits>(multiply_high(static_cast<T>(word(1)), static_cast<T>(word(2))));
    made = add_words<Bits>(product, word(3), carry);
  }
  return {static_cast<T>(made.value), made.carry};
}

template <Words kind, class T>
Step run_carrying(Warp& warp, const Operation& operation, LaneMask active) {
  const LaneMask before = (operation.flags & reads_carry) != 0 ? warp.carry : 0;
  LaneMask after = 0;
  write_lanes<T>(warp, operation, 0, active, [&](StoredLane<T>* to) {
    for (int lane = 0; lane < lanes_per_warp; ++lane) {
      const Carried<T> made =
          combine_words<kind, T>(warp, operation, lane, ((before >> lane) & 1) != 0);
      to[lane] = store_lane(made.value);
      after |= static_cast<LaneMask>(made.carry) << lane;
    }
  });
  if ((operation.flags & writes_carry) != 0) blend_predicate(&warp.carry, after, active);
  return Step::next;
}

template <Words kind>
constexpr TypedHandler carrying[] = {
    {ScalarType::u32, run_carrying<kind, std::uint32_t>},
    {ScalarType::s32, run_carrying<kind, std::int32_t>},
    {ScalarType::u64, run_carrying<kind, std::uint64_t>},
    {ScalarType::s64, run_carrying<kind, std::int64_t>},
};

void decode_with_carry(DecodeContext& context, const Instruction& instruction,
                       Operation& operation) {
  Form form(context, instruction, operation);
  operation.flags |= reads_carry;
  if (form.take("cc")) operation.flags |= writes_carry;
  const ScalarType type = form.take_type();
  decode_carrying(form, type);
}

}  // namespace

void decode_carrying(Form& form, ScalarType type) {
  const std::string_view opcode = form.instruction().opcode;
  if (!opcode.ends_with('c')) form.operation().flags |= writes_carry;
  if (opcode.starts_with("mad")) {
    const bool takes_high = form.take("hi");
    if (!takes_high && !form.take("lo")) form.refuse("it says neither .lo nor .hi");
    form.assign(takes_high ? find_handler(form, type, carrying<Words::add_high_product>)
                           : find_handler(form, type, carrying<Words::add_low_product>),
                type, {type, type, type});
    return;
  }
  form.assign(opcode.starts_with("sub") ? find_handler(form, type, carrying<Words::subtract>)
                                        : find_handler(form, type, carrying<Words::add>),
              type, {type, type});
}

DecodeRows carry_rows() {
  static constexpr DecodeRow rows[] = {
      {"addc", decode_with_carry}, {"subc", decode_with_carry}, {"madc", decode_with_carry}};
  return rows;
}

}  // namespace gemmery::emulator
