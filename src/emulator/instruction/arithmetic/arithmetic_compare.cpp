// SPDX-License-Identifier: Apache-2.0
// setp set selp slct. A comparison is a function that returns the mask of lanes for which it holds;
// setp and set turn that mask into their result.
#include <array>

#include "emulator/arithmetic/float_arithmetic.hpp"
#include "emulator/arithmetic/float_format.hpp"
#include "emulator/instruction/arithmetic/arithmetic_compare.hpp"
#include "emulator/instruction/arithmetic/float.hpp"
#include "emulator/instruction/lane_apply.hpp"
#include "emulator/instruction/predicate.hpp"

namespace gemmery::emulator {
namespace {

// Returns the lanes in which the sources in slots `first` and `first + 1` satisfy the comparison.
using Compare = LaneMask (*)(const Warp& warp, const Operation& operation, std::size_t first);

// --- integers ------------------------------------------------------------------------------------

constexpr std::string_view integer_comparisons[] = {"eq", "ne", "lt", "le", "gt",
                                                    "ge", "lo", "ls", "hi", "hs"};
constexpr auto is_equal = [](auto a, auto b) { return a == b; };
constexpr auto is_unequal = [](auto a, auto b) { return a != b; };
constexpr auto is_less = [](auto a, auto b) { return a < b; };
constexpr auto is_at_most = [](auto a, auto b) { return a <= b; };
constexpr auto is_greater = [](auto a, auto b) { return a > b; };
constexpr auto is_at_least = [](auto a, auto b) { return a >= b; };

template <auto generic, class T>
bool holds_for(T a, T b) {
  return generic(a, b);
}
template <class T>
constexpr std::array<Compare, 6> comparisons_of = {
    lanes_where<holds_for<is_equal, T>>,   lanes_where<holds_for<is_unequal, T>>,
    lanes_where<holds_for<is_less, T>>,    lanes_where<holds_for<is_at_most, T>>,
    lanes_where<holds_for<is_greater, T>>, lanes_where<holds_for<is_at_least, T>>,
};

const std::array<Compare, 6>* integer_table(ScalarType type) {
  switch (type) {
    case ScalarType::b16:
    case ScalarType::u16:
      return &comparisons_of<std::uint16_t>;
    case ScalarType::b32:
    case ScalarType::u32:
      return &comparisons_of<std::uint32_t>;
    case ScalarType::b64:
    case ScalarType::u64:
      return &comparisons_of<std::uint64_t>;
    case ScalarType::s16:
      return &comparisons_of<std::int16_t>;
    case ScalarType::s32:
      return &comparisons_of<std::int32_t>;
    case ScalarType::s64:
      return &comparisons_of<std::int64_t>;
    default:
      return nullptr;
  }
}
Compare integer_comparison(Form& form, ScalarType type, std::size_t word) {
  const bool is_of_unsigned = word >= 6;  // lo ls hi hs: lt le gt ge
  const std::size_t which = is_of_unsigned ? word - 4 : word;
  const bool is_bits =
      type == ScalarType::b16 || type == ScalarType::b32 || type == ScalarType::b64;
  if (is_bits && which > 1) form.refuse("bits are only equal or not");
  if (is_of_unsigned && !is_unsigned_integer(type)) form.refuse("it is for unsigned types");
  return (*integer_table(type))[which];
}

// --- floats --------------------------------------------------------------------------------------

// A comparison is the set of outcomes for which it holds: 1 less, 2 equal, 4 greater, 8 unordered.
struct FloatComparison {
  std::string_view word;
  std::uint32_t outcomes;
};
constexpr FloatComparison float_comparisons[] = {
    {"eq", 2},   {"ne", 5},  {"lt", 1},   {"le", 3},   {"gt", 4},   {"ge", 6},  {"equ", 10},
    {"neu", 13}, {"ltu", 9}, {"leu", 11}, {"gtu", 12}, {"geu", 14}, {"num", 7}, {"nan", 8},
};

template <class Float>
bool compares(const Operation& operation, Float a, Float b) {
  const auto outcomes = static_cast<std::uint32_t>(operation.immediate);
  const auto below = static_cast<std::uint32_t>(a < b);
  const auto same = static_cast<std::uint32_t>(a == b);
  const auto above = static_cast<std::uint32_t>(a > b);
  const std::uint32_t outcome = below | same << 1 | above << 2;
  const std::uint32_t is_unordered = outcome == 0;
  return ((outcome | is_unordered << 3) & outcomes) != 0;
}
bool compares_f32(const Operation& operation, float a, float b) {
  const bool flushes = has_flag(operation, flag_ftz);
  return compares(operation, flushes ? flush(a) : a, flushes ? flush(b) : b);
}
float half_value(const Operation& operation, std::uint32_t bits, bool is_bf16) {
  if (is_bf16) return std::bit_cast<float>(f32_from_bf16(bits));
  const bool is_flushed = has_flag(operation, flag_ftz) && (bits & 0x7c00) == 0;
  return std::bit_cast<float>(f32_from_f16(is_flushed ? bits & 0x8000 : bits));
}
template <bool is_bf16, int shift>
bool compares_half(const Operation& operation, std::uint32_t a, std::uint32_t b) {
  return compares(operation, half_value(operation, (a >> shift) & 0xffff, is_bf16),
                  half_value(operation, (b >> shift) & 0xffff, is_bf16));
}

Compare float_comparison(Form& form, ScalarType type) {
  switch (type) {
    case ScalarType::f32:
      return lanes_where<compares_f32>;
    case ScalarType::f64:
      return lanes_where<compares<double>>;
    case ScalarType::f16:
    case ScalarType::f16x2:
      return lanes_where<compares_half<false, 0>>;
    case ScalarType::bf16:
    case ScalarType::bf16x2:
      return lanes_where<compares_half<true, 0>>;
    default:
      form.refuse("." + std::string(name(type)) + " can't be compared here");
  }
}

// --- setp and set --------------------------------------------------------------------------------

enum class Combination : std::uint8_t { none, conjunction, disjunction, exclusion };

struct CompareDetail : OperationDetail {
  Compare compare = nullptr;
  Compare compare_high = nullptr;  // of the upper halves, for pairs
  Combination combination = Combination::none;
  std::size_t first_source = 1;  // 1 or 2: the slots before it are destinations
  std::uint64_t if_true = 0;     // the value that set writes for true
};

LaneMask combine(Combination how, LaneMask compared, LaneMask other) {
  switch (how) {
    case Combination::conjunction:
      return compared & other;
    case Combination::disjunction:
      return compared | other;
    case Combination::exclusion:
      return compared ^ other;
    case Combination::none:
      break;
  }
  return compared;
}
LaneMask other_predicate(const Warp& warp, const Operation& operation,
                         const CompareDetail& detail) {
  return detail.combination == Combination::none
             ? 0
             : read_predicate(warp, operation, detail.first_source + 2);
}
const CompareDetail& detail_of(const Operation& operation) {
  return static_cast<const CompareDetail&>(*operation.detail);
}

template <bool has_second>
Step run_setp(Warp& warp, const Operation& operation, LaneMask active) {
  const CompareDetail& detail = detail_of(operation);
  const LaneMask other = other_predicate(warp, operation, detail);
  const LaneMask low = detail.compare(warp, operation, detail.first_source);
  if constexpr (has_second) {
    // A second destination receives the negated result, or for pairs the result of the upper
    // halves.
    const LaneMask high = detail.compare_high != nullptr
                              ? detail.compare_high(warp, operation, detail.first_source)
                              : ~low;
    blend_predicate(warp.destination<LaneMask>(operation, 1),
                    combine(detail.combination, high, other), active);
  }
  blend_predicate(warp.destination<LaneMask>(operation, 0), combine(detail.combination, low, other),
                  active);
  return Step::next;
}

// .u32, .s32: all ones; .f32 and halves: 1.0; pairs: each half by itself.
Step run_set(Warp& warp, const Operation& operation, LaneMask active) {
  const CompareDetail& detail = detail_of(operation);
  const LaneMask other = other_predicate(warp, operation, detail);
  const LaneMask low = combine(detail.combination, detail.compare(warp, operation, 1), other);
  const LaneMask high =
      detail.compare_high == nullptr
          ? 0
          : combine(detail.combination, detail.compare_high(warp, operation, 1), other);
  write_lanes<std::uint32_t>(warp, operation, 0, active, [&](std::uint32_t* to) {
    const auto value = static_cast<std::uint32_t>(detail.if_true);
    for (int lane = 0; lane < lanes_per_warp; ++lane)
      to[lane] =
          (((low >> lane) & 1) != 0 ? value : 0) | (((high >> lane) & 1) != 0 ? value << 16 : 0);
  });
  return Step::next;
}

Combination take_combination(Form& form) {
  static constexpr std::string_view words[] = {"and", "or", "xor"};
  const auto found = form.take_one_of(words);
  return found ? static_cast<Combination>(*found + 1) : Combination::none;
}

// Chooses the function for the comparison modifier; `type` is the type of the operands.
void choose_comparison(Form& form, ScalarType type, CompareDetail& detail) {
  if (is_float(type)) {
    for (const FloatComparison& row : float_comparisons)
      if (form.take(row.word)) {
        form.operation().immediate = row.outcomes;
        detail.compare = float_comparison(form, type);
        if (type == ScalarType::f16x2) detail.compare_high = lanes_where<compares_half<false, 16>>;
        if (type == ScalarType::bf16x2) detail.compare_high = lanes_where<compares_half<true, 16>>;
        const bool may_flush =
            type != ScalarType::f64 && type != ScalarType::bf16 && type != ScalarType::bf16x2;
        set_flag(form, flag_ftz, may_flush && form.take("ftz"));
        return;
      }
    form.refuse("the comparison is not known");
  }
  const auto word = form.take_one_of(integer_comparisons);
  if (!word || integer_table(type) == nullptr) form.refuse("the comparison is not known");
  detail.compare = integer_comparison(form, type, *word);
}

void add_compared(Form& form, ScalarType type, const CompareDetail& detail) {
  const bool combines = detail.combination != Combination::none;
  form.expect_operands(combines ? 4 : 3);
  form.add_source(form.operand(1), type);
  form.add_source(form.operand(2), type);
  if (!combines) return;
  note_negation(form, form.operand(3), form.add_source(form.operand(3), ScalarType::pred));
}

void decode_setp(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  auto detail = std::make_shared<CompareDetail>();
  const ScalarType type = form.take_type();
  detail->combination = take_combination(form);
  choose_comparison(form, type, *detail);
  form.finish();
  const Operand& to = form.operand(0);
  const bool has_second = to.kind == Operand::Kind::predicate_pair;
  form.add_destination(has_second ? to.items[0] : to, ScalarType::pred);
  if (has_second) form.add_destination(to.items[1], ScalarType::pred);
  detail->first_source = has_second ? 2 : 1;
  operation.execute = has_second ? run_setp<true> : run_setp<false>;
  add_compared(form, type, *detail);
  operation.detail = std::move(detail);
}

std::uint64_t value_if_true(Form& form, ScalarType type) {
  switch (type) {
    case ScalarType::u32:
    case ScalarType::s32:
      return 0xffffffff;
    case ScalarType::u16:
    case ScalarType::s16:
      return 0xffff;
    case ScalarType::f32:
      return 0x3f800000;
    case ScalarType::f16:
    case ScalarType::f16x2:
      return 0x3c00;
    case ScalarType::bf16:
    case ScalarType::bf16x2:
      return 0x3f80;
    default:
      form.refuse("." + std::string(name(type)) + " can't be set here");
  }
}

void decode_set(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  auto detail = std::make_shared<CompareDetail>();
  detail->combination = take_combination(form);
  const ScalarType to = form.take_type();
  const ScalarType type = form.take_type();
  choose_comparison(form, type, *detail);
  form.finish();
  detail->if_true = value_if_true(form, to);
  // Pairs into .u32 and .s32: each half of the result is all ones or zeros.
  if (detail->compare_high != nullptr && detail->if_true == 0xffffffff) detail->if_true = 0xffff;
  form.add_destination(form.operand(0), to);
  operation.execute = run_set;
  add_compared(form, type, *detail);
  operation.detail = std::move(detail);
}

// --- selp and slct -------------------------------------------------------------------------------

// Only the selected operand must be defined; the other one may be unwritten.
void define_chosen(Warp& warp, const Operation& operation, LaneMask active, LaneMask takes_first,
                   LaneMask choice_is_defined) {
  const LaneMask first = warp.defined_lanes(operation.slot[1]);
  const LaneMask second = warp.defined_lanes(operation.slot[2]);
  warp.set_defined(operation.slot[0], active,
                   choice_is_defined & ((takes_first & first) | (~takes_first & second)));
}

template <class Stored>
void choose(Warp& warp, const Operation& operation, LaneMask active, LaneMask takes_first) {
  const Stored* const first = warp.source<Stored>(operation, 1);
  const Stored* const second = warp.source<Stored>(operation, 2);
  write_lanes<Stored>(warp, operation, 0, active, [=](Stored* to) {
    const Stored mask = takes_first;
    GEMMERY_EACH_LANE
    for (int lane = 0; lane < lanes_per_warp; ++lane) {
      const Stored bit = lane_bits<Stored>[static_cast<std::size_t>(lane)];
      const Stored takes = 0 - static_cast<Stored>((mask & bit) == bit);
      to[lane] = (first[lane] & takes) | (second[lane] & ~takes);
    }
  });
}

template <class Stored>
Step run_selp(Warp& warp, const Operation& operation, LaneMask active) {
  const LaneMask takes_first = read_predicate(warp, operation, 3);
  const LaneMask choice_is_defined = warp.defined_lanes(operation.slot[3]);
  define_chosen(warp, operation, active, takes_first, choice_is_defined);
  choose<Stored>(warp, operation, active, takes_first);
  return Step::next;
}
template <class Stored, class Choice>
Step run_slct(Warp& warp, const Operation& operation, LaneMask active) {
  const LaneMask takes_first = [&] {
    if constexpr (std::is_same_v<Choice, float>)
      return lanes_where<[](const Operation& at, float c) {
        return (has_flag(at, flag_ftz) ? flush(c) : c) >= 0;
      }>(warp, operation, 3);
    else
      return lanes_where<[](std::int32_t c) { return c >= 0; }>(warp, operation, 3);
  }();
  const LaneMask choice_is_defined = warp.defined_lanes(operation.slot[3]);
  define_chosen(warp, operation, active, takes_first, choice_is_defined);
  choose<Stored>(warp, operation, active, takes_first);
  return Step::next;
}

bool is_chosen_type(ScalarType type) {
  const int bits = bits_of(type);
  return bits == 16 || bits == 32 || bits == 64;
}

void decode_selp(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  const ScalarType type = form.take_type();
  if (!is_chosen_type(type)) form.refuse("it chooses among 16, 32 or 64 bits");
  operation.propagates_definedness = false;
  form.assign(bits_of(type) == 64 ? run_selp<std::uint64_t> : run_selp<std::uint32_t>, type,
              {type, type, ScalarType::pred});
  note_negations(form, 3, 3, 1);
}

void decode_slct(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  set_flag(form, flag_ftz, form.take("ftz"));
  const ScalarType type = form.take_type();
  const ScalarType choice = form.take_type();
  if (!is_chosen_type(type)) form.refuse("it chooses among 16, 32 or 64 bits");
  if (choice != ScalarType::s32 && choice != ScalarType::f32)
    form.refuse("it chooses by .s32 or .f32");
  operation.propagates_definedness = false;
  const bool is_wide = bits_of(type) == 64, by_float = choice == ScalarType::f32;
  const Execute execute =
      is_wide ? (by_float ? run_slct<std::uint64_t, float> : run_slct<std::uint64_t, std::int32_t>)
              : (by_float ? run_slct<std::uint32_t, float> : run_slct<std::uint32_t, std::int32_t>);
  form.assign(execute, type, {type, type, choice});
}

}  // namespace

DecodeRows compare_rows() {
  static constexpr DecodeRow rows[] = {
      {"setp", decode_setp}, {"set", decode_set}, {"selp", decode_selp}, {"slct", decode_slct}};
  return rows;
}

}  // namespace gemmery::emulator
