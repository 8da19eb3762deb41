// SPDX-License-Identifier: Apache-2.0
// In which order an sm90 kernel walks the tiles of a problem: what discovery offers for each tile.
// Others are reachable by name.
#pragma once

#include <gemmery/device.hpp>

#include "providers/templates/gemm_sm90_design.hpp"

namespace gemmery::templates {

// `tiles`: those of one matrix, each of a whole cluster.
abi::Raster choose_raster(const Sm90TileCounts& tiles, const Sm90Tile& tile,
                          const DeviceInfo& device) noexcept;

}  // namespace gemmery::templates
