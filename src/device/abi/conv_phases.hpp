// SPDX-License-Identifier: Apache-2.0
// The phases of a strided dgrad: pixels of dx that meet the same taps, so that no product of a zero
// between pixels of dy is formed. Host and device share the arithmetic.
#pragma once

#include <device/abi/fast_divisor.hpp>
#include <device/abi/host_device.hpp>
#include <device/abi/window_params.hpp>

namespace gemmery::abi {

/// Along one dimension of dx. A phase is every stride-th pixel from `first` on, with first below
/// the stride and below dx's extent. It meets every (stride / common)-th tap, `common` being the
/// greatest common divisor of stride and dilation, and every (dilation / common)-th pixel of dy.
struct PhaseDimension {
  FastDivisor stride;
  FastDivisor common;
  FastDivisor tap_step;  // stride / common
  UInt64 inverse;        // of dilation / common, modulo tap_step
  int dilation;
  int lower;         // padding
  unsigned extent;   // of dx
  unsigned filter;   // taps in all
  FastDivisor most;  // phases: the lesser of stride and extent
  // Of the phases with the most pixels (taps), and of those with one fewer.
  FastDivisor pixels[2];
  FastDivisor taps[2];
};

/// `taps` is 0 for pixels that no tap reaches.
struct Phase {
  unsigned first;
  unsigned pixels;
  unsigned tap;  // the first one
  unsigned taps;
  int origin;  // the pixel of dy that the first pixel meets at the first tap
};

GEMMERY_HOST_DEVICE
constexpr Phase find_phase(const PhaseDimension& along, unsigned first) {
  const unsigned place = first + static_cast<unsigned>(along.lower);
  const unsigned rest = place - along.stride.divide(place) * along.stride.divisor;
  const unsigned multiple = along.common.divide(rest);
  Phase phase{.first = first, .pixels = 0, .tap = 0, .taps = 0, .origin = 0};
  phase.pixels = along.stride.divide(along.extent - first + along.stride.divisor - 1);
  if (multiple * along.common.divisor != rest) return phase;
  phase.tap = static_cast<unsigned>(multiple * along.inverse % along.tap_step.divisor);
  if (phase.tap >= along.filter) return phase;
  phase.taps = along.tap_step.divide(along.filter - phase.tap + along.tap_step.divisor - 1);
  // Divides exactly.
  const Int64 reach = static_cast<Int64>(place) - static_cast<Int64>(phase.tap) * along.dilation;
  const auto size = static_cast<unsigned>(reach < 0 ? -reach : reach);
  const auto pixels = static_cast<int>(along.stride.divide(size));
  phase.origin = reach < 0 ? -pixels : pixels;
  return phase;
}

/// The divisor by one of two adjacent extents.
GEMMERY_HOST_DEVICE
constexpr FastDivisor divisor_of(const FastDivisor (&all)[2], unsigned extent) {
  return all[0].divisor == extent ? all[0] : all[1];
}

/// What a strided dgrad adds to the windows of a stride of 1.
struct PhaseParams {
  PhaseDimension along[3];  // depth, height, width
  FastDivisor tile_rows;    // of a phase
  unsigned images;
  unsigned filters;  // of a group
  unsigned is_reversed;
};

/// What a block knows of its tile's phase, in shared memory.
inline constexpr int kept_phase_bytes = 368;

}  // namespace gemmery::abi
