// SPDX-License-Identifier: Apache-2.0
// wgmma: asynchronous matrix products of a warpgroup. Each warp computes its sixteen rows when it
// issues the instruction; its registers and tiles count as in flight until wgmma.wait_group.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "emulator/instruction/matrix/matrix_form.hpp"
#include "emulator/instruction/matrix/matrix_fragment.hpp"
#include "emulator/instruction/matrix/matrix_registers.hpp"
#include "emulator/instruction/matrix/wgmma_tile.hpp"
#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {
namespace {

constexpr std::uint32_t rows_per_warp = 16;
constexpr std::uint32_t warps_per_group = 4;
constexpr std::uint32_t most_columns = 256;

struct WgmmaDetail final : OperationDetail {
  MatrixProduct product;  // of one warp; each execution sets its pointers
  MatrixShape shape;
  std::vector<OperandSlot> accumulators;
  std::vector<OperandSlot> a_registers;  // empty if A is in shared memory
  OperandSlot a_descriptor, b_descriptor;
  OperandSlot scale_d;  // a predicate
  bool is_scale_negated = false;
  bool a_is_mn_major = false, b_is_mn_major = false;
};

const WgmmaDetail& wgmma_detail_of(const Operation& operation) {
  return static_cast<const WgmmaDetail&>(*operation.detail);
}

[[noreturn]] void throw_fault(FaultKind kind, std::string message) {
  throw Fault(kind, std::move(message));
}

const std::string& name_of(const Warp& warp, RegisterIndex reg) {
  return warp.cta.cluster.grid.image->register_name[reg];
}

// --- what must hold -----------------------------------------------------------------------------

void check_warpgroup(const Warp& warp, LaneMask active) {
  if (active != all_lanes)
    throw_fault(FaultKind::divergent_barrier,
                "wgmma runs with part of a warp; all 32 lanes of all four warps must reach it with "
                "the same guard");
  const std::size_t warps = warp.cta.warps.size();
  if (warp.index / warps_per_group * warps_per_group + warps_per_group > warps)
    throw_fault(FaultKind::illegal_instruction,
                "wgmma needs warpgroups of four warps; the CTA has " + std::to_string(warps) +
                    " warps, and warp " + std::to_string(warp.index) +
                    " is in none: launch a multiple of 128 threads");
}

std::uint64_t descriptor_of(const Warp& warp, const OperandSlot& slot, const char* what) {
  warp.require_defined(slot, all_lanes, what);
  const auto* lanes = lanes_at<std::uint64_t>(warp, slot);
  for (int lane = 1; lane < lanes_per_warp; ++lane)
    if (lanes[lane] != lanes[0])
      throw_fault(FaultKind::illegal_instruction,
                  std::string(what) + " differs between lanes 0 and " + std::to_string(lane) +
                      "; all threads of the warpgroup must give the same one");
  return lanes[0];
}

bool adds_to_d(const Warp& warp, const WgmmaDetail& detail) {
  warp.require_defined(detail.scale_d, all_lanes, "whether a wgmma adds to its accumulators");
  LaneMask lanes = *lanes_at<LaneMask>(warp, detail.scale_d);
  if (detail.is_scale_negated) lanes = ~lanes;
  if (lanes != 0 && lanes != all_lanes)
    throw_fault(FaultKind::illegal_instruction,
                "scale-d differs between the lanes of a warp; all threads of the warpgroup must "
                "give the same one");
  return lanes != 0;
}

void check_defined(const Warp& warp, std::span<const OperandSlot> slots, const char* what,
                   const char* advice) {
  for (const OperandSlot& slot : slots)
    if (warp.defined_lanes(slot) != all_lanes)
      throw_fault(FaultKind::unwritten_register, std::string("read of an unwritten ") + what +
                                                     ": " + name_of(warp, slot.reg) + "; " +
                                                     advice);
}

void check_fenced(const Warp& warp, const WgmmaDetail& detail) {
  if (warp.wgmma.needs_fence)
    throw_fault(FaultKind::in_flight,
                "the first wgmma of a warp has no wgmma.fence before it; its accumulators and A "
                "registers need not be there yet");
  const auto& touched = warp.wgmma.touched_since_fence;
  if (touched.empty()) return;
  for (const auto* slots : {&detail.accumulators, &detail.a_registers})
    for (const OperandSlot& slot : *slots)
      if (std::ranges::find(touched, slot.reg) != touched.end())
        throw_fault(FaultKind::in_flight, name_of(warp, slot.reg) +
                                              " was written since the last wgmma.fence and is used "
                                              "by a wgmma; put wgmma.fence between them");
}

// --- registers in flight ------------------------------------------------------------------------

using InFlight = WgmmaState::InFlight;

// True if the wgmma accumulates in place on the accumulators of one in flight, in the same order:
// the one overlap of wgmmas that is legal. `at` is set to their index in the list.
bool continues(const WgmmaState& state, const WgmmaDetail& detail, std::size_t& at) {
  const auto& list = state.in_flight;
  const auto& registers = detail.accumulators;
  at = 0;
  while (at < list.size() && !(list[at].is_written && list[at].reg == registers[0].reg)) ++at;
  if (at + registers.size() > list.size()) return false;
  for (std::size_t x = 0; x < registers.size(); ++x)
    if (list[at + x].reg != registers[x].reg || !list[at + x].is_written) return false;
  return true;
}

bool holds(std::span<const OperandSlot> slots, RegisterIndex reg) {
  return std::ranges::any_of(slots, [reg](const OperandSlot& slot) { return slot.reg == reg; });
}

[[noreturn]] void throw_overlap(const Warp& warp, const InFlight& use, const char* how) {
  const auto line = warp.cta.cluster.grid.image->place_of(use.pc).ptx_line;
  throw_fault(FaultKind::in_flight,
              name_of(warp, use.reg) + " is " + how + " while the wgmma at PTX line " +
                  std::to_string(line) + (use.is_written ? " still writes it" : " still reads it") +
                  "; wait for that one first (wgmma.wait_group), or use the same accumulators in "
                  "the same shape");
}

void check_overlap(const Warp& warp, const WgmmaDetail& detail, bool continues_accumulators) {
  for (const InFlight& use : warp.wgmma.in_flight) {
    if (!continues_accumulators && holds(detail.accumulators, use.reg))
      throw_overlap(warp, use, "the accumulator of another wgmma");
    if (use.is_written && holds(detail.a_registers, use.reg))
      throw_overlap(warp, use, "the A register of another wgmma");
  }
}

void put_in_flight(Warp& warp, const Operation& operation, const WgmmaDetail& detail) {
  WgmmaState& state = warp.wgmma;
  const std::uint32_t group = state.committed + 1;
  std::size_t at = 0;
  const bool adds = continues(state, detail, at);
  if (!adds || !detail.a_registers.empty()) check_overlap(warp, detail, adds);
  if (adds) {
    for (std::size_t x = 0; x < detail.accumulators.size(); ++x) {
      state.in_flight[at + x].group = group;
      state.in_flight[at + x].pc = operation.pc;
    }
  } else {
    for (const OperandSlot& slot : detail.accumulators)
      state.in_flight.push_back({slot.reg, group, true, operation.pc});
  }
  for (const OperandSlot& slot : detail.a_registers)
    state.in_flight.push_back({slot.reg, group, false, operation.pc});
  state.has_open_group = true;
}

// --- operands -----------------------------------------------------------------------------------

AgentIndex strand_of(Warp& warp) {
  AgentIndex& strand = warp.wgmma.strand;
  if (strand == no_agent) strand = warp.cta.cluster.add_agent();
  return strand;
}

Accessor reader_of(Warp& warp, const Operation& operation) {
  Accessor who = warp.accessor(operation);
  who.epoch = Epoch(warp.cta.cluster.index, strand_of(warp), warp.wgmma.committed + 1);
  who.proxy = Proxy::async;
  return who;
}

void collect_a(const Warp& warp, std::span<const OperandSlot> registers, std::byte* to) {
  constexpr std::uint32_t row_words = wgmma_row_bytes / 4;
  std::array<std::uint32_t, rows_per_warp * row_words> words;
  for (std::uint32_t index = 0; index < registers.size(); ++index) {
    const auto* lanes = lanes_at<std::uint32_t>(warp, registers[index]);
    copy_fragment(lanes, place_in_a(rows_per_warp, index, 0), row_words, words.data());
  }
  std::memcpy(to, words.data(), sizeof words);
}

// The operands of one warp, as packed rows.
struct WarpOperands {
  alignas(64) std::array<std::byte, rows_per_warp * wgmma_row_bytes> a;
  alignas(64) std::array<std::byte, most_columns * wgmma_row_bytes> b;
  alignas(64) std::array<std::uint32_t, rows_per_warp * most_columns> d;
};

void read_operands(Warp& warp, const Operation& operation, const WgmmaDetail& detail,
                   WarpOperands& operands) {
  const Accessor who = reader_of(warp, operation);
  SharedMemory& memory = warp.cta.shared;
  if (detail.a_registers.empty()) {
    const auto a = MatrixDescriptor::from(
        descriptor_of(warp, detail.a_descriptor, "the descriptor of a wgmma's A"));
    const TileRows rows{warp.index % warps_per_group * rows_per_warp, rows_per_warp,
                        detail.a_is_mn_major};
    read_tile(memory, a, rows, who, operands.a);
  } else {
    check_defined(warp, detail.a_registers, "A register", "load it before the wgmma");
    collect_a(warp, detail.a_registers, operands.a.data());
  }
  const auto b = MatrixDescriptor::from(
      descriptor_of(warp, detail.b_descriptor, "the descriptor of a wgmma's B"));
  read_tile(memory, b, {0, detail.shape.n, detail.b_is_mn_major}, who, operands.b);
}

// --- accumulators -------------------------------------------------------------------------------

// Calls visit(four lanes, where the first one's part of a row lies in d) for each register.
template <class Visit>
void for_each_part(Warp& warp, const WgmmaDetail& detail, std::uint32_t* d, Visit visit) {
  const std::uint32_t n = detail.shape.n;
  const bool is_packed = detail.product.accumulator == Accumulator::f16;
  for (std::uint32_t index = 0; index < detail.accumulators.size(); ++index) {
    auto* lanes =
        reinterpret_cast<std::uint32_t*>(warp.registers + detail.accumulators[index].offset);
    const FragmentPlace first = place_in_c(is_packed ? 1 : 2, 2, index, 0);
    std::uint32_t* part = d + first.row * n + first.word * (is_packed ? 2 : 1);
    for (std::uint32_t lane = 0; lane < lanes_per_warp; lane += 4) {
      visit(lanes + lane, part);
      part += n;
    }
  }
}

void collect_d(Warp& warp, const WgmmaDetail& detail, std::uint32_t* d) {
  if (detail.product.accumulator == Accumulator::f16) {
    for_each_part(warp, detail, d, [](const std::uint32_t* lanes, std::uint32_t* part) {
      for (std::uint32_t lane = 0; lane < 4; ++lane) {
        part[2 * lane] = lanes[lane] & 0xffff;
        part[2 * lane + 1] = lanes[lane] >> 16;
      }
    });
    return;
  }
  for_each_part(warp, detail, d, [](const std::uint32_t* lanes, std::uint32_t* part) {
    for (std::uint32_t lane = 0; lane < 4; ++lane) part[2 * lane] = lanes[lane];
  });
}

void distribute_d(Warp& warp, const WgmmaDetail& detail, std::uint32_t* d) {
  if (detail.product.accumulator == Accumulator::f16) {
    for_each_part(warp, detail, d, [](std::uint32_t* lanes, const std::uint32_t* part) {
      for (std::uint32_t lane = 0; lane < 4; ++lane)
        lanes[lane] = part[2 * lane] | part[2 * lane + 1] << 16;
    });
  } else {
    for_each_part(warp, detail, d, [](std::uint32_t* lanes, const std::uint32_t* part) {
      for (std::uint32_t lane = 0; lane < 4; ++lane) lanes[lane] = part[2 * lane];
    });
  }
  for (const OperandSlot& slot : detail.accumulators) warp.set_defined(slot, all_lanes, all_lanes);
}

// --- instructions -------------------------------------------------------------------------------

Step run_mma_async(Warp& warp, const Operation& operation, LaneMask active) {
  const WgmmaDetail& detail = wgmma_detail_of(operation);
  check_warpgroup(warp, active);
  check_fenced(warp, detail);
  const bool adds = adds_to_d(warp, detail);
  if (adds)
    check_defined(warp, detail.accumulators, "accumulator",
                  "set it before the first wgmma, or give that one scale-d 0");
  put_in_flight(warp, operation, detail);

  static thread_local WarpOperands operands;
  read_operands(warp, operation, detail, operands);
  if (adds) collect_d(warp, detail, operands.d.data());
  MatrixProduct product = detail.product;
  product.a_at = operands.a.data();
  product.b_at = operands.b.data();
  product.c_at = adds ? operands.d.data() : nullptr;
  product.d_at = operands.d.data();
  multiply(product);
  distribute_d(warp, detail, operands.d.data());
  return Step::next;
}

Step run_fence(Warp& warp, const Operation&, LaneMask) {
  warp.wgmma.needs_fence = false;
  warp.wgmma.touched_since_fence.clear();
  return Step::next;
}

Step run_commit_group(Warp& warp, const Operation&, LaneMask) {
  ++warp.wgmma.committed;
  warp.wgmma.has_open_group = false;
  return Step::next;
}

Step run_wait_group(Warp& warp, const Operation& operation, LaneMask) {
  WgmmaState& state = warp.wgmma;
  const auto left =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(operation.immediate, state.committed));
  state.completed = std::max(state.completed, state.committed - left);
  if (state.strand != no_agent) warp.known.happened.raise(state.strand, state.completed);
  std::erase_if(state.in_flight, [&](const InFlight& use) { return use.group <= state.completed; });
  return Step::next;
}

