// SPDX-License-Identifier: Apache-2.0
// Copies one operand's tile of one stage by TMA, in the layout of tile/matrix_descriptor.cuh. Two
// blocks of a cluster that share the tile load one half each, multicast to both.
#pragma once

#include <device/abi/sm90_shared.hpp>
#include <device/copy/map_matrix.cuh>
#include <device/ptx/tma.cuh>
#include <device/tile/matrix_descriptor.cuh>

namespace gemmery::device {

struct TmaOperand {
  abi::Major major;
  int extent;  // of the tile along m or n
  int atom;    // of abi::atom_extent
  bool is_shared;
};

/// The position of a tile in the operand.
template <bool has_pointers>
struct OperandPlace {
  int extent;
  int k;
  MapMatrix<has_pointers> matrix;
};

/// Called by one thread. `rank` is this block's rank in the cluster.
template <TmaOperand operand, bool has_pointers>
__device__ __forceinline__ void load_operand(unsigned tile, const abi::TensorMap& map,
                                             const OperandPlace<has_pointers>& place,
                                             unsigned barrier, unsigned rank) {
  constexpr unsigned short both = 3;
  if constexpr (operand.major == abi::Major::k) {
    constexpr unsigned rows = abi::rows_per_copy(operand.extent, operand.is_shared);
    constexpr unsigned bytes = rows * abi::sm90_swizzle_bytes;
    if constexpr (operand.is_shared) {
      const auto mine = box_at(place.k, place.extent + static_cast<int>(rank * rows), place.matrix);
      ptx::tma_load_multicast(tile + rank * bytes, map, mine, barrier, both);
    } else {
#pragma unroll
      for (unsigned copy = 0; copy < operand.extent / rows; ++copy) {
        const auto part =
            box_at(place.k, place.extent + static_cast<int>(copy * rows), place.matrix);
        ptx::tma_load(tile + copy * bytes, map, part, barrier);
      }
    }
  } else {
    constexpr int atoms = (operand.extent + operand.atom - 1) / operand.atom;
    constexpr unsigned atom_bytes = operand.atom * abi::sm90_swizzle_bytes;
#pragma unroll
    for (int atom = 0; atom < atoms; ++atom) {
      const int extent = place.extent + atom * operand.atom;
      const unsigned target = tile + static_cast<unsigned>(atom) * atom_bytes;
      if constexpr (operand.is_shared) {
        constexpr unsigned half = operand.atom / 2;
        const auto mine = box_at(extent, place.k + static_cast<int>(rank * half), place.matrix);
        ptx::tma_load_multicast(target + rank * (atom_bytes / 2), map, mine, barrier, both);
      } else {
        ptx::tma_load(target, map, box_at(extent, place.k, place.matrix), barrier);
      }
    }
  }
}

}  // namespace gemmery::device
