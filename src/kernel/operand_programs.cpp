// SPDX-License-Identifier: Apache-2.0
// Interns and compares programs of operands.
#include "kernel/operand_programs.hpp"

#include <deque>
#include <mutex>
#include <shared_mutex>

#include "core/invariant.hpp"
#include "epilogue/graph.hpp"
#include "kernel/epilogue.hpp"
#include "operation/operand_programs.hpp"

namespace gemmery {
namespace {

// Pairs of programs; none of them comes first. Never destroyed.
class Table {
 public:
  OperandProgramsId add(const OperandPrograms& programs) {
    const std::unique_lock lock(mutex_);
    for (std::size_t at = 0; at < entries_.size(); ++at)
      if (entries_[at] == programs) return static_cast<OperandProgramsId>(at);
    entries_.push_back(programs);
    return static_cast<OperandProgramsId>(entries_.size() - 1);
  }
  OperandPrograms at(OperandProgramsId id) {
    const std::shared_lock lock(mutex_);
    const auto index = static_cast<std::size_t>(id);
    require(index < entries_.size(), "programs that were never interned");
    return entries_[index];
  }

 private:
  std::shared_mutex mutex_;
  std::deque<OperandPrograms> entries_{OperandPrograms{}};
};

Table& table() {
  static auto* const all = new Table;
  return *all;
}

}  // namespace

OperandProgramsId intern(const OperandPrograms& programs) {
  return programs == OperandPrograms{} ? OperandProgramsId::none : table().add(programs);
}

OperandPrograms programs_of(OperandProgramsId id) noexcept {
  return id == OperandProgramsId::none ? OperandPrograms{} : table().at(id);
}

namespace kernel {
namespace {

EpilogueId program_id(const GemmProblem& problem, bool is_a) noexcept {
  const auto& program = operation::program_of(problem, is_a);
  return program ? program->id : default_epilogue;
}

EpilogueId program_id(const OperandPrograms& programs, bool is_a) noexcept {
  return is_a ? programs.a : programs.b;
}

std::string quoted(EpilogueId program, bool is_a) {
  if (program == default_epilogue) return "none";
  const std::string text =
      operand_program_text(rules_of(program).program, operation::product_operand(is_a));
  return '"' + text.substr(0, 300) + '"';
}

std::string_view name_of(bool is_a) { return is_a ? "program_a" : "program_b"; }

// The first operation or cast of a program; its element, if it has none.
std::size_t first_operation(const epilogue::Graph& graph) {
  for (std::size_t at = 0; at < graph.nodes.size(); ++at)
    if (graph.nodes[at].kind == epilogue::NodeKind::operation ||
        graph.nodes[at].kind == epilogue::NodeKind::cast)
      return at;
  return graph.outputs.front().value;
}

}  // namespace

OperandProgramsId operand_programs(const GemmProblem& problem) {
  if (!operation::has_operand_programs(problem)) return OperandProgramsId::none;
  return intern(OperandPrograms{program_id(problem, true), program_id(problem, false)});
}

bool serves_programs(OperandProgramsId kernel, const GemmProblem& problem) noexcept {
  if (kernel == OperandProgramsId::none) return !operation::has_operand_programs(problem);
  const OperandPrograms own = programs_of(kernel);
  return serves_epilogue(own.a, program_id(problem, true)) &&
         serves_epilogue(own.b, program_id(problem, false));
}

Status check_programs(OperandProgramsId kernel, const GemmProblem& problem) {
  const OperandPrograms own = programs_of(kernel);
  for (const bool is_a : {true, false}) {
    const EpilogueId expected = program_id(own, is_a);
    const EpilogueId got = program_id(problem, is_a);
    if (serves_epilogue(expected, got)) continue;
    const bool is_same = expected != default_epilogue && got != default_epilogue &&
                         rules_of(expected).program == rules_of(got).program;
    return Status::fail(std::string(name_of(is_a)) + ": expected " + quoted(expected, is_a) +
                        ", got " +
                        (is_same ? "it with operands of other types or dims" : quoted(got, is_a)));
  }
  return Status::success();
}

std::string refuse_programs(const GemmProblem& problem) {
  const bool is_a = problem.a_companions.program.has_value();
  const EpilogueId program = program_id(problem, is_a);
  const epilogue::Graph& graph = rules_of(program).program.graph();
  const std::size_t node = first_operation(graph);
  return std::string(name_of(is_a)) +
         ": expected elements that are multiplied as they are stored or scaled, got " +
         quoted(program, is_a) + " (its node " + std::to_string(node) + ": " +
         node_text(graph, graph.nodes[node], is_a ? "a" : "b") + ")";
}

namespace {

constexpr std::size_t program_digest_length = 12;
constexpr std::size_t program_suffix_length = 3 + program_digest_length;

std::string suffix_of(std::string_view tag, EpilogueId program) {
  return program == default_epilogue ? std::string{} : std::string(tag) + digest(program);
}

// Removes "TAG0123456789ab"; nullopt for an unknown digest.
std::optional<EpilogueId> take_suffix(std::string_view& name, std::string_view tag) {
  if (name.size() < program_suffix_length ||
      !name.substr(name.size() - program_suffix_length).starts_with(tag))
    return default_epilogue;
  const EpilogueId found = find_epilogue(name.substr(name.size() - program_digest_length));
  if (found == default_epilogue) return std::nullopt;
  name.remove_suffix(program_suffix_length);
  return found;
}

}  // namespace

std::string programs_suffix(OperandProgramsId programs) {
  const OperandPrograms own = programs_of(programs);
  return suffix_of("_a-", own.a) + suffix_of("_b-", own.b);
}

std::optional<OperandProgramsId> take_programs_suffix(std::string_view& name) {
  const auto b = take_suffix(name, "_b-");
  if (!b) return std::nullopt;
  const auto a = take_suffix(name, "_a-");
  if (!a) return std::nullopt;
  return intern(OperandPrograms{*a, *b});
}

}  // namespace kernel
}  // namespace gemmery
