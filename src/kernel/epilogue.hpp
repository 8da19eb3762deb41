// SPDX-License-Identifier: Apache-2.0
// Epilogues as part of kernels: which epilogue serves which problem, the reason if it does not, and
// its place in names.
#pragma once

#include <gemmery/epilogue.hpp>
#include <gemmery/status.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "epilogue/graph.hpp"

namespace gemmery::kernel {

// True if a kernel made for one epilogue runs a problem with another: the same program on operands
// with the same layouts, at addresses with the same or larger alignment.
bool serves_epilogue(EpilogueId kernel, EpilogueId problem) noexcept;

// The same, with the difference in words.
Status check_epilogue(EpilogueId kernel, EpilogueId problem);

// "epilogue: ..." about one node of a program's graph, counted as in Graph::nodes.
Status refuse_node(EpilogueId epilogue, std::size_t node, std::string_view why);

// A node in words; `accumulator` is the word for the accumulator.
std::string node_text(const epilogue::Graph& graph, const epilogue::Node& node,
                      std::string_view accumulator = "accum");

// The suffix of a kernel's name: "_e-0123456789ab"; empty for the default program.
std::string epilogue_suffix(EpilogueId epilogue);

// Removes such a suffix from a name. nullopt if it names an epilogue that this process does not
// know.
std::optional<EpilogueId> take_epilogue_suffix(std::string_view& name);

}  // namespace gemmery::kernel
