// SPDX-License-Identifier: Apache-2.0
// GEMM on CUDA cores for any types, strides and sizes: out = alpha * a b + beta * c, or an emitted
// epilogue of a b.
//
//   A, B in global memory
//     | copy/stage_operand: `stages` blocks of k in flight, decoded to words, zeros beyond edges
//   [k][m], [k][n] in shared memory, a ring of `stages` slots
//     | mma/simt: 16-byte reads, the next k's operands while the current k multiplies
//   thread_m x thread_n accumulators in each thread
//     | reduce_slices: if groups of threads split k, adds accumulators in a fixed order
//     | epilogue/linear_combination: alpha, beta * c, rounding, vector stores;
//     | or epilogue/thread_tile: a program, its further results and reductions
//   out in global memory
#pragma once

#include <device/abi/groups.hpp>
#include <device/abi/simt_design.hpp>
#include <device/abi/simt_params.hpp>
#include <device/copy/code_operand.cuh>
#include <device/copy/scale_operand.cuh>
#include <device/copy/stage_operand.cuh>
#include <device/epilogue/indexed_tile.cuh>
#include <device/epilogue/linear_combination.cuh>
#include <device/epilogue/operand_program.cuh>
#include <device/epilogue/thread_tile.cuh>
#include <device/mma/simt.cuh>
#include <device/ptx/async_copy.cuh>
#include <device/tile/batch.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

GEMMERY_HOST_DEVICE
constexpr OperandPlan a_plan(const abi::SimtDesign& design) {
  return {.dtype = design.a,
          .is_along_k = design.a_contiguity == abi::Contiguity::row_major,
          .is_along_extent = design.a_contiguity == abi::Contiguity::column_major,
          .vector_elements = abi::elements_of(design.a, design.a_vector_bytes),
          .extent = design.tile_m,
          .k_elements = design.tile_k,
          .k_per_word = abi::k_per_word(design),
          .word_bytes = abi::word_bytes(design),
          .pitch = abi::staged_pitch(design, design.tile_m),
          .threads = abi::thread_count(design)};
}

GEMMERY_HOST_DEVICE
constexpr OperandPlan b_plan(const abi::SimtDesign& design) {
  return {.dtype = design.b,
          .is_along_k = design.b_contiguity == abi::Contiguity::column_major,
          .is_along_extent = design.b_contiguity == abi::Contiguity::row_major,
          .vector_elements = abi::elements_of(design.b, design.b_vector_bytes),
          .extent = design.tile_n,
          .k_elements = design.tile_k,
          .k_per_word = abi::k_per_word(design),
          .word_bytes = abi::word_bytes(design),
          .pitch = abi::staged_pitch(design, design.tile_n),
          .threads = abi::thread_count(design)};
}

template <const abi::SimtDesign& design>
struct SimtShared {
  using Word = typename ArithmeticOf<design.accumulator>::Word;
  static constexpr int k_words = design.tile_k / abi::k_per_word(design);
  struct Slot {
    alignas(16) Word a[k_words][abi::staged_pitch(design, design.tile_m)];
    alignas(16) Word b[k_words][abi::staged_pitch(design, design.tile_n)];
  };
  Slot slots[design.stages];
};

/// The origin of a product in its operands: 0 unless it is the product of a group.
struct SimtOrigin {
  unsigned row;
  unsigned column;
  unsigned k;
};

/// The gather and scatter indices of groups, if the kernel uses them; for phases of a dgrad, the
/// row of out for each row of the tile.
struct SimtIndices {
  const abi::IndexParams* gather;
  const abi::IndexParams* scatter;
  const int* rows_of_out;
};

/// The windows of a convolution's operands.
struct SimtWindows {
  const abi::WindowParams* a;
  const abi::WindowParams* b;
};

/// The scales and zero points of the operands, if the kernel reads them.
struct SimtCompanions {
  const abi::CompanionsParams* a;
  const abi::CompanionsParams* b;
};

/// `Programs`: an OperandPrograms.
template <const abi::SimtDesign& design, class Programs = NoPrograms>
class SimtGemm {
 public:
  /// m and n of `params` are the ends of the product's rows and columns; k is its extent of k.
  __device__ SimtGemm(const abi::SimtParams& params, char* shared, const SimtOrigin& origin = {},
                      const SimtIndices& indices = {}, const SimtWindows& windows = {},
                      const SimtCompanions& companions = {},
                      const ProgramsParams<Programs>& programs = {})
      : params_(params),
        origin_(origin),
        indices_(indices),
        windows_(windows),
        companions_(companions),
        programs_(programs),
        shared_(*reinterpret_cast<Shared*>(shared)),
        place_(place_of_thread<design>(thread())),
        first_a_(&shared_.slots[0].a[place_.slice * k_words_per_slice][place_.row]),
        first_b_(&shared_.slots[0].b[place_.slice * k_words_per_slice][place_.column]) {}

