// SPDX-License-Identifier: Apache-2.0
// Calls. The caller's arguments are copied to the callee's parameters, the results back to the
// caller's variables. A hidden register of each function holds the return address of each lane.
#include "emulator/instruction/control/call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "emulator/instruction/control/call_frame.hpp"
#include "emulator/instruction/form.hpp"
#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {
namespace {

using Block = FunctionPlace::Block;

struct BlockCopy {
  Block from;
  Block to;
};

// A function that a call may enter, and what goes there and back.
struct CallTarget {
  std::uint64_t address = 0;
  std::uint32_t pc = 0;
  OperandSlot return_address;
  std::vector<BlockCopy> arguments;
  std::vector<BlockCopy> results;
  std::vector<Block> result_blocks;               // of the caller
  std::shared_ptr<const CallFrame> caller_frame;  // nullptr: the call does not lead back to it
  std::shared_ptr<const CallFrame> frame;         // nullptr: it does not call itself
};

struct CallDetail final : OperationDetail {
  std::vector<CallTarget> targets;
};

void copy_blocks(Warp& warp, const std::vector<BlockCopy>& copies, LaneMask lanes) {
  const std::size_t stride = warp.cta.cluster.grid.image->local_bytes;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const std::size_t base = static_cast<std::size_t>(std::countr_zero(rest)) * stride;
    for (const BlockCopy& copy : copies) {
      const std::size_t from = base + copy.from.offset;
      const std::size_t to = base + copy.to.offset;
      std::memcpy(warp.local_memory.data() + to, warp.local_memory.data() + from, copy.to.bytes);
      for (std::size_t byte = 0; byte < copy.to.bytes; ++byte)
        set_local_written(warp, to + byte, is_local_written(warp, from + byte));
    }
  }
}

// --- there ---------------------------------------------------------------------------------------

void enter(Warp& warp, const CallTarget& target, LaneMask lanes, std::uint32_t back_to) {
  if (target.caller_frame != nullptr) save_frame(warp, *target.caller_frame, lanes);
  copy_blocks(warp, target.arguments, lanes);
  if (target.frame != nullptr) open_arrays(warp, *target.frame, lanes);
  auto* const back =
      reinterpret_cast<std::uint32_t*>(warp.registers + target.return_address.offset);
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) back[std::countr_zero(rest)] = back_to;
  warp.send(lanes, target.pc);
}

Step run_call(Warp& warp, const Operation& operation, LaneMask active) {
  const auto& call = static_cast<const CallDetail&>(*operation.detail);
  enter(warp, call.targets.front(), active, operation.pc + 1);
  return Step::jumped;
}

template <class Value>
LaneMask lanes_with(const Value* values, Value value, LaneMask among) noexcept {
  LaneMask found = 0;
  for (LaneMask rest = among; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (values[lane] == value) found |= LaneMask{1} << lane;
  }
  return found;
}

[[noreturn]] void throw_no_function(std::uint64_t address, int lane) {
  Fault fault(FaultKind::illegal_instruction,
              fmt::format("call of address {:#x}, which is no function of this module with such "
                          "parameters; pointers to functions come from the kernel's own module",
                          address));
  fault.place.lane = lane;
  throw fault;
}

// Lanes call the function that their register names.
Step run_indirect_call(Warp& warp, const Operation& operation, LaneMask active) {
  const auto& call = static_cast<const CallDetail&>(*operation.detail);
  warp.require_defined(operation.slot[0], active, "the function that is called");
  const auto* const addresses = warp.source<std::uint64_t>(operation, 0);
  for (LaneMask rest = active; rest != 0;) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t address = addresses[lane];
    const auto target = std::ranges::find(call.targets, address, &CallTarget::address);
    if (target == call.targets.end()) throw_no_function(address, lane);
    const LaneMask together = lanes_with(addresses, address, rest);
    rest &= ~together;
    enter(warp, *target, together, operation.pc + 1);
  }
  return Step::jumped;
}

// --- and back ------------------------------------------------------------------------------------

