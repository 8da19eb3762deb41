// SPDX-License-Identifier: Apache-2.0
// Matmul primitives of oneDNN.
#pragma once

#include <optional>
#include <string>

#include "providers/host/onednn_convolution.hpp"
#include "providers/host/onednn_primitive.hpp"

namespace gemmery::host::onednn {

// Usable from many threads at a time, since memory and scratchpad belong to the call. Products of
// many rows and transposed weights run as convolutions with one tap, which reorder the weights
// first.
class Matmul {
 public:
  Matmul(const Library& library, const MatmulShape& shape);

  void execute(const void* source, const void* weights, void* destination) const;
  std::string implementation_name() const;

 private:
  DescribedPrimitive primitive_;
  std::optional<ConvolutionPrimitive> convolution_;
};

// The convolution that a product may run as; nothing if it would take longer, or has other strides.
std::optional<ConvolutionShape> as_convolution(const MatmulShape& shape);

}  // namespace gemmery::host::onednn