  __device__ void compute_tile(const abi::TilePosition& tile) {
    multiply_tile(tile);
    if constexpr (is_indexed) {
      if (place_.slice == 0) store_indexed_combination(params_, targets(tile), sums_, tile.batch);
    } else if (place_.slice == 0) {
      store_linear_combination<design>(params_, sums_, tile.batch,
                                       first_row(tile) + static_cast<unsigned>(place_.row),
                                       first_column(tile) + static_cast<unsigned>(place_.column));
    }
  }

  template <class Epilogue, class EpilogueParams>
  __device__ void compute_tile(const abi::TilePosition& tile, const EpilogueParams& epilogue) {
    using Region = MatrixRegion<design.tile_m, design.tile_n>;
    run_program<Epilogue>(
        tile, epilogue,
        Region{tile.batch, first_row(tile), first_column(tile), params_.m, params_.n});
  }

  /// The same for a tile of a group.
  template <class Epilogue, class EpilogueParams>
  __device__ void compute_tile(const abi::TilePosition& tile, const EpilogueParams& epilogue,
                               const abi::RegionGroup& group) {
    if constexpr (is_indexed && has_reductions<Epilogue>()) {
      static_assert(!design.has_phases, "reductions of phases need other regions");
      using Region = ScatteredRegion<gathers_a, design.tile_m, design.tile_n>;
      run_program<Epilogue>(tile, epilogue,
                            Region{{group, first_row(tile), first_column(tile)}, indices_.scatter});
    } else if constexpr (is_indexed) {
      multiply_tile(tile);
      if (place_.slice == 0)
        store_indexed_program<design, Epilogue>(params_, epilogue, targets(tile), sums_, tile.batch,
                                                NoReductions());
    } else {
      using Region = GroupRegion<design.tile_m, design.tile_n>;
      run_program<Epilogue>(tile, epilogue, Region{group, first_row(tile), first_column(tile)});
    }
  }

 private:
  using Shared = SimtShared<design>;
  using Word = typename Shared::Word;
  using Arithmetic = ArithmeticOf<design.accumulator>;
  using Number = typename Arithmetic::Accumulator;
  static constexpr bool is_indexed =
      design.indexed != abi::IndexedExtent::none || design.has_phases;
  static constexpr bool has_program_a = is_program<typename Programs::A>();
  static constexpr bool has_program_b = is_program<typename Programs::B>();
  static constexpr bool is_changed = design.a_companions.are_used() ||
                                     design.b_companions.are_used() || has_program_a ||
                                     has_program_b;
  static constexpr bool gathers_a = design.indexed == abi::IndexedExtent::rows;
  static constexpr bool gathers_b = design.indexed == abi::IndexedExtent::columns;
  static constexpr bool has_pixels_of_a = design.convolution == abi::ConvolutionKind::fprop ||
                                          design.convolution == abi::ConvolutionKind::dgrad;
  static constexpr bool has_pixels_of_b = design.convolution == abi::ConvolutionKind::dgrad;
  static constexpr bool has_taps_of_b = design.convolution == abi::ConvolutionKind::wgrad;
  static constexpr OperandPlan plan_of_a = a_plan(design);
  static constexpr OperandPlan plan_of_b = b_plan(design);
  static constexpr OperandSource source_of_a = gathers_a         ? OperandSource::indexed
                                               : has_pixels_of_a ? OperandSource::pixels
                                                                 : OperandSource::strided;
  static constexpr OperandSource source_of_b = gathers_b         ? OperandSource::indexed
                                               : has_pixels_of_b ? OperandSource::pixels
                                               : has_taps_of_b   ? OperandSource::taps
                                                                 : OperandSource::strided;
  static constexpr int k_words_per_slice = Shared::k_words / design.k_slices;
  // With 8 k per block the loop has no branch, which is worth 5 %: 47.2 TF against 44.8 (128x128x16
  // unrolled over 16 and 8 k, f32 4096^3, H200). More would double the compile time.
  static constexpr int k_pairs_unrolled = 4;

  __device__ __forceinline__ void multiply_tile(const abi::TilePosition& tile) {
    for_each_sum([](int, Number& sum) { sum = Number{0}; });
    accumulate(tile);
    if constexpr (design.k_slices > 1) reduce_slices();
  }

