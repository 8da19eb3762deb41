// SPDX-License-Identifier: Apache-2.0
// Multiplication of one stage by a warpgroup: operands in shared memory, accumulators in registers.
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/ptx/fence.cuh>
#include <device/ptx/part_sums.cuh>
#include <device/ptx/wgmma.cuh>
#include <device/tile/matrix_descriptor.cuh>
#include <device/tile/operand_fragments.cuh>

namespace gemmery::device {

/// A register of accumulators: one float32 or int32, or two float16.
template <abi::DType accumulator>
struct SumRegister {
  using Type = float;
};
template <>
struct SumRegister<abi::DType::float16> {
  using Type = unsigned;
};
template <>
struct SumRegister<abi::DType::int32> {
  using Type = int;
};

/// A consumer's accumulators: those of one wgmma for each of its blocks of 64 rows. Thread t of
/// the warpgroup holds, as element 4 * j + 2 * h + e, row t / 32 * 16 + t % 32 / 4 + 8 * h and
/// column 8 * j + t % 4 * 2 + e (PTX ISA, wgmma accumulator fragment). Of float16, elements e = 0
/// and 1 are the low and the high half of register 2 * j + h. With pairs of rows, the row is t / 32
/// * 16 + t % 32 / 4 * 2 + h (abi::has_row_pairs, first_row_of_lane, second_row_distance).
template <const abi::Sm90Design& design>
struct WarpgroupSums {
  using Register = typename SumRegister<design.accumulator>::Type;
  static constexpr int blocks = abi::blocks_per_consumer(design);
  static constexpr int per_block = abi::accumulator_registers(design) / blocks;
  static constexpr bool are_registers = false;  // of wgmma
  Register block[blocks][per_block];

  /// Reads the part-th `count` registers of a block of rows.
  template <int count>
  __device__ __forceinline__ void read(Register (&values)[count], int row, int part) const {
#pragma unroll
    for (int index = 0; index < count; ++index) values[index] = block[row][part * count + index];
  }
};

/// The same in registers that PTX declares and wgmmas write. They may be read only after a wait for
/// the wgmmas.
template <const abi::Sm90Design& design>
struct WgmmaSums {
  using Register = typename WarpgroupSums<design>::Register;
  static constexpr int blocks = WarpgroupSums<design>::blocks;
  static constexpr int per_block = WarpgroupSums<design>::per_block;
  static constexpr bool are_registers = true;
  static constexpr int first_block = 0;

  /// Called once, at the beginning of the kernel.
  template <int row = 0>
  __device__ __forceinline__ static void declare() {
    ptx::declare_sums<row, per_block>();
    if constexpr (row + 1 < blocks) declare<row + 1>();
  }

  /// Reads the part-th `count` registers of a block of rows. PTX text names them, so `row` and
  /// `part` must be constants once loops are unrolled: then one candidate remains.
  template <int count, int first_block = 0, int candidate = 0>
  __device__ __forceinline__ static void read(Register (&values)[count], int row, int part) {
    constexpr int parts = per_block / count;
    if (row * parts + part == candidate) {
      read_from<first_block + candidate / parts, candidate % parts * count>(values);
    } else if constexpr (candidate + 1 < blocks * parts) {
      read<count, first_block, candidate + 1>(values, row, part);
    }
  }

  /// Sets float32 accumulators beyond out to 0; out has `rows` and `columns` from the thread's
  /// first one on. The wgmmas must have been waited for.
  template <int row = 0, int eight = 0>
  __device__ __forceinline__ static void clear_beyond(int rows, int columns) {
    static_assert(design.accumulator == abi::DType::float32);
    bool are_beyond[4];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int left = rows > row * abi::sm90_block_rows + 8 * half ? columns : 0;
#pragma unroll
      for (int column = 0; column < 2; ++column)
        are_beyond[2 * half + column] = left <= 8 * eight + column;
    }
    ptx::clear_sums<row, 4 * eight>(are_beyond);
    if constexpr (4 * (eight + 1) < per_block)
      clear_beyond<row, eight + 1>(rows, columns);
    else if constexpr (row + 1 < blocks)
      clear_beyond<row + 1>(rows, columns);
  }

  /// Reads all of them.
  template <int row = 0>
  __device__ __forceinline__ static void read(WarpgroupSums<design>& sums) {
    read_from<row, 0>(sums.block[row]);
    if constexpr (row + 1 < blocks) read<row + 1>(sums);
  }

