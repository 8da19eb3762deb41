// SPDX-License-Identifier: Apache-2.0
// Whether elements of views share memory.
#pragma once

#include <gemmery/tensor.hpp>

namespace gemmery::operation {

// Whether two elements of the view with different indices stand on the same address. Exact for rank
// 3 and below; where the search would be too long it answers yes.
bool has_self_overlap(const Tensor& view) noexcept;

// Whether an element of one may share a byte with an element of the other. Never answers no
// wrongly; answers yes for some interleaved views that it cannot prove disjoint.
bool may_overlap(const Tensor& first, const Tensor& second) noexcept;

// Whether both are the same elements in the same order.
bool is_same_view(const Tensor& first, const Tensor& second) noexcept;

}  // namespace gemmery::operation
