// SPDX-License-Identifier: Apache-2.0
// Operations defined by expressions: the library's alternative names, and those of define_op.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <gemmery/epilogue.hpp>

namespace gemmery::epilogue {

struct Definition {
  int arity = 1;
  Expression body;  // its operands are x, y and z
};

// A function's name resolves to a row of ops.def, or to a definition.
struct Callable {
  int arity = 1;
  std::variant<Op, Definition> meaning;
};

// Nothing if the name is not a function. Thread-safe.
std::optional<Callable> find_callable(std::string_view name);

// The reduction of block_sum(x, rows, columns), block_max, block_min and block_amax.
std::optional<Reduction> find_block_reduction(std::string_view name) noexcept;

// Applies the operation to as many operands as its arity.
Expression call(const Callable& callable, std::span<const Expression> operands);

}  // namespace gemmery::epilogue
