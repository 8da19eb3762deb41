// SPDX-License-Identifier: Apache-2.0
// The run-time parameters of sm90 kernels of convolutions: the places of a stage's elements in the
// tensor maps of images and of filters.
#pragma once

#include <device/abi/fast_divisor.hpp>
#include <device/abi/sm90_params.hpp>

namespace gemmery::abi {

/// Images that are copied in im2col mode. Rows (k in wgrad) count pixels over images, depth,
/// height, width; k (columns in wgrad) counts taps over depth, height, width, channels. A tap's
/// channels begin at a multiple of a stage, or of a unit of columns. Along a dimension a pixel is
/// at
///
///   pixel * step + lower + first_offset + tap * offset_step
///
/// where the last two terms are the copy's offset, which is never negative.
struct TmaWindow {
  /// Copies of channels from here on are all zeros. A multiple of every stage.
  static constexpr int beyond_channels = 1 << 29;
  FastDivisor pixels[3];  // by depth, height, width
  FastDivisor taps[3];    // by height, width, channels, which are rounded up to stages
  int step[3];
  int lower[3];  // of the map's pixel box
  int first_offset[3];
  int offset_step[3];
  unsigned tap_count;  // of all dimensions; later taps are zeros
  int first_channel;   // 0, or beyond the map if nothing is to be read
  int batch_channels;  // from batch to batch, of groups
  int batch_images;    // 1 if each image is a batch
};

/// Filters: the coordinates of the map are (channel, tap, filter, group). Tap (t, r, s) of a
/// product is the tap first + t * step[0] + r * step[1] + s * step[2] of the filter.
struct TmaFilters {
  int first;
  int step[3];
  unsigned batch_groups;  // 1 if batches are groups
};

struct Sm90ConvParams {
  Sm90Params gemm;
  TmaWindow window;
  TmaFilters filters;  // not of wgrad
};

/// The pixels of dx that are a stride apart and use the same taps. `out` is their map in im2col
/// mode, in which adjacent pixels are successive pixels of the phase.
struct DgradPhase {
  TensorMap out;
  TmaWindow window;  // without taps if none reaches the pixels, which are then epilogue(0)
  TmaFilters filters;
  unsigned k_blocks;  // at least 1
  unsigned images;    // the map of dy
  // Rows of out's matrix, for reads by threads: the number of the phase's rows, the first one, and
  // the steps from pixel to pixel along depth, height, width, and from image to image.
  unsigned rows;
  unsigned first_row;
  unsigned row_step[3];
  unsigned image_rows;
};

/// A dgrad with a stride. Along a dimension the pixels of two phases differ by at most one; only
/// that differs between their maps.
struct Sm90PhaseParams {
  static constexpr int most_maps = 4;
  static constexpr int most_phases = 8;
  Sm90Params gemm;  // without maps of A and out
  TensorMap images[most_maps];
  DgradPhase phases[most_phases];
};

static_assert(sizeof(Sm90PhaseParams) == sizeof(Sm90Params) + 4 * 128 + 8 * 320);
static_assert(sizeof(DgradPhase) == 320);
static_assert(sizeof(TmaWindow) == 6 * 12 + 4 * 12 + 16);

}  // namespace gemmery::abi
