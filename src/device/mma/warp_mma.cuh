// SPDX-License-Identifier: Apache-2.0
// The products of a warp's fragments by mma.sync, in the arithmetic of a design.
#pragma once

#include <device/abi/sm80_design.hpp>
#include <device/ptx/convert.cuh>
#include <device/ptx/mma.cuh>
#include <device/tile/mma_accumulator.cuh>

namespace gemmery::device {

/// The number of mmas for one product.
GEMMERY_HOST_DEVICE
constexpr int products_of(abi::MmaMath math) {
  return math == abi::MmaMath::tf32x3 || math == abi::MmaMath::bf16x3 || math == abi::MmaMath::f16x3
             ? 3
             : 1;
}

/// Converts a reader's fragment to an mma's registers: the leading part in the instruction's type,
/// and, if products are split, the trailing part.
template <abi::MmaMath math, int registers>
struct SplitFragment {
  static constexpr bool packs = abi::splits_to_16_bits(math);
  static constexpr bool has_low = products_of(math) == 3;
  static constexpr int count = packs ? registers / 2 : registers;
  static constexpr int registers_in_all = has_low ? 2 * count : count;
  unsigned high[count];
  unsigned low[has_low ? count : 1];

  __device__ __forceinline__ void split(const unsigned (&values)[registers]) {
#pragma unroll
    for (int at = 0; at < count; ++at) {
      if constexpr (packs) {
        split_pair(at, __uint_as_float(values[2 * at]), __uint_as_float(values[2 * at + 1]));
      } else if constexpr (math == abi::MmaMath::tf32 || math == abi::MmaMath::tf32x3) {
        split_word(at, __uint_as_float(values[at]));
      } else {
        high[at] = values[at];
      }
    }
  }

 private:
  __device__ __forceinline__ void split_word(int at, float value) {
    high[at] = ptx::cvt_rna_tf32_f32(value);
    if constexpr (has_low) low[at] = ptx::cvt_rna_tf32_f32(rest(value, high[at]));
  }
  __device__ __forceinline__ void split_pair(int at, float first, float second) {
    if constexpr (abi::splits_to_float16(math)) {
      high[at] = ptx::cvt_rn_f16x2_f32(second, first);
      if constexpr (has_low)
        low[at] = ptx::cvt_rn_f16x2_f32(rest_of_float16(second, high[at] >> 16),
                                        rest_of_float16(first, high[at] & 0xffffU));
    } else {
      high[at] = ptx::cvt_rn_bf16x2_f32(second, first);
      if constexpr (has_low)
        low[at] = ptx::cvt_rn_bf16x2_f32(rest(second, high[at] & 0xffff0000U),
                                         rest(first, high[at] << 16));
    }
  }
  /// The remainder of a rounding, which is exact. It is 0 for infinities and NaN: otherwise its
  /// product with the other operand's trailing part would be NaN.
  __device__ __forceinline__ static float rest(float value, unsigned rounded) {
    const float left = value - __uint_as_float(rounded);
    return (rounded & 0x7f800000U) == 0x7f800000U ? 0.0F : left;
  }
  __device__ __forceinline__ static float rest_of_float16(float value, unsigned rounded) {
    const float left = value - ptx::cvt_f32_f16(rounded);
    return (rounded & 0x7c00U) == 0x7c00U ? 0.0F : left;
  }
};

template <const abi::Sm80Design& design>
struct WarpMma {
  using Accumulator = MmaAccumulator<design>;
  using Register = typename Accumulator::Register;