  /// Writes all of them; no wgmma may be adding to them.
  template <int row = 0, int first = 0>
  __device__ __forceinline__ static void write(const WarpgroupSums<design>& sums) {
    ptx::write_sums<row, first>(&sums.block[row][first]);
    if constexpr (first + 4 < per_block)
      write<row, first + 4>(sums);
    else if constexpr (row + 1 < blocks)
      write<row + 1>(sums);
  }

 private:
  /// A thread's registers in 16 columns.
  static constexpr int per_sixteen = per_block * 16 / abi::columns_per_consumer(design);

  template <int row, int first, int index = 0, int count>
  __device__ __forceinline__ static void read_from(Register (&values)[count]) {
    static_assert(count % per_sixteen == 0);
    constexpr int together =
        per_sixteen == 8 && index + 16 <= count ? 16 : per_sixteen;  // in one statement
    ptx::read_sums<row, first + index, together>(&values[index]);
    if constexpr (index + together < count) read_from<row, first, index + together>(values);
  }
};

/// The accumulators of a consumer that adds the products of each block of k by FADD, which rounds
/// to nearest. wgmmas of 8-bit floats keep only 13 bits of the accumulator.
template <const abi::Sm90Design& design>
struct PromotedSums : WarpgroupSums<design> {
  /// Takes the products of the first block of k; its wgmmas must have been waited for.
  __device__ __forceinline__ void take() { WgmmaSums<design>::read(*this); }
  /// Adds the products of the next block of k; its wgmmas must have been waited for.
  __device__ __forceinline__ void add() {
    WarpgroupSums<design> products;
    WgmmaSums<design>::read(products);
#pragma unroll
    for (int row = 0; row < PromotedSums::blocks; ++row) {
#pragma unroll
      for (int index = 0; index < PromotedSums::per_block; ++index)
        this->block[row][index] += products.block[row][index];
    }
  }
};

/// The same in registers that PTX declares, beside those that wgmmas write: as blocks of rows after
/// theirs. No value of C++ carries them through the loop over k.
template <const abi::Sm90Design& design>
struct TotalSums {
  using Products = WgmmaSums<design>;
  using Register = typename Products::Register;
  static constexpr int blocks = Products::blocks;
  static constexpr int per_block = Products::per_block;
  static constexpr bool are_registers = true;
  static constexpr int first_block = blocks;

  template <int row = 0>
  __device__ __forceinline__ static void declare() {
    ptx::declare_sums<first_block + row, per_block>();
    if constexpr (row + 1 < blocks) declare<row + 1>();
  }

  __device__ __forceinline__ static void take() { update<true>(); }
  __device__ __forceinline__ static void add() { update<false>(); }

  template <int count>
  __device__ __forceinline__ static void read(Register (&values)[count], int row, int part) {
    Products::template read<count, first_block>(values, row, part);
  }

 private:
  static constexpr int together = per_block % 16 == 0 ? 16 : 8;  // in one statement

  template <bool takes, int row = 0, int first = 0>
  __device__ __forceinline__ static void update() {
    if constexpr (takes)
      ptx::copy_sums<first_block + row, row, first, together>();
    else
      ptx::add_sums<first_block + row, row, first, together>();
    if constexpr (first + together < per_block)
      update<takes, row, first + together>();
    else if constexpr (row + 1 < blocks)
      update<takes, row + 1>();
  }
};

/// The form in which a consumer passes its accumulators to the epilogue. registers: wgmma's
/// registers; the epilogue reads few at a time, so the compiler keeps few of them alive. values:
/// C++ values, which blocks of a cluster exchange. promoted: promoted accumulators, which are C++
/// values. promoted_registers: promoted accumulators, copied back to wgmma's registers for the
/// exchange through the workspace. totals: promoted accumulators in registers of their own.
enum class SumsForm : unsigned char { registers, values, promoted, promoted_registers, totals };

GEMMERY_HOST_DEVICE
constexpr SumsForm sums_form(const abi::Sm90Design& design) {
  if (!abi::is_promoted(design)) return design.split_k > 1 ? SumsForm::values : SumsForm::registers;
  if (abi::totals_registers(design)) return SumsForm::totals;
  const bool is_in_cluster = design.split == abi::SplitMode::none || design.split_k > 1;
  return is_in_cluster ? SumsForm::promoted : SumsForm::promoted_registers;
}

