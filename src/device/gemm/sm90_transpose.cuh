// SPDX-License-Identifier: Apache-2.0
// The transposing phase of sm90 kernels: it transposes, in place, operands of a stage that wgmma
// takes only K-major.
#pragma once

#include <device/copy/transposed_atom.cuh>
#include <device/gemm/sm90_shared.cuh>
#include <device/ptx/fence.cuh>
#include <device/ptx/warp.cuh>

namespace gemmery::device {

template <abi::Sm90Design design>
class Sm90Transpose {
  static constexpr bool transposes_a = abi::transposes_a(design);
  static constexpr bool transposes_b = abi::transposes_b(design);

 public:
  static constexpr bool is_needed = transposes_a || transposes_b;

  /// The warps of the tile's consumers share the atoms, while wgmmas of the previous stage are in
  /// flight. Returns after a barrier, when all atoms are written.
  __device__ __forceinline__ static void transpose_stage(Sm90Shared<design>& shared, unsigned stage,
                                                         unsigned consumer) {
    using Transposer = AtomTransposer<abi::bytes_of(design.a)>;
    constexpr unsigned atom_bytes = abi::atom_extent(design) * abi::sm90_swizzle_bytes;
    constexpr int a_atoms = transposes_a ? sizeof shared.a[0] / atom_bytes : 0;
    constexpr int b_atoms = transposes_b ? sizeof shared.b[0] / atom_bytes : 0;
    constexpr unsigned warps = abi::consumers_per_tile(design) * abi::warps_per_consumer;
    constexpr unsigned first_barrier = 11;  // lower ones pass turns
    const unsigned a = ptx::cvta_shared(&shared.a[stage]);
    const unsigned b = ptx::cvta_shared(&shared.b[stage]);
    const unsigned own = takes_turns ? 0 : consumer * abi::warps_per_consumer;
    const unsigned warp = ptx::same_in_warp(own + threadIdx.x % abi::warpgroup_threads / 32);
    const Transposer transposer(threadIdx.x % 32);
#pragma unroll 1
    for (unsigned part = warp; part < (a_atoms + b_atoms) * Transposer::parts; part += warps) {
      const int atom = static_cast<int>(part / Transposer::parts);
      const unsigned at =
          atom < a_atoms ? a + atom * atom_bytes : b + (atom - a_atoms) * atom_bytes;
      transposer.take(at, part % Transposer::parts);
    }
    ptx::fence_proxy_async();
    ptx::bar_sync<warps * 32>(first_barrier + (takes_turns ? consumer : 0));
  }

 private:
  static constexpr bool takes_turns = abi::takes_turns(design);
};

}  // namespace gemmery::device
