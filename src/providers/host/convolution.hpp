// SPDX-License-Identifier: Apache-2.0
// The product of a convolution as products of panels that are gathered on their way: nothing is
// copied ahead.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <gemmery/arguments.hpp>

#include "providers/host/pack.hpp"
#include "providers/host/panel_sources.hpp"

namespace gemmery::host {

// Rows of a product as rows of out's matrix.
class RowMap {
 public:
  RowMap() = default;  // the same rows
  // Every step-th pixel of images from `first` on, `counts` of them along a dimension.
  RowMap(const std::array<std::int64_t, 3>& counts, const std::array<std::int64_t, 3>& first,
         const Spatial& step, const Spatial& image) noexcept
      : is_identity_(false), counts_(counts), first_(first), step_(step), image_(image) {}

  bool is_identity() const noexcept { return is_identity_; }
  std::int64_t operator[](std::int64_t row) const noexcept;

 private:
  bool is_identity_ = true;
  std::array<std::int64_t, 3> counts_{};
  std::array<std::int64_t, 3> first_{};
  Spatial step_{};
  Spatial image_{};
};

// A product whose rows are some of out's. The rows of out that no part has are 0.
struct ProductPart {
  PanelPair panels;
  RowMap rows;
};

// One part; for dgrad one for each phase of the stride that a tap reaches: within a phase every
// pixel meets the same taps, so that no product of a zero between pixels of dy is formed.
std::vector<ProductPart> product_parts(const GemmArguments& arguments, std::int64_t batch);

// True if products of zeros in padding may be NaN: the other operand of a convolution with padding
// has an infinity or NaN. A kernel may form them or leave them out.
bool may_multiply_padding(const GemmArguments& arguments, std::int64_t batch);

// An element of the product by its definition: terms in padding are absent.
struct DefinedSum {
  double high = 0, low = 0;
  double magnitude = 0;     // sum of |a|·|b|
  bool may_be_nan = false;  // if products of zeros in padding are formed
};
DefinedSum defined_sum(const PanelPair& panels, std::int64_t row, std::int64_t column,
                       PackedValue magnitudes);

}  // namespace gemmery::host
