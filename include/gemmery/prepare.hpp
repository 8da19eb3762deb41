// SPDX-License-Identifier: Apache-2.0
// Weights that are reordered once for the kernels that will use them.
#pragma once

#include <gemmery/export.hpp>
#include <gemmery/kernel.hpp>
#include <gemmery/scales.hpp>
#include <gemmery/tensor.hpp>

namespace gemmery {

// Copies the codes of a weight B (K, N), of any strides, to `memory` in the order of the fragments
// that tensor cores take (ElementOrder::fragments), and returns the operand with the same scales,
// zero point and table. Codes have 4 or 8 bits; K is a multiple of 32, N of 32 (4 bits) or 16
// (8 bits). `memory` has B's type and shape, strides (1, K), aligned to 16 bytes; the caller owns
// it. Both are in CPU memory: copy the bytes to a device afterwards. A stack of weights (G, K, N),
// of groups that divide M or of a batch, has each of its matrices in this order, with strides
// (K * N, 1, K).
//
// The result is an operand of its own kind: its arguments are another problem, whose kernels take
// prepared elements only, and all other kernels refuse it. There is one order for all shapes of
// tiles, so a weight is prepared once for few and for many rows of A. It depends on whether there
// is a table.
//
// Throws Error (invalid_argument, unsupported) naming what does not fit.
GEMMERY_API ScaledOperand prepare_operand(const ScaledOperand& B, const Tensor& memory);
// The same for this kernel: refused if it takes elements in the order of their strides, or other
// types.
GEMMERY_API ScaledOperand prepare_operand(const ScaledOperand& B, const Tensor& memory,
                                          const Kernel& kernel);

}  // namespace gemmery
