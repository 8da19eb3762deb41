// SPDX-License-Identifier: Apache-2.0
// Overlap of strided views, by address ranges and by divisibility of strides.
#include "operation/overlap.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/arithmetic.hpp"

namespace gemmery::operation {
namespace {

// A dimension with an extent above 1.
struct StridedDimension {
  std::int64_t extent;
  std::int64_t stride;
};

struct StridedDimensions {
  std::array<StridedDimension, Tensor::max_rank> items{};
  std::size_t count = 0;
};

StridedDimensions moving_dimensions(const Tensor& view) {
  StridedDimensions dimensions;
  // The addresses in an array of pointers are not known here.
  for (int d = view.has_pointers() ? 1 : 0; d < view.rank(); ++d) {
    if (view.extent(d) > 1)
      dimensions.items[dimensions.count++] = {view.extent(d), magnitude(view.stride(d))};
  }
  // Insertion sort: there are few, and g++ 12 warns that std::sort's branch for long ranges
  // accesses elements outside the array.
  for (auto end = dimensions.items.begin();
       end != dimensions.items.begin() + static_cast<std::ptrdiff_t>(dimensions.count); ++end) {
    const auto at = std::upper_bound(
        dimensions.items.begin(), end, *end,
        [](const StridedDimension& x, const StridedDimension& y) { return x.stride < y.stride; });
    std::rotate(at, end, end + 1);
  }
  return dimensions;
}

// True if each dimension steps over everything that the smaller ones span: the common case;
// sufficient but not necessary.
bool is_nested(const StridedDimensions& dimensions) {
  std::int64_t span = 0;
  for (std::size_t d = 0; d < dimensions.count; ++d) {
    const auto& [extent, stride] = dimensions.items[d];
    if (stride <= span) return false;
    span += (extent - 1) * stride;
  }
  return true;
}

// True if i*x.stride + j*y.stride = target has a solution other than i = j = 0 with |i| < x.extent
// and |j| < y.extent; strides are positive. Tries the at most 2*x.extent - 1 candidates in steps of
// the solution lattice.
bool has_difference(const StridedDimension& x, const StridedDimension& y, std::int64_t target) {
  for (std::int64_t i = -(x.extent - 1); i < x.extent; ++i) {
    const std::int64_t rest = target - i * x.stride;
    if (rest % y.stride != 0) continue;
    const std::int64_t j = rest / y.stride;
    if (magnitude(j) < y.extent && !(target == 0 && i == 0 && j == 0)) return true;
  }
  return false;
}

constexpr std::int64_t longest_search = 1 << 22;

bool has_collision(const StridedDimensions& dimensions) {
  const auto& [x, y, z, u, v] = dimensions.items;
  if (std::any_of(dimensions.items.begin(),
                  dimensions.items.begin() + static_cast<std::ptrdiff_t>(dimensions.count),
                  [](const StridedDimension& d) { return d.stride == 0; })) {
    return true;
  }
  if (dimensions.count == 2) {
    const std::int64_t common = std::gcd(x.stride, y.stride);
    return y.stride / common < x.extent && x.stride / common < y.extent;
  }
  if (dimensions.count != 3 || x.extent > longest_search / z.extent) return true;
  for (std::int64_t k = 0; k < z.extent; ++k) {
    if (has_difference(x, y, -k * z.stride)) return true;
  }
  return false;
}

std::int64_t common_step_bytes(const Tensor& view, std::int64_t step) {
  for (int d = 0; d < view.rank(); ++d) {
    if (view.extent(d) > 1)
      step = std::gcd(step, storage_bytes(view.dtype(), magnitude(view.stride(d))));
  }
  return step;
}

}  // namespace

bool has_self_overlap(const Tensor& view) noexcept {
  if (view.element_count() <= 1) return false;
  const StridedDimensions dimensions = moving_dimensions(view);
  return !is_nested(dimensions) && has_collision(dimensions);
}

bool may_overlap(const Tensor& first, const Tensor& second) noexcept {
  const ByteRange x = byte_range(first);
  const ByteRange y = byte_range(second);
  if (x.is_empty() || y.is_empty() || x.last <= y.first || y.last <= x.first) return false;
  if (first.has_pointers() || second.has_pointers()) return true;
  // Every address of either view is its start plus a multiple of `step`: views whose starts differ
  // enough modulo it never meet.
  const std::int64_t step = common_step_bytes(second, common_step_bytes(first, 0));
  if (step == 0) return true;
  const auto first_start = reinterpret_cast<std::intptr_t>(first.data());
  const auto second_start = reinterpret_cast<std::intptr_t>(second.data());
  const std::int64_t forward = ((second_start - first_start) % step + step) % step;
  const std::int64_t backward = (step - forward) % step;
  return forward < static_cast<std::int64_t>(byte_width(first.dtype())) ||
         backward < static_cast<std::int64_t>(byte_width(second.dtype()));
}

bool is_same_view(const Tensor& first, const Tensor& second) noexcept {
  if (first.data() != second.data() || first.rank() != second.rank() ||
      first.dtype() != second.dtype() || first.has_pointers() != second.has_pointers())
    return false;
  for (int d = 0; d < first.rank(); ++d) {
    if (first.extent(d) != second.extent(d)) return false;
    if (first.extent(d) > 1 && first.stride(d) != second.stride(d)) return false;
  }
  return true;
}

}  // namespace gemmery::operation
