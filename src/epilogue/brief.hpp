// SPDX-License-Identifier: Apache-2.0
// Where kernels take brief formulas (ops.def): the results show no difference that rounding hides.
#pragma once

#include <gemmery/dtype.hpp>
#include <gemmery/epilogue.hpp>

namespace gemmery::epilogue {

// Whether D, which is stored as `d`, and all other results that are stored element by element have
// at most 8 significant bits. What is computed in double never takes them.
bool takes_brief_formulas(EpilogueId epilogue, DType d, DType compute);

}  // namespace gemmery::epilogue
