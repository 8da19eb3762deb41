// SPDX-License-Identifier: Apache-2.0
// Branches, returns and exits (PTX ISA, "Control Flow Instructions"). call.cpp has the calls.
#include <bit>

#include "emulator/instruction/control/call.hpp"
#include "emulator/instruction/form.hpp"
#include "emulator/machine/warp.hpp"

namespace gemmery::emulator {
namespace {

// --- bra, brx.idx -------------------------------------------------------------------------------

Step run_branch(Warp& warp, const Operation& operation, LaneMask active) {
  warp.send(active, static_cast<std::uint32_t>(operation.immediate));
  return Step::jumped;
}

const std::string& take_label(Form& form, std::size_t index) {
  const Operand& operand = form.operand(index);
  if (operand.kind != Operand::Kind::symbol) form.refuse("its target must be a label");
  return operand.text;
}

void decode_branch(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  form.take("uni");
  form.finish();
  form.expect_operands(1);
  operation.immediate = context.label(take_label(form, 0));
  operation.execute = run_branch;
}

struct BranchTable final : OperationDetail {
  std::vector<std::uint32_t> targets;
};

Step run_indexed_branch(Warp& warp, const Operation& operation, LaneMask active) {
  const auto& targets = static_cast<const BranchTable&>(*operation.detail).targets;
  warp.require_defined(operation.slot[0], active, "the target of a branch");
  const auto* const index = warp.source<std::uint32_t>(operation, 0);
  for (LaneMask rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (index[lane] >= targets.size()) {
      Fault fault(FaultKind::illegal_instruction,
                  "brx.idx with index " + std::to_string(index[lane]) + ", expected less than " +
                      std::to_string(targets.size()) + ", the targets of its table");
      fault.place.lane = lane;
      throw fault;
    }
    warp.send(LaneMask{1} << lane, targets[index[lane]]);
  }
  return Step::jumped;
}

void decode_indexed_branch(DecodeContext& context, const Instruction& instruction,
                           Operation& operation) {
  Form form(context, instruction, operation);
  if (!form.take("idx")) form.refuse(".idx is missing");
  form.take("uni");
  form.finish();
  form.expect_operands(2);
  const auto table = context.function().branch_targets.find(take_label(form, 1));
  if (table == context.function().branch_targets.end())
    form.refuse("its second operand must be a table of .branchtargets");
  context.add_source(operation, form.operand(0), ScalarType::u32);
  auto detail = std::make_shared<BranchTable>();
  for (const std::string& target : table->second) detail->targets.push_back(context.label(target));
  operation.detail = std::move(detail);
  operation.execute = run_indexed_branch;
}

// --- ends ---------------------------------------------------------------------------------------

Step run_exit(Warp& warp, const Operation&, LaneMask active) {
  warp.exit(active);
  return Step::jumped;
}

void decode_exit(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  form.finish();
  form.expect_operands(0);
  operation.execute = run_exit;
  operation.has_side_effect = true;
}

void decode_return(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  form.take("uni");
  form.finish();
  form.expect_operands(0);
  if (!context.function().is_entry) return make_return(context, operation);
  operation.execute = run_exit;
  operation.has_side_effect = true;
}

Step run_trap(Warp&, const Operation& operation, LaneMask active) {
  Fault fault(FaultKind::trap, operation.text->opcode +
                                   " was executed: the kernel gave up here; look for the condition "
                                   "that leads to it");
  fault.place.lane = std::countr_zero(active);
  throw fault;
}

void decode_trap(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  form.finish();
  form.expect_operands(0);
  operation.execute = run_trap;
}

// --- time ---------------------------------------------------------------------------------------

Step run_nanosleep(Warp&, const Operation&, LaneMask) { return Step::yield; }

void decode_nanosleep(DecodeContext& context, const Instruction& instruction,
                      Operation& operation) {
  Form form(context, instruction, operation);
  if (form.take_type() != ScalarType::u32) form.refuse("its type must be .u32");
  form.finish();
  form.expect_operands(1);
  context.add_source(operation, form.operand(0), ScalarType::u32);
  operation.execute = run_nanosleep;
}

void decode_pmevent(DecodeContext& context, const Instruction& instruction, Operation& operation) {
  Form form(context, instruction, operation);
  form.take("mask");
  form.finish();
  form.expect_operands(1);
  operation.execute = run_nothing;
}

constexpr DecodeRow rows[] = {
    {"bra", decode_branch}, {"brx", decode_indexed_branch},  {"call", decode_call},
    {"ret", decode_return}, {"exit", decode_exit},           {"trap", decode_trap},
    {"brkpt", decode_trap}, {"nanosleep", decode_nanosleep}, {"pmevent", decode_pmevent},
};

}  // namespace

DecodeRows control_rows() { return rows; }

}  // namespace gemmery::emulator
