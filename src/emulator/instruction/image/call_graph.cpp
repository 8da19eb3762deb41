// SPDX-License-Identifier: Apache-2.0
// A traversal of the call graph, which finds its strongly connected components (Tarjan, 1972).
#include "emulator/instruction/image/call_graph.hpp"

#include <algorithm>
#include <ranges>

#include <gemmery/error.hpp>

namespace gemmery::emulator {
namespace {

constexpr std::size_t result_operand = 0;  // of a call: see parser.hpp
constexpr std::size_t function_operand = 1;
constexpr std::size_t argument_operand = 2;
constexpr std::size_t max_call_depth = 256;

class CallWalk {
 public:
  CallWalk(const Program& program, CallTargets& targets) : program_(program), targets_(targets) {}

  void visit(const Function& function) {
    const std::size_t order = found_.functions.size();
    order_[&function] = lowest_[&function] = order;
    found_.functions.push_back(&function);
    open_.push_back(&function);
    ++depth_;
    for (const Instruction& instruction : function.code)
      if (instruction.opcode == "call") follow(function, instruction);
    --depth_;
    if (lowest_[&function] == order) close_component(function);
  }

  CallGraph found() && { return std::move(found_); }

 private:
  void follow(const Function& caller, const Instruction& call) {
    for (const Function* const callee : targets_.of(caller, call)) {
      if (callee == &caller) calls_itself_.insert(callee);
      if (!order_.contains(callee)) {
        if (depth_ == max_call_depth) refuse_instruction(call, "calls deeper than 256");
        visit(*callee);
        lowest_[&caller] = std::min(lowest_[&caller], lowest_[callee]);
      } else if (std::ranges::find(open_, callee) != open_.end()) {
        lowest_[&caller] = std::min(lowest_[&caller], order_[callee]);
      }
    }
  }

  // The functions from `first` on, in the order of the walk, call one another.
  void close_component(const Function& first) {
    const auto begin = std::ranges::find(open_, &first);
    const bool is_cycle = open_.end() - begin > 1 || calls_itself_.contains(&first);
    if (is_cycle) {
      ++cycle_count_;
      for (auto member = begin; member != open_.end(); ++member)
        found_.cycle_of[*member] = cycle_count_;
    }
    open_.erase(begin, open_.end());
  }

  const Program& program_;
  CallTargets& targets_;
  CallGraph found_;
  std::map<const Function*, std::size_t> order_;
  std::map<const Function*, std::size_t> lowest_;  // the first open function that it leads to
  std::vector<const Function*> open_;
  std::set<const Function*> calls_itself_;
  std::size_t depth_ = 0;
  int cycle_count_ = 0;
};

// The sizes of the variables that a list of a call names.
std::vector<std::uint64_t> sizes_of(const Function& caller, const Operand& list) {
  std::vector<std::uint64_t> sizes;
  for (const Operand& item : list.items) {
    const auto variable = std::ranges::find(caller.variables, item.text, &Variable::name);
    sizes.push_back(variable == caller.variables.end() ? 0 : variable->bytes);
  }
  return sizes;
}

bool have_sizes(const std::vector<Variable>& variables, const std::vector<std::uint64_t>& sizes) {
  return std::ranges::equal(variables, sizes, {}, &Variable::bytes);
}

}  // namespace

void refuse_instruction(const Instruction& instruction, std::string_view why) {
  throw Error({.kind = ErrorKind::unsupported,
               .operand = "PTX line " + std::to_string(instruction.ptx_line),
               .expected = "an instruction that the emulator executes",
               .got = instruction.full_opcode() + ": " + std::string(why)});
}

// --- targets of a call ---------------------------------------------------------------------------

const std::set<const Function*>& CallTargets::addressed() {
  if (is_searched_) return addressed_;
  is_searched_ = true;
  const auto note = [&](std::string_view name) {
    const Function* const function = name.empty() ? nullptr : program_.find_function(name);
    if (function != nullptr && function->has_body) addressed_.insert(function);
  };
  for (const Variable& variable : program_.variables)
    for (const Variable::AddressOf& address : variable.addresses) note(address.variable);
  for (const Function& function : program_.functions)
    for (const Instruction& instruction : function.code)
      if (instruction.opcode == "mov")
        for (const Operand& operand : instruction.operands) note(operand.text);
  return addressed_;
}

std::vector<const Function*> CallTargets::fitting(const Function& caller, const Instruction& call) {
  const auto results = sizes_of(caller, call.operands[result_operand]);
  const auto arguments = sizes_of(caller, call.operands[argument_operand]);
  std::vector<const Function*> fitting;
  for (const Function& function : program_.functions)
    if (addressed().contains(&function) && have_sizes(function.parameters, arguments) &&
        have_sizes(function.results, results))
      fitting.push_back(&function);
  if (fitting.empty())
    refuse_instruction(call,
                       "a call through a register, and no function of this module whose "
                       "address is taken has such parameters and results");
  return fitting;
}

std::vector<const Function*> CallTargets::of(const Function& caller, const Instruction& call) {
  const Operand& callee = call.operands[function_operand];
  if (callee.kind == Operand::Kind::reg) return fitting(caller, call);
  const Function* const function = program_.find_function(callee.text);
  if (function == nullptr || !function->has_body) return {};
  return {function};
}

// --- the graph -----------------------------------------------------------------------------------

bool CallGraph::may_return_to(const Function& caller, const Function& callee) const {
  const auto from = cycle_of.find(&caller);
  const auto to = cycle_of.find(&callee);
  return from != cycle_of.end() && to != cycle_of.end() && from->second == to->second;
}

CallGraph call_graph(const Program& program, const Function& entry, CallTargets& targets) {
  CallWalk walk(program, targets);
  walk.visit(entry);
  return std::move(walk).found();
}

}  // namespace gemmery::emulator