// --- decoding -----------------------------------------------------------------------------------

bool is_legal(const MatrixShape& shape, const MatrixTypes& types) {
  if (shape.m != 64 || shape.n < 8 || shape.n > most_columns || shape.n % 8 != 0) return false;
  if (shape.k * bits_of(types.a) != 8 * wgmma_row_bytes) return false;
  if (types.a == MatrixElement::s4 || types.a == MatrixElement::u4 || types.a == MatrixElement::f64)
    return false;
  // (PTX ISA, wgmma: "Shape" of integers and bits.)
  const bool is_integer = types.accumulator == Accumulator::s32;
  return !is_integer || shape.n % 16 == 0 || shape.n == 8 || shape.n == 24;
}

std::vector<OperandSlot> decode_list(Form& form, const Operand& list, std::size_t count,
                                     bool is_destination, ScalarType type) {
  if (list.kind != Operand::Kind::list || list.items.size() != count)
    form.refuse("a list of " + std::to_string(count) + " registers is expected");
  std::vector<OperandSlot> slots;
  for (const Operand& item : list.items) {
    if (item.kind != Operand::Kind::reg) form.refuse("the list must name registers");
    slots.push_back(is_destination ? form.context().destination_slot(item, type)
                                   : form.context().source_slot(item, type));
  }
  return slots;
}

