// SPDX-License-Identifier: Apache-2.0
// The accumulators of mma.sync: those of a lane, and their places in the tile of an sm80 kernel.
#pragma once

#include <device/abi/sm80_design.hpp>
#include <device/ptx/convert.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

/// The accumulators of one mma in a lane, as registers and as numbers: float16 accumulators, two
/// per register, are read as float32.
template <const abi::Sm80Design& design>
struct MmaAccumulator {
  static constexpr bool is_half = design.accumulator == DType::float16;
  static constexpr int numbers = abi::mma_shape(design).m / 4;
  static constexpr int registers = is_half ? 2 : numbers;
  using Number = typename ArithmeticOf<design.accumulator>::Accumulator;
  template <bool packs, class Plain>
  struct RegisterOf {
    using Type = Plain;
  };
  template <class Plain>
  struct RegisterOf<true, Plain> {
    using Type = unsigned;
  };
  using Register = typename RegisterOf<is_half, Number>::Type;

  __device__ __forceinline__ static void read(Number (&values)[numbers],
                                              const Register (&sums)[registers]) {
    if constexpr (is_half) {
#pragma unroll
      for (int pair = 0; pair < registers; ++pair) {
        values[2 * pair] = ptx::cvt_f32_f16(static_cast<unsigned short>(sums[pair]));
        values[2 * pair + 1] = ptx::cvt_f32_f16(static_cast<unsigned short>(sums[pair] >> 16));
      }
    } else {
#pragma unroll
      for (int at = 0; at < numbers; ++at) values[at] = sums[at];
    }
  }
  __device__ __forceinline__ static void write(Register (&sums)[registers],
                                               const Number (&values)[numbers]) {
    if constexpr (is_half) {
#pragma unroll
      for (int pair = 0; pair < registers; ++pair)
        sums[pair] = ptx::cvt_rn_f16x2_f32(values[2 * pair + 1], values[2 * pair]);
    } else {
#pragma unroll
      for (int at = 0; at < numbers; ++at) sums[at] = values[at];
    }
  }
};

/// A warp's place among the warps of its block: its tile begins at `row` and `column` of the
/// block's; `slice` is its share of each block of k.
template <const abi::Sm80Design& design>
struct WarpPlace {
  int row;
  int column;
  int slice;
  int lane;

  __device__ explicit WarpPlace(int thread)
      : row(thread / 32 % design.warps_m * abi::warp_tile_m(design)),
        column(thread / 32 / design.warps_m % design.warps_n * abi::warp_tile_n(design)),
        slice(thread / 32 / (design.warps_m * design.warps_n)),
        lane(thread % 32) {}
};

/// The mmas that cover a warp's tile, and the accumulators of a lane in each: rows lane / 4 (and
/// + 8), columns from lane % 4 * 2.
template <const abi::Sm80Design& design>
struct WarpBlocks {
  static constexpr int rows = abi::warp_tile_m(design) / abi::mma_shape(design).m;
  static constexpr int columns = abi::warp_tile_n(design) / 8;
};

}  // namespace gemmery::device
