// SPDX-License-Identifier: Apache-2.0
// The position of a tile in a batch of matrices, counted in tiles.
#pragma once

namespace gemmery::abi {

struct TilePosition {
  unsigned batch;
  unsigned row;
  unsigned column;
};

}  // namespace gemmery::abi