void leave(Warp& warp, const CallTarget& target, LaneMask lanes) {
  copy_blocks(warp, target.results, lanes);
  if (target.frame != nullptr) close_arrays(warp, *target.frame, lanes);
  if (target.caller_frame != nullptr)
    restore_frame(warp, *target.caller_frame, lanes, target.result_blocks);
}

// Each lane returns to its own call site and receives the results of that call. `immediate`: the
// function that returns.
Step run_return(Warp& warp, const Operation& operation, LaneMask active) {
  const auto* const back = warp.source<std::uint32_t>(operation, 0);
  const std::vector<Operation>& code = warp.cta.cluster.grid.image->code;
  for (LaneMask rest = active; rest != 0;) {
    const std::uint32_t pc = back[std::countr_zero(rest)];
    const LaneMask together = lanes_with(back, pc, rest);
    rest &= ~together;
    const auto& targets = static_cast<const CallDetail&>(*code[pc - 1].detail).targets;
    leave(warp, *std::ranges::find(targets, operation.immediate, &CallTarget::pc), together);
    warp.send(together, pc);
  }
  return Step::jumped;
}

// --- decoders ------------------------------------------------------------------------------------

// The blocks of `.param` variables that a call names.
std::vector<Block> find_blocks(Form& form, const Operand& list) {
  std::vector<Block> blocks;
  for (const Operand& item : list.items) {
    Space space{};
    if (item.kind != Operand::Kind::symbol) form.refuse("arguments must be .param variables");
    const std::uint64_t offset = form.context().address_of(item.text, &space);
    if (space != Space::local) form.refuse("arguments must be .param variables of the caller");
    Block block{static_cast<std::uint32_t>(offset), 0};
    for (const Variable& variable : form.context().function().variables)
      if (variable.name == item.text) block.bytes = static_cast<std::uint32_t>(variable.bytes);
    blocks.push_back(block);
  }
  return blocks;
}

std::vector<BlockCopy> pair_blocks(Form& form, const std::vector<Block>& from,
                                   const std::vector<Block>& to) {
  if (from.size() != to.size()) form.refuse("another number of arguments or results");
  std::vector<BlockCopy> copies;
  for (std::size_t index = 0; index < from.size(); ++index) {
    if (from[index].bytes != to[index].bytes) form.refuse("arguments or results of other sizes");
    copies.push_back({from[index], to[index]});
  }
  return copies;
}

CallTarget make_target(Form& form, const DecodeContext::CallTarget& found,
                       const CallBlocks& blocks) {
  const FunctionPlace& place = *found.place;
  return {.address = place.address,
          .pc = place.pc,
          .return_address = place.return_address,
          .arguments = pair_blocks(form, blocks.arguments, place.parameters),
          .results = pair_blocks(form, place.results, blocks.results),
          .result_blocks = blocks.results,
          .caller_frame = found.leads_back ? form.context().own_place()->frame : nullptr,
          .frame = place.frame};
}

}  // namespace

void decode_call(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  form.take("uni");
  form.finish();
  const Operand& callee = form.operand(1);
  const CallBlocks blocks{find_blocks(form, form.operand(2)), find_blocks(form, form.operand(0))};
  auto detail = std::make_shared<CallDetail>();
  for (const DecodeContext::CallTarget& found : context.call_targets(instruction))
    detail->targets.push_back(make_target(form, found, blocks));
  if (detail->targets.empty()) {
    if (decode_system_call(context, instruction, blocks, operation)) return;
    form.refuse("function " + callee.text + " has no body in this module");
  }
  const bool is_indirect = callee.kind == Operand::Kind::reg;
  if (is_indirect) form.add_source(callee, ScalarType::b64);
  operation.detail = std::move(detail);
  operation.execute = is_indirect ? run_indirect_call : run_call;
}

void make_return(DecodeContext& context, Operation& operation) {
  const FunctionPlace& place = *context.own_place();
  operation.slot[operation.slot_count++] = place.return_address;
  operation.immediate = place.pc;
  operation.execute = run_return;
}

}  // namespace gemmery::emulator
