// SPDX-License-Identifier: Apache-2.0
// The fuzz target of the epilogue's text.
#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include <gemmery/epilogue.hpp>
#include <gemmery/error.hpp>

#include "core/invariant.hpp"
#include "epilogue/graph.hpp"
#include "epilogue/parse.hpp"
#include "tests/fuzz/targets.hpp"

namespace gemmery::fuzz {
namespace {

using epilogue::Graph;
using epilogue::no_node;
using epilogue::Program;

// Checks that operands precede their users, that indices are within their lists, and that D is
// first.
void require_sound(const Graph& graph) {
  for (std::size_t id = 0; id < graph.nodes.size(); ++id) {
    const epilogue::Node& node = graph.nodes[id];
    for (const epilogue::NodeId x : node.operands)
      require(x == no_node || x < id, "an operand that comes after its use");
    require(node.kind != epilogue::NodeKind::input || node.input < graph.inputs.size(),
            "an input without a name");
  }
  require(!graph.outputs.empty() && graph.outputs.front().name == "D", "no D in front");
  for (const epilogue::Output& output : graph.outputs)
    require(output.value < graph.nodes.size() && !is_truth(graph, output.value),
            "a result that is no number");
}

void require_round_trip(const Program& program) {
  const Program again{std::string_view(program.text())};
  require(again == program && again.text() == program.text(), "a program prints as another");
  require(again.graph().nodes == program.graph().nodes, "equal texts of unequal graphs");
}

void require_words(const Error& error) {
  require(error.operand() == "epilogue" && !error.expected().empty() && !error.got().empty(),
          "an Error without words");
}

}  // namespace

void fuzz_parse_epilogue(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  try {
    const Program program(text);
    require_sound(program.graph());
    require_round_trip(program);
  } catch (const Error& error) {
    require_words(error);
  }
  try {
    constexpr std::array<std::string_view, 3> operands{"x", "y", "z"};
    (void)epilogue::parse_expression(text, operands);
  } catch (const Error& error) {
    require_words(error);
  }
}

}  // namespace gemmery::fuzz
