// SPDX-License-Identifier: Apache-2.0
// Reductions of blocks within a program: which elements share a value, and the program as a
// sequence of programs without them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "epilogue/graph.hpp"

namespace gemmery::epilogue {

bool has_block_reductions(const Graph& graph) noexcept;

// "1x32", "1xall"
std::string block_text(Block block);

// The number of blocks along an extent, and the block of an index.
constexpr std::int64_t count_blocks(std::int64_t extent, std::int32_t block) noexcept {
  return block == 0 ? (extent > 0 ? 1 : 0) : (extent + block - 1) / block;
}
constexpr std::int64_t block_of(std::int64_t index, std::int32_t block) noexcept {
  return block == 0 ? 0 : index / block;
}
// True if a block begins at the index.
constexpr bool begins_block(std::int64_t index, std::int32_t block) noexcept {
  return block == 0 ? index == 0 : index % block == 0;
}

// The elements that share a value of an input.
constexpr Block block_of_input(const EpilogueOperandRule& rule) noexcept {
  return {rule.varies_m ? 1 : 0, rule.varies_n ? 1 : 0};
}

// The blocks of a result, in whose elements its value is the same: one element for a program's
// ordinary results. `of_inputs`: the same of the graph's inputs.
Block block_of_output(const Graph& graph, const Output& output, std::span<const Block> of_inputs);

// A part of a program. Its inputs are the program's, then a value of blocks for each of the
// program's reductions; it reads those of earlier stages only.
struct Stage {
  Graph graph;
  // The reductions of its outputs, as indices of Stages::reductions. In the last stage there are
  // none, and the outputs are the program's.
  std::vector<std::size_t> reductions;
};

struct Stages {
  std::vector<BlockReduction> reductions;  // in the graph's order
  std::vector<Stage> stages;
};

Stages make_stages(const Graph& graph);

}  // namespace gemmery::epilogue