// Takes an immediate that is 1 or -1 (scale), or 0 or 1 (transposition).
bool take_flag(Form& form, std::size_t& next, std::uint64_t set, std::uint64_t clear) {
  const Operand& operand = form.operand(next++);
  if (operand.kind != Operand::Kind::immediate || (operand.bits != set && operand.bits != clear))
    form.refuse("operand " + std::to_string(next) + " must be an immediate, " +
                std::to_string(static_cast<std::int64_t>(set)) + " or " +
                std::to_string(static_cast<std::int64_t>(clear)));
  return operand.bits == set;
}

void decode_tail(Form& form, std::size_t next, WgmmaDetail& detail) {
  const Operand& scale_d = form.operand(next++);
  detail.scale_d = form.context().source_slot(scale_d, ScalarType::pred);
  detail.is_scale_negated = scale_d.is_negated;
  if (detail.product.accumulator != Accumulator::s32) {
    detail.product.negates_a = take_flag(form, next, ~std::uint64_t{0}, 1);
    detail.product.negates_b = take_flag(form, next, ~std::uint64_t{0}, 1);
    if (bits_of(detail.product.a) == 16) {
      if (detail.a_registers.empty()) detail.a_is_mn_major = take_flag(form, next, 1, 0);
      detail.b_is_mn_major = take_flag(form, next, 1, 0);
    }
  }
  form.expect_operands(next);
}

