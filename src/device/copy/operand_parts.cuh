// SPDX-License-Identifier: Apache-2.0
// Splits float32 operands of a stage in shared memory into the parts that wgmma multiplies
// (abi/operand_parts.hpp has the layout and addresses). A part is the remainder of a number,
// rounded to nearest. If rounding would give infinity, the part is the largest finite number;
// infinities go into the last part. A warp writes in place only what it has read itself.
#pragma once

#include <device/abi/operand_parts.hpp>
#include <device/abi/transposed_atom.hpp>
#include <device/ptx/convert.cuh>
#include <device/ptx/shared_memory.cuh>

namespace gemmery::device {

/// Splits one operand. `take(unit, behind)` splits the unit at a shared address, whose last part
/// goes to `behind`; one warp calls it. `bytes` and `bytes_behind` are the sizes of a unit.
template <abi::MmaMath math, bool is_transposed>
class UnitSplitter;

/// Into bfloat16; lines keep their direction.
template <abi::MmaMath math>
requires(abi::splits_to_bf16(math)) class UnitSplitter<math, false> {
 public:
  static constexpr unsigned bytes = abi::split_unit_bytes;
  static constexpr unsigned bytes_behind = abi::bf16_unit_bytes;

  __device__ explicit UnitSplitter(unsigned lane) : lane_(abi::split_lane(lane)) {}

  __device__ __forceinline__ void take(unsigned unit, unsigned behind) const {
    unsigned values[abi::split_steps][4];
#pragma unroll
    for (unsigned step = 0; step < abi::split_steps; ++step)
      ptx::ld_shared_v4(values[step], unit + abi::float_offset(lane_, step));
    __syncwarp();  // waits until all lanes have read
#pragma unroll
    for (unsigned step = 0; step < abi::split_steps; ++step) {
      float left[4];
#pragma unroll
      for (int index = 0; index < 4; ++index) left[index] = __uint_as_float(values[step][index]);
      write_parts(left, unit, behind, abi::bf16_offset(lane_, step));
    }
  }

 private:
  static constexpr int parts = abi::part_count(math);

  __device__ __forceinline__ static void write_parts(float (&left)[4], unsigned unit,
                                                     unsigned behind, unsigned offset) {
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      const bool is_last = part + 1 == parts;
      unsigned pairs[2];
#pragma unroll
      for (int pair = 0; pair < 2; ++pair)
        pairs[pair] = is_last ? ptx::cvt_rn_bf16x2_f32(left[2 * pair + 1], left[2 * pair])
                              : take_part(left[2 * pair], left[2 * pair + 1]);
      const unsigned place = part < 2 ? unit + part * abi::bf16_unit_bytes : behind;
      ptx::st_shared_v2(place + offset, pairs[0], pairs[1]);
    }
  }

  /// Removes the next part from two numbers and returns it. The difference is exact.
  __device__ __forceinline__ static unsigned take_part(float& first, float& second) {
    const unsigned pair = ptx::cvt_rn_satfinite_bf16x2_f32(second, first);
    first -= __uint_as_float(pair << 16);
    second -= __uint_as_float(pair & 0xffff0000U);
    return pair;
  }

  abi::SplitLane lane_;
};

/// The two parts of a number in TF32. Infinities go into the second one.
struct Tf32Parts {
  unsigned first;
  unsigned second;
};
__device__ __forceinline__ Tf32Parts split_tf32(unsigned bits) {
  const float value = __uint_as_float(bits);
  const unsigned first = ptx::cvt_rna_satfinite_tf32_f32(value);
  return {first, ptx::cvt_rna_tf32_f32(value - __uint_as_float(first))};
}

/// Into TF32, for K-major operands.
template <>
class UnitSplitter<abi::MmaMath::tf32x3, false> {
 public:
  static constexpr unsigned bytes = abi::split_unit_bytes;
  static constexpr unsigned bytes_behind = abi::split_unit_bytes;

  __device__ explicit UnitSplitter(unsigned lane) : lane_(abi::split_lane(lane)) {}

  __device__ __forceinline__ void take(unsigned unit, unsigned behind) const {
    unsigned values[abi::split_steps][4];
#pragma unroll
    for (unsigned step = 0; step < abi::split_steps; ++step)
      ptx::ld_shared_v4(values[step], unit + abi::float_offset(lane_, step));
#pragma unroll
    for (unsigned step = 0; step < abi::split_steps; ++step) {
      const unsigned offset = abi::float_offset(lane_, step);
      unsigned rest[4];
#pragma unroll
      for (int index = 0; index < 4; ++index) {
        const Tf32Parts parts = split_tf32(values[step][index]);
        values[step][index] = parts.first;
        rest[index] = parts.second;
      }
      ptx::st_shared_v4(unit + offset, values[step]);
      ptx::st_shared_v4(behind + offset, rest);
    }
  }

 private:
  abi::SplitLane lane_;
};

/// Into TF32, for other operands: transposes an atom at a time (copy/transposed_atom.cuh).
template <>
class UnitSplitter<abi::MmaMath::tf32x3, true> {
 public:
  static constexpr unsigned bytes = 4 * abi::split_unit_bytes;
  static constexpr unsigned bytes_behind = bytes;

  __device__ explicit UnitSplitter(unsigned lane) : own_(abi::diagonal_offset(lane)) {}

  __device__ __forceinline__ void take(unsigned atom, unsigned behind) const {
    constexpr unsigned together = 8;  // diagonals
    // Not unrolled: with two sets of accumulators there are too few registers for the addresses of
    // all diagonals.
#pragma unroll 1
    for (unsigned first = 0; first < abi::lanes_of_transposition; first += together) {
      const unsigned from = own_ ^ abi::read_step(first);
      const unsigned to = own_ ^ abi::write_step(first);
      unsigned words[together];
#pragma unroll
      for (unsigned diagonal = 0; diagonal < together; ++diagonal)
        words[diagonal] = ptx::ld_shared<4>(atom + (from ^ abi::read_step(diagonal)));
      __syncwarp();  // waits until all lanes have read
#pragma unroll
      for (unsigned diagonal = 0; diagonal < together; ++diagonal) {
        const unsigned offset = to ^ abi::write_step(diagonal);
        const Tf32Parts parts = split_tf32(words[diagonal]);
        ptx::st_shared<4>(atom + offset, {{parts.first}});
        ptx::st_shared<4>(behind + offset, {{parts.second}});
      }
    }
  }

 private:
  unsigned own_;
};

}  // namespace gemmery::device
