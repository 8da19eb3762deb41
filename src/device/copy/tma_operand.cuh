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
  int line_bytes = abi::sm90_swizzle_bytes;
};

/// A tile of a matrix. A `Source` of load_operand has these two functions: the place of a copy of a
/// K-major operand, by the number of the copy and its first row; and of any other operand, by the
/// first row (or column) and the first k.
template <bool has_pointers>
struct MatrixTile {
  const abi::TensorMap& map;
  int extent;
  int k;
  MapMatrix<has_pointers> matrix;

  __device__ __forceinline__ auto along_k(unsigned, unsigned rows) const {
    return box_at(k, extent + static_cast<int>(rows), matrix);
  }
  __device__ __forceinline__ auto along_extent(unsigned rows, unsigned first_k) const {
    return box_at(extent + static_cast<int>(rows), k + static_cast<int>(first_k), matrix);
  }
};

/// Called by one thread. `rank` is this block's rank in the cluster.
template <TmaOperand operand, class Source>
__device__ __forceinline__ void load_operand(unsigned tile, const Source& source, unsigned barrier,
                                             unsigned rank) {
  constexpr unsigned short both = 3;
  if constexpr (operand.major == abi::Major::k) {
    constexpr unsigned rows = abi::rows_per_copy(operand.extent, operand.is_shared);
    constexpr unsigned bytes = rows * operand.line_bytes;
    if constexpr (operand.is_shared) {
      ptx::tma_load_multicast(tile + rank * bytes, source.map, source.along_k(0, rank * rows),
                              barrier, both);
    } else {
#pragma unroll
      for (unsigned copy = 0; copy < operand.extent / rows; ++copy)
        ptx::tma_load(tile + copy * bytes, source.map, source.along_k(copy, copy * rows), barrier);
    }
  } else {
    constexpr int atoms = (operand.extent + operand.atom - 1) / operand.atom;
    constexpr unsigned atom_bytes = operand.atom * abi::sm90_swizzle_bytes;
#pragma unroll
    for (int atom = 0; atom < atoms; ++atom) {
      const auto extent = static_cast<unsigned>(atom * operand.atom);
      const unsigned target = tile + static_cast<unsigned>(atom) * atom_bytes;
      if constexpr (operand.is_shared) {
        constexpr unsigned half = operand.atom / 2;
        ptx::tma_load_multicast(target + rank * (atom_bytes / 2), source.map,
                                source.along_extent(extent, rank * half), barrier, both);
      } else {
        ptx::tma_load(target, source.map, source.along_extent(extent, 0), barrier);
      }
    }
  }
}

}  // namespace gemmery::device