void note_registers(Operation& operation, const WgmmaDetail& detail) {
  for (const OperandSlot& slot : detail.accumulators) add_unique(operation.writes, slot);
  operation.reads = operation.writes;
  for (const OperandSlot& slot : detail.a_registers) add_unique(operation.reads, slot);
  for (const OperandSlot& slot : {detail.a_descriptor, detail.b_descriptor, detail.scale_d})
    add_unique(operation.reads, slot);
}

void decode_operands(Form& form, const ScalarType register_type, WgmmaDetail& detail) {
  const std::size_t accumulators =
      detail.shape.n / (detail.product.accumulator == Accumulator::f16 ? 4 : 2);
  detail.accumulators = decode_list(form, form.operand(0), accumulators, true, register_type);
  const Operand& a = form.operand(1);
  if (a.kind == Operand::Kind::list)
    detail.a_registers = decode_list(form, a, 4, false, ScalarType::b32);
  else
    detail.a_descriptor = form.context().source_slot(a, ScalarType::b64);
  detail.b_descriptor = form.context().source_slot(form.operand(2), ScalarType::b64);
  decode_tail(form, 3, detail);
}

void decode_mma_async(Form& form) {
  if (form.take("sp")) form.refuse("sparse wgmma is not emulated");
  auto detail = std::make_shared<WgmmaDetail>();
  detail->shape = take_matrix_shape(form);
  detail->product.saturates = form.take("satfinite");
  const MatrixTypes types = take_matrix_types(form, false);
  if (types.a == MatrixElement::b1 && !(form.take("and") && form.take("popc")))
    form.refuse(".b1 needs .and.popc");
  form.finish();
  if (!is_legal(detail->shape, types)) form.refuse("wgmma has no such shape for these types");
  if (detail->product.saturates &&
      (types.accumulator != Accumulator::s32 || types.a == MatrixElement::b1))
    form.refuse(".satfinite is for 8-bit integers");
  MatrixProduct& product = detail->product;
  product.a = types.a;
  product.b = types.b;
  product.accumulator = types.accumulator;
  product.m = rows_per_warp;
  product.n = detail->shape.n;
  product.k = detail->shape.k;
  decode_operands(form, ScalarType::b32, *detail);

  Operation& operation = form.operation();
  note_registers(operation, *detail);
  operation.execute = run_mma_async;
  operation.detail = std::move(detail);
}

void decode_wait_group(Form& form) {
  form.finish();
  form.expect_operands(1);
  const Operand& left = form.operand(0);
  if (left.kind != Operand::Kind::immediate || left.bits > 7)
    form.refuse("the number of groups must be an immediate from 0 to 7");
  form.operation().immediate = left.bits;
  form.operation().execute = run_wait_group;
}

void decode_wgmma(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  if (!form.take("sync") || !form.take("aligned")) form.refuse("wgmma needs .sync.aligned");
  operation.propagates_definedness = false;
  operation.needs_convergence = true;
  if (form.take("mma_async")) return decode_mma_async(form);
  if (form.take("wait_group")) return decode_wait_group(form);
  if (form.take("fence")) {
    operation.execute = run_fence;
  } else if (form.take("commit_group")) {
    operation.execute = run_commit_group;
  } else {
    form.refuse("wgmma knows mma_async, fence, commit_group and wait_group");
  }
  form.finish();
  form.expect_operands(0);
}

constexpr DecodeRow wgmma_decode_rows[] = {{"wgmma", decode_wgmma}};

}  // namespace

DecodeRows wgmma_rows() { return wgmma_decode_rows; }

}  // namespace gemmery::emulator
