// SPDX-License-Identifier: Apache-2.0
#include "api/matrix_starts.hpp"

#include <algorithm>

namespace gemmery::api {

MatrixStarts::MatrixStarts(const MatrixType& type, const Extents3& extents)
    : is_pointed_(type.has_pointers()),
      stride_(is_pointed_ ? 0 : type.batch_stride),
      dtype_(type.dtype) {
  if (extents.is_empty()) return;
  above_ = 0;
  const auto add = [&](std::int64_t extent, std::int64_t stride) {
    const std::int64_t step = (extent - 1) * stride;
    (step < 0 ? below_ : above_) += step < 0 ? -step : step;
  };
  add(extents.rows, type.row_stride);
  add(extents.columns, type.column_stride);
  if (is_pointed_)
    place_apart(type, extents.batch);
  else
    add(extents.batch, stride_);
}

// The last matrix first; gaps differ, so that no batch stride fits.
void MatrixStarts::place_apart(const MatrixType& type, std::int64_t count) {
  const std::int64_t unit = std::max<std::int64_t>(
      type.alignment * whole_elements(dtype_) / static_cast<std::int64_t>(byte_width(dtype_)), 1);
  const std::int64_t span = (below_ + above_ + 1 + unit - 1) / unit * unit;
  pointed_.resize(static_cast<std::size_t>(count));
  std::int64_t next = 0;
  for (std::int64_t index = count; index-- > 0; next += span + unit * (8 + index % 3))
    pointed_[static_cast<std::size_t>(index)] = next;
  above_ += pointed_.front();
}

std::vector<const void*> MatrixStarts::pointers(const void* origin) const {
  std::vector<const void*> addresses;
  addresses.reserve(pointed_.size());
  for (const std::int64_t start : pointed_)
    addresses.push_back(static_cast<const std::byte*>(origin) + storage_bytes(dtype_, start));
  return addresses;
}

}  // namespace gemmery::api
