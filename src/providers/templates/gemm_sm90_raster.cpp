// SPDX-License-Identifier: Apache-2.0
// The choice of a raster.
#include "providers/templates/gemm_sm90_raster.hpp"

namespace gemmery::templates {

// One raster for all, until races on a GPU show which problem wants another.
abi::Raster choose_raster(const Sm90TileCounts&, const Sm90Tile& tile, const DeviceInfo&) noexcept {
  return tile.raster;
}

}  // namespace gemmery::templates
