// SPDX-License-Identifier: Apache-2.0
// The product of a convolution as products of panels, which are gathered while they are packed.
// Nothing is copied in advance.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <gemmery/arguments.hpp>

#include "core/index_iterator.hpp"
#include "operation/conv_windows.hpp"
#include "providers/host/pack.hpp"
#include "providers/host/panel_sources.hpp"

namespace gemmery::host {

// A product whose rows are some of out's. Rows of out in no part are 0.
struct ProductPart {
  PanelPair panels;
  operation::RowMap rows;
};

// The parts of a convolution (operation::windows_of), or the whole product of any other problem.
// Each is made when it is asked for. The arguments must outlive them.
class ProductParts {
 public:
  ProductParts(const GemmArguments& arguments, std::int64_t batch);

  std::size_t size() const noexcept { return windows_ ? windows_->size() : 1; }
  bool empty() const noexcept { return size() == 0; }
  ProductPart operator[](std::size_t index) const;
  IndexIterator<ProductParts> begin() const noexcept { return {*this, 0}; }
  IndexIterator<ProductParts> end() const noexcept { return {*this, size()}; }

 private:
  const GemmArguments* arguments_;
  std::int64_t batch_;
  std::optional<operation::WindowParts> windows_;  // of a convolution
};
inline ProductParts product_parts(const GemmArguments& arguments, std::int64_t batch) {
  return ProductParts(arguments, batch);
}

// True if products of zeros in padding may be NaN: the convolution has padding, and the other
// operand has an infinity or NaN. A kernel may compute these products or leave them out.
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
