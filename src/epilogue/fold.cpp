// SPDX-License-Identifier: Apache-2.0
// The formulas of ops.def in double.
#include "epilogue/fold.hpp"

#include "core/invariant.hpp"
#include "epilogue/math.hpp"

namespace gemmery::epilogue {
namespace {

using T = double;  // the type that formulas speak of

// A formula of every kind as a number, truth values as 0 and 1; what a formula does not read is 0.
#define GEMMERY_OP(name, arity, kind, formula, ...)                                         \
  [[maybe_unused]] double fold_##name([[maybe_unused]] double x, [[maybe_unused]] double y, \
                                      [[maybe_unused]] double z) {                          \
    return static_cast<double>(formula);                                                    \
  }
#include <gemmery/ops.def>

using Function = double (*)(double, double, double);
constexpr Function functions[] = {
#define GEMMERY_OP(name, ...) &fold_##name,
#include <gemmery/ops.def>
};

}  // namespace

double fold(Op op, const std::array<double, 3>& values) {
  require(row_of(op).kind == OpKind::real, "a truth value is no constant");
  return functions[static_cast<std::size_t>(op)](values[0], values[1], values[2]);
}

bool fold_comparison(Op op, double x, double y) {
  require(row_of(op).kind == OpKind::compare, "not a comparison");
  return functions[static_cast<std::size_t>(op)](x, y, 0) != 0;
}

}  // namespace gemmery::epilogue
