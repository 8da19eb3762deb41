// SPDX-License-Identifier: Apache-2.0
// Scales and zero points of the operand that an sm80 kernel decodes. Scales multiply the sums of a
// group of k, in float32, or decoded codes where that is exact (abi::scales_codes); zero points are
// subtracted from decoded integers, exactly; codes with a table are looked up in registers.
//
//   scales in global memory
//     | at the beginning of a group of k: one load for each row (column) of a lane's accumulators
//   registers, as they are stored
//     | at the end of the group: sums += scale * (sum of the group)
//   accumulators
//
// Those of codes are loaded while the step of k before theirs is multiplied.
#pragma once

#include <device/abi/companions.hpp>
#include <device/abi/sm80_design.hpp>
#include <device/tile/companion.cuh>
#include <device/tile/decode_codes.cuh>
#include <device/tile/mma_accumulator.cuh>

namespace gemmery::device {

/// The place of a tile along the operand that has scales.
struct ScaledPanel {
  const abi::GroupedCompanionsParams* params = nullptr;
  unsigned batch = 0;
  unsigned first = 0;    // the tile's first row of A (column of B)
  unsigned extent = 1;   // of the matrix
  unsigned first_k = 0;  // of the share
  unsigned end_k = 0;
};

template <const abi::Sm80Design& design>
class Sm80Scales {
  static constexpr abi::CompanionTypes scales = design.scales;
  static constexpr bool is_a = abi::decodes_a(design);
  static constexpr abi::DType code = is_a ? design.a : design.b;
  static constexpr abi::DType number = abi::multiplied_type(design);
  using Blocks = WarpBlocks<design>;
  using Pair = DecodedPair<number>;
  using Sums = float[Blocks::rows][Blocks::columns][4];
  // Rows (columns) of a lane's accumulators, two in each block; and those whose codes it decodes.
  static constexpr int sum_values = 2 * (is_a ? Blocks::rows : Blocks::columns);
  static constexpr int parts = is_a ? 2 : 1;
  static constexpr int code_values = parts * (is_a ? Blocks::rows : Blocks::columns);

 public:
  static constexpr bool are_of_codes = abi::scales_codes(design);
  static constexpr bool multiply = scales.scale_count > 0 && !are_of_codes;

  __device__ __forceinline__ Sm80Scales(const ScaledPanel& panel, const WarpPlace<design>& place)
      : panel_(panel),
        first_k_(panel.first_k + place.slice * abi::warp_tile_k(design)),
        row_of_sums_(static_cast<int>(panel.first) +
                     (is_a ? place.row + place.lane / 4 : place.column + place.lane % 4 * 2)),
        row_of_codes_(static_cast<int>(panel.first) + (is_a ? place.row : place.column) +
                      place.lane / 4) {
    if constexpr (are_of_codes) {
      first_k_ += place.lane % 4 * 8;  // of the lane's codes
      load_ahead(0);
      take_loaded();
    } else {
      begin(first_k_);
    }
    if constexpr (scales.has_table)
      table_ = make_register_table<number>(panel.params->companions.table);
  }

  /// Loads the scales of a step's codes; its first k counts from the beginning of the share.
  __device__ __forceinline__ void load_ahead(unsigned step_k) {
    const unsigned k = min(first_k_ + step_k, panel_.end_k - 1);
#pragma unroll
    for (int value = 0; value < code_values; ++value)
      loaded_[value] = load_companion<scales.scales[0], scales.are_swizzled[0]>(
          panel_.params->companions.scales[0], panel_.batch, within(row_of_codes_ + 8 * value), k);
  }
  /// Makes these the scales of the current step.
  __device__ __forceinline__ void take_loaded() {
#pragma unroll
    for (int value = 0; value < code_values; ++value)
      of_codes_[value] = pair_of(decode_companion<scales.scales[0]>(loaded_[value]));
  }
  /// The scales of a block's rows, in both halves of registers.
  __device__ __forceinline__ void scales_of(unsigned (&pairs)[parts], int block) const {
#pragma unroll
    for (int part = 0; part < parts; ++part) pairs[part] = of_codes_[block * parts + part];
  }

  /// Adds what a step of k has completed to `sums`. `next_k`: from the beginning of the share, the
  /// first k of this warp's next step; `is_last`: there is none.
  __device__ __forceinline__ void end_step(Sums& sums, Sums& group, unsigned next_k, bool is_last) {
    const unsigned k = first_k_ + next_k;
    if (!is_last && panel_.params->group.divide(k) == group_) return;
    if constexpr (multiply) add_group(sums, group);
    if (!is_last) begin(k);
  }

  __device__ __forceinline__ const RegisterTable& table() const { return table_; }

