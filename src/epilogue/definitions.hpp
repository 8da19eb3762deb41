// SPDX-License-Identifier: Apache-2.0
// Operations that are expressions of others: those that the library knows under other names, and
// those of define_op.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gemmery/epilogue.hpp>

namespace gemmery::epilogue {

struct Definition {
  int arity = 1;
  Expression body;  // of operands named x, y, z
};

// Nothing for a name that is not defined. Any thread.
std::optional<Definition> find_definition(std::string_view name);
std::vector<std::string> defined_names();

// The body with expressions in the place of x, y and z; as many as the arity.
Expression instantiate(const Definition& definition, std::span<const Expression> operands);

}  // namespace gemmery::epilogue
