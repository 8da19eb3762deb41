// SPDX-License-Identifier: Apache-2.0
// Transposes, in shared memory and in place, operands of a stage that wgmma takes only K-major
// (abi/transposed_atom.hpp has the addresses). The warps of all consumers of a tile share the work.
// Each warp writes only what it has read, so no warp waits for another during the transposition.
#pragma once

#include <device/abi/transposed_atom.hpp>
#include <device/ptx/integer.cuh>
#include <device/ptx/shared_memory.cuh>

namespace gemmery::device {

/// The atoms of an operand, by the bytes of its elements. `take(atom, part)` transposes the part-th
/// part of the atom at a shared address; one warp calls it.
template <int element_bytes>
class AtomTransposer;

template <>
class AtomTransposer<1> {
 public:
  static constexpr unsigned parts = abi::square_pairs;

  __device__ explicit AtomTransposer(unsigned lane)
      : lane_(abi::transposing_lane(lane)), selectors_(abi::transposing_selectors(lane_)) {}

  __device__ __forceinline__ void take(unsigned atom, unsigned part) const {
    unsigned words[2][2][4];
#pragma unroll
    for (unsigned which = 0; which < 2; ++which) {
#pragma unroll
      for (unsigned half = 0; half < 2; ++half)
        read(words[which][half], atom, abi::square_of(part, which), half);
    }
    __syncwarp();  // waits until all lanes have read
#pragma unroll
    for (unsigned which = 0; which < 2; ++which) {
#pragma unroll
      for (unsigned half = 0; half < 2; ++half)
        write(words[which][half], atom, abi::square_of(part, which), half);
    }
  }

 private:
  __device__ __forceinline__ void read(unsigned (&words)[4], unsigned atom,
                                       const abi::Square& square, unsigned half) const {
#pragma unroll
    for (unsigned step = 0; step < 4; ++step)
      words[step] = ptx::ld_shared<4>(atom + abi::read_offset(lane_, square, half, step));
  }

  __device__ __forceinline__ void write(const unsigned (&words)[4], unsigned atom,
                                        const abi::Square& square, unsigned half) const {
#pragma unroll
    for (unsigned pair = 0; pair < 2; ++pair) {
      const unsigned first = ptx::prmt(words[0], words[1], selectors_.pairs[pair]);
      const unsigned second = ptx::prmt(words[2], words[3], selectors_.pairs[pair]);
#pragma unroll
      for (unsigned row = 0; row < 2; ++row)
        ptx::st_shared<4>(atom + abi::write_offset(lane_, square, half, 2 * pair + row),
                          {{ptx::prmt(first, second, selectors_.words[row])}});
    }
  }

  abi::TransposingLane lane_;
  abi::TransposingSelectors selectors_;
};

template <>
class AtomTransposer<4> {
 public:
  static constexpr unsigned parts = 1;

  __device__ explicit AtomTransposer(unsigned lane) : own_(abi::diagonal_offset(lane)) {}

  __device__ __forceinline__ void take(unsigned atom, unsigned) const {
    constexpr unsigned together = 8;  // diagonals
#pragma unroll
    for (unsigned first = 0; first < abi::lanes_of_transposition; first += together) {
      unsigned words[together];
#pragma unroll
      for (unsigned step = 0; step < together; ++step)
        words[step] = ptx::ld_shared<4>(atom + (own_ ^ abi::read_step(first + step)));
      __syncwarp();  // waits until all lanes have read
#pragma unroll
      for (unsigned step = 0; step < together; ++step)
        ptx::st_shared<4>(atom + (own_ ^ abi::write_step(first + step)), {{words[step]}});
    }
  }

 private:
  unsigned own_;
};

}  // namespace gemmery::device
