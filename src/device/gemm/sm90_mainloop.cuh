// SPDX-License-Identifier: Apache-2.0
// The multiplying phase of sm90 kernels: the mainloop over the k of a tile. wgmmas read the stages
// of the pipeline and add to a consumer's accumulators.
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/gemm/sm90_phases.cuh>
#include <device/gemm/sm90_places.cuh>
#include <device/gemm/sm90_shared.cuh>
#include <device/mma/wgmma.cuh>
#include <device/ptx/fence.cuh>

namespace gemmery::device {

/// The transposition of stages of a design that needs none.
template <const abi::Sm90Design& design>
struct NoTranspose {
  __device__ explicit NoTranspose(unsigned) {}
  __device__ void transpose_stage(Sm90Shared<design>&, unsigned) const {}
};

template <const abi::Sm90Design& design>
class Sm90Mainloop {
 public:
  using Shared = Sm90Shared<design>;
  using Ring = Sm90Ring<design>;
  using Cursor = typename Ring::Cursor;
  using Stage = typename Ring::Filled;
  using Sums = ConsumerSums<design>;

  __device__ Sm90Mainloop(Shared& shared, const Ring& ring) : shared_(shared), ring_(ring) {}

  /// The mainloop. A stage is released one step late: then the wgmmas that read it have completed,
  /// while those of the next stage are in flight. Returns the last stage, which is not released.
  /// `depth`: the tile's elements of k, if groups differ in them, otherwise no limit.
  template <bool begins_apart>
  __device__ __forceinline__ Stage multiply_tile(Cursor& cursor, unsigned consumer,
                                                 unsigned k_blocks, unsigned depth,
                                                 Sums& sums) const {
    if constexpr (abi::scales_products(design))
      return multiply_scaled(cursor, consumer, k_blocks, depth, sums);
    if constexpr (abi::is_promoted(design))
      return multiply_promoted(cursor, consumer, k_blocks, depth, sums);
    if constexpr (design.a_by_registers)
      return multiply_by_registers(cursor, consumer, k_blocks, depth);
    Stage previous;
    const Transpose transpose(consumer);
    const Share share = Places::share_of(consumer);
    const auto multiply_next = [&](bool keeps_sums) {
      const Stage stage = wait_for_stage(cursor, transpose, consumer, depth);
      const MatrixDescriptor a = a_of(cursor.stage, share.row);
      const MatrixDescriptor b = b_of(cursor.stage, share.column);
      multiply_stage<design>(a, b, keeps_sums);
      cursor.advance();
      return stage;
    };
    if constexpr (begins_apart) previous = multiply_next(false);
#pragma unroll 1
    for (unsigned k_block = begins_apart ? 1 : 0; k_block < k_blocks; ++k_block) {
      const bool is_later = begins_apart || k_block > 0;
      const Stage stage = multiply_next(is_later);
      ptx::wgmma_wait_group<1>();
      if (is_later) ring_.release(previous, lane());
      previous = stage;
    }
    return previous;
  }

  /// Waits for the last wgmmas and releases the stage that multiply_tile has kept.
  __device__ __forceinline__ void finish_sums(Sums& sums, const Stage& last_stage) const {
    ptx::wgmma_wait_group<0>();
    sums.fetch();
    ring_.release(last_stage, lane());
  }

 private:
  using Places = Sm90Places<design>;
  using Share = typename Places::Share;
  using Transpose = typename PhaseIf<abi::transposes_a(design) || abi::transposes_b(design),
                                     Sm90Transpose<design>, NoTranspose<design>>::Type;
  /// A, if it goes through registers.
  using RegisterA = typename PhaseIf<abi::decodes_a(design), DecodedOperand<design>,
                                     RegisterOperand<design>>::Type;
  using DecodedA = typename PhaseIf<abi::decodes_a(design), DecodedOperand<design>>::Type;
  static constexpr unsigned scale_parts =
      abi::has_scales(design) && abi::decodes_a(design) ? abi::scale_parts(design) : 1;

  /// The same if A goes through registers. The previous stage is released as soon as its last
  /// wgmmas have completed.
  __device__ __forceinline__ Stage multiply_by_registers(Cursor& cursor, unsigned consumer,
                                                         unsigned k_blocks, unsigned depth) const {
    const Share share = Places::share_of(consumer);
    const RegisterA a = register_a(share);
    const Transpose transpose(consumer);
    Stage previous;
#pragma unroll 1
    for (unsigned k_block = 0; k_block < k_blocks; ++k_block) {
      const Stage stage = wait_for_stage(cursor, transpose, consumer, depth);
      multiply_steps_by_registers(a, cursor.stage, share, 0, k_block > 0, [&] {
        if (k_block > 0) ring_.release(previous, lane());
      });
      cursor.advance();
      previous = stage;
    }
    return previous;
  }

