// SPDX-License-Identifier: Apache-2.0
// A and B of a convolution as windows, which address an element by pixel and tap.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <gemmery/convolution.hpp>

#include "operation/window.hpp"

namespace gemmery::operation {

// Rows of a product as rows of out's matrix.
class RowMap {
 public:
  RowMap() = default;  // the identity
  // Every step-th pixel of images from `first` on, `counts` of them along a dimension.
  RowMap(const std::array<std::int64_t, 3>& counts, const std::array<std::int64_t, 3>& first,
         const Spatial& step, const Spatial& image) noexcept
      : is_identity_(false), counts_(counts), first_(first), step_(step), image_(image) {}

  bool is_identity() const noexcept { return is_identity_; }
  // The first pixel along depth, height, width.
  const std::array<std::int64_t, 3>& first() const noexcept { return first_; }
  std::int64_t operator[](std::int64_t row) const noexcept;

 private:
  bool is_identity_ = true;
  std::array<std::int64_t, 3> counts_{};
  std::array<std::int64_t, 3> first_{};
  Spatial step_{};
  Spatial image_{};
};

// A product whose rows are some of out's, for one matrix of a batch. Rows of out in no part are 0.
struct WindowPart {
  Window a, b;
  RowMap rows;
};

// One part, or for dgrad one for each phase of the stride that a tap reaches. All pixels of a phase
// use the same taps, so no zeros between pixels of dy are multiplied.
std::vector<WindowPart> windows_of(const Convolution& convolution);

}  // namespace gemmery::operation