  /// sums += a * b, for one block of rows and one of columns.
  template <class FactorA, class FactorB>
  __device__ __forceinline__ static void multiply(Register (&sums)[Accumulator::registers],
                                                  const FactorA& a, const FactorB& b) {
    if constexpr (abi::is_mixed(design)) {
#pragma unroll
      for (int half = 0; half < 2; ++half) multiply_half(sums, a.high, b.high, half);
    } else if constexpr (products_of(design.math) == 3) {
      // Tensor cores truncate sums towards zero; over a long k that costs more than splitting
      // gains. So the products of a step are added up separately, the small ones first, and rounded
      // to nearest when they are added to the accumulators.
      Register step[Accumulator::registers]{};
      multiply_once(step, a.low, b.high);
      multiply_once(step, a.high, b.low);
      multiply_once(step, a.high, b.high);
#pragma unroll
      for (int at = 0; at < Accumulator::registers; ++at) sums[at] += step[at];
    } else {
      multiply_once(sums, a.high, b.high);
    }
  }

 private:
  static constexpr bool is_bfloat16 =
      abi::multiplied_type(design) != DType::float16 && !abi::splits_to_float16(design.math);

  /// One of the two mmas of a step of decoded codes.
  __device__ __forceinline__ static void multiply_half(Register (&sums)[Accumulator::registers],
                                                       const unsigned (&a)[8],
                                                       const unsigned (&b)[4], int half) {
    const unsigned of_a[4]{a[4 * half], a[4 * half + 1], a[4 * half + 2], a[4 * half + 3]};
    const unsigned of_b[2]{b[2 * half], b[2 * half + 1]};
    ptx::mma_m16n8k16<is_bfloat16>(sums, of_a, of_b);
  }

  template <int a_registers, int b_registers>
  __device__ __forceinline__ static void multiply_once(Register (&sums)[Accumulator::registers],
                                                       const unsigned (&a)[a_registers],
                                                       const unsigned (&b)[b_registers]) {
    if constexpr (design.accumulator == DType::float64) {
      multiply_doubles(sums, a, b);
    } else if constexpr (design.accumulator == DType::int32) {
      ptx::mma_m16n8k32<design.a == DType::int8, design.b == DType::int8,
                        design.math == abi::MmaMath::saturate>(sums, a, b);
    } else if constexpr (design.math == abi::MmaMath::tf32 || design.math == abi::MmaMath::tf32x3) {
      ptx::mma_m16n8k8_tf32(sums, a, b);
    } else if constexpr (abi::is_float8(design.a)) {
      ptx::mma_m16n8k32_f8<design.a == DType::float8_e4m3fn, design.b == DType::float8_e4m3fn>(
          sums, a, b);
    } else if constexpr (design.accumulator == DType::float16) {
      ptx::mma_m16n8k16_f16(sums, a, b);
    } else if constexpr (design.mma_k == 8) {
      ptx::mma_m16n8k8<is_bfloat16>(sums, a[0], a[1], b[0]);
      ptx::mma_m16n8k8<is_bfloat16>(sums, a[2], a[3], b[1]);
    } else {
      ptx::mma_m16n8k16<is_bfloat16>(sums, a, b);
    }
  }

  template <int a_registers, int b_registers>
  __device__ __forceinline__ static void multiply_doubles(Register (&sums)[Accumulator::registers],
                                                          const unsigned (&a)[a_registers],
                                                          const unsigned (&b)[b_registers]) {
    if constexpr (abi::step_k(design) == 4) {
      ptx::mma_m8n8k4(sums, number(a, 0), number(b, 0));
    } else {
      double a_numbers[a_registers / 2];
      double b_numbers[b_registers / 2];
#pragma unroll
      for (int at = 0; at < a_registers / 2; ++at) a_numbers[at] = number(a, at);
#pragma unroll
      for (int at = 0; at < b_registers / 2; ++at) b_numbers[at] = number(b, at);
      if constexpr (abi::step_k(design) == 8)
        ptx::mma_m16n8k8(sums, a_numbers, b_numbers);
      else
        ptx::mma_m16n8k16(sums, a_numbers, b_numbers);
    }
  }

  template <int registers>
  __device__ static double number(const unsigned (&words)[registers], int at) {
    return __hiloint2double(static_cast<int>(words[2 * at + 1]), static_cast<int>(words[2 * at]));
  }
};

}  // namespace gemmery::device
