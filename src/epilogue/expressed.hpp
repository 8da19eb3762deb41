// SPDX-License-Identifier: Apache-2.0
// The target of an Expression: one operation on others, shared, as it was written.
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
  BlockReduction reduction = {};
  bool is_truth = false;
  int depth = 1;  // of nested operations
};

// True if a tensor, a number or a result may have this name: a letter, then letters, digits and
// '_', and not a reserved word.
bool is_operand_name(std::string_view name) noexcept;
// The name under which a function's returned accum is stored.
inline constexpr std::string_view result_of_accum = "accum_out";
// The grammar's reserved words.
bool is_reserved(std::string_view name) noexcept;

}  // namespace gemmery::epilogue