  /// `region`: the tile, for reductions.
  template <class Epilogue, class EpilogueParams, class Region>
  __device__ __forceinline__ void run_program(const abi::TilePosition& tile,
                                              const EpilogueParams& epilogue,
                                              const Region& region) {
    multiply_tile(tile);
    ThreadTileProgram<design, Epilogue, abi::shared_bytes(design), Region> program(
        params_, epilogue,
        {.batch = tile.batch,
         .tile_row = first_row(tile),
         .tile_column = first_column(tile),
         .row = static_cast<unsigned>(place_.row),
         .column = static_cast<unsigned>(place_.column)},
        region);
    const bool has_sums = place_.slice == 0;
    if constexpr (is_indexed) {
      program.begin();
      if (has_sums)
        store_indexed_program<design, Epilogue>(params_, epilogue, targets(tile), sums_, tile.batch,
                                                program);
    } else if constexpr (has_blocks<Epilogue>()) {
      char* const shared = reinterpret_cast<char*>(&shared_);
      program.reduce_blocks(shared, has_sums, thread(), sums_);
      if (has_sums) program.store(sums_, shared);
      __syncthreads();  // waits until all values of blocks were read
    } else if (has_sums) {
      program.store(sums_);
    }
    program.reduce(reinterpret_cast<char*>(&shared_), has_sums, thread());
  }

  __device__ static int thread() { return static_cast<int>(threadIdx.x); }

  __device__ unsigned first_row(const abi::TilePosition& tile) const {
    return origin_.row + tile.row * static_cast<unsigned>(design.tile_m);
  }
  __device__ unsigned first_column(const abi::TilePosition& tile) const {
    return origin_.column + tile.column * static_cast<unsigned>(design.tile_n);
  }

  __device__ IndexedTargets<design> targets(const abi::TilePosition& tile) const {
    if constexpr (design.has_phases)
      return {params_, indices_.rows_of_out, place_.row,
              first_row(tile) + static_cast<unsigned>(place_.row),
              first_column(tile) + static_cast<unsigned>(place_.column)};
    return {params_, indices_.scatter, first_row(tile) + static_cast<unsigned>(place_.row),
            first_column(tile) + static_cast<unsigned>(place_.column)};
  }

  __device__ OperandPanel panel_of_a(const abi::TilePosition& tile) const {
    const abi::SimtMatrix& a = params_.a;
    const unsigned row = first_row(tile);
    constexpr int bytes = abi::bytes_of(design.a);
    constexpr int bits = abi::bits_of(design.a);
    return {.data = matrix_of_batch<bytes, bits>(a.data, a.batch_stride, tile.batch) +
                    ((source_of_a != OperandSource::strided ? 0 : row * a.row_stride) +
                     origin_.k * a.column_stride) *
                        bytes,
            .extent_stride = a.row_stride,
            .k_stride = a.column_stride,
            .extent_left = params_.m - row,
            .indices = indices_.gather,
            .first = row,
            .window = windows_.a};
  }

  __device__ OperandPanel panel_of_b(const abi::TilePosition& tile) const {
    const abi::SimtMatrix& b = params_.b;
    const unsigned column = first_column(tile);
    constexpr int bytes = abi::bytes_of(design.b);
    constexpr int bits = abi::bits_of(design.b);
    return {.data = matrix_of_batch<bytes, bits>(b.data, b.batch_stride, tile.batch) +
                    ((source_of_b != OperandSource::strided ? 0 : column * b.column_stride) +
                     origin_.k * b.row_stride) *
                        bytes,
            .extent_stride = b.column_stride,
            .k_stride = b.row_stride,
            .extent_left = params_.n - column,
            .indices = indices_.gather,
            .first = column,
            .window = windows_.b};
  }

