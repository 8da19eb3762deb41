// SPDX-License-Identifier: Apache-2.0
// The formulas of ops.def compiled for the host: a function per operation, and a loop per operation
// over arrays of values. Truth values are 0 and 1 of the compute type.
#pragma once

#include <gemmery/epilogue.hpp>

#include "epilogue/math.hpp"

namespace gemmery::epilogue {

template <Op op, class T>
struct Formula;

#define GEMMERY_OP(name, arity_of_row, kind, formula, ...)                             \
  template <class T>                                                                   \
  struct Formula<Op::name, T> {                                                        \
    static constexpr int arity = arity_of_row;                                         \
    static T apply([[maybe_unused]] T x, [[maybe_unused]] T y, [[maybe_unused]] T z) { \
      return static_cast<T>(formula);                                                  \
    }                                                                                  \
  };
#include <gemmery/ops.def>

// The formula of an operation that is known only at run time. Parameters beyond its arity are
// ignored.
template <class T>
using Function = T (*)(T x, T y, T z);

template <class T>
Function<T> formula_of(Op op) noexcept {
  static constexpr Function<T> table[] = {
#define GEMMERY_OP(name, ...) &Formula<Op::name, T>::apply,
#include <gemmery/ops.def>
  };
  return table[static_cast<std::size_t>(op)];
}

// out[i] = formula(x[i], y[i], z[i]) for i < count. Arrays beyond the arity are not read.
template <class T>
using Loop = void (*)(const T* x, const T* y, const T* z, T* out, int count);

template <Op op, class T>
void run_formula(const T* x, [[maybe_unused]] const T* y, [[maybe_unused]] const T* z, T* out,
                 int count) {
  using Row = Formula<op, T>;
  for (int i = 0; i < count; ++i) {
    if constexpr (Row::arity == 1) out[i] = Row::apply(x[i], T{}, T{});
    if constexpr (Row::arity == 2) out[i] = Row::apply(x[i], y[i], T{});
    if constexpr (Row::arity == 3) out[i] = Row::apply(x[i], y[i], z[i]);
  }
}

template <class T>
Loop<T> loop_of(Op op) noexcept {
  static constexpr Loop<T> table[] = {
#define GEMMERY_OP(name, ...) &run_formula<Op::name, T>,
#include <gemmery/ops.def>
  };
  return table[static_cast<std::size_t>(op)];
}

}  // namespace gemmery::epilogue
