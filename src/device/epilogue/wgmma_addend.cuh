// SPDX-License-Identifier: Apache-2.0
// A row vector that a wgmma adds to the accumulators, as one more product over 16 k
// (abi/sm90_program.hpp has the layout of both operands in shared memory). It takes no instruction
// of the epilogue, where loading, decoding and adding the vector took nearly two per element.
#pragma once

#include <device/abi/sm90_program.hpp>
#include <device/ptx/fence.cuh>
#include <device/ptx/shared_memory.cuh>
#include <device/tile/matrix_descriptor.cuh>

namespace gemmery::device {

/// `shared`: where the addends of the block begin.
template <const abi::Sm90Design& design>
class WgmmaAddend {
 public:
  __device__ __forceinline__ WgmmaAddend(unsigned shared, unsigned consumer)
      : ones_(shared),
        vector_(shared +
                (1 + consumer * abi::addends_per_consumer * atoms) * abi::addend_atom_bytes) {}

  /// All threads of the block call it before it is synchronised.
  __device__ static void initialize(unsigned shared) {
    constexpr unsigned unit = 16;
    constexpr unsigned row_units = abi::sm90_swizzle_bytes / unit;
    constexpr unsigned one = design.a == DType::bfloat16 ? 0x3f80 : 0x3c00;
#pragma unroll 1
    for (unsigned index = threadIdx.x; index < abi::addend_bytes(design) / unit;
         index += abi::thread_count(design)) {
      const unsigned word = index < row_units ? one << 16 | one : 0;
      const unsigned words[4] = {word, word, word, word};
      ptx::st_shared_v4(shared + index * unit, words);
    }
    ptx::fence_proxy_async();
  }

  /// The address for 16 bytes, number `unit`, of the next tile's vector.
  __device__ __forceinline__ unsigned place_of_next(unsigned unit) const {
    return vector_ + (current_ ^ vector_bytes) + unit / 8 * abi::addend_atom_bytes + unit % 8 * 16;
  }
  /// Makes the next tile's vector the current one.
  __device__ __forceinline__ void advance() { current_ ^= vector_bytes; }

  /// The descriptor of the ones by which the vector is multiplied, for any 64 rows.
  __device__ __forceinline__ MatrixDescriptor ones() const { return describe(ones_); }
  __device__ __forceinline__ MatrixDescriptor vector() const {
    return describe(vector_ + current_);
  }

 private:
  static constexpr int atoms = abi::addend_atoms(design);
  static constexpr unsigned vector_bytes = atoms * abi::addend_atom_bytes;
  static constexpr unsigned zeros = abi::addend_atom_bytes + abi::consumer_count(design) *
                                                                 abi::addends_per_consumer *
                                                                 vector_bytes;

  /// A descriptor with the steps from 64 columns to the next 64, and from the first 8 k to the
  /// second 8 k, which are zeros.
  __device__ __forceinline__ MatrixDescriptor describe(unsigned shared) const {
    return describe_atoms(shared, abi::addend_atom_bytes, ones_ + zeros - shared);
  }

  unsigned ones_;
  unsigned vector_;       // the first of the consumer's
  unsigned current_ = 0;  // bytes from there to the one that is this tile's
};

}  // namespace gemmery::device
