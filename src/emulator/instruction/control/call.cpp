// SPDX-License-Identifier: Apache-2.0
// Calls. The caller's arguments are copied to the callee's parameters, the results back to the
// caller's variables. A hidden register of each function holds the return address of each lane.
#include "emulator/instruction/control/call.hpp"

#include <bit>
#include <cstring>

#include "emulator/instruction/form.hpp"
#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {
namespace {

using Block = FunctionPlace::Block;

struct BlockCopy {
  Block from;
  Block to;
};

struct CallDetail final : OperationDetail {
  std::uint32_t target = 0;
  OperandSlot return_address;
  std::vector<BlockCopy> arguments;
  std::vector<BlockCopy> results;
};

bool is_written(const Warp& warp, std::size_t byte) noexcept {
  return ((warp.local_written[byte / 64] >> (byte % 64)) & 1) != 0;
}

void set_written(Warp& warp, std::size_t byte, bool value) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << (byte % 64);
  std::uint64_t& bits = warp.local_written[byte / 64];
  bits = value ? bits | bit : bits & ~bit;
}

void copy_blocks(Warp& warp, const std::vector<BlockCopy>& copies, LaneMask lanes) {
  const std::size_t stride = warp.cta.cluster.grid.image->local_bytes;
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const std::size_t base = static_cast<std::size_t>(std::countr_zero(rest)) * stride;
    for (const BlockCopy& copy : copies) {
      const std::size_t from = base + copy.from.offset;
      const std::size_t to = base + copy.to.offset;
      std::memcpy(warp.local_memory.data() + to, warp.local_memory.data() + from, copy.to.bytes);
      for (std::size_t byte = 0; byte < copy.to.bytes; ++byte)
        set_written(warp, to + byte, is_written(warp, from + byte));
    }
  }
}

Step run_call(Warp& warp, const Operation& operation, LaneMask active) {
  const auto& call = static_cast<const CallDetail&>(*operation.detail);
  copy_blocks(warp, call.arguments, active);
  auto* const back = reinterpret_cast<std::uint32_t*>(warp.registers + call.return_address.offset);
  for (LaneMask rest = active; rest != 0; rest &= rest - 1)
    back[std::countr_zero(rest)] = operation.pc + 1;
  warp.send(active, call.target);
  return Step::jumped;
}

LaneMask lanes_with(const std::uint32_t* values, std::uint32_t value, LaneMask among) noexcept {
  LaneMask found = 0;
  for (LaneMask rest = among; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (values[lane] == value) found |= LaneMask{1} << lane;
  }
  return found;
}

// Each lane returns to its own call site and receives the results of that call.
Step run_return(Warp& warp, const Operation& operation, LaneMask active) {
  const auto* const back = warp.source<std::uint32_t>(operation, 0);
  const std::vector<Operation>& code = warp.cta.cluster.grid.image->code;
  for (LaneMask rest = active; rest != 0;) {
    const std::uint32_t pc = back[std::countr_zero(rest)];
    const LaneMask together = lanes_with(back, pc, rest);
    copy_blocks(warp, static_cast<const CallDetail&>(*code[pc - 1].detail).results, together);
    warp.send(together, pc);
    rest &= ~together;
  }
  return Step::jumped;
}

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

}  // namespace

void decode_call(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  form.take("uni");
  form.finish();
  const Operand& callee = form.operand(1);
  const CallBlocks blocks{find_blocks(form, form.operand(2)), find_blocks(form, form.operand(0))};
  const FunctionPlace* const place = context.find_function_place(callee.text);
  if (place == nullptr) {
    if (decode_system_call(context, instruction, blocks, operation)) return;
    form.refuse("function " + callee.text + " has no body in this module");
  }
  auto detail = std::make_shared<CallDetail>();
  detail->target = place->pc;
  detail->return_address = place->return_address;
  detail->arguments = pair_blocks(form, blocks.arguments, place->parameters);
  detail->results = pair_blocks(form, place->results, blocks.results);
  operation.detail = std::move(detail);
  operation.execute = run_call;
}

void make_return(DecodeContext& context, Operation& operation) {
  operation.slot[operation.slot_count++] =
      context.find_function_place(context.function().name)->return_address;
  operation.execute = run_return;
}

}  // namespace gemmery::emulator
