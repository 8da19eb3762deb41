// SPDX-License-Identifier: Apache-2.0
// Operations on constants, computed once, in double, when a program is read.
#pragma once

#include <array>

#include "epilogue/graph.hpp"

namespace gemmery::epilogue {

// An operation of kind `real` on as many values as its arity.
double fold(Op op, const std::array<double, 3>& values);
// One of kind `compare`.
bool fold_comparison(Op op, double x, double y);

}  // namespace gemmery::epilogue
