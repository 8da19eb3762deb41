// SPDX-License-Identifier: Apache-2.0
// Which tile of a matrix is next: bands of tile rows, each walked column by column, or bands of
// tile columns walked row by row, so that blocks at work at the same time share panels of A and B
// in L2. All in 32 bits: division of 64 bits was a sixth of a kernel's compile time.
#pragma once

#include <device/abi/host_device.hpp>

namespace gemmery::device {

struct TilePosition {
  unsigned batch;
  unsigned row;
  unsigned column;
};

/// 8 where nobody chose: 4, 8 and 16 are within 0.5 % of each other (f32 4096^3 on CUDA cores,
/// H200, 2026-11-21).
template <unsigned band_rows = 8>
__device__ inline TilePosition grouped_tile(unsigned batch, unsigned tile, unsigned tile_rows,
                                            unsigned tile_columns) {
  // All bands but the last hold band_rows * tile_columns tiles, fewer than 2^32: one band more is
  // never reached, so where the product would wrap there is one band only.
  const unsigned tiles_per_band = tile_rows > band_rows ? tile_columns * band_rows : 0xffffffffU;
  const unsigned band = tile / tiles_per_band;
  const unsigned in_band = tile - band * tiles_per_band;
  const unsigned rows = min(band_rows, tile_rows - band * band_rows);
  const unsigned column = in_band / rows;
  return {.batch = batch, .row = band * band_rows + in_band - column * rows, .column = column};
}

/// The same for bands of tile columns.
template <unsigned band_columns>
__device__ inline TilePosition turned_grouped_tile(unsigned batch, unsigned tile,
                                                   unsigned tile_rows, unsigned tile_columns) {
  const TilePosition turned = grouped_tile<band_columns>(batch, tile, tile_columns, tile_rows);
  return {.batch = batch, .row = turned.column, .column = turned.row};
}

}  // namespace gemmery::device
