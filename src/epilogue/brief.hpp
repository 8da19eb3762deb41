// SPDX-License-Identifier: Apache-2.0
// Decides where kernels use brief formulas (ops.def): where rounding hides the difference.
#pragma once

#include <gemmery/dtype.hpp>
#include <gemmery/epilogue.hpp>

namespace gemmery::epilogue {

// True if D, stored as `d`, and all other results stored element by element have at most 8
// significant bits. Programs that compute in double never use brief formulas.
bool takes_brief_formulas(EpilogueId epilogue, DType d, DType compute);

}  // namespace gemmery::epilogue