  static constexpr unsigned steps_of_stage = abi::sm90_swizzle_bytes / step_bytes;

  __device__ __forceinline__ RegisterA register_a(const Share& share) const {
    const unsigned thread = threadIdx.x % abi::warpgroup_threads;
    if constexpr (abi::has_scales(design))
      return RegisterA(share.row, thread, ptx::cvta_shared(&shared_.scales));
    else
      return RegisterA(share.row, thread, 0);
  }

  /// Multiplies one stage, or some of its steps from the first-th on. The fragments of A for a step
  /// of 32 bytes of k of B are read while the wgmmas of the previous step are in flight, into other
  /// registers. Calls `pass_first` when only wgmmas of this stage are in flight. On return the
  /// wgmmas of the last step are still in flight.
  template <unsigned steps = steps_of_stage, class PassFirst>
  __device__ __forceinline__ void multiply_steps_by_registers(const RegisterA& a, unsigned stage,
                                                              const Share& share, unsigned first,
                                                              bool keeps_sums,
                                                              PassFirst&& pass_first) const {
    using Fragments = typename RegisterA::Fragments;
    constexpr unsigned next = next_step(MultipliedMajors<design>::b);
    constexpr unsigned steps_of_part = steps_of_stage / scale_parts;
    const unsigned a_stage = ptx::cvta_shared(&shared_.a) + stage * sizeof shared_.a[0];
    const MatrixDescriptor b = b_of(stage, share.column) + first * next;
    Fragments words;
    Fragments fragments[2];
    typename RegisterA::Companions companions;
    a.read(words, a_stage, first);
    a.read_companions(companions, stage, first);
#pragma unroll
    for (unsigned step = 0; step < steps; ++step) {
      a.arrange(fragments[step % 2], words, companions);
      multiply_fragments<design>(fragments[step % 2], b + step * next, step > 0 || keeps_sums);
      if (step + 1 < steps) {
        a.read(words, a_stage, first + step + 1);
        if ((step + 1) % steps_of_part == 0) a.read_companions(companions, stage, first + step + 1);
      }
      ptx::wgmma_wait_group<1>();
      if (step == 0) pass_first();
    }
  }

  /// Multiplies one stage.
  __device__ __forceinline__ void multiply_whole_stage(unsigned stage, const Share& share,
                                                       unsigned thread) const {
    if constexpr (abi::splits_operands(design.math)) {
      Sm90OperandParts<design>::multiply_stage(shared_, stage, share.row, share.column);
    } else if constexpr (design.a_by_registers) {
      multiply_steps_by_registers(RegisterA(share.row, thread, 0), stage, share, 0, false, [] {});
    } else {
      multiply_stage<design>(a_of(stage, share.row), b_of(stage, share.column), false);
    }
  }

  /// The same for promoted accumulators: the products of each stage are added to them. While one
  /// consumer adds, the tensor cores multiply for another.
  __device__ __forceinline__ Stage multiply_promoted(Cursor& cursor, unsigned consumer,
                                                     unsigned k_blocks, unsigned depth,
                                                     Sums& sums) const {
    const Transpose transpose(consumer);
    const Share share = Places::share_of(consumer);
    Stage stage = wait_for_stage(cursor, transpose, consumer, depth);
#pragma unroll 1
    for (unsigned k_block = 0; k_block < k_blocks; ++k_block) {
      multiply_whole_stage(cursor.stage, share, threadIdx.x % abi::warpgroup_threads);
      cursor.advance();
      Stage next = stage;
      const bool is_last = k_block + 1 == k_blocks;
      if (!is_last) next = wait_for_stage(cursor, transpose, consumer, depth);
      ptx::wgmma_wait_group<0>();
      if (!is_last) ring_.release(stage, lane());
      if (k_block == 0)
        sums.take();
      else
        sums.add();
      stage = next;
    }
    return stage;
  }

  __device__ __forceinline__ DecodedA decoded_a(const Share& share) const {
    if constexpr (abi::decodes_a(design))
      return register_a(share);
    else
      return {};
  }

