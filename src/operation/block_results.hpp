// SPDX-License-Identifier: Apache-2.0
// Results of an epilogue that have one value for each block of out.
#pragma once

#include <gemmery/epilogue.hpp>
#include <gemmery/problem.hpp>

#include <string_view>
#include <vector>

#include "operation/epilogue_operands.hpp"

namespace gemmery::operation {

// The block of a result; `matrices` begin with the program's inputs.
epilogue::Block block_of_result(const epilogue::Program& program,
                                const std::vector<EpilogueMatrix>& matrices,
                                std::string_view result);

// The extents of the result for blocks of out, (1, values) for each matrix if it is swizzled.
MatrixExtents block_extents(epilogue::Block block, ScaleLayout layout,
                            const MatrixExtents& out) noexcept;

// Throws Error (unsupported) for reductions of blocks of a convolution, and of blocks that reach
// over several groups.
void check_block_form(const epilogue::Program& program, const GemmProblem& problem);

// Throws Error (unsupported) for a swizzled result whose lines of no group would be cleared.
void check_cleared_blocks(const EpilogueOperandRule& rule, const Groups& groups);

}  // namespace gemmery::operation
