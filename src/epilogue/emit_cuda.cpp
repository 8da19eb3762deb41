// SPDX-License-Identifier: Apache-2.0
// Emits one line of CUDA C++ per operation; operands are named by number only.
#include "epilogue/emit_cuda.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "core/invariant.hpp"
#include "epilogue/addend.hpp"
#include "epilogue/blocks.hpp"
#include "epilogue/cost.hpp"
#include "epilogue/graph.hpp"
#include "epilogue/rewrite.hpp"
#include "epilogue/zeros.hpp"

namespace gemmery::epilogue {
namespace {

using Rules = std::vector<EpilogueOperandRule>;

constexpr std::string_view reduction_names[] = {"none", "sum", "max", "min", "amax"};

template <class... Values>
void append(std::string& text, fmt::format_string<Values...> format, Values&&... values) {
  fmt::format_to(std::back_inserter(text), format, std::forward<Values>(values)...);
}

// Operands by kind: input tensors, output tensors, numbers.
enum class Slot { input, output, number };

Slot slot_of(const EpilogueOperandRule& rule) {
  return rule.is_output ? Slot::output : rule.is_number ? Slot::number : Slot::input;
}

std::size_t count(const Rules& rules, Slot slot) {
  std::size_t count = 0;
  for (const EpilogueOperandRule& rule : rules) count += slot_of(rule) == slot ? 1 : 0;
  return count;
}

// The program's inputs as in[0], number[0] …, in order. The operands of interned rules are in the
// order of their program.
std::vector<std::string> input_texts(const Rules& rules, std::string_view input,
                                     std::string_view number) {
  std::vector<std::string> texts;
  std::size_t inputs = 0;
  std::size_t numbers = 0;
  for (const EpilogueOperandRule& rule : rules)
    if (slot_of(rule) == Slot::number)
      texts.push_back(fmt::format(fmt::runtime(number), numbers++));
    else if (slot_of(rule) == Slot::input)
      texts.push_back(fmt::format(fmt::runtime(input), inputs++));
  return texts;
}

// The text of the program with generated names.
std::string anonymous_text(Graph graph, const Rules& rules) {
  graph.inputs = input_texts(rules, "in{}", "n{}");
  for (std::size_t at = 1; at < graph.outputs.size(); ++at)
    graph.outputs[at].name = fmt::format("out{}", at);
  return print(graph);
}

int vector_bytes(const EpilogueOperandRule& rule, bool is_turned) {
  const Adjacent along_row = is_turned ? Adjacent::along_m : Adjacent::along_n;
  return rule.adjacent == along_row ? rule.alignment : 0;
}

Reduction reduction_of(const Graph& graph, std::string_view name) {
  for (const Output& output : graph.outputs)
    if (output.name == name) return output.reduction;
  return Reduction::none;
}

// The fields of a result for blocks; nothing for others.
std::string block_fields(const EpilogueOperandRule& rule, bool is_turned) {
  if (rule.block == one_element) return {};
  return fmt::format(", {}, {}, {}", is_turned ? rule.block.columns : rule.block.rows,
                     is_turned ? rule.block.rows : rule.block.columns,
                     rule.layout != ScaleLayout::strided);
}

void append_tensor(std::string& text, const Graph& graph, const EpilogueOperandRule& rule,
                   bool is_turned) {
  const Reduction reduction = rule.is_output ? reduction_of(graph, rule.name) : Reduction::none;
  append(text,
         "      {{gemmery::abi::DType::{}, {}, {}, {}, {}, gemmery::abi::Reduction::{}{}}},\n",
         name(rule.dtype), rule.varies_l, is_turned ? rule.varies_n : rule.varies_m,
         is_turned ? rule.varies_m : rule.varies_n, vector_bytes(rule, is_turned),
         reduction_names[static_cast<std::size_t>(reduction)], block_fields(rule, is_turned));
}

void append_tensors(std::string& text, const EpilogueRules& rules, Slot slot, bool is_turned) {
  append(text, "  static constexpr gemmery::abi::EpilogueTensor {}[] = {{\n",
         slot == Slot::input ? "input" : "output");
  if (count(rules.operands, slot) == 0) text += "      {},\n";
  for (const EpilogueOperandRule& rule : rules.operands)
    if (slot_of(rule) == slot) append_tensor(text, rules.program.graph(), rule, is_turned);
  text += "  };\n";
}

// Exact in double; the kernel rounds it to its compute type. Written as bits if it exceeds the
// range of float, of which a compiler warns.
std::string constant_text(double value) {
  const double size =
      std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : std::fabs(value);
  const bool is_float_normal =
      size >= std::numeric_limits<float>::min() && size <= std::numeric_limits<float>::max();
  if (value == 0 || is_float_normal) return fmt::format("T({:a})", value);
  return fmt::format("{}T(__longlong_as_double({:#x}LL))", value < 0 ? "-" : "",
                     std::bit_cast<std::uint64_t>(size));
}

std::string cast_text(const CastRule& rule) {
  return fmt::format(
      "gemmery::device::op::cast<gemmery::abi::DType::{}, gemmery::abi::Rounding::{}, "
      "gemmery::abi::Overflow::{}>",
      name(rule.dtype), rule.rounding == Rounding::nearest_even ? "nearest_even" : "toward_zero",
      rule.overflow == Overflow::natural ? "natural" : "saturate");
}

// Lines of the body, and the text of each node: v3, in[0], accum, a constant.
class Body {
 public:
  Body(const Graph& graph, std::vector<std::string> inputs, bool is_brief) : is_brief_(is_brief) {
    for (std::size_t id = 0; id < graph.nodes.size(); ++id)
      texts_.push_back(node(graph, static_cast<NodeId>(id), inputs));
    for (std::size_t at = 0; at < graph.outputs.size(); ++at)
      append(text_, "    out[{}] = {};\n", at, texts_[graph.outputs[at].value]);
  }

