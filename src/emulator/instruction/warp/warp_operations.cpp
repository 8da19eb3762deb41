// SPDX-License-Identifier: Apache-2.0
// Exchange between the lanes of a warp: shfl, vote, match, redux, activemask, elect. All lanes in
// the membermask must arrive together; none of these instructions orders memory.
#include <algorithm>
#include <bit>
#include <string>

#include "emulator/instruction/copy/copy_operands.hpp"
#include "emulator/instruction/form.hpp"
#include "emulator/instruction/predicate.hpp"
#include "emulator/instruction/warp/warp_members.hpp"

namespace gemmery::emulator {
namespace {

// --- who takes part -----------------------------------------------------------------------------

// The membermask is always the first slot.
constexpr std::size_t members_slot = 0;

std::string describe_wait(const Warp& warp, const Fragment& fragment) {
  const Operation& operation = warp.cta.cluster.grid.image->code[fragment.pc];
  const LaneMask members =
      warp.source<LaneMask>(operation, members_slot)[std::countr_zero(fragment.lanes)];
  return operation.text->full_opcode() + " of lanes " + hexadecimal(members) + ": lanes " +
         hexadecimal(members & warp.live & ~fragment.lanes) + " have not come to this instruction";
}

// False if lanes in the mask have not arrived; the fragment is then blocked. Lanes that have exited
// are not waited for.
bool are_together(Warp& warp, const Operation& operation, LaneMask active) {
  const LaneMask missing = members_of(warp, operation, members_slot, active) & warp.live & ~active;
  if (missing == 0) [[likely]]
    return true;
  if ((missing & warp.running->lanes) != 0) {
    throw_fault(FaultKind::divergent_barrier, std::countr_zero(missing),
                "lanes " + hexadecimal(missing) + " are named by the membermask of " +
                    operation.text->full_opcode() +
                    ", but their guard keeps them from executing it; name only the lanes that do");
  }
  warp.describe_wait = describe_wait;
  return false;
}

// The lanes of `lane`'s group.
LaneMask group_of(const Warp& warp, const Operation& operation, LaneMask active, int lane) {
  return active & warp.source<LaneMask>(operation, members_slot)[lane];
}

// Calls `visit(group)` for each group of lanes with the same mask.
template <class Visit>
void for_each_group(const Warp& warp, const Operation& operation, LaneMask active, Visit visit) {
  while (active != 0) {
    const LaneMask group = group_of(warp, operation, active, std::countr_zero(active));
    visit(group);
    active &= ~group;
  }
}

void blend(LaneMask& predicate, LaneMask value, LaneMask active) noexcept {
  predicate ^= (predicate ^ value) & active;
}

// --- shfl ---------------------------------------------------------------------------------------

// Slots: members, value, lane or distance, clamp and segment; result, in-range predicate.
enum class Shuffle : std::uint8_t { up, down, butterfly, index };  // Operation::immediate
constexpr std::uint32_t has_range_predicate = 1;                   // Operation::flags

struct ShuffleSource {
  int lane;
  bool is_in_range;
};

ShuffleSource shuffle_source(Shuffle mode, int lane, std::uint32_t b, std::uint32_t c) noexcept {
  const int distance = static_cast<int>(b & 31);
  const int clamp = static_cast<int>(c & 31);
  const int segment = static_cast<int>(c >> 8 & 31);
  const int lowest = lane & segment;
  const int highest = lowest | (clamp & ~segment);
  int from = 0;
  switch (mode) {
    case Shuffle::up:
      from = lane - distance;
      break;
    case Shuffle::down:
      from = lane + distance;
      break;
    case Shuffle::butterfly:
      from = lane ^ distance;
      break;
    case Shuffle::index:
      from = lowest | (distance & ~segment);
      break;
  }
  const bool is_in_range = mode == Shuffle::up ? from >= highest : from <= highest;
  return {is_in_range ? from : lane, is_in_range};
}

Step run_shuffle(Warp& warp, const Operation& operation, LaneMask active) {
  if (!are_together(warp, operation, active)) return Step::blocked;
  warp.require_defined(operation.slot[2], active, "which lane a shuffle reads");
  warp.require_defined(operation.slot[3], active, "the segments of a shuffle");
  const auto mode = static_cast<Shuffle>(operation.immediate);
  const auto* const values = warp.source<std::uint32_t>(operation, 1);
  const auto* const lanes = warp.source<std::uint32_t>(operation, 2);
  const auto* const segments = warp.source<std::uint32_t>(operation, 3);
  const auto* const members = warp.source<LaneMask>(operation, members_slot);
  const LaneMask defined_values = warp.defined_lanes(operation.slot[1]);

  std::array<std::uint32_t, lanes_per_warp> result;
  LaneMask in_range = 0, defined = 0;
  for (int lane = 0; lane < lanes_per_warp; ++lane) {
    const ShuffleSource source = shuffle_source(mode, lane, lanes[lane], segments[lane]);
    const auto from = static_cast<std::uint32_t>(source.lane);
    result[static_cast<std::size_t>(lane)] = values[from];
    in_range |= LaneMask{source.is_in_range} << lane;
    defined |= (active & members[lane] & defined_values) >> from << lane & LaneMask{1} << lane;
  }
  auto* const destination = warp.destination<std::uint32_t>(operation, 4);
  for (std::size_t lane = 0; lane < lanes_per_warp; ++lane) {
    if ((active >> lane & 1) != 0) destination[lane] = result[lane];
  }
  warp.set_defined(operation.slot[4], active, defined);
  if ((operation.flags & has_range_predicate) != 0) {
    blend(*warp.destination<LaneMask>(operation, 5), in_range, active);
    warp.set_defined(operation.slot[5], active, active);
  }
  return Step::next;
}

// --- vote ---------------------------------------------------------------------------------------

// Slots: members, predicate; result.
enum class Vote : std::uint8_t { all, any, uniform, ballot };  // Operation::immediate

LaneMask vote(Vote mode, LaneMask holds, LaneMask group) noexcept {
  switch (mode) {
    case Vote::all:
      return holds == group ? group : 0;
    case Vote::any:
      return holds != 0 ? group : 0;
    case Vote::uniform:
      return holds == group || holds == 0 ? group : 0;
    case Vote::ballot:
      break;
  }
  return holds;
}

Step run_vote(Warp& warp, const Operation& operation, LaneMask active) {
  if (!are_together(warp, operation, active)) return Step::blocked;
  const auto mode = static_cast<Vote>(operation.immediate);
  const LaneMask predicate = read_predicate(warp, operation, 1);
  const LaneMask undefined = ~warp.defined_lanes(operation.slot[1]);
  for_each_group(warp, operation, active, [&](LaneMask group) {
    const LaneMask result = vote(mode, predicate & group, group);
    if (mode == Vote::ballot) {
      auto* const ballots = warp.destination<std::uint32_t>(operation, 2);
      for_each_lane(group, [&](int lane) { ballots[lane] = result; });
    } else {
      blend(*warp.destination<LaneMask>(operation, 2), result, group);
    }
    warp.set_defined(operation.slot[2], group, (undefined & group) == 0 ? group : 0);
  });
  return Step::next;
}

// --- match --------------------------------------------------------------------------------------

// Slots: members, value; result, (all) predicate.
template <class Value>
LaneMask lanes_with(const Value* values, LaneMask group, Value value) noexcept {
  LaneMask same = 0;
  for_each_lane(group, [&](int lane) { same |= LaneMask{values[lane] == value} << lane; });
  return same;
}

template <class Value, bool wants_all>
Step run_match(Warp& warp, const Operation& operation, LaneMask active) {
  if (!are_together(warp, operation, active)) return Step::blocked;
  const auto* const values = warp.source<Value>(operation, 1);
  auto* const result = warp.destination<std::uint32_t>(operation, 2);
  const LaneMask undefined = ~warp.defined_lanes(operation.slot[1]);
  for_each_group(warp, operation, active, [&](LaneMask group) {
    const LaneMask defined = (undefined & group) == 0 ? group : 0;
    const bool is_all = lanes_with(values, group, values[std::countr_zero(group)]) == group;
    std::array<LaneMask, lanes_per_warp> matches{};
    for_each_lane(group, [&](int lane) {
      matches[static_cast<std::size_t>(lane)] =
          wants_all ? (is_all ? group : 0) : lanes_with(values, group, values[lane]);
    });
    for_each_lane(group, [&](int lane) { result[lane] = matches[static_cast<std::size_t>(lane)]; });
    warp.set_defined(operation.slot[2], group, defined);
    if constexpr (wants_all) {
      blend(*warp.destination<LaneMask>(operation, 3), is_all ? group : 0, group);
      warp.set_defined(operation.slot[3], group, defined);
    }
  });
  return Step::next;
}

// --- redux --------------------------------------------------------------------------------------

// Slots: members, value; result.
template <auto combine>
Step run_reduction(Warp& warp, const Operation& operation, LaneMask active) {
  if (!are_together(warp, operation, active)) return Step::blocked;
  const auto* const values = warp.source<std::uint32_t>(operation, 1);
  auto* const result = warp.destination<std::uint32_t>(operation, 2);
  const LaneMask undefined = ~warp.defined_lanes(operation.slot[1]);
  for_each_group(warp, operation, active, [&](LaneMask group) {
    const int first = std::countr_zero(group);
    std::uint32_t sum = values[first];
    for_each_lane(group & (group - 1), [&](int lane) { sum = combine(sum, values[lane]); });
    for_each_lane(group, [&](int lane) { result[lane] = sum; });
    warp.set_defined(operation.slot[2], group, (undefined & group) == 0 ? group : 0);
  });
  return Step::next;
}

constexpr auto sum_of = [](std::uint32_t a, std::uint32_t b) { return a + b; };
constexpr auto both_of = [](std::uint32_t a, std::uint32_t b) { return a & b; };
constexpr auto either_of = [](std::uint32_t a, std::uint32_t b) { return a | b; };
constexpr auto one_of = [](std::uint32_t a, std::uint32_t b) { return a ^ b; };
template <class Value>
constexpr auto least_of = [](std::uint32_t a, std::uint32_t b) {
  return static_cast<Value>(b) < static_cast<Value>(a) ? b : a;
};
template <class Value>
constexpr auto greatest_of = [](std::uint32_t a, std::uint32_t b) {
  return static_cast<Value>(b) > static_cast<Value>(a) ? b : a;
};

// --- activemask, elect --------------------------------------------------------------------------

Step run_active_mask(Warp& warp, const Operation& operation, LaneMask active) {
  auto* const result = warp.destination<std::uint32_t>(operation, 0);
  for_each_lane(active, [&](int lane) { result[lane] = active; });
  return Step::next;
}

// Elects the lowest lane. Slots: members; result, predicate.
Step run_elect(Warp& warp, const Operation& operation, LaneMask active) {
  if (!are_together(warp, operation, active)) return Step::blocked;
  auto* const leaders = warp.destination<std::uint32_t>(operation, 1);
  for_each_group(warp, operation, active, [&](LaneMask group) {
    const auto leader = static_cast<std::uint32_t>(std::countr_zero(group));
    for_each_lane(group, [&](int lane) { leaders[lane] = leader; });
    blend(*warp.destination<LaneMask>(operation, 2), LaneMask{1} << leader, group);
  });
  warp.set_defined(operation.slot[1], active, active);
  warp.set_defined(operation.slot[2], active, active);
  return Step::next;
}

// --- decoding -----------------------------------------------------------------------------------

// Operation::needs_convergence stays unset: lanes that have exited need not arrive.
void add_members(Form& form, std::size_t index) {
  form.add_source(form.operand(index), ScalarType::b32);
  form.operation().propagates_definedness = false;
}

struct PairOperand {
  const Operand* first;
  const Operand* second;  // nullptr if omitted
};
PairOperand pair_of(Form& form, std::size_t index) {
  const Operand& operand = form.operand(index);
  if (operand.kind != Operand::Kind::predicate_pair) return {&operand, nullptr};
  if (operand.items.size() != 2) form.refuse("expected d|p");
  return {&operand.items[0], &operand.items[1]};
}

void take_sync(Form& form) {
  if (!form.take("sync")) form.refuse("forms without .sync are not of this architecture");
}

void decode_shuffle(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  take_sync(form);
  constexpr std::string_view modes[] = {"up", "down", "bfly", "idx"};
  const auto mode = form.take_one_of(modes);
  if (!mode) form.refuse("expected .up, .down, .bfly or .idx");
  if (!form.take("b32")) form.refuse("it takes .b32");
  form.finish();
  form.expect_operands(5);
  operation.execute = run_shuffle;
  operation.immediate = *mode;
  add_members(form, 4);
  for (std::size_t index = 1; index < 4; ++index)
    form.add_source(form.operand(index), ScalarType::b32);
  const PairOperand result = pair_of(form, 0);
  form.add_destination(*result.first, ScalarType::b32);
  if (result.second == nullptr) return;
  operation.flags |= has_range_predicate;
  form.add_destination(*result.second, ScalarType::pred);
}

void decode_vote(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  take_sync(form);
  constexpr std::string_view modes[] = {"all", "any", "uni", "ballot"};
  const auto mode = form.take_one_of(modes);
  if (!mode) form.refuse("expected .all, .any, .uni or .ballot");
  const bool is_ballot = static_cast<Vote>(*mode) == Vote::ballot;
  if (!form.take(is_ballot ? "b32" : "pred")) form.refuse("the type is wrong");
  form.finish();
  form.expect_operands(3);
  operation.execute = run_vote;
  operation.immediate = *mode;
  add_members(form, 2);
  note_negation(form, form.operand(1), form.add_source(form.operand(1), ScalarType::pred));
  form.add_destination(form.operand(0), is_ballot ? ScalarType::b32 : ScalarType::pred);
}

void decode_match(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  const bool is_all = form.take("all");
  if (!is_all && !form.take("any")) form.refuse("expected .any or .all");
  take_sync(form);
  const bool is_wide = form.take("b64");
  if (!is_wide && !form.take("b32")) form.refuse("it takes .b32 or .b64");
  form.finish();
  form.expect_operands(3);
  if (is_wide)
    operation.execute = is_all ? run_match<std::uint64_t, true> : run_match<std::uint64_t, false>;
  else
    operation.execute = is_all ? run_match<std::uint32_t, true> : run_match<std::uint32_t, false>;
  add_members(form, 2);
  form.add_source(form.operand(1), is_wide ? ScalarType::b64 : ScalarType::b32);
  const PairOperand result = pair_of(form, 0);
  form.add_destination(*result.first, ScalarType::b32);
  if (!is_all) return;
  static const Operand nobody;  // the sink
  form.add_destination(result.second != nullptr ? *result.second : nobody, ScalarType::pred);
}

struct ReductionRow {
  std::string_view name;
  ScalarType type;
  Execute execute;
};
constexpr ReductionRow reductions[] = {
    {"add", ScalarType::u32, run_reduction<sum_of>},
    {"add", ScalarType::s32, run_reduction<sum_of>},
    {"min", ScalarType::u32, run_reduction<least_of<std::uint32_t>>},
    {"min", ScalarType::s32, run_reduction<least_of<std::int32_t>>},
    {"max", ScalarType::u32, run_reduction<greatest_of<std::uint32_t>>},
    {"max", ScalarType::s32, run_reduction<greatest_of<std::int32_t>>},
    {"and", ScalarType::b32, run_reduction<both_of>},
    {"or", ScalarType::b32, run_reduction<either_of>},
    {"xor", ScalarType::b32, run_reduction<one_of>},
};

void decode_redux(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  take_sync(form);
  const ScalarType type = form.take_type();
  if (type == ScalarType::f32) form.refuse(".f32 needs sm_100a; reduce with shfl.sync");
  for (const ReductionRow& row : reductions) {
    if (row.type == type && form.take(row.name)) operation.execute = row.execute;
  }
  if (operation.execute == nullptr) form.refuse("this operation and type do not go together");
  form.finish();
  form.expect_operands(3);
  add_members(form, 2);
  form.add_source(form.operand(1), type);
  form.add_destination(form.operand(0), type);
}

void decode_active_mask(DecodeContext& context, const Instruction& instruction,
                        Operation& operation) {
  Form form(context, instruction, operation);
  if (!form.take("b32")) form.refuse("it takes .b32");
  form.finish();
  form.expect_operands(1);
  operation.execute = run_active_mask;
  form.add_destination(form.operand(0), ScalarType::b32);
}

void decode_elect(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  take_sync(form);
  form.finish();
  form.expect_operands(2);
  operation.execute = run_elect;
  add_members(form, 1);
  const PairOperand result = pair_of(form, 0);
  if (result.second == nullptr) form.refuse("expected d|p");
  form.add_destination(*result.first, ScalarType::b32);
  form.add_destination(*result.second, ScalarType::pred);
}

constexpr DecodeRow rows[] = {
    {"activemask", decode_active_mask},
    {"elect", decode_elect},
    {"match", decode_match},
    {"redux", decode_redux},
    {"shfl", decode_shuffle},
    {"vote", decode_vote},
};

}  // namespace

DecodeRows warp_rows() { return rows; }

}  // namespace gemmery::emulator
