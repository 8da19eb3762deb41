// SPDX-License-Identifier: Apache-2.0
// Packing: converts an operand of any dtype and strides to panels of floats or doubles, in the
// order in which a register tile reads them.
#pragma once

#include <cstdint>
#include <optional>

#include <gemmery/dtype.hpp>

#include "operation/window.hpp"
#include "providers/host/panel_companions.hpp"

namespace gemmery::host {

// One matrix as a tile sees it: lanes (rows of A, columns of B) and depth (k).
struct PanelSource {
  DType dtype;
  const void* data;  // the element of lane 0 and depth 0
  std::int64_t lanes;
  std::int64_t depth;
  std::int64_t lane_stride;  // in elements
  std::int64_t depth_stride;
  // For a convolution, instead of the strides; depth then begins at first_depth.
  std::optional<operation::Window> window = {};
  std::int64_t first_depth = 0;
  PanelCompanions companions = {};  // of a matrix that is no convolution's
};

// The value that is packed for an element. Magnitudes other than the plain one are at least the
// number below which an error no longer shrinks with the element, unless that is 0:
//   aligned_magnitude   the smallest normal number of its type. Tensor cores align products by the
//                       exponents of their factors, and take a subnormal factor's for that of the
//                       smallest normal number (tests/data/emulator/README.md).
//   f16_magnitude       2^-14, of an element that is rounded to float16 (Math::f16): 2^-11 of it is
//                       half a unit of subnormal numbers, 2^-25.
//   f16x3_magnitude     2^-3, of one that is split in two float16 (Math::f16x3): 2^-22 of it, which
//                       is a normal trailing part's error, is half a unit of a subnormal one. The
//                       errors of both factors and the product of the trailing parts, 2^-22 of the
//                       product each, make up three of the four in 2 * 2^-21.
// These two are infinite if rounding to float16 gives infinity.
//   split_magnitude     2^-102, of one that is split in bfloat16 or TF32 (tf32x3, bf16x3, bf16x6,
//                       bf16x9). What is left of a number is a multiple of its last bit; it fits
//                       the parts unless these are subnormal, and then half a unit of bfloat16's
//                       subnormal numbers is lost, 2^-134: 2^-32 of this.
//   deviation           of an element that a program computes, the largest distance of a kernel's
//                       value from the reference's; 0 of other elements. The magnitude of such an
//                       element is the largest one of a kernel's.
enum class PackedValue : std::uint8_t {
  itself,
  magnitude,
  aligned_magnitude,
  f16_magnitude,
  f16x3_magnitude,
  split_magnitude,
  deviation
};

// Magnitudes other than 0 are packed as at least `least`, and as infinity from `end` on.
struct MagnitudeRange {
  double least;
  double end;

  double clamp(double magnitude) const;
};
MagnitudeRange magnitude_range(DType dtype, PackedValue packed) noexcept;

struct LaneRange {
  std::int64_t first;
  std::int64_t count;
};

// Writes the lanes of the range as panels of `width` lanes, each complete in depth:
// panels[p][k][lane]. Lanes past the last are zero. Floats hold types with at most 24 significand
// bits (and int8, uint8) exactly; doubles hold everything but integers beyond 2^53. Scaled elements
// are rounded to T, once for each scale and zero point at most.
template <class T>
void pack_panels(const PanelSource& source, LaneRange range, int width, PackedValue packed,
                 T* panels);

// One element of a scaled operand as it is packed.
double packed_element(const PanelSource& source, std::int64_t lane, std::int64_t depth,
                      PackedValue packed);

extern template void pack_panels<float>(const PanelSource&, LaneRange, int, PackedValue, float*);
extern template void pack_panels<double>(const PanelSource&, LaneRange, int, PackedValue, double*);

}  // namespace gemmery::host
