// SPDX-License-Identifier: Apache-2.0
// Operations that are expressions of others: those that the library knows under other names, and
// those of define_op.
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
  Expression body;  // of operands named x, y, z
};

// What a name of a function stands for: a row of ops.def, or a definition.
struct Callable {
  int arity = 1;
  std::variant<Op, Definition> meaning;
};

// Nothing for a name that is no function. Any thread.
std::optional<Callable> find_callable(std::string_view name);

// The operation on as many operands as its arity.
Expression call(const Callable& callable, std::span<const Expression> operands);

}  // namespace gemmery::epilogue
