// SPDX-License-Identifier: Apache-2.0
// Programs: a shared canonical graph.
#include <gemmery/epilogue.hpp>

#include <utility>

#include "epilogue/graph.hpp"
#include "epilogue/parse.hpp"
#include "epilogue/rewrite.hpp"

namespace gemmery::epilogue {
namespace {

std::shared_ptr<const Graph> share(std::span<const Result> results) {
  return std::make_shared<const Graph>(make_graph(results));
}

}  // namespace

Program::Program(std::string_view text) : graph_(share(parse_program(text))) {}

Program::Program(std::initializer_list<Result> results)
    : graph_(share({results.begin(), results.size()})) {}

Program::Program(const std::vector<Result>& results) : graph_(share(results)) {}

const std::string& Program::text() const noexcept { return graph_->text; }

const std::vector<std::string>& Program::inputs() const noexcept { return graph_->inputs; }

std::vector<std::string> Program::outputs() const {
  std::vector<std::string> names;
  names.reserve(graph_->outputs.size());
  for (const Output& output : graph_->outputs) names.push_back(output.name);
  return names;
}

bool operator==(const Program& a, const Program& b) noexcept {
  return a.graph_ == b.graph_ || a.graph_->text == b.graph_->text;
}

const Program& linear_combination() {
  // Never destroyed: interned programs live as long as the process.
  static const Program& program =
      *new Program{{"D", operand("alpha") * accum() + operand("beta") * operand("C")}};
  return program;
}

}  // namespace gemmery::epilogue
