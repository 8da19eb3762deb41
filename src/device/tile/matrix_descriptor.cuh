// SPDX-License-Identifier: Apache-2.0
// Matrix descriptors of wgmma, for operand tiles that TMA wrote to shared memory in the 128-byte
// swizzle.
//
//   K-major    rows of 128 bytes of k, one below the other
//   otherwise  (of 16 bits) atoms of 64 columns: 64 k, one below the other, each 64 columns
//
// The tile is aligned to 1024 bytes, the swizzle's period.
#pragma once

#include <device/abi/sm90_design.hpp>

namespace gemmery::device {

using MatrixDescriptor = abi::UInt64;

inline constexpr unsigned atom_bytes =
    64 * abi::sm90_swizzle_bytes;  // of 64 rows, or of 64 columns

/// The swizzle field of a descriptor.
enum class Swizzle : unsigned { bytes_128 = 1, bytes_64 = 2 };

/// PTX ISA, "matrix descriptor": bits 0-13 address, 16-29 leading offset (from atom to atom of
/// columns; unused by K-major), 32-45 stride offset (from 8 rows to the next 8), 62-63 swizzle, all
/// in units of 16 bytes. Here `leading` and `stride` count bytes.
__device__ __forceinline__ MatrixDescriptor describe_atoms(unsigned shared, unsigned leading,
                                                           unsigned stride,
                                                           Swizzle swizzle = Swizzle::bytes_128) {
  return (shared >> 4 & 0x3fffU) | MatrixDescriptor{leading / 16} << 16 |
         MatrixDescriptor{stride / 16} << 32 |
         MatrixDescriptor{static_cast<unsigned>(swizzle)} << 62;
}

/// Describes the first 64 rows (columns) and the first step of k of the stage-th tile. Tiles have
/// `tile_bytes` each and begin at `shared`. The constant part is kept separately, so that a loop
/// over stages needs one 32-bit multiply-add per descriptor.
template <unsigned tile_bytes>
__device__ __forceinline__ MatrixDescriptor describe_matrix(unsigned shared, unsigned stage) {
  const MatrixDescriptor first = describe_atoms(shared, atom_bytes, 8 * abi::sm90_swizzle_bytes);
  return first >> 32 << 32 | (static_cast<unsigned>(first) + stage * (tile_bytes / 16));
}

/// Bytes of k that one wgmma multiplies.
inline constexpr unsigned step_bytes = 32;

/// The increments of a descriptor for the next step of k, and for the next 64 rows.
GEMMERY_HOST_DEVICE
constexpr unsigned next_step(abi::Major major) {
  return (major == abi::Major::k ? step_bytes : 16U * abi::sm90_swizzle_bytes) / 16;
}
inline constexpr unsigned next_64_rows = atom_bytes / 16;

}  // namespace gemmery::device
