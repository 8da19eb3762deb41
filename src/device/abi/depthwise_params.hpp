// SPDX-License-Identifier: Apache-2.0
// The run-time parameters of a kernel of depthwise convolutions, byte for byte.
#pragma once

#include <device/abi/conv_phases.hpp>
#include <device/abi/fast_divisor.hpp>
#include <device/abi/host_device.hpp>

namespace gemmery::abi {

/// Along depth, height and width: the j-th tap of pixel `at` multiplies the source pixel at * step
/// + origin + j * tap_step by tap first_tap + j * tap_walk of the filter.
struct DepthwiseWindow {
  int step[3];
  int origin[3];
  int tap_step[3];
  unsigned taps[3];
  int first_tap[3];
  int tap_walk[3];
  unsigned pixels[3];
  unsigned first_pixel[3];  // a phase's first pixel of dx
};

/// In elements: from image to image (of filters from filter to filter), then along depth, height,
/// width.
struct DepthwiseStrides {
  Int64 of[4];
};

/// Strides along the matrices of a batch, rows and columns.
struct DepthwiseMatrix {
  Int64 batch;
  Int64 row;
  Int64 column;
};

/// fprop: a is x, b are filters; dgrad: a is dy, b are filters; wgrad: a is dy, b is x.
struct DepthwiseParams {
  const void* a;
  const void* b;
  const void* c;
  void* out;
  double alpha;
  double beta;
  DepthwiseStrides a_strides;
  DepthwiseStrides b_strides;
  DepthwiseMatrix c_matrix;
  DepthwiseMatrix out_matrix;
  void* workspace;
  UInt64 partials;  // offset of wgrad's partial sums in the workspace
  DepthwiseWindow window;
  unsigned extent[3];          // of the source
  unsigned filter[3];          // taps
  FastDivisor filter_walk[2];  // along height, width
  unsigned out_image[3];       // pixels of out
  unsigned pixel_step[3];      // of out, from pixel to pixel of a phase
  FastDivisor strips[3];       // along depth, height, and in strips along width
  unsigned images;
  unsigned channels;           // of out, or of dw
  FastDivisor group_channels;  // channels of out (or of dw) in a group
  unsigned repeats;            // dgrad: filters of a channel that are added up
  unsigned is_multiplied;      // 0: alpha is 0
  unsigned is_wide;  // a thread's channels are contiguous and aligned in A, wgrad's B and out
  unsigned is_c_wide;
  unsigned reductions;  // bytes of shared memory ahead of those of an epilogue's reductions
  FastDivisor channel_tiles;
  unsigned units;  // units of work: a tile of channels and taps, some tiles of strips
  unsigned tiles;  // tiles of strips in all phases
  unsigned tiles_per_unit;
  FastDivisor phase_count;
  FastDivisor slices;        // of wgrad's pixels
  FastDivisor tap_tiles[3];  // of wgrad: chunks of taps along depth, height, width
  PhaseDimension phases[3];
};

}  // namespace gemmery::abi