template <const abi::Sm90Design& design, SumsForm form = sums_form(design)>
struct ConsumerSums : WgmmaSums<design> {
  /// Called when the last wgmmas of a tile are complete.
  __device__ static void fetch() {}
};
template <const abi::Sm90Design& design>
struct ConsumerSums<design, SumsForm::values> : WarpgroupSums<design> {
  __device__ __forceinline__ void fetch() { WgmmaSums<design>::read(*this); }
};
template <const abi::Sm90Design& design>
struct ConsumerSums<design, SumsForm::promoted> : PromotedSums<design> {
  __device__ static void fetch() {}
};
template <const abi::Sm90Design& design>
struct ConsumerSums<design, SumsForm::totals> : TotalSums<design> {
  __device__ static void fetch() {}
};
template <const abi::Sm90Design& design>
struct ConsumerSums<design, SumsForm::promoted_registers> : PromotedSums<design> {
  using Registers = WgmmaSums<design>;
  static constexpr bool are_registers = true;
  static constexpr int first_block = 0;
  __device__ __forceinline__ void fetch() { Registers::write(*this); }

  template <int count>
  __device__ __forceinline__ void read(typename Registers::Register (&values)[count], int row,
                                       int part) const {
    Registers::read(values, row, part);
  }
};

/// The majors of the operands in shared memory when wgmma reads them.
template <const abi::Sm90Design& design>
struct MultipliedMajors {
  static constexpr abi::DType type = abi::multiplied_a(design);
  static constexpr abi::Major a = abi::multiplied_major(type, design.a_major);
  static constexpr abi::Major b = abi::multiplied_major(type, design.b_major);
};

/// Like multiply_stage, for 32 bytes of k and the consumer's blocks of 64 rows from the row-th on.
/// `next_rows` is added to A's descriptor for the next block.
template <const abi::Sm90Design& design, unsigned next_rows = next_64_rows, int row = 0>
__device__ __forceinline__ void multiply_step(MatrixDescriptor a, MatrixDescriptor b,
                                              bool keeps_sums) {
  using Majors = MultipliedMajors<design>;
  ptx::wgmma<row, Majors::a != abi::Major::k, Majors::b != abi::Major::k>(a, b,
                                                                          keeps_sums ? 1U : 0U);
  if constexpr (row + 1 < WgmmaSums<design>::blocks)
    multiply_step<design, next_rows, row + 1>(a + next_rows, b, keeps_sums);
}

/// Like multiply_stage, for 32 bytes of k and all of the consumer's blocks of rows, with A in
/// registers, as one group of wgmmas in flight.
template <const abi::Sm90Design& design, int row = 0>
__device__ __forceinline__ void multiply_fragments(
    const OperandFragments<WgmmaSums<design>::blocks>& a, MatrixDescriptor b, bool keeps_sums) {
  if constexpr (row == 0) ptx::wgmma_fence();
  ptx::wgmma<row, MultipliedMajors<design>::b != abi::Major::k>(a.block[row], b,
                                                                keeps_sums ? 1U : 0U);
  if constexpr (row + 1 < WgmmaSums<design>::blocks)
    multiply_fragments<design, row + 1>(a, b, keeps_sums);
  else
    ptx::wgmma_commit_group();
}

/// accumulators += a b over 16 k, as one group of wgmmas in flight, with the same `a` for all of
/// the consumer's blocks of rows. Both operands are M- or N-major.
template <const abi::Sm90Design& design, int row = 0>
__device__ __forceinline__ void add_to_all_rows(MatrixDescriptor a, MatrixDescriptor b) {
  if constexpr (row == 0) ptx::wgmma_fence();
  ptx::wgmma<row, true, true>(a, b, 1U);
  if constexpr (row + 1 < WgmmaSums<design>::blocks)
    add_to_all_rows<design, row + 1>(a, b);
  else
    ptx::wgmma_commit_group();
}

/// accumulators (+)= a b over the k of one stage, or of some of its steps, as one group of wgmmas
/// in flight. `a` describes the consumer's first rows, `b` its first columns. Previous values are
/// added only with `keeps_sums`.
template <const abi::Sm90Design& design, int steps = abi::sm90_swizzle_bytes / step_bytes>
__device__ __forceinline__ void multiply_stage(MatrixDescriptor a, MatrixDescriptor b,
                                               bool keeps_sums) {
  using Majors = MultipliedMajors<design>;
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < steps; ++step) {
    multiply_step<design>(a + step * next_step(Majors::a), b + step * next_step(Majors::b),
                          keeps_sums || step > 0);
  }
  ptx::wgmma_commit_group();
}

}  // namespace gemmery::device
