// SPDX-License-Identifier: Apache-2.0
// Named barriers of a CTA: bar and barrier(.cta) .sync .arrive .red. A warp arrives when all of its
// live lanes have arrived. A barrier of the whole CTA does not wait for warps that have exited.
#include <bit>
#include <string>

#include "emulator/instruction/copy/copy_operands.hpp"
#include "emulator/instruction/predicate.hpp"
#include "emulator/instruction/synchronisation/synchronisation_rows.hpp"

namespace gemmery::emulator {
namespace {

// Slots: the barrier's number, then (has_count) the number of threads, then (reduces) the result
// and the predicate.
enum BarrierFlag : std::uint32_t {
  has_count = 1u << 0,
  only_arrives = 1u << 1,
  reduces = 1u << 2,
  is_aligned = 1u << 3,
};
enum class Reduction : std::uint8_t { all, any, count };  // Operation::immediate

constexpr std::size_t number_slot = 0;
constexpr std::size_t count_slot = 1;
std::size_t barrier_result_slot(const Operation& operation) noexcept {
  return (operation.flags & has_count) != 0 ? 2 : 1;
}
bool has(const Operation& operation, BarrierFlag flag) noexcept {
  return (operation.flags & flag) != 0;
}

std::string bits_text(std::uint32_t warps) {
  std::string text;
  for_each_lane(warps, [&](int warp) {
    if (!text.empty()) text += ", ";
    text += std::to_string(warp);
  });
  return text.empty() ? "none" : text;
}

// --- which barrier, for how many ----------------------------------------------------------------

std::uint32_t uniform_value(const Warp& warp, const Operation& operation, std::size_t slot,
                            LaneMask active, const char* what) {
  warp.require_defined(operation.slot[slot], active, what);
  const auto* const values = warp.source<std::uint32_t>(operation, slot);
  const std::uint32_t value = values[std::countr_zero(active)];
  for_each_lane(active, [&](int lane) {
    if (values[lane] == value) return;
    throw_fault(FaultKind::barrier_misuse, lane,
                "lanes of one warp name different values (" + std::to_string(value) + " and " +
                    std::to_string(values[lane]) + ") for " + what +
                    "; a warp comes to a barrier as one: compute it from the warp's index");
  });
  return value;
}

NamedBarrier& barrier_of(Warp& warp, const Operation& operation, LaneMask active,
                         std::uint32_t* number) {
  *number = uniform_value(warp, operation, number_slot, active, "which barrier is meant");
  if (*number < warp.cta.named_barriers.size()) return warp.cta.named_barriers[*number];
  throw Fault(FaultKind::barrier_misuse,
              "barrier " + std::to_string(*number) + " does not exist; expected 0 to 15");
}

std::uint32_t threads_of(const Warp& warp, const Operation& operation, LaneMask active,
                         std::uint32_t number) {
  if (!has(operation, has_count)) return 0;
  const std::uint32_t threads =
      uniform_value(warp, operation, count_slot, active, "how many threads a barrier waits for");
  const std::uint32_t most = warp.cta.cluster.grid.warps_per_cta() * lanes_per_warp;
  if (threads != 0 && threads % lanes_per_warp == 0 && threads <= most) return threads;
  throw Fault(FaultKind::barrier_misuse,
              "barrier " + std::to_string(number) + " for " + std::to_string(threads) +
                  " threads; expected a multiple of 32 from 32 to the CTA's " +
                  std::to_string(most));
}

// --- a generation -------------------------------------------------------------------------------

// Warps of the CTA that are live and have not arrived.
std::uint32_t missing_warps(const Cta& cta, const NamedBarrier& barrier) {
  std::uint32_t missing = 0;
  for (const auto& warp : cta.warps) {
    if (warp->live != 0) missing |= 1u << warp->index;
  }
  return missing & ~barrier.arrived_warps;
}

bool is_complete(const Cta& cta, const NamedBarrier& barrier) {
  if (barrier.arrived_warps == 0) return false;
  const auto arrived = static_cast<std::uint32_t>(std::popcount(barrier.arrived_warps));
  if (barrier.expected_threads != 0) return arrived * lanes_per_warp >= barrier.expected_threads;
  return arrived >= cta.live_warps && missing_warps(cta, barrier) == 0;
}

void complete(NamedBarrier& barrier) {
  barrier.results[barrier.generation % barrier.results.size()] = barrier.reduction;
  ++barrier.generation;
  std::swap(barrier.completed, barrier.gathering);
  barrier.gathering.clear();
  barrier.reduction = {};
  barrier.arrived_warps = barrier.expected_threads = 0;
}

void require_same_count(const NamedBarrier& barrier, std::uint32_t number, std::uint32_t threads,
                        const Cta& cta) {
  if (barrier.arrived_warps == 0 || barrier.expected_threads == threads) return;
  const auto text = [](std::uint32_t count) {
    return count == 0 ? std::string("the whole CTA") : std::to_string(count) + " threads";
  };
  const std::uint32_t line = cta.cluster.grid.image->place_of(barrier.first_pc).ptx_line;
  throw Fault(FaultKind::barrier_misuse,
              "barrier " + std::to_string(number) + " for " + text(threads) + ", while warps " +
                  bits_text(barrier.arrived_warps) + " wait there (PTX line " +
                  std::to_string(line) + ") for " + text(barrier.expected_threads) +
                  "; all that meet at a barrier must name the same number of threads");
}

void reduce(Warp& warp, const Operation& operation, LaneMask active, NamedBarrier& barrier) {
  if (!has(operation, reduces)) return;
  const std::size_t slot = barrier_result_slot(operation) + 1;
  warp.require_defined(operation.slot[slot], active, "the result of a barrier's reduction");
  const LaneMask holds = read_predicate(warp, operation, slot) & active;
  barrier.reduction.all = barrier.reduction.all && holds == active;
  barrier.reduction.any = barrier.reduction.any || holds != 0;
  barrier.reduction.count += static_cast<std::uint32_t>(std::popcount(holds));
}

void note_arrival(Warp& warp, const Operation& operation, LaneMask active, NamedBarrier& barrier,
                  std::uint32_t number) {
  const std::uint32_t threads = threads_of(warp, operation, active, number);
  require_same_count(barrier, number, threads, warp.cta);
  const std::uint32_t own_bit = 1u << warp.index;
  LaneMask& lanes = barrier.arrived_lanes[warp.index];
  if ((barrier.arrived_warps & own_bit) != 0 || (lanes & active) != 0) {
    throw Fault(FaultKind::barrier_misuse,
                "warp " + std::to_string(warp.index) + " arrives at barrier " +
                    std::to_string(number) +
                    " again before the others of its last arrival have come; let it wait "
                    "(bar.sync), or use another barrier");
  }
  if (barrier.arrived_warps == 0) {
    barrier.expected_threads = threads;
    barrier.first_pc = operation.pc;
  }
  reduce(warp, operation, active, barrier);
  warp.release(barrier.gathering);
  lanes |= active;
}

// Lanes may arrive on different paths, or exit while the others wait.
void count_warp_if_whole(Warp& warp, NamedBarrier& barrier) {
  LaneMask& lanes = barrier.arrived_lanes[warp.index];
  if (lanes == 0 || (warp.live & ~lanes) != 0) return;
  lanes = 0;
  barrier.arrived_warps |= 1u << warp.index;
  warp.synchronise_lanes();
}

// --- run time ------------------------------------------------------------------------------------

std::string describe_barrier_wait(const Warp& warp, const Fragment& fragment) {
  const Operation& operation = warp.cta.cluster.grid.image->code[fragment.pc];
  const int lane = std::countr_zero(fragment.lanes);
  const std::uint32_t number = warp.source<std::uint32_t>(operation, number_slot)[lane];
  if (number >= warp.cta.named_barriers.size()) return "a barrier";
  const NamedBarrier& barrier = warp.cta.named_barriers[number];
  std::string text = "barrier " + std::to_string(number);
  if (barrier.expected_threads == 0) {
    text += " expects the whole CTA; warps " + bits_text(missing_warps(warp.cta, barrier)) +
            " have not come";
    return text;
  }
  const auto arrived = static_cast<std::uint32_t>(std::popcount(barrier.arrived_warps));
  return text + " expects " + std::to_string(barrier.expected_threads) + " threads, " +
         std::to_string(arrived * lanes_per_warp) + " have come: warps " +
         bits_text(barrier.arrived_warps);
}

void answer(Warp& warp, const Operation& operation, LaneMask active,
            const BarrierReduction& result) {
  const std::size_t slot = barrier_result_slot(operation);
  const auto kind = static_cast<Reduction>(operation.immediate);
  if (kind == Reduction::count) {
    auto* const counts = warp.destination<std::uint32_t>(operation, slot);
    for_each_lane(active, [&](int lane) { counts[lane] = result.count; });
  } else {
    const bool holds = kind == Reduction::all ? result.all : result.any;
    LaneMask& predicate = *warp.destination<LaneMask>(operation, slot);
    predicate = holds ? predicate | active : predicate & ~active;
  }
  warp.set_defined(operation.slot[slot], active, active);
}

// Fragment::resume of a waiting fragment is 1 + the generation in which it arrived.
Step go_on(Warp& warp, const Operation& operation, LaneMask active, const NamedBarrier& barrier,
           std::uint64_t generation) {
  warp.acquire(barrier.completed);
  if (has(operation, reduces))
    answer(warp, operation, active, barrier.results[generation % barrier.results.size()]);
  return Step::next;
}

Step run_barrier(Warp& warp, const Operation& operation, LaneMask active) {
  std::uint32_t number = 0;
  NamedBarrier& barrier = barrier_of(warp, operation, active, &number);
  std::uint64_t& resume = warp.running->resume;
  const std::uint64_t generation = resume != 0 ? resume - 1 : barrier.generation;
  if (resume == 0) note_arrival(warp, operation, active, barrier, number);
  count_warp_if_whole(warp, barrier);
  if (barrier.generation == generation && is_complete(warp.cta, barrier)) complete(barrier);
  if (has(operation, only_arrives)) return Step::next;
  if (barrier.generation > generation) return go_on(warp, operation, active, barrier, generation);
  resume = generation + 1;
  warp.describe_wait = describe_barrier_wait;
  return Step::blocked;
}

// --- decoding ------------------------------------------------------------------------------------

void add_reduction(Form& form, const Operand& result, const Operand& predicate) {
  Operation& operation = form.operation();
  operation.flags |= reduces;
  Reduction kind = Reduction::count;
  if (form.take("popc")) {
    if (!form.take("u32")) form.refuse(".popc takes .u32");
    form.add_destination(result, ScalarType::u32);
  } else {
    kind = form.take("and") ? Reduction::all : Reduction::any;
    if (kind == Reduction::any && !form.take("or")) form.refuse("expected .popc, .and or .or");
    if (!form.take("pred")) form.refuse("it takes .pred");
    form.add_destination(result, ScalarType::pred);
  }
  operation.immediate = static_cast<std::uint64_t>(kind);
  note_negation(form, predicate, form.add_source(predicate, ScalarType::pred));
}

void decode_named_barrier(Form& form, bool is_always_aligned) {
  Operation& operation = form.operation();
  operation.execute = run_barrier;
  operation.has_side_effect = true;
  operation.propagates_definedness = false;
  form.take("cta");
  const bool is_reduction = form.take("red");
  if (!is_reduction && form.take("arrive"))
    operation.flags |= only_arrives;
  else if (!is_reduction && !form.take("sync"))
    form.refuse("expected .sync, .arrive or .red");
  operation.needs_convergence = form.take("aligned") || is_always_aligned;
  operation.tolerates_exited = true;

  const std::size_t first = is_reduction ? 1 : 0;
  const std::size_t with_count = is_reduction ? 4 : 2;
  const bool is_counted = form.operand_count() == with_count;
  if (!is_counted) form.expect_operands(with_count - 1);
  if (has(operation, only_arrives) && !is_counted) form.refuse("the number of threads is missing");
  form.add_source(form.operand(first), ScalarType::u32);
  if (is_counted) {
    operation.flags |= has_count;
    form.add_source(form.operand(first + 1), ScalarType::u32);
  }
  if (is_reduction)
    add_reduction(form, form.operand(0), form.operand(with_count - (is_counted ? 1 : 2)));
  form.finish();
}

}  // namespace

void decode_bar(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  if (form.take("warp")) return decode_warp_barrier(context, instruction, operation);
  if (form.take("cluster")) return decode_cluster_barrier(context, instruction, operation);
  decode_named_barrier(form, instruction.opcode == "bar");
}

namespace {

// Kernels run one after another, so there is nothing to launch early and nothing to wait for.
void decode_grid_dependency(DecodeContext& context, const Instruction& instruction,
                            Operation& operation) {
  Form form(context, instruction, operation);
  if (!form.take("launch_dependents") && !form.take("wait"))
    form.refuse("expected .launch_dependents or .wait");
  form.finish();
  form.expect_operands(0);
  operation.execute = run_nothing;
}

constexpr DecodeRow rows[] = {
    {"bar", decode_bar},
    {"barrier", decode_bar},
    {"fence", decode_fence},
    {"griddepcontrol", decode_grid_dependency},
    {"mbarrier", decode_mbarrier},
    {"membar", decode_membar},
    {"setmaxnreg", decode_setmaxnreg},
};

}  // namespace

DecodeRows barrier_rows() { return rows; }

}  // namespace gemmery::emulator
