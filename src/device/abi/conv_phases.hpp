// SPDX-License-Identifier: Apache-2.0
// The phases of a strided dgrad: the pixels of dx that use the same taps, so that no zeros between
// pixels of dy are multiplied. Host and device share the arithmetic.
#pragma once

#include <device/abi/fast_divisor.hpp>
#include <device/abi/host_device.hpp>
#include <device/abi/window_params.hpp>

namespace gemmery::abi {

/// One dimension of dx. A phase is every stride-th pixel from `first` on, with first below the
/// stride and below dx's extent. Its pixels use every (stride / common)-th tap, `common` being the
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
  FastDivisor most;  // the number of phases: the smaller of stride and extent
  // Divisors by the largest number of pixels (taps) of a phase, and by that number less one.
  FastDivisor pixels[2];
  FastDivisor taps[2];
};

/// `taps` is 0 for pixels that no tap reaches.
struct Phase {
  unsigned first;
  unsigned pixels;
  unsigned tap;  // the first one
  unsigned taps;
  int origin;  // the pixel of dy that the first pixel reads at the first tap
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
  // The division is exact.
  const Int64 reach = static_cast<Int64>(place) - static_cast<Int64>(phase.tap) * along.dilation;
  const auto size = static_cast<unsigned>(reach < 0 ? -reach : reach);
  const auto pixels = static_cast<int>(along.stride.divide(size));
  phase.origin = reach < 0 ? -pixels : pixels;
  return phase;
}

/// The divisor by `extent`, which is one of two adjacent numbers.
GEMMERY_HOST_DEVICE
constexpr FastDivisor divisor_of(const FastDivisor (&all)[2], unsigned extent) {
  return all[0].divisor == extent ? all[0] : all[1];
}

/// The additional parameters of a strided dgrad, besides the windows of a dgrad with stride 1.
struct PhaseParams {
  PhaseDimension along[3];  // depth, height, width
  FastDivisor tile_rows;    // of a phase
  unsigned images;
  unsigned filters;  // of a group
  unsigned is_reversed;
};

/// Bytes of shared memory in which a block keeps its tile's phase.
inline constexpr int kept_phase_bytes = 368;

}  // namespace gemmery::abi
