// SPDX-License-Identifier: Apache-2.0
// A and B of a matrix of a batch, as the packing sees them.
#pragma once

#include <gemmery/arguments.hpp>

#include "providers/host/epilogue_writer.hpp"
#include "providers/host/pack.hpp"

namespace gemmery::host {

struct PanelPair {
  PanelSource a;
  PanelSource b;
};

// With alpha = 0 the depth is 0: A and B are not read.
inline PanelPair panel_sources(const GemmArguments& arguments, std::int64_t batch) {
  const GemmProblem& problem = arguments.problem();
  const MatrixView a = matrix_of(arguments.a(), batch);
  const MatrixView b = matrix_of(arguments.b(), batch);
  const std::int64_t depth = arguments.alpha() == 0 ? 0 : problem.k;
  PanelPair pair{.a = {a.dtype, a.data, problem.m, depth, a.row_stride, a.column_stride},
                 .b = {b.dtype, b.data, problem.n, depth, b.column_stride, b.row_stride}};
  if (!problem.a_companions.empty()) pair.a.companions = panel_companions(arguments, true, batch);
  if (!problem.b_companions.empty()) pair.b.companions = panel_companions(arguments, false, batch);
  return pair;
}

}  // namespace gemmery::host
