// SPDX-License-Identifier: Apache-2.0
// Which tile of a batch of matrices, counted in tiles.
#pragma once

namespace gemmery::abi {

struct TilePosition {
  unsigned batch;
  unsigned row;
  unsigned column;
};

}  // namespace gemmery::abi