  /// The mainloop: while one k block multiplies, the next `stages - 1` are being copied.
  __device__ void accumulate(const abi::TilePosition& tile) {
    constexpr unsigned ahead = design.stages - 1;
    typename StagerOf<plan_of_a, Word, source_of_a>::Type stage_a(
        panel_of_a(tile), &shared_.slots[0].a[0][0], thread());
    typename StagerOf<plan_of_b, Word, source_of_b>::Type stage_b(
        panel_of_b(tile), &shared_.slots[0].b[0][0], thread());
    unsigned k_left = params_.k;  // not yet copied
    unsigned fetch_slot = 0;

    const auto fetch = [&] {
      if (k_left > 0) {
        stage_a.fetch(fetch_slot, k_left);
        stage_b.fetch(fetch_slot, k_left);
      }
      ptx::cp_async_commit_group();
    };
    const auto store = [&] {
      if (k_left > 0) {
        stage_a.store(fetch_slot);
        stage_b.store(fetch_slot);
      }
      k_left -= min(k_left, static_cast<unsigned>(design.tile_k));
      fetch_slot = next_slot(fetch_slot);
    };

    unsigned slot = 0;
    unsigned first_k = 0;  // of the block in `slot`
    Word a[2][design.thread_m];
    Word b[2][design.thread_n];
    const unsigned blocks = abi::tiles_along(params_.k, design.tile_k);
    // One loop, so that the code of the copies exists once: its first iterations only copy.
#pragma unroll 1
    for (unsigned round = 0; round < blocks + ahead; ++round) {
      fetch();
      if (round < ahead) {
        store();
        if (round == ahead - 1) {
          wait_for_block();
          change_block(tile, slot, first_k);
          load_fragments(a[0], b[0], slot, 0);
        }
        continue;
      }
#pragma unroll k_pairs_unrolled
      for (int k = 0; k < k_words_per_slice; k += 2) {
        load_fragments(a[1], b[1], slot, k + 1);
        multiply<design>(sums_, a[0], b[0]);
        int next_k = k + 2;
        if (next_k == k_words_per_slice) {
          store();
          wait_for_block();
          slot = next_slot(slot);
          first_k += static_cast<unsigned>(design.tile_k);
          change_block(tile, slot, first_k);
          next_k = 0;
        }
        load_fragments(a[0], b[0], slot, next_k);
        multiply<design>(sums_, a[1], b[1]);
      }
    }
    ptx::cp_async_wait_group<0>();
    __syncthreads();  // waits until every thread has read its last operands; the slots are reused
                      // for other data
  }

  /// Scales the operands of a block that has arrived, and applies their programs, in place.
  __device__ void change_block(const abi::TilePosition& tile, unsigned slot, unsigned first_k) {
    if constexpr (is_changed) {
      auto& block =
          *reinterpret_cast<typename Shared::Slot*>(reinterpret_cast<char*>(&shared_) + slot);
      constexpr int threads = abi::thread_count(design);
      constexpr int a_pitch = abi::staged_pitch(design, design.tile_m);
      constexpr int b_pitch = abi::staged_pitch(design, design.tile_n);
      const ScaledBlock block_of_a{tile.batch, first_row(tile), params_.m, origin_.k + first_k,
                                   origin_.k + params_.k};
      const ScaledBlock block_of_b{tile.batch, first_column(tile), params_.n, origin_.k + first_k,
                                   origin_.k + params_.k};
      if constexpr (has_program_a)
        program_words<design.a_companions, typename Programs::A, Programs::a, true, design.tile_m,
                      design.tile_k, a_pitch, threads>(&block.a[0][0], *companions_.a, *programs_.a,
                                                       block_of_a);
      else if constexpr (design.a_companions.are_used())
        scale_words<design.a_companions, design.tile_m, design.tile_k, a_pitch, threads>(
            &block.a[0][0], *companions_.a, block_of_a);
      if constexpr (has_program_b)
        program_words<design.b_companions, typename Programs::B, Programs::b, false, design.tile_n,
                      design.tile_k, b_pitch, threads>(&block.b[0][0], *companions_.b, *programs_.b,
                                                       block_of_b);
      else if constexpr (design.b_companions.are_used())
        scale_words<design.b_companions, design.tile_n, design.tile_k, b_pitch, threads>(
            &block.b[0][0], *companions_.b, block_of_b);
      __syncthreads();  // waits for the changed elements of all threads
    }
  }

  /// Slots are identified by their offset in bytes.
  __device__ static unsigned next_slot(unsigned slot) {
    constexpr unsigned bytes = sizeof(typename Shared::Slot);
    return slot == (design.stages - 1) * bytes ? 0 : slot + bytes;
  }

  /// Waits until the oldest k block in flight is in shared memory for all threads, and all have
  /// read its predecessor.
  __device__ static void wait_for_block() {
    ptx::cp_async_wait_group<design.stages - 2>();
    __syncthreads();
  }

  __device__ void load_fragments(Word (&a)[design.thread_m], Word (&b)[design.thread_n],
                                 unsigned slot, int k) const {
    constexpr int a_pitch = abi::staged_pitch(design, design.tile_m);
    constexpr int b_pitch = abi::staged_pitch(design, design.tile_n);
    load_fragment<row_spread(design)>(a, in_slot(first_a_, slot) + k * a_pitch);
    load_fragment<column_spread(design)>(b, in_slot(first_b_, slot) + k * b_pitch);
  }

