// SPDX-License-Identifier: Apache-2.0
// The mbarrier instructions. An arrival releases what its warp knows; a successful wait acquires
// it. A thread may wait for a phase that completed long ago, but must not miss a phase.
#include "emulator/instruction/synchronisation/mbarrier.hpp"

#include <bit>
#include <optional>

#include "emulator/instruction/copy/copy_operands.hpp"
#include "emulator/instruction/form.hpp"
#include "emulator/instruction/synchronisation/mbarrier_object.hpp"
#include "emulator/instruction/synchronisation/synchronisation_rows.hpp"
#include "emulator/memory/address.hpp"

namespace gemmery::emulator {
namespace {

// Slots: the address, then (has_value) a count, parity or token, then (has_result) the result.
enum MbarrierFlag : std::uint32_t {
  has_value = 1u << 0,
  has_result = 1u << 1,
  has_wide_address = 1u << 2,  // 64 bits
  is_generic = 1u << 3,
  is_own_cta = 1u << 4,  // .shared::cta
  is_relaxed_wait = 1u << 5,
  keeps_phase = 1u << 6,
  drops = 1u << 7,
  expects = 1u << 8,
  is_parity = 1u << 9,
  may_block = 1u << 10,
};
constexpr std::size_t address_slot = 0;
constexpr std::size_t value_slot = 1;
std::size_t mbarrier_result_slot(const Operation& operation) noexcept {
  return (operation.flags & has_value) != 0 ? 2 : 1;
}

bool has(const Operation& operation, MbarrierFlag flag) noexcept {
  return (operation.flags & flag) != 0;
}

// --- run time -----------------------------------------------------------------------------------

std::uint32_t shared_address_of(const Warp& warp, const Operation& operation, int lane) {
  std::uint64_t address = has(operation, has_wide_address)
                              ? warp.source<std::uint64_t>(operation, address_slot)[lane]
                              : warp.source<std::uint32_t>(operation, address_slot)[lane];
  address += operation.immediate;
  if (has(operation, is_generic) && address >= shared_window) address -= shared_window;
  if (!has(operation, has_wide_address)) address &= ~std::uint32_t{0};
  if (address >> 32 == 0) return static_cast<std::uint32_t>(address);
  throw_fault(FaultKind::out_of_bounds, lane,
              "mbarriers lie in shared memory, and the address " + hexadecimal(address) +
                  " does not; pass a shared address, or say .shared::cta");
}

Cluster::SharedPlace place_of(Warp& warp, const Operation& operation, int lane) {
  const std::uint32_t address = shared_address_of(warp, operation, lane);
  const Cluster::SharedPlace place = warp.cta.cluster.shared_place(address);
  if (place.cta != &warp.cta) place.cta->remote_uses.note(warp);
  if (!has(operation, is_own_cta) || place.cta == &warp.cta) return place;
  throw_fault(FaultKind::mbarrier_misuse, lane,
              "the " + name_of(*place.cta, place.offset) +
                  " is another CTA's, and this instruction works on those of its own (" +
                  std::to_string(warp.cta.rank) +
                  "); arrive with .shared::cluster, and wait in the CTA that owns it");
}

Mbarrier& barrier_of(Warp& warp, const Operation& operation, const Cluster::SharedPlace& place) {
  Mbarrier& barrier = live_mbarrier(*place.cta, place.offset, operation.text->opcode.c_str());
  if (warp.known.happened.knows(barrier.initialised, warp.cta.cluster.index)) return barrier;
  throw Fault(FaultKind::race,
              "the " + name_of(*place.cta, place.offset) +
                  " is used without order after its mbarrier.init; put a barrier between the two "
                  "(between CTAs, fence.mbarrier_init and barrier.cluster)");
}

std::uint64_t value_of(const Warp& warp, const Operation& operation, int lane) {
  return warp.source<std::uint32_t>(operation, value_slot)[lane];
}

void require_operands(const Warp& warp, const Operation& operation, LaneMask active) {
  warp.require_defined(operation.slot[address_slot], active, "which mbarrier is meant");
  if (has(operation, has_value))
    warp.require_defined(operation.slot[value_slot], active,
                         "what an mbarrier counts or waits for");
}

Accessor accessor_of(const Warp& warp, const Operation& operation, int lane) {
  return warp.accessor(operation, lane);
}

Step run_init(Warp& warp, const Operation& operation, LaneMask active) {
  require_operands(warp, operation, active);
  for_each_lane(active, [&](int lane) {
    const Cluster::SharedPlace place = place_of(warp, operation, lane);
    initialise_mbarrier(warp, place.offset, value_of(warp, operation, lane),
                        accessor_of(warp, operation, lane));
  });
  return Step::next;
}

Step run_inval(Warp& warp, const Operation& operation, LaneMask active) {
  require_operands(warp, operation, active);
  for_each_lane(active, [&](int lane) {
    const Cluster::SharedPlace place = place_of(warp, operation, lane);
    barrier_of(warp, operation, place);
    invalidate_mbarrier(*place.cta, place.offset);
  });
  return Step::next;
}

template <bool is_complete>
Step run_bytes(Warp& warp, const Operation& operation, LaneMask active) {
  require_operands(warp, operation, active);
  for_each_lane(active, [&](int lane) {
    const Cluster::SharedPlace place = place_of(warp, operation, lane);
    Mbarrier& barrier = barrier_of(warp, operation, place);
    const auto bytes = static_cast<std::int64_t>(value_of(warp, operation, lane));
    expect_bytes({barrier, *place.cta, place.offset}, is_complete ? -bytes : bytes);
    if (is_complete) finish_phase_if_complete(barrier);
  });
  return Step::next;
}

// Releases the lanes' arrivals; lanes that arrive at one mbarrier are released at once.
void release_to(Warp& warp, const Operation& operation, Mbarrier& barrier, Mbarrier*& last) {
  if (last == &barrier) return;
  last = &barrier;
  if (!has(operation, is_relaxed_wait)) {
    warp.release(barrier.gathering);
  } else if (warp.fence.has_released) {
    barrier.gathering.join(warp.fence.released);
  }
}

void arrive_with_lane(Warp& warp, const Operation& operation, int lane, Mbarrier*& last) {
  const Cluster::SharedPlace place = place_of(warp, operation, lane);
  Mbarrier& barrier = barrier_of(warp, operation, place);
  const MbarrierPlace at{barrier, *place.cta, place.offset};
  release_to(warp, operation, barrier, last);
  std::uint64_t count = 1;
  if (has(operation, expects)) {
    expect_bytes(at, static_cast<std::int64_t>(value_of(warp, operation, lane)));
  } else if (has(operation, has_value)) {
    count = value_of(warp, operation, lane);
  }
  const std::uint64_t token = token_of(barrier);
  arrive(at, count, has(operation, drops), has(operation, keeps_phase));
  if (has(operation, has_result))
    warp.destination<std::uint64_t>(operation, mbarrier_result_slot(operation))[lane] = token;
}

Step run_mbarrier_arrive(Warp& warp, const Operation& operation, LaneMask active) {
  require_operands(warp, operation, active);
  Mbarrier* last = nullptr;
  for_each_lane(active, [&](int lane) { arrive_with_lane(warp, operation, lane, last); });
  if (has(operation, has_result))
    warp.set_defined(operation.slot[mbarrier_result_slot(operation)], active, active);
  return Step::next;
}

// --- waits --------------------------------------------------------------------------------------

bool is_over(const Warp& warp, const Operation& operation, int lane, const Cta& cta,
             std::uint32_t offset, const Mbarrier& barrier) {
  if (has(operation, is_parity)) {
    const std::uint64_t parity = value_of(warp, operation, lane);
    if (parity <= 1) return (barrier.phase & 1) != parity;
    throw_fault(FaultKind::mbarrier_misuse, lane,
                "a wait for phase parity " + std::to_string(parity) + " of the " +
                    name_of(cta, offset) + "; parities are 0 and 1: keep one bit of the count");
  }
  const MbarrierToken token = read_token(warp.source<std::uint64_t>(operation, value_slot)[lane]);
  if (token.phase == barrier.phase || token.phase + 1 == barrier.phase)
    return token.phase != barrier.phase;
  throw_fault(FaultKind::mbarrier_misuse, lane,
              "a wait at the " + name_of(cta, offset) + " with a state of phase " +
                  std::to_string(token.phase) + ", while phase " + std::to_string(barrier.phase) +
                  " is under way; pass what mbarrier.arrive returned in this phase or the last");
}

void acquire_phase(Warp& warp, const Operation& operation, const Mbarrier& barrier) {
  if (!has(operation, is_relaxed_wait)) {
    warp.acquire(barrier.completed);
    return;
  }
  warp.fence.observed.join(barrier.completed);
  warp.fence.has_observed = true;
}

// Fragment::resume of a wait is 1 + the phase that was current when the wait began.
void require_no_missed_phase(Warp& warp, int lane, const Cluster::SharedPlace& place,
                             const Mbarrier& barrier) {
  const std::uint64_t began = warp.running->resume - 1;
  if (barrier.phase < began + 2) return;
  throw_fault(FaultKind::mbarrier_misuse, lane,
              "the " + name_of(*place.cta, place.offset) +
                  " went through two phases while this thread waited for the first, so that it "
                  "would wait for the wrong one; nobody may complete the next phase before all "
                  "have seen this one (count the waiters' arrivals in)");
}

struct WaitOutcome {
  LaneMask over = 0;
  std::uint32_t first_phase = 0;  // of the first lane's barrier
};

WaitOutcome look(Warp& warp, const Operation& operation, LaneMask active) {
  WaitOutcome outcome;
  const Mbarrier* acquired = nullptr;
  const int first = std::countr_zero(active);
  for_each_lane(active, [&](int lane) {
    const Cluster::SharedPlace place = place_of(warp, operation, lane);
    const Mbarrier& barrier = barrier_of(warp, operation, place);
    if (lane == first) {
      outcome.first_phase = barrier.phase;
      if (warp.running->resume != 0) require_no_missed_phase(warp, lane, place, barrier);
    }
    if (!is_over(warp, operation, lane, *place.cta, place.offset, barrier)) return;
    outcome.over |= LaneMask{1} << lane;
    if (acquired != &barrier) acquire_phase(warp, operation, barrier);
    acquired = &barrier;
  });
  return outcome;
}

LaneMask lanes_of_wait(const Warp& warp, const Operation& operation, const Fragment& fragment) {
  if (!operation.has_guard) return fragment.lanes;
  const auto guard = *reinterpret_cast<const LaneMask*>(warp.registers + operation.guard_offset);
  return fragment.lanes & (operation.is_guard_negated ? ~guard : guard);
}

std::string describe_mbarrier_wait(const Warp& warp, const Fragment& fragment) {
  const Operation& operation = warp.cta.cluster.grid.image->code[fragment.pc];
  const LaneMask lanes = lanes_of_wait(warp, operation, fragment);
  if (lanes == 0) return "an mbarrier";
  const int lane = std::countr_zero(lanes);
  const std::uint32_t offset = shared_address_of(warp, operation, lane) & shared_offset_mask;
  std::string text = name_of(warp.cta, offset);
  const auto found = warp.cta.mbarriers.find(offset);
  if (found == warp.cta.mbarriers.end()) return text;
  if (has(operation, is_parity))
    text += ", phase parity " + std::to_string(value_of(warp, operation, lane));
  return text + ": " + describe_progress(found->second);
}

void answer(Warp& warp, const Operation& operation, LaneMask active, LaneMask over) {
  const std::size_t slot = mbarrier_result_slot(operation);
  LaneMask& result = *warp.destination<LaneMask>(operation, slot);
  result = (result & ~active) | over;
  warp.set_defined(operation.slot[slot], active, active);
}

Step run_mbarrier_wait(Warp& warp, const Operation& operation, LaneMask active) {
  require_operands(warp, operation, active);
  const WaitOutcome outcome = look(warp, operation, active);
  if (outcome.over == 0 && has(operation, may_block) && !warp.has_timed_out) {
    if (warp.running->resume == 0) warp.running->resume = std::uint64_t{outcome.first_phase} + 1;
    warp.describe_wait = describe_mbarrier_wait;
    warp.may_time_out = true;
    return Step::blocked;
  }
  answer(warp, operation, active, outcome.over);
  return outcome.over == active ? Step::next : Step::yield;
}

Step run_pending_count(Warp& warp, const Operation& operation, LaneMask active) {
  const auto* const tokens = warp.source<std::uint64_t>(operation, 0);
  auto* const counts = warp.destination<std::uint32_t>(operation, 1);
  for_each_lane(active, [&](int lane) { counts[lane] = read_token(tokens[lane]).pending; });
  return Step::next;
}

// --- decoding -----------------------------------------------------------------------------------

void set(Operation& operation, MbarrierFlag flag, bool value = true) noexcept {
  if (value) operation.flags |= flag;
}

void take_space(Form& form) {
  Operation& operation = form.operation();
  if (form.take("shared::cluster")) return;
  if (form.take("shared::cta") || form.take("shared"))
    set(operation, is_own_cta);
  else
    set(operation, is_generic);
}

// Scopes have no effect: an mbarrier orders accesses for its whole cluster.
void take_order(Form& form, std::string_view ordered) {
  set(form.operation(), is_relaxed_wait, form.take("relaxed"));
  form.take(ordered);
  if (!form.take("cta")) form.take("cluster");
}

void add_mbarrier(Form& form, std::size_t index) {
  const Operand& operand = form.operand(index);
  if (operand.kind != Operand::Kind::address) form.refuse("the address of an mbarrier is missing");
  bool is_wide = false;
  form.context().add_address(form.operation(), operand, &is_wide);
  set(form.operation(), has_wide_address, is_wide);
}

void add_value(Form& form, std::size_t index, ScalarType type) {
  form.add_source(form.operand(index), type);
  set(form.operation(), has_value);
}

void add_result(Form& form, ScalarType type) {
  if (form.operand(0).kind == Operand::Kind::sink) return;
  form.add_destination(form.operand(0), type);
  set(form.operation(), has_result);
}

void begin(Form& form, Execute execute, bool has_effect) {
  Operation& operation = form.operation();
  operation.execute = execute;
  operation.has_side_effect = has_effect;
  operation.propagates_definedness = false;
  if (!form.take("b64")) form.refuse("it takes .b64");
}

void decode_init(Form& form) {
  begin(form, run_init, true);
  take_space(form);
  set(form.operation(), is_own_cta);
  form.expect_operands(2);
  add_mbarrier(form, 0);
  add_value(form, 1, ScalarType::u32);
}

void decode_inval(Form& form) {
  begin(form, run_inval, true);
  take_space(form);
  set(form.operation(), is_own_cta);
  form.expect_operands(1);
  add_mbarrier(form, 0);
}

void decode_bytes(Form& form, bool is_complete) {
  begin(form, is_complete ? run_bytes<true> : run_bytes<false>, true);
  take_order(form, "");
  take_space(form);
  form.expect_operands(2);
  add_mbarrier(form, 0);
  add_value(form, 1, ScalarType::u32);
}

void decode_arrive(Form& form, bool is_drop) {
  begin(form, run_mbarrier_arrive, true);
  Operation& operation = form.operation();
  set(operation, drops, is_drop);
  set(operation, expects, form.take("expect_tx"));
  set(operation, keeps_phase, form.take("noComplete"));
  take_order(form, "release");
  take_space(form);
  // The result may be omitted (.shared::cluster).
  const std::size_t address = form.operand(0).kind == Operand::Kind::address ? 0 : 1;
  const bool is_counted = form.operand_count() == address + 2;
  if (has(operation, expects) && !is_counted) form.refuse("the number of bytes is missing");
  if (!is_counted) form.expect_operands(address + 1);
  add_mbarrier(form, address);
  if (is_counted) add_value(form, address + 1, ScalarType::u32);
  if (address == 1) add_result(form, ScalarType::b64);
}

void decode_wait(Form& form, bool is_try) {
  begin(form, run_mbarrier_wait, false);
  Operation& operation = form.operation();
  set(operation, may_block, is_try);
  set(operation, is_parity, form.take("parity"));
  take_order(form, "acquire");
  take_space(form);
  // The suspend-time hint has no effect, as the emulator has no time.
  if (!(is_try && form.operand_count() == 4)) form.expect_operands(3);
  add_mbarrier(form, 1);
  add_value(form, 2, has(operation, is_parity) ? ScalarType::u32 : ScalarType::b64);
  form.add_destination(form.operand(0), ScalarType::pred);
}

void decode_pending_count(Form& form) {
  begin(form, run_pending_count, false);
  form.operation().propagates_definedness = true;
  form.expect_operands(2);
  form.add_source(form.operand(1), ScalarType::b64);
  form.add_destination(form.operand(0), ScalarType::u32);
}

}  // namespace

void decode_mbarrier(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  if (form.take("init")) {
    decode_init(form);
  } else if (form.take("inval")) {
    decode_inval(form);
  } else if (form.take("arrive")) {
    decode_arrive(form, false);
  } else if (form.take("arrive_drop")) {
    decode_arrive(form, true);
  } else if (form.take("test_wait")) {
    decode_wait(form, false);
  } else if (form.take("try_wait")) {
    decode_wait(form, true);
  } else if (form.take("expect_tx")) {
    decode_bytes(form, false);
  } else if (form.take("complete_tx")) {
    decode_bytes(form, true);
  } else if (form.take("pending_count")) {
    decode_pending_count(form);
  } else {
    form.refuse("this mbarrier operation is not known");
  }
  form.finish();
}

}  // namespace gemmery::emulator
