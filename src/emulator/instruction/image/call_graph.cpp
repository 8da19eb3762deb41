// SPDX-License-Identifier: Apache-2.0
// A traversal of the call graph.
#include "emulator/instruction/image/call_graph.hpp"

#include <algorithm>

#include <gemmery/error.hpp>

namespace gemmery::emulator {
namespace {

constexpr std::size_t function_operand = 1;  // see parse_ptx
constexpr std::size_t max_call_depth = 256;

class CallWalk {
 public:
  explicit CallWalk(const Program& program) : program_(program) {}

  void visit(const Function& function) {
    found_.push_back(&function);
    path_.push_back(&function);
    for (const Instruction& instruction : function.code)
      if (instruction.opcode == "call") follow(instruction);
    path_.pop_back();
  }

  std::vector<const Function*> found() && { return std::move(found_); }

 private:
  void follow(const Instruction& call) {
    const Function* const callee = called_function(program_, call);
    if (callee == nullptr) return;
    if (std::ranges::find(path_, callee) != path_.end())
      refuse_instruction(call, "recursion: functions have static places for their variables");
    if (path_.size() == max_call_depth) refuse_instruction(call, "calls deeper than 256");
    if (std::ranges::find(found_, callee) == found_.end()) visit(*callee);
  }

  const Program& program_;
  std::vector<const Function*> found_;
  std::vector<const Function*> path_;
};

}  // namespace

void refuse_instruction(const Instruction& instruction, std::string_view why) {
  throw Error({.kind = ErrorKind::unsupported,
               .operand = "PTX line " + std::to_string(instruction.ptx_line),
               .expected = "an instruction that the emulator executes",
               .got = instruction.full_opcode() + ": " + std::string(why)});
}

const Function* called_function(const Program& program, const Instruction& call) {
  if (call.operands.size() <= function_operand ||
      call.operands[function_operand].kind != Operand::Kind::symbol)
    refuse_instruction(call, "a call through a register");
  const Function* const callee = program.find_function(call.operands[function_operand].text);
  return callee != nullptr && callee->has_body ? callee : nullptr;
}

std::vector<const Function*> reachable_functions(const Program& program, const Function& entry) {
  CallWalk walk(program);
  walk.visit(entry);
  return std::move(walk).found();
}

}  // namespace gemmery::emulator
