// SPDX-License-Identifier: Apache-2.0
// What an Expression points at: one operation on others, shared, as it was written.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "epilogue/graph.hpp"

namespace gemmery::epilogue {

struct Expressed {
  NodeKind kind = NodeKind::accumulator;
  Op op{};
  std::array<std::shared_ptr<const Expressed>, 3> operands = {};
  std::string name = {};  // input
  double constant = 0;
  CastRule cast = {};
  bool is_truth = false;
  int depth = 1;  // of operations within each other
};

// Whether a tensor, a number or a result may be called so: a letter, then letters, digits and '_',
// and no word of the grammar.
bool is_operand_name(std::string_view name) noexcept;
// Under which a function's returned accum is stored.
inline constexpr std::string_view result_of_accum = "accum_out";
// Words that the grammar keeps for itself.
bool is_reserved(std::string_view name) noexcept;

}  // namespace gemmery::epilogue
