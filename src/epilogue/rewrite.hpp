// SPDX-License-Identifier: Apache-2.0
// Rules that make a program simpler without changing a bit of what it computes, for NaN,
// infinities and zeros of both signs alike; and the graph of results that were written somehow.
#pragma once

#include <optional>
#include <span>

#include "epilogue/graph.hpp"
#include "epilogue/nodes.hpp"

namespace gemmery::epilogue {

// The node that stands for the operation by one of the rules; nothing where none applies.
std::optional<NodeId> rewrite(Nodes& nodes, const Operation& operation);

// max(abs(x)) is amax(x), in which signs do not count; of nothing it is 0, then, not -infinity.
void rewrite_reduction(const Nodes& nodes, Output& output);

// Throws Error (invalid_argument): no result D, a name twice or not a name, D reduced, a name read
// that is also assigned; (unsupported): too many nodes or names.
Graph make_graph(std::span<const Result> results);

// The program as text that reads back as an equal graph.
std::string print(const Graph& graph);

}  // namespace gemmery::epilogue
