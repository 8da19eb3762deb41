// SPDX-License-Identifier: Apache-2.0
// Rules that simplify a program without changing a bit of its results, including NaN, infinities
// and zeros of both signs; and the construction of a graph from results.
#pragma once

#include <optional>
#include <span>

#include "epilogue/graph.hpp"
#include "epilogue/nodes.hpp"

namespace gemmery::epilogue {

// The node that replaces the operation by one of the rules; nothing if none applies.
std::optional<NodeId> rewrite(Nodes& nodes, const Operation& operation);

// max(abs(x)) is amax(x), which ignores signs; over no elements it is then 0, not -infinity.
void rewrite_reduction(const Nodes& nodes, NodeId& value, Reduction& reduction);

// Throws Error: invalid_argument for a missing D, a repeated or invalid name, a reduced D, or a
// name that is both read and assigned; unsupported for too many nodes or names.
Graph make_graph(std::span<const Result> results);

// The program as text that parses into an equal graph.
std::string print(const Graph& graph);

}  // namespace gemmery::epilogue
