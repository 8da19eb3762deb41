// SPDX-License-Identifier: Apache-2.0
// The choice of a raster.
#include "providers/templates/gemm_sm90_raster.hpp"

namespace gemmery::templates {

// One for all: at bf16 4096^3 and 8192^3, in all layouts, m2 to m32 and n2 to n16 are within 3 % of
// each other in no lasting order, which is what the board moves by itself (H200, 2026-11-21,
// bench/results/h200-sm90-launch-2026-11-21.md).
abi::Raster choose_raster(const Sm90TileCounts&, const Sm90Tile& tile, const DeviceInfo&) noexcept {
  return tile.raster;
}

}  // namespace gemmery::templates
