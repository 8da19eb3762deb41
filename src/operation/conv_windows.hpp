// SPDX-License-Identifier: Apache-2.0
// A and B of a convolution as windows, which address an element by pixel and tap.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <gemmery/convolution.hpp>

#include "core/index_iterator.hpp"
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

// One phase of a dgrad along a dimension: pixels first + stride * m, m < count, use the taps tap +
// tap_step * j, j < taps, at origin + m - output_step * j of dy.
struct WindowPhase {
  std::int64_t first, count;
  std::int64_t tap, tap_step, taps;
  std::int64_t origin, output_step;
};

// The parts of a convolution: one, or for dgrad one for each phase of the stride that a tap
// reaches. All pixels of a phase use the same taps, so no zeros between pixels of dy are
// multiplied. There may be as many phases as pixels, so each part is made when it is asked for.
class WindowParts {
 public:
  explicit WindowParts(const Convolution& convolution);

  std::size_t size() const noexcept;
  bool empty() const noexcept { return size() == 0; }
  WindowPart operator[](std::size_t index) const;
  WindowPart front() const { return (*this)[0]; }
  IndexIterator<WindowParts> begin() const noexcept { return {*this, 0}; }
  IndexIterator<WindowParts> end() const noexcept { return {*this, size()}; }

 private:
  Convolution convolution_;
  std::array<std::vector<WindowPhase>, 3> phases_;  // of a dgrad
};

inline WindowParts windows_of(const Convolution& convolution) { return WindowParts(convolution); }

}  // namespace gemmery::operation
