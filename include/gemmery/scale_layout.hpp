// SPDX-License-Identifier: Apache-2.0
// Where the scales of blocks lie in memory: those of operands, and those that an epilogue stores.
#pragma once

#include <cstdint>
#include <string_view>

namespace gemmery {

// Where the values of a scale lie in memory. It is always stated: sizes do not tell the layouts
// apart.
enum class ScaleLayout : std::uint8_t {
  strided,        // a tensor of any strides
  swizzled_128x4  // tiles of 128 rows and 4 blocks of k, as Blackwell's tensor cores read them
};

constexpr std::string_view name(ScaleLayout layout) noexcept {
  return layout == ScaleLayout::strided ? "strided" : "swizzled_128x4";
}

}  // namespace gemmery
