// SPDX-License-Identifier: Apache-2.0
// The transposing phase of sm90 kernels: it transposes, in place, operands of a stage that wgmma
// takes only K-major.
#pragma once

#include <device/copy/transposed_atom.cuh>
#include <device/gemm/sm90_shared.cuh>
#include <device/ptx/fence.cuh>
#include <device/ptx/warp.cuh>

namespace gemmery::device {

/// The transposition of the stages of one tile, for one warp of its consumers.
template <const abi::Sm90Design& design>
class Sm90Transpose {
  using Transposer = AtomTransposer<abi::bytes_of(design.a)>;
  static constexpr bool takes_turns = abi::takes_turns(design);

 public:
  /// Constructed for each tile: addresses that are kept across its epilogue spill (ptxas 13.0).
  __device__ explicit Sm90Transpose(unsigned consumer)
      : transposer_(ptx::opaque(threadIdx.x % 32)), consumer_(consumer) {}

  /// The warps of the tile's consumers share the atoms, while wgmmas of the previous stage are in
  /// flight. Returns after a barrier, when all atoms are written.
  __device__ __forceinline__ void transpose_stage(Sm90Shared<design>& shared,
                                                  unsigned stage) const {
    constexpr unsigned atom_bytes = abi::atom_extent(design) * abi::sm90_swizzle_bytes;
    constexpr int a_atoms = abi::transposes_a(design) ? sizeof shared.a[0] / atom_bytes : 0;
    constexpr int b_atoms = abi::transposes_b(design) ? sizeof shared.b[0] / atom_bytes : 0;
    constexpr unsigned warps = abi::consumers_per_tile(design) * abi::warps_per_consumer;
    constexpr unsigned first_barrier = 11;  // lower ones are used by turns
    const unsigned a = ptx::cvta_shared(&shared.a[stage]);
    const unsigned b = ptx::cvta_shared(&shared.b[stage]);
    const unsigned own = takes_turns ? 0 : consumer_ * abi::warps_per_consumer;
    const unsigned warp = ptx::same_in_warp(own + threadIdx.x % abi::warpgroup_threads / 32);
#pragma unroll 1
    for (unsigned part = warp; part < (a_atoms + b_atoms) * Transposer::parts; part += warps) {
      const int atom = static_cast<int>(part / Transposer::parts);
      const unsigned at =
          atom < a_atoms ? a + atom * atom_bytes : b + (atom - a_atoms) * atom_bytes;
      transposer_.take(at, part % Transposer::parts);
    }
    ptx::fence_proxy_async();
    ptx::bar_sync<warps * 32>(first_barrier + (takes_turns ? consumer_ : 0));
  }

 private:
  const Transposer transposer_;
  const unsigned consumer_;
};

}  // namespace gemmery::device
