// SPDX-License-Identifier: Apache-2.0
// Logic, shifts, and operations on bits, bit fields and bytes.
#include "emulator/arithmetic/integer_functions.hpp"
#include "emulator/instruction/arithmetic/integer.hpp"
#include "emulator/instruction/lane_apply.hpp"
#include "emulator/instruction/lane_rows.hpp"
#include "emulator/instruction/predicate.hpp"

namespace gemmery::emulator {
namespace {

// --- logic ---------------------------------------------------------------------------------------

constexpr auto both_of = [](auto a, auto b) { return a & b; };
constexpr auto either_of = [](auto a, auto b) { return a | b; };
constexpr auto one_of = [](auto a, auto b) { return a ^ b; };
constexpr auto none_of = [](auto a) { return ~a; };
constexpr auto is_zero = [](auto a) { return a == 0; };

// The result is defined if one defined operand alone decides it. Compilers emit `and` for `a && b`
// where b is defined only if a holds.
template <auto generic>
Step run_predicate_logic(Warp& warp, const Operation& operation, LaneMask active) {
  const auto decides = [](LaneMask value) {
    return ~(generic(value, LaneMask{0}) ^ generic(value, all_lanes));
  };
  const LaneMask a = read_predicate(warp, operation, 1), b = read_predicate(warp, operation, 2);
  const LaneMask a_defined = warp.defined_lanes(operation.slot[1]);
  const LaneMask b_defined = warp.defined_lanes(operation.slot[2]);
  warp.set_defined(operation.slot[0], active,
                   (a_defined & b_defined) | (a_defined & decides(a)) | (b_defined & decides(b)));
  blend_predicate(warp.destination<LaneMask>(operation, 0), generic(a, b), active);
  return Step::next;
}
Step run_predicate_not(Warp& warp, const Operation& operation, LaneMask active) {
  blend_predicate(warp.destination<LaneMask>(operation, 0), ~read_predicate(warp, operation, 1),
                  active);
  return Step::next;
}

template <auto generic>
void decode_logic(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  const ScalarType type = form.take_type();
  if (type != ScalarType::pred) {
    form.assign(find_handler(form, type, binary_bits<generic>), type, {type, type});
    return;
  }
  operation.propagates_definedness = false;
  form.assign(run_predicate_logic<generic>, type, {type, type});
  note_negations(form, 1, 1, 2);
}
void decode_not(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  const ScalarType type = form.take_type();
  if (type != ScalarType::pred) {
    form.assign(find_handler(form, type, unary_bits<none_of>), type, {type});
    return;
  }
  form.assign(run_predicate_not, type, {type});
  note_negations(form, 1, 1, 1);
}
void decode_cnot(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  const ScalarType type = form.take_type();
  form.assign(find_handler(form, type, unary_bits<is_zero>), type, {type});
}

// --- lop3 ----------------------------------------------------------------------------------------

// Selects by a, b and c in three levels; the leaves are the bits of the table, which is the same in
// all lanes.
struct LogicTable {
  explicit LogicTable(std::uint64_t table) noexcept {
    for (std::size_t row = 0; row < 8; ++row)
      leaf[row] = ((table >> row) & 1) != 0 ? ~std::uint32_t{0} : 0;
  }
  std::uint32_t operator()(std::uint32_t a, std::uint32_t b, std::uint32_t c) const noexcept {
    const std::uint32_t from_00 = choose(c, leaf[1], leaf[0]),
                        from_01 = choose(c, leaf[3], leaf[2]);
    const std::uint32_t from_10 = choose(c, leaf[5], leaf[4]),
                        from_11 = choose(c, leaf[7], leaf[6]);
    return choose(a, choose(b, from_11, from_10), choose(b, from_01, from_00));
  }
  static std::uint32_t choose(std::uint32_t by, std::uint32_t one, std::uint32_t zero) noexcept {
    return zero ^ (by & (one ^ zero));
  }
  std::uint32_t leaf[8];
};

Step run_lop3(Warp& warp, const Operation& operation, LaneMask active) {
  const LogicTable table(operation.immediate);
  const auto* const a = warp.source<std::uint32_t>(operation, 1);
  const auto* const b = warp.source<std::uint32_t>(operation, 2);
  const auto* const c = warp.source<std::uint32_t>(operation, 3);
  write_lanes<std::uint32_t>(warp, operation, 0, active, [=](std::uint32_t* to) {
    GEMMERY_EACH_LANE
    for (int lane = 0; lane < lanes_per_warp; ++lane) to[lane] = table(a[lane], b[lane], c[lane]);
  });
  return Step::next;
}

// lop3.or.b32 d|p, a, b, c, table, q: p is (d != 0) combined with q.
template <bool is_and>
Step run_lop3_predicate(Warp& warp, const Operation& operation, LaneMask active) {
  run_lop3(warp, operation, active);
  const LaneMask is_set =
      lanes_where<[](std::uint32_t made) { return made != 0; }>(warp, operation, 0);
  const LaneMask other = read_predicate(warp, operation, 5);
  blend_predicate(warp.destination<LaneMask>(operation, 4),
                  is_and ? is_set & other : is_set | other, active);
  return Step::next;
}

std::uint64_t immediate_operand(Form& form, std::size_t index) {
  const Operand& operand = form.operand(index);
  if (operand.kind != Operand::Kind::immediate) form.refuse("an operand must be an immediate");
  return operand.bits;
}

void decode_lop3(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  const bool is_or = form.take("or"), is_and = form.take("and");
  if (form.take_type() != ScalarType::b32) form.refuse("it is for .b32");
  form.finish();
  const bool makes_predicate = is_or || is_and;
  form.expect_operands(makes_predicate ? 6 : 5);
  operation.immediate = immediate_operand(form, 4) & 255;
  const Operand& made = form.operand(0);
  if (makes_predicate != (made.kind == Operand::Kind::predicate_pair))
    form.refuse("a pair d|p goes with .or or .and");
  form.add_destination(makes_predicate ? made.items[0] : made, ScalarType::b32);
  for (std::size_t index = 1; index <= 3; ++index)
    form.add_source(form.operand(index), ScalarType::b32);
  operation.execute = run_lop3;
  if (!makes_predicate) return;
  form.add_destination(made.items[1], ScalarType::pred);
  form.add_source(form.operand(5), ScalarType::pred);
  note_negations(form, 5, 5, 1);
  operation.execute = is_and ? run_lop3_predicate<true> : run_lop3_predicate<false>;
}

// --- shifts --------------------------------------------------------------------------------------

template <class T>
T left_lane(T value, std::uint32_t amount) {
  return shift_left(value, amount);
}
template <class T>
T left_lane_by_constant(T value, Uniform<std::uint32_t> amount) {
  return shift_left(value, amount.value);
}
template <class T>
T right_lane(T value, std::uint32_t amount) {
  return shift_right(value, amount);
}
template <class T>
T right_lane_by_constant(T value, Uniform<std::uint32_t> amount) {
  return shift_right(value, amount.value);
}
constexpr TypedHandler left_shifts[] = {
    {ScalarType::b16, run_lanes<left_lane<std::uint16_t>>},
    {ScalarType::b32, run_lanes<left_lane<std::uint32_t>>},
    {ScalarType::b64, run_lanes<left_lane<std::uint64_t>>},
};
constexpr TypedHandler left_shifts_by_constant[] = {
    {ScalarType::b16, run_lanes<left_lane_by_constant<std::uint16_t>>},
    {ScalarType::b32, run_lanes<left_lane_by_constant<std::uint32_t>>},
    {ScalarType::b64, run_lanes<left_lane_by_constant<std::uint64_t>>},
};
constexpr TypedHandler right_shifts[] = {
    {ScalarType::b16, run_lanes<right_lane<std::uint16_t>>},
    {ScalarType::b32, run_lanes<right_lane<std::uint32_t>>},
    {ScalarType::b64, run_lanes<right_lane<std::uint64_t>>},
    {ScalarType::u16, run_lanes<right_lane<std::uint16_t>>},
    {ScalarType::u32, run_lanes<right_lane<std::uint32_t>>},
    {ScalarType::u64, run_lanes<right_lane<std::uint64_t>>},
    {ScalarType::s16, run_lanes<right_lane<std::int16_t>>},
    {ScalarType::s32, run_lanes<right_lane<std::int32_t>>},
    {ScalarType::s64, run_lanes<right_lane<std::int64_t>>},
};
constexpr TypedHandler right_shifts_by_constant[] = {
    {ScalarType::b16, run_lanes<right_lane_by_constant<std::uint16_t>>},
    {ScalarType::b32, run_lanes<right_lane_by_constant<std::uint32_t>>},
    {ScalarType::b64, run_lanes<right_lane_by_constant<std::uint64_t>>},
    {ScalarType::u16, run_lanes<right_lane_by_constant<std::uint16_t>>},
    {ScalarType::u32, run_lanes<right_lane_by_constant<std::uint32_t>>},
    {ScalarType::u64, run_lanes<right_lane_by_constant<std::uint64_t>>},
    {ScalarType::s16, run_lanes<right_lane_by_constant<std::int16_t>>},
    {ScalarType::s32, run_lanes<right_lane_by_constant<std::int32_t>>},
    {ScalarType::s64, run_lanes<right_lane_by_constant<std::int64_t>>},
};

void decode_shift(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  const ScalarType type = form.take_type();
  const bool is_left = instruction.opcode == "shl";
  const bool by_constant =
      form.operand_count() == 3 && form.operand(2).kind == Operand::Kind::immediate;
  const Execute execute = is_left
                              ? (by_constant ? find_handler(form, type, left_shifts_by_constant)
                                             : find_handler(form, type, left_shifts))
                              : (by_constant ? find_handler(form, type, right_shifts_by_constant)
                                             : find_handler(form, type, right_shifts));
  form.assign(execute, type, {type, ScalarType::u32});
}

template <bool is_left, bool wraps>
std::uint32_t funnel_lane(std::uint32_t low, std::uint32_t high, std::uint32_t amount) {
  const std::uint32_t by = wraps ? amount & 31 : (amount < 32 ? amount : 32);
  return is_left ? funnel_left(low, high, by) : funnel_right(low, high, by);
}
void decode_funnel_shift(DecodeContext& context, const Instruction& instruction,
                         Operation& operation) {
  Form form(context, instruction, operation);
  const bool is_left = form.take("l");
  if (!is_left && !form.take("r")) form.refuse("it says neither .l nor .r");
  const bool wraps = form.take("wrap");
  if (!wraps && !form.take("clamp")) form.refuse("it says neither .wrap nor .clamp");
  if (form.take_type() != ScalarType::b32) form.refuse("it is for .b32");
  const Execute execute =
      is_left
          ? (wraps ? run_lanes<funnel_lane<true, true>> : run_lanes<funnel_lane<true, false>>)
          : (wraps ? run_lanes<funnel_lane<false, true>> : run_lanes<funnel_lane<false, false>>);
  form.assign(execute, ScalarType::b32, {ScalarType::b32, ScalarType::b32, ScalarType::u32});
}

// --- counting and finding ------------------------------------------------------------------------

template <class T>
std::uint32_t popc_lane(T value) {
  return static_cast<std::uint32_t>(std::popcount(value));
}
template <class T>
std::uint32_t clz_lane(T value) {
  return static_cast<std::uint32_t>(std::countl_zero(value));
}
template <class T, bool as_shift_amount>
std::uint32_t bfind_lane(T value) {
  return find_leading(value, as_shift_amount);
}
template <class T>
T brev_lane(T value) {
  return reverse_bits(value);
}

void decode_popc(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  static constexpr TypedHandler rows[] = {{ScalarType::b32, run_lanes<popc_lane<std::uint32_t>>},
                                          {ScalarType::b64, run_lanes<popc_lane<std::uint64_t>>}};
  Form form(context, instruction, operation);
  const ScalarType type = form.take_type();
  form.assign(find_handler(form, type, rows), ScalarType::u32, {type});
}
void decode_clz(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  static constexpr TypedHandler rows[] = {{ScalarType::b32, run_lanes<clz_lane<std::uint32_t>>},
                                          {ScalarType::b64, run_lanes<clz_lane<std::uint64_t>>}};
  Form form(context, instruction, operation);
  const ScalarType type = form.take_type();
  form.assign(find_handler(form, type, rows), ScalarType::u32, {type});
}
template <bool as_shift_amount>
constexpr TypedHandler bfind_handlers[] = {
    {ScalarType::u32, run_lanes<bfind_lane<std::uint32_t, as_shift_amount>>},
    {ScalarType::s32, run_lanes<bfind_lane<std::int32_t, as_shift_amount>>},
    {ScalarType::u64, run_lanes<bfind_lane<std::uint64_t, as_shift_amount>>},
    {ScalarType::s64, run_lanes<bfind_lane<std::int64_t, as_shift_amount>>},
};
void decode_bfind(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  const bool as_shift_amount = form.take("shiftamt");
  const ScalarType type = form.take_type();
  form.assign(as_shift_amount ? find_handler(form, type, bfind_handlers<true>)
                              : find_handler(form, type, bfind_handlers<false>),
              ScalarType::u32, {type});
}
void decode_brev(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  static constexpr TypedHandler rows[] = {{ScalarType::b32, run_lanes<brev_lane<std::uint32_t>>},
                                          {ScalarType::b64, run_lanes<brev_lane<std::uint64_t>>}};
  Form form(context, instruction, operation);
  const ScalarType type = form.take_type();
  form.assign(find_handler(form, type, rows), type, {type});
}
void decode_fns(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  static constexpr auto find = [](std::uint32_t mask, std::uint32_t base,
                                  std::int32_t offset) -> std::uint32_t {
    return find_nth_set(mask, base, offset);
  };
  Form form(context, instruction, operation);
  if (form.take_type() != ScalarType::b32) form.refuse("it is for .b32");
  form.assign(run_lanes<find>, ScalarType::b32,
              {ScalarType::b32, ScalarType::b32, ScalarType::s32});
}

// --- fields --------------------------------------------------------------------------------------

template <class T>
T bfe_lane(T value, std::uint32_t position, std::uint32_t length) {
  return extract_field(value, position, length);
}
template <class T>
T bfi_lane(T field, T into, std::uint32_t position, std::uint32_t length) {
  return insert_field(field, into, position, length);
}
template <class T>
T bfi_lane_by_constants(T field, T into, Uniform<std::uint32_t> position,
                        Uniform<std::uint32_t> length) {
  return insert_field(field, into, position.value, length.value);
}

void decode_bfe(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  static constexpr TypedHandler rows[] = {{ScalarType::u32, run_lanes<bfe_lane<std::uint32_t>>},
                                          {ScalarType::s32, run_lanes<bfe_lane<std::int32_t>>},
                                          {ScalarType::u64, run_lanes<bfe_lane<std::uint64_t>>},
                                          {ScalarType::s64, run_lanes<bfe_lane<std::int64_t>>}};
  Form form(context, instruction, operation);
  const ScalarType type = form.take_type();
  form.assign(find_handler(form, type, rows), type, {type, ScalarType::u32, ScalarType::u32});
}
void decode_bfi(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  static constexpr TypedHandler rows[] = {{ScalarType::b32, run_lanes<bfi_lane<std::uint32_t>>},
                                          {ScalarType::b64, run_lanes<bfi_lane<std::uint64_t>>}};
  static constexpr TypedHandler rows_by_constants[] = {
      {ScalarType::b32, run_lanes<bfi_lane_by_constants<std::uint32_t>>},
      {ScalarType::b64, run_lanes<bfi_lane_by_constants<std::uint64_t>>}};
  Form form(context, instruction, operation);
  const ScalarType type = form.take_type();
  form.expect_operands(5);
  const bool by_constants = form.operand(3).kind == Operand::Kind::immediate &&
                            form.operand(4).kind == Operand::Kind::immediate;
  form.assign(
      by_constants ? find_handler(form, type, rows_by_constants) : find_handler(form, type, rows),
      type, {type, type, ScalarType::u32, ScalarType::u32});
}

// .clamp or .wrap; true for .wrap.
bool take_wrap(Form& form) {
  const bool wraps = form.take("wrap");
  if (!wraps && !form.take("clamp")) form.refuse("it says neither .clamp nor .wrap");
  return wraps;
}
template <bool wraps>
std::uint32_t bmsk_lane(std::uint32_t position, std::uint32_t count) {
  return make_mask(position, count, wraps);
}
void decode_bmsk(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  const bool wraps = take_wrap(form);
  if (form.take_type() != ScalarType::b32) form.refuse("it is for .b32");
  form.assign(wraps ? run_lanes<bmsk_lane<true>> : run_lanes<bmsk_lane<false>>, ScalarType::b32,
              {ScalarType::b32, ScalarType::b32});
}
template <class T, bool wraps>
T szext_lane(T value, std::uint32_t position) {
  return extend_from(value, position, wraps);
}
template <bool wraps>
constexpr TypedHandler szext_handlers[] = {
    {ScalarType::u32, run_lanes<szext_lane<std::uint32_t, wraps>>},
    {ScalarType::s32, run_lanes<szext_lane<std::int32_t, wraps>>}};
void decode_szext(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  const bool wraps = take_wrap(form);
  const ScalarType type = form.take_type();
  form.assign(wraps ? find_handler(form, type, szext_handlers<true>)
                    : find_handler(form, type, szext_handlers<false>),
              type, {type, ScalarType::u32});
}

// --- bytes ---------------------------------------------------------------------------------------

template <ByteMode mode>
std::uint32_t prmt_lane(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
  return permute_bytes(a, b, byte_selectors(mode, selector));
}
// The selector is the same in all lanes, so each byte of the result is one loop, which vectorises.
Step run_prmt_by_constant(Warp& warp, const Operation& operation, LaneMask active) {
  const auto* const a = warp.source<std::uint32_t>(operation, 1);
  const auto* const b = warp.source<std::uint32_t>(operation, 2);
  const std::uint32_t selectors = *warp.source<std::uint32_t>(operation, 3);
  alignas(64) std::uint32_t made[lanes_per_warp] = {};
  for (std::uint32_t at = 0; at < 4; ++at) {
    const std::uint32_t selector = selectors >> (4 * at);
    const auto* const from = (selector & 4) != 0 ? b : a;
    const std::uint32_t down = 8 * (selector & 3), up = 8 * at;
    const std::uint32_t from_sign = (selector & 8) != 0 ? ~std::uint32_t{0} : 0;
    for (int lane = 0; lane < lanes_per_warp; ++lane) {
      const std::uint32_t byte = (from[lane] >> down) & 255;
      const std::uint32_t sign = (0 - (byte >> 7)) & 255;
      made[lane] |= ((sign & from_sign) | (byte & ~from_sign)) << up;
    }
  }
  blend(warp.destination<std::uint32_t>(operation, 0), made, active);
  return Step::next;
}
void decode_prmt(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  static constexpr std::string_view modes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
  static constexpr Execute by_mode[] = {
      run_lanes<prmt_lane<ByteMode::f4e>>, run_lanes<prmt_lane<ByteMode::b4e>>,
      run_lanes<prmt_lane<ByteMode::rc8>>, run_lanes<prmt_lane<ByteMode::ecl>>,
      run_lanes<prmt_lane<ByteMode::ecr>>, run_lanes<prmt_lane<ByteMode::rc16>>};
  Form form(context, instruction, operation);
  if (form.take_type() != ScalarType::b32) form.refuse("it is for .b32");
  const auto mode = form.take_one_of(modes);
  const bool by_constant = form.operand(3).kind == Operand::Kind::immediate;
  const Execute plain = by_constant ? run_prmt_by_constant : run_lanes<prmt_lane<ByteMode::plain>>;
  form.assign(mode ? by_mode[*mode] : plain, ScalarType::b32,
              {ScalarType::b32, ScalarType::b32, ScalarType::b32});
}

}  // namespace

DecodeRows bit_rows() {
  static constexpr DecodeRow rows[] = {
      {"and", decode_logic<both_of>},
      {"or", decode_logic<either_of>},
      {"xor", decode_logic<one_of>},
      {"not", decode_not},
      {"cnot", decode_cnot},
      {"lop3", decode_lop3},
      {"shl", decode_shift},
      {"shr", decode_shift},
      {"shf", decode_funnel_shift},
      {"popc", decode_popc},
      {"clz", decode_clz},
      {"bfind", decode_bfind},
      {"brev", decode_brev},
      {"fns", decode_fns},
      {"bfe", decode_bfe},
      {"bfi", decode_bfi},
      {"bmsk", decode_bmsk},
      {"szext", decode_szext},
      {"prmt", decode_prmt},
  };
  return rows;
}

}  // namespace gemmery::emulator
