// SPDX-License-Identifier: Apache-2.0
// oneDNN as one function: multiply two batches of plain matrices. Hides loading, versions, the
// primitive cache and forks.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <gemmery/status.hpp>

#include "providers/host/onednn_api.hpp"

namespace gemmery::host::onednn {

// One operand: (batch, rows, columns), row or column major. A batch extent of 1 is broadcast.
struct OperandShape {
  DataType type = DataType::undefined;
  std::array<std::int64_t, 3> extents{};
  std::array<std::int64_t, 3> strides{};

  friend bool operator==(const OperandShape&, const OperandShape&) = default;
};

struct MatmulShape {
  OperandShape source;       // L × M × K
  OperandShape weights;      // L × K × N
  OperandShape destination;  // L × M × N

  friend bool operator==(const MatmulShape&, const MatmulShape&) = default;
};

// A convolution: images and outputs packed with channels last, filters packed as (K, taps, C/g).
struct ConvolutionShape {
  enum class Kind : std::uint8_t { forward, backward_data, backward_weights };
  using Numbers = std::array<std::int64_t, 3>;

  Kind kind = Kind::forward;
  int dimensions = 2;                       // the last ones of each list
  DataType images{}, filters{}, outputs{};  // types; of gradients if the kind has them
  std::int64_t groups = 1;
  std::int64_t image_count = 0, channels = 0, filter_count = 0;
  Numbers image{}, filter{}, output{}, stride{}, dilation{}, lower{}, upper{};

  friend bool operator==(const ConvolutionShape&, const ConvolutionShape&) = default;
};

// The tensor that the kind computes is written, although its pointer may be const.
struct ConvolutionMemory {
  const void* images;
  const void* filters;
  const void* outputs;
};

// True if oneDNN can be used now. Not in a forked child of a process that used it (its threads do
// not exist there, and it would wait for them) and not in sanitizer builds (they report its
// OpenMP). GEMMERY_ONEDNN_LIBRARY, an absolute path, replaces the search.
gemmery::Status availability();

// "2.6.3 at /usr/lib/…/libdnnl.so.2"; empty if it is not available.
std::string version_text();

// True if this library multiplies these types on this CPU: tested once for each combination. int8
// counts only if its sums are exact (older instructions saturate pairs of products at 16 bits).
bool multiplies(DataType source, DataType weights, DataType destination);

// destination = source · weights. Throws Error: unavailable as `availability` says, unsupported
// with oneDNN's status if it refuses the shape. The primitive is kept for the next call.
void multiply(const MatmulShape& shape, const void* source, const void* weights, void* destination);

// oneDNN's name of the implementation that serves a shape ("brg:avx512_core"); throws as `multiply`
// does.
std::string implementation_name(const MatmulShape& shape);

// The same for a convolution. oneDNN's reference implementation, which is slower by orders of
// magnitude, is never used: if there is no other one, these throw Error (unsupported).
void convolve(const ConvolutionShape& shape, const ConvolutionMemory& memory);
std::string implementation_name(const ConvolutionShape& shape);

// True if a convolution of 8-bit integers has exact sums on this CPU: tested once.
bool convolves_exactly(DataType images);

}  // namespace gemmery::host::onednn
