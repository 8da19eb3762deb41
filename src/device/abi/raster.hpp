// SPDX-License-Identifier: Apache-2.0
// The order in which a design visits the tiles of out.
#pragma once

namespace gemmery::abi {

/// An index of out.
enum class Along : unsigned char { m, n };

/// The order of tiles: bands of `band` tiles along one index, each band walked along the other one,
/// so that concurrent blocks share panels of A and B in L2. Counted in tiles of a cluster.
struct Raster {
  Along along;
  unsigned char band;

  bool operator==(const Raster&) const = default;
};

}  // namespace gemmery::abi
