// SPDX-License-Identifier: Apache-2.0
// Tests whether elements of views share memory.
#pragma once

#include <gemmery/tensor.hpp>

namespace gemmery::operation {

// For a batch by pointers these functions test the array of pointers: the caller promises that its
// matrices do not overlap other memory.

// True if two elements of the view with different indices have the same address. Exact up to rank
// 3; true if the search would take too long.
bool has_self_overlap(const Tensor& view) noexcept;

// True if an element of one may share a byte with an element of the other. Never wrongly false;
// true for some interleaved views that it cannot prove disjoint.
bool may_overlap(const Tensor& first, const Tensor& second) noexcept;

// True if both have the same elements in the same order.
bool is_same_view(const Tensor& first, const Tensor& second) noexcept;

}  // namespace gemmery::operation