  /// The negative zero points of a block's rows, in both halves of registers.
  __device__ __forceinline__ void minus_zeros(unsigned (&zeros)[parts], int block) const {
#pragma unroll
    for (int part = 0; part < parts; ++part)
      zeros[part] = scales.has_zero_point ? minus_zeros_[block * parts + part] : 0;
  }

 private:
  /// Rows (columns) beyond the matrix get values of its last one.
  __device__ __forceinline__ unsigned within(int row) const {
    return min(static_cast<unsigned>(row), panel_.extent - 1);
  }

  __device__ __forceinline__ void begin(unsigned k) {
    group_ = panel_.params->group.divide(k);
    is_there_ = k < panel_.end_k;
    const unsigned last = panel_.end_k - 1;
    const unsigned of_group = min(k, last);
    if constexpr (multiply) {
#pragma unroll
      for (int value = 0; value < sum_values; ++value) {
        // A: rows t / 4 and 8 further; B: adjacent columns.
        const int row = row_of_sums_ + (is_a ? 8 * value : value / 2 * 8 + value % 2);
        first_[value] = load_companion<scales.scales[0], scales.are_swizzled[0]>(
            panel_.params->companions.scales[0], panel_.batch, within(row), of_group);
        if constexpr (scales.scale_count > 1)
          second_[value] = load_companion<scales.scales[1], scales.are_swizzled[1]>(
              panel_.params->companions.scales[1], panel_.batch, within(row), of_group);
      }
    }
    if constexpr (scales.has_zero_point) {
#pragma unroll
      for (int value = 0; value < code_values; ++value)
        minus_zeros_[value] = minus_pair(load_companion<scales.zero_point, false>(
            panel_.params->companions.zero_point, panel_.batch, within(row_of_codes_ + 8 * value),
            of_group));
    }
  }

  __device__ __forceinline__ static unsigned minus_pair(unsigned bits) {
    return pair_of(-decode_companion<scales.zero_point>(bits));
  }
  __device__ __forceinline__ static unsigned pair_of(float value) {
    if constexpr (Pair::is_f16) return ptx::cvt_rn_f16x2_f32(value, value);
    return ptx::cvt_rn_bf16x2_f32(value, value);
  }

  __device__ __forceinline__ float scale_of(int value) const {
    const float first = decode_companion<scales.scales[0]>(first_[value]);
    if constexpr (scales.scale_count < 2) return first;
    return first * decode_companion<scales.scales[1]>(second_[value]);
  }

  /// A group that lies beyond k has sums of 0, which its scales must not multiply.
  __device__ __forceinline__ void add_group(Sums& sums, Sums& group) const {
    float values[sum_values];
#pragma unroll
    for (int value = 0; value < sum_values; ++value)
      values[value] = is_there_ ? scale_of(value) : 0.0F;
#pragma unroll
    for (int row = 0; row < Blocks::rows; ++row) {
#pragma unroll
      for (int column = 0; column < Blocks::columns; ++column) {
#pragma unroll
        for (int at = 0; at < 4; ++at) {
          // Accumulators 0 and 1 are adjacent columns, 2 and 3 those of the row 8 further.
          const float scale = values[is_a ? 2 * row + at / 2 : 2 * column + at % 2];
          sums[row][column][at] = __fmaf_rn(scale, group[row][column][at], sums[row][column][at]);
          group[row][column][at] = 0;
        }
      }
    }
  }

  const ScaledPanel panel_;
  unsigned first_k_;  // of this warp
  int row_of_sums_;
  int row_of_codes_;
  unsigned group_;
  bool is_there_;
  unsigned first_[multiply ? sum_values : 1];
  unsigned second_[scales.scale_count > 1 ? sum_values : 1];
  unsigned minus_zeros_[scales.has_zero_point ? code_values : 1];
  unsigned loaded_[are_of_codes ? code_values : 1];
  unsigned of_codes_[are_of_codes ? code_values : 1];
  RegisterTable table_;
};

/// Of a kernel without scales.
struct NoScales {
  static constexpr bool multiply = false;
  static constexpr bool are_of_codes = false;
  template <class Place>
  __device__ __forceinline__ NoScales(const ScaledPanel&, const Place&) {}
};
template <const abi::Sm80Design& design, bool has_scales = design.scales.are_used()>
struct ScalesOf {
  using Type = NoScales;
};
template <const abi::Sm80Design& design>
struct ScalesOf<design, true> {
  using Type = Sm80Scales<design>;
};

/// Accumulators of a group of k, or none.
template <class Sums, bool has_sums>
struct GroupSumsOf {
  struct Type {};
};
template <class Sums>
struct GroupSumsOf<Sums, true> {
  struct Type {
    Sums sums;
  };
};

}  // namespace gemmery::device