  __device__ static const Word* in_slot(const Word* first, unsigned slot) {
    return reinterpret_cast<const Word*>(reinterpret_cast<const char*>(first) + slot);
  }

  /// Adds the accumulators of slices 1, 2, … to those of slice 0, in this order.
  __device__ void reduce_slices() {
    constexpr int per_slice = abi::threads_per_slice(design);
    Number* sums = reinterpret_cast<Number*>(&shared_) + thread() % per_slice;
#pragma unroll 1
    for (int slice = 1; slice < design.k_slices; ++slice) {
      if (place_.slice == slice)
        for_each_sum([&](int index, Number& value) { sums[index * per_slice] = value; });
      __syncthreads();  // waits for the slice's accumulators
      if (place_.slice == 0)
        for_each_sum([&](int index, Number& value) { value += sums[index * per_slice]; });
      __syncthreads();  // waits until they were read
    }
  }

  template <class Visit>
  __device__ void for_each_sum(Visit&& visit) {
#pragma unroll
    for (int row = 0; row < design.thread_m; ++row) {
#pragma unroll
      for (int column = 0; column < design.thread_n; ++column) {
        visit(row * design.thread_n + column, sums_[row][column]);
      }
    }
  }

  const abi::SimtParams& params_;
  const SimtOrigin origin_;
  const SimtIndices indices_;
  const SimtWindows windows_;
  const SimtCompanions companions_;
  const ProgramsParams<Programs> programs_;
  Shared& shared_;
  const SimtPlace place_;
  const Word* const first_a_;  // the thread's first operands in the first slot
  const Word* const first_b_;
  Number sums_[design.thread_m][design.thread_n];
};

/// Calls visit(gemm, tile) for the tiles of this block.
template <const abi::SimtDesign& design, class Programs = NoPrograms, class Visit>
__device__ __forceinline__ void for_each_simt_tile(const abi::SimtParams& params, Visit&& visit,
                                                   const SimtWindows& windows = {},
                                                   const SimtCompanions& companions = {},
                                                   const ProgramsParams<Programs>& programs = {}) {
  static_assert(abi::find_fault(design) == abi::SimtFault::none,
                "find_fault names the field of the design to change");
  static_assert(sizeof(SimtShared<design>) == abi::stage_bytes(design) * design.stages);
  extern __shared__ __align__(16) char shared[];
  SimtGemm<design, Programs> gemm(params, shared, {}, {}, windows, companions, programs);
#pragma unroll 1
  for (unsigned batch = blockIdx.y; batch < params.batches; batch += gridDim.y) {
#pragma unroll 1
    for (unsigned tile = blockIdx.x; tile < params.order.tiles; tile += gridDim.x)
      visit(gemm, abi::position_in_matrix<abi::simt_raster>(params.order, batch, tile));
  }
}

/// The kernel: abi::thread_count(design) threads and abi::shared_bytes(design) dynamic shared bytes
/// per block, any grid of up to 2^31 - 1 blocks for the tiles of a matrix by 65535 for the batch.
template <const abi::SimtDesign& design>
__device__ inline void simt_gemm(const abi::SimtParams& params) {
  for_each_simt_tile<design>(params, [](SimtGemm<design>& gemm, const abi::TilePosition& tile) {
    gemm.compute_tile(tile);
  });
}

/// The same with an emitted epilogue.
template <const abi::SimtDesign& design, class Epilogue, class EpilogueParams>
__device__ inline void simt_gemm(
    const abi::ProgramParams<abi::SimtParams, EpilogueParams>& params) {
  for_each_simt_tile<design>(params.gemm,
                             [&](SimtGemm<design>& gemm, const abi::TilePosition& tile) {
                               gemm.template compute_tile<Epilogue>(tile, params.epilogue);
                             });
}

/// The kernel of convolutions: as above.
template <const abi::SimtDesign& design>
__device__ inline void simt_conv_gemm(const abi::SimtConvParams& params) {
  for_each_simt_tile<design>(
      params.gemm,
      [](SimtGemm<design>& gemm, const abi::TilePosition& tile) { gemm.compute_tile(tile); },
      {&params.a, &params.b});
}

template <const abi::SimtDesign& design, class Epilogue, class EpilogueParams>
__device__ inline void simt_conv_gemm(
    const abi::ProgramParams<abi::SimtConvParams, EpilogueParams>& params) {
  for_each_simt_tile<design>(params.gemm.gemm,
                             [&](SimtGemm<design>& gemm, const abi::TilePosition& tile) {
                               gemm.template compute_tile<Epilogue>(tile, params.epilogue);
                             },
                             {&params.gemm.a, &params.gemm.b});
}

}  // namespace gemmery::device
