// SPDX-License-Identifier: Apache-2.0
// Which functions an entry may call, and which may be entered again before they have returned.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "emulator/program/program.hpp"

namespace gemmery::emulator {

// Which functions a `call` may enter.
class CallTargets {
 public:
  explicit CallTargets(const Program& program) : program_(program) {}

  // The function that the call names, if it has a body; of a call through a register all functions
  // whose address is taken and whose parameters and results have the sizes of the call's. Throws
  // Error (unsupported) if there are none of the latter.
  std::vector<const Function*> of(const Function& caller, const Instruction& call);

 private:
  std::vector<const Function*> fitting(const Function& caller, const Instruction& call);
  const std::set<const Function*>& addressed();

  const Program& program_;
  bool is_searched_ = false;
  std::set<const Function*> addressed_;
};

struct CallGraph {
  std::vector<const Function*> functions;   // all that may run, the entry first
  std::map<const Function*, int> cycle_of;  // of functions that may call themselves again: equal
                                            // numbers for those that call one another
  // Whether the callee may enter the caller once more.
  bool may_return_to(const Function& caller, const Function& callee) const;
};

// Throws Error (unsupported) for calls of more than 256 functions inside one another.
CallGraph call_graph(const Program& program, const Function& entry, CallTargets& targets);

// Throws Error (unsupported) with the PTX line, the instruction and the reason.
[[noreturn]] void refuse_instruction(const Instruction& instruction, std::string_view why);

}  // namespace gemmery::emulator