  const std::string& text() const { return text_; }

 private:
  std::string node(const Graph& graph, NodeId id, const std::vector<std::string>& inputs) {
    const Node& node = graph.nodes[id];
    switch (node.kind) {
      case NodeKind::accumulator:
        return "accum";
      case NodeKind::input:
        return inputs[node.input];
      case NodeKind::constant:
        return constant_text(node.constant);
      case NodeKind::cast:
        return line("T", cast_text(node.cast), node);
      case NodeKind::reduction:
        abort_on_bug("reductions of blocks are inputs of stages");
      case NodeKind::operation:
        break;
    }
    const OpRow& row = row_of(node.op);
    return line(
        is_truth(graph, id) ? "bool" : "T",
        fmt::format("gemmery::device::op::{}{}", is_brief_ && row.brief ? "brief::" : "", row.name),
        node);
  }

  std::string line(std::string_view type, std::string_view function, const Node& node) {
    std::string name = fmt::format("v{}", lines_++);
    append(text_, "    const {} {} = {}({}", type, name, function, texts_[node.operands[0]]);
    for (const NodeId x : {node.operands[1], node.operands[2]})
      if (x != no_node) append(text_, ", {}", texts_[x]);
    text_ += ");\n";
    return name;
  }

  bool is_brief_;
  std::vector<std::string> texts_;
  std::string text_;
  int lines_ = 0;
};

constexpr std::string_view operand_parameters =
    "      [[maybe_unused]] T accum, [[maybe_unused]] const T (&in)[inputs > 0 ? inputs : 1],\n"
    "      [[maybe_unused]] const T (&number)[numbers > 0 ? numbers : 1], ";

// The reductions of blocks, and the function that gives their operands.
void append_blocks(std::string& text, const Stages& stages, bool is_turned,
                   const std::vector<std::string>& inputs, bool is_brief) {
  require(stages.stages.size() == 2, "reductions of blocks within each other are not emitted");
  append(text, "\n  static constexpr int blocks = {};\n", stages.reductions.size());
  text += "  static constexpr gemmery::abi::EpilogueBlock block[] = {\n";
  for (const auto& [kind, block] : stages.reductions)
    append(text, "      {{gemmery::abi::Reduction::{}, {}, {}}},\n",
           reduction_names[static_cast<std::size_t>(kind)], is_turned ? block.columns : block.rows,
           is_turned ? block.rows : block.columns);
  text += "  };\n  template <class T>\n  __device__ __forceinline__ static void reduce(\n";
  text += operand_parameters;
  text += "T (&out)[blocks]) {\n";
  text += Body(stages.stages.front().graph, inputs, is_brief).text();
  text += "  }\n";
}

}  // namespace

std::string emit_struct(EpilogueId epilogue, bool is_turned, bool is_brief,
                        std::string_view name) {
  require(epilogue != default_epilogue, "the default epilogue is not emitted");
  const EpilogueRules& rules = rules_of(epilogue);
  const Graph& graph = rules.program.graph();
  std::string text =
      fmt::format("// {}\nstruct {} {{\n", anonymous_text(graph, rules.operands), name);
  append(text, "  static constexpr int inputs = {};\n", count(rules.operands, Slot::input));
  append(text, "  static constexpr int outputs = {};\n", count(rules.operands, Slot::output));
  append(text, "  static constexpr int numbers = {};\n", count(rules.operands, Slot::number));
  append(text, "  static constexpr int slow_results = {};\n", count_slow_results(graph));
  append(text, "  static constexpr int addend = {};\n", find_addend(epilogue));
  append(text, "  static constexpr bool reduces_zeros_to_nothing = {};\n",
         reduces_zeros_to_nothing(epilogue));
  append_tensors(text, rules, Slot::input, is_turned);
  append_tensors(text, rules, Slot::output, is_turned);
  const Stages stages = make_stages(graph);
  std::vector<std::string> inputs = input_texts(rules.operands, "in[{}]", "number[{}]");
  for (std::size_t at = 0; at < stages.reductions.size(); ++at)
    inputs.push_back(fmt::format("of_block[{}]", at));
  const bool has_blocks = !stages.reductions.empty();
  if (has_blocks) append_blocks(text, stages, is_turned, inputs, is_brief);
  text += "\n  template <class T>\n  __device__ __forceinline__ static void apply(\n";
  text += operand_parameters;
  if (has_blocks) text += "const T (&of_block)[blocks], ";
  text += "T (&out)[outputs + 1]) {\n";
  text += Body(stages.stages.back().graph, inputs, is_brief).text();
  text += "  }\n};\n";
  return text;
}

}  // namespace gemmery::epilogue
