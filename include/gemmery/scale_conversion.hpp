// SPDX-License-Identifier: Apache-2.0
// Conversions between the layouts of scales.
#pragma once

#include <gemmery/export.hpp>
#include <gemmery/tensor.hpp>

namespace gemmery {

// Copies scales (rows, blocks of k), of any strides, to the swizzled layout, and back. `swizzled` is
// packed and has swizzled_scale_count(rows, blocks, {1, 1}) values; its padding becomes 0. Both are
// in CPU memory. Throws Error (invalid_argument, unsupported).
GEMMERY_API void swizzle_scales(const Tensor& scales, const Tensor& swizzled);
GEMMERY_API void unswizzle_scales(const Tensor& swizzled, const Tensor& scales);

}  // namespace gemmery
