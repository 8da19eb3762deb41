// SPDX-License-Identifier: Apache-2.0
// Loads a consumer's rows of A from shared memory to the A registers of wgmmas and transposes them
// on the way (abi/atom_fragment.hpp has the addresses).
#pragma once

#include <device/abi/atom_fragment.hpp>
#include <device/abi/sm90_design.hpp>
#include <device/ptx/integer.cuh>
#include <device/ptx/shared_memory.cuh>
#include <device/tile/operand_fragments.cuh>

namespace gemmery::device {

template <const abi::Sm90Design& design>
class RegisterOperand {
 public:
  static constexpr int blocks = abi::blocks_per_consumer(design);
  using Fragments = OperandFragments<blocks>;
  struct Companions {};  // of codes

  /// `first_row`: the consumer's first row in the tile; `thread` of the warpgroup.
  __device__ RegisterOperand(unsigned first_row, unsigned thread, unsigned = 0)
      : selectors_(abi::fragment_selectors(thread % 32)) {
    const unsigned row = first_row + thread / 32 * abi::fragment_rows;
    const unsigned chunk = row % atom_rows / abi::fragment_rows;
    first_ = row / atom_rows * atom_bytes + abi::fragment_offset(thread % 32, chunk);
  }

  /// Reads the operands of the step-th wgmmas of a stage; `stage`: the shared address of its A. All
  /// lanes of a warp call it.
  __device__ __forceinline__ void read(Fragments& words, unsigned stage, unsigned step) const {
#pragma unroll
    for (unsigned block = 0; block < blocks; ++block) {
      const unsigned half = block % 2 * (atom_rows / 2 / abi::fragment_rows) << 4;
      const unsigned first = stage + (first_ ^ half);
      ptx::ldmatrix_x4_trans(
          words.block[block],
          first + block / 2 * atom_bytes + step * abi::fragment_k * abi::fragment_line_bytes);
    }
  }

  __device__ static void read_companions(Companions&, unsigned, unsigned) {}

  /// Permutes the words that were read into the fragments that wgmmas take.
  __device__ __forceinline__ void arrange(Fragments& fragments, const Fragments& words,
                                          const Companions&) const {
#pragma unroll
    for (int block = 0; block < blocks; ++block) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const unsigned first = words.block[block][2 * half];
        const unsigned second = words.block[block][2 * half + 1];
        fragments.block[block][2 * half] = ptx::prmt(first, second, selectors_.first);
        fragments.block[block][2 * half + 1] = ptx::prmt(first, second, selectors_.second);
      }
    }
  }

 private:
  static constexpr unsigned atom_rows = abi::atom_extent(design);
  static constexpr unsigned atom_bytes = atom_rows * abi::sm90_swizzle_bytes;
  static_assert(blocks == 1 || abi::consumers_per_tile(design) == 1 || blocks % 2 == 0,
                "a consumer's blocks begin where an atom does");

  abi::FragmentSelectors selectors_;
  unsigned first_;
};

}  // namespace gemmery::device
