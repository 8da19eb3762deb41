// SPDX-License-Identifier: Apache-2.0
// The order in which a launch visits tiles: matrix by matrix, in bands of tile rows that are walked
// column by column, or in bands of tile columns walked row by row, so that concurrent blocks share
// panels of A and B in L2.
#pragma once

#include <device/abi/fast_divisor.hpp>
#include <device/abi/host_device.hpp>
#include <device/abi/raster.hpp>
#include <device/abi/tile_position.hpp>

namespace gemmery::abi {

GEMMERY_HOST_DEVICE
constexpr unsigned tiles_along(unsigned extent, int tile) {
  const unsigned size = static_cast<unsigned>(tile);
  return extent / size + (extent % size != 0 ? 1U : 0U);
}

/// Counts tiles (of whole clusters) from 0 to below `tiles`, which is less than 2^31.
struct TileOrder {
  unsigned tiles;         // of all matrices
  FastDivisor matrix;     // tiles of one
  FastDivisor band;       // tiles of a band, except the last one
  FastDivisor last_band;  // its width in tiles
  unsigned last;          // its number
};

GEMMERY_HOST_DEVICE
constexpr TileOrder make_tile_order(const Raster& raster, unsigned tile_rows, unsigned tile_columns,
                                    unsigned batches) {
  if (tile_rows * tile_columns * batches == 0) return {};
  const bool is_along_m = raster.along == Along::m;
  const unsigned across = is_along_m ? tile_rows : tile_columns;
  const unsigned length = is_along_m ? tile_columns : tile_rows;
  const auto width = static_cast<unsigned>(raster.band);
  const unsigned last = (across - 1) / width;
  // If the first band is also the last, its tiles are not counted.
  const unsigned whole = last > 0 ? width * length : 1U << 31;
  return {.tiles = tile_rows * tile_columns * batches,
          .matrix = make_fast_divisor(tile_rows * tile_columns),
          .band = make_fast_divisor(whole),
          .last_band = make_fast_divisor(across - last * width),
          .last = last};
}

/// The position of tile `tile` of matrix `batch`, counted in tiles.
template <Raster raster>
GEMMERY_HOST_DEVICE
constexpr TilePosition position_in_matrix(const TileOrder& order, unsigned batch, unsigned tile) {
  constexpr auto width = static_cast<unsigned>(raster.band);
  const unsigned band = order.band.divide(tile);
  const unsigned in_band = tile - band * order.band.divisor;
  const bool is_last = band == order.last;
  const unsigned along = is_last ? order.last_band.divide(in_band) : in_band / width;
  const unsigned across =
      band * width + in_band - along * (is_last ? order.last_band.divisor : width);
  if constexpr (raster.along == Along::m)
    return {.batch = batch, .row = across, .column = along};
  else
    return {.batch = batch, .row = along, .column = across};
}

/// The position of tile `index` of all matrices.
template <Raster raster>
GEMMERY_HOST_DEVICE
constexpr TilePosition position_of(const TileOrder& order, unsigned index) {
  const unsigned batch = order.matrix.divide(index);
  return position_in_matrix<raster>(order, batch, index - batch * order.matrix.divisor);
}

}  // namespace gemmery::abi