  /// The same with scales: the products of each part of a stage's k are scaled and added. Scales
  /// are read from the stage, which is released after that.
  __device__ __forceinline__ Stage multiply_scaled(Cursor& cursor, unsigned consumer,
                                                   unsigned k_blocks, unsigned depth,
                                                   Sums& sums) const {
    constexpr unsigned parts = abi::scale_parts(design);
    const Transpose transpose(consumer);
    const Share share = Places::share_of(consumer);
    const Sm90ScaledSums<design> scaled(shared_, share.row, share.column);
    const DecodedA decoded = decoded_a(share);
    scaled.clear(sums);
    Stage stage = wait_for_stage(cursor, transpose, consumer, depth);
#pragma unroll 1
    for (unsigned k_block = 0; k_block < k_blocks; ++k_block) {
      const unsigned here = cursor.stage;
      const bool is_last = k_block + 1 == k_blocks;
      Stage next = stage;
      cursor.advance();
#pragma unroll 1
      for (unsigned part = 0; part < parts; ++part) {
        multiply_part<parts>(decoded, here, share, part);
        if (part + 1 == parts && !is_last)
          next = wait_for_stage(cursor, transpose, consumer, depth);
        ptx::wgmma_wait_group<0>();
        scaled.add(sums, here, part);
      }
      __syncwarp();  // waits until all lanes have read the scales
      if (!is_last) ring_.release(stage, lane());
      stage = next;
    }
    return stage;
  }

  /// Multiplies one of the parts of a stage's k.
  template <unsigned parts>
  __device__ __forceinline__ void multiply_part(const DecodedA& decoded, unsigned stage,
                                                const Share& share, unsigned part) const {
    if constexpr (abi::decodes_a(design)) {
      constexpr unsigned steps = steps_of_stage / parts;
      multiply_steps_by_registers<steps>(decoded, stage, share, part * steps, false, [] {});
    } else if constexpr (parts == 1) {
      multiply_whole_stage(stage, share, threadIdx.x % abi::warpgroup_threads);
    } else {
      constexpr unsigned steps = abi::sm90_swizzle_bytes / step_bytes / parts;
      const unsigned first = part * steps * next_step(abi::Major::k);
      multiply_stage<design, steps>(a_of(stage, share.row) + first,
                                    b_of(stage, share.column) + first, false);
    }
  }

  /// Waits for a stage and transposes or splits its operands if wgmma requires it. `k_left`: the
  /// elements of k of the group from this stage on; it is decreased by a stage.
  __device__ __forceinline__ Stage wait_for_stage(const Cursor& cursor, const Transpose& transpose,
                                                  unsigned consumer, unsigned& k_left) const {
    const Stage stage = ring_.wait_for_stage(cursor);
    // Rows that threads have copied become visible to wgmmas.
    if constexpr (design.gathers_rows) ptx::fence_proxy_async();
    if constexpr (design.has_groups && !abi::decodes_a(design)) {  // groups divide no k of codes
      constexpr unsigned tile_k = abi::tile_k(design);
      if (k_left < tile_k) Sm90GroupTail<design>::clear(shared_, cursor.stage, consumer, k_left);
      k_left -= min(k_left, tile_k);
    }
    if constexpr (abi::rounds_rows(design))
      Sm90Rounding<design>::round_stage(shared_, cursor.stage, consumer);
    transpose.transpose_stage(shared_, cursor.stage);
    if constexpr (abi::splits_operands(design.math))
      Sm90OperandParts<design>::split_stage(shared_, cursor.stage, consumer);
    return stage;
  }

  __device__ static unsigned lane() { return threadIdx.x % 32; }

  __device__ __forceinline__ MatrixDescriptor a_of(unsigned stage, unsigned first_row) const {
    return describe_matrix<sizeof shared_.a[0]>(
        ptx::cvta_shared(&shared_.a) + first_row * abi::sm90_swizzle_bytes, stage);
  }
  /// `first_column` is 0, a row of a K-major tile at which the swizzle repeats, or the first column
  /// of an atom.
  __device__ __forceinline__ MatrixDescriptor b_of(unsigned stage, unsigned first_column) const {
    return describe_matrix<sizeof shared_.b[0]>(
        ptx::cvta_shared(&shared_.b) + first_column * abi::sm90_swizzle_bytes, stage);
  }

  Shared& shared_;
  const Ring ring_;
};

}  // namespace gemmery::device
