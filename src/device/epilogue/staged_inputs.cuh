// SPDX-License-Identifier: Apache-2.0
// The inputs that an emitted epilogue reads through shared memory: vectors, copied by a consumer's
// threads, and full tensors, which TMA loads into staging tiles like those of D, separately for the
// rows of each warp (abi/sm90_program.hpp has the layout). Nothing is read outside a tensor; shared
// memory holds 0 there. If rows of out are found by indices, elements of vectors along rows are
// found by the same indices, and there are no full tensors.
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/abi/sm90_program.hpp>
#include <device/abi/sm90_shared.hpp>
#include <device/copy/map_matrix.cuh>
#include <device/epilogue/output_place.cuh>
#include <device/epilogue/program.cuh>
#include <device/epilogue/wgmma_addend.cuh>
#include <device/ptx/async_copy.cuh>
#include <device/ptx/mbarrier.cuh>
#include <device/ptx/memory.cuh>
#include <device/ptx/shared_memory.cuh>
#include <device/ptx/tma.cuh>
#include <device/ptx/warp.cuh>
#include <device/tile/element.cuh>
#include <device/tile/indexed_element.cuh>

namespace gemmery::device {

template <const abi::Sm90Design& design, class Epilogue>
class StagedInputs {
 public:
  using Compute = typename ArithmeticOf<design.accumulator>::Compute;
  using Params = EpilogueParamsOf<Epilogue, Compute>;
  using Patch = LoadedPatch<Epilogue, 2, 2>;

  /// True if an input is read through shared memory.
  GEMMERY_HOST_DEVICE
  static constexpr bool is_staged(int input) {
    return abi::is_vector(Epilogue::input[input]) || inputs.place_of(input) >= 0;
  }

  /// The vector that a wgmma adds to the accumulators, -1 for none.
  static constexpr int addend_input =
      abi::vector_addend(Epilogue::input, Epilogue::inputs, Epilogue::addend, design);

  /// True if any other vector is.
  GEMMERY_HOST_DEVICE
  static constexpr bool has_vectors() { return bytes.vectors > 0; }

  /// `shared`: where the block's memory for programs begins.
  __device__ __forceinline__ StagedInputs(const abi::Sm90Params& gemm, const Params& params,
                                          const abi::TensorMap* maps, unsigned shared,
                                          unsigned consumer, unsigned thread)
      : gemm_(gemm),
        params_(params),
        maps_(maps),
        addend_(shared, consumer),
        staging_(shared + bytes.addends + consumer * bytes.staging),
        vectors_(shared + behind_staging(consumer)),
        thread_(thread),
        warp_(ptx::same_in_warp(thread / 32)) {}

  /// All threads of the block call it before it is synchronised.
  __device__ static void initialize(const abi::TensorMap* maps, unsigned shared) {
    if constexpr (addend_input >= 0) WgmmaAddend<design>::initialize(shared);
    if (threadIdx.x != 0) return;
    if constexpr (inputs.count > 0) {
      for (int place = 0; place < inputs.count; ++place) ptx::prefetch_tensormap(maps[place]);
      for (unsigned consumer = 0; consumer < abi::consumer_count(design); ++consumer) {
        const unsigned full = shared + behind_staging(consumer) + bytes.vectors + bytes.parts;
        for (int barrier = 0; barrier < depth * abi::warps_per_consumer; ++barrier)
          ptx::mbarrier_init(full + barrier * 8, 1);
      }
    }
  }

  /// Starts copying the addend of the consumer's next tile, which is at `place` of out with m rows
  /// and n columns.
  __device__ __forceinline__ void bring_next_addend(const OutputPlace& place, unsigned m,
                                                    unsigned n) const {
    copy_vector<addend_input>(place, m, n);
    ptx::cp_async_commit_group();
  }
  /// Makes the addend that was copied last that of the current tile.
  __device__ __forceinline__ const WgmmaAddend<design>& next_addend() {
    addend_.advance();
    return addend_;
  }

  /// Starts copying the inputs of the share of a tile at `place`; out has m rows and n columns. If
  /// there are vectors, the whole warpgroup must have read those of the previous share.
  __device__ __forceinline__ void begin_share(const OutputPlace& place, unsigned m, unsigned n) {
    copy_vectors(place, m, n);
    if constexpr (has_vectors()) ptx::cp_async_commit_group();
#pragma unroll
    for (int staging = 0; staging < depth; ++staging) load_staging(staging, place, n);
  }

  /// Waits for the copies of the calling thread; a barrier of the warpgroup must follow.
  __device__ __forceinline__ void wait_for_vectors() const {
    if constexpr (has_vectors() || addend_input >= 0) ptx::cp_async_wait_group<0>();
  }

  /// Waits for the warp's rows of a staging tile. Staging tiles are numbered from 0 in every share,
  /// by blocks of 64 rows.
  __device__ __forceinline__ void wait_for_staging(int staging) {
    if constexpr (inputs.count > 0) {
      const unsigned slot = static_cast<unsigned>(staging % depth);
      while (!ptx::mbarrier_try_wait_parity(full_barrier(slot), phases_ >> slot & 1U)) {
      }
      phases_ ^= 1U << slot;
    }
  }

  /// Called when all lanes of the warp have read a staging tile: starts loading the one that
  /// replaces it.
  __device__ __forceinline__ void replace_staging(int staging, const OutputPlace& place,
                                                  unsigned n) {
    load_staging(staging + depth, place, n);
  }

  /// Reads the element of a vector that does not vary with n, for a row of the share.
  template <int input>
  __device__ __forceinline__ Compute read_held(unsigned row) const {
    constexpr abi::EpilogueTensor tensor = Epilogue::input[input];
    constexpr int element = abi::bytes_of(tensor.dtype);
    const unsigned at = tensor.varies_m ? row * element : 0;
    return decode<tensor.dtype, Compute>(
        ptx::ld_shared_registers<element>(vectors_ + vector_offset(input) + at), 0);
  }

  /// Reads the elements of vectors along n for a patch; `eight` counts columns by 8 from the
  /// block's first.
  __device__ __forceinline__ void read_vectors(Patch& patch, int eight) const {
    read_vector(patch, eight);
  }

  /// Reads the elements of staging tiles for two adjacent patches of a block whose first staging
  /// tile is `first_staging`.
  __device__ __forceinline__ void read_staging(Patch& patch, Patch& next, int first_staging,
                                               int eight) const {
    read_inputs(patch, next, (first_staging + eight / eights) % depth, eight % eights);
  }

  /// The shared address where the consumer's warps write their parts of reductions to one value.
  __device__ __forceinline__ unsigned parts() const { return vectors_ + bytes.vectors; }

 private:
  static constexpr int depth = abi::tma_input_depth;
  static constexpr int columns = abi::staging_columns(design);
  static constexpr int eights = columns / 8;
  static constexpr int staging_tiles_per_block = abi::columns_per_consumer(design) / columns;
  static constexpr int staging_tiles_per_share =
      staging_tiles_per_block * abi::blocks_per_consumer(design);
  static constexpr abi::TmaInputs inputs =
      abi::tma_inputs(Epilogue::input, Epilogue::inputs, design);
  static constexpr abi::ProgramBytes bytes =
      abi::program_bytes(Epilogue::input, Epilogue::inputs, Epilogue::addend, Epilogue::output,
                         Epilogue::outputs, design);
  static_assert(abi::all_program_bytes(bytes, design) == design.program_bytes,
                "host and device disagree about a program's shared memory");

  __device__ static constexpr unsigned behind_staging(unsigned consumer) {
    return bytes.addends + abi::consumer_count(design) * bytes.staging +
           consumer * bytes.behind_staging();
  }
  /// The full barrier of this warp.
  __device__ unsigned full_barrier(unsigned slot) const {
    const unsigned place = slot * abi::warps_per_consumer + warp_;
    return vectors_ + bytes.vectors + bytes.parts + place * 8;
  }

  template <int input>
  static constexpr int pitch = abi::input_pitch_bytes(Epilogue::input[input], design);

  /// Bytes of the vectors before an input.
  GEMMERY_HOST_DEVICE
  static constexpr int vector_offset(int input) {
    int offset = 0;
    for (int before = 0; before < input; ++before)
      if (abi::is_vector(Epilogue::input[before]) && before != addend_input)
        offset += abi::vector_room(Epilogue::input[before], design);
    return offset;
  }
  /// Bytes of the staging tiles before an input, in one slot.
  GEMMERY_HOST_DEVICE
  static constexpr int staging_offset(int place) {
    int offset = 0;
    for (int before = 0; before < place; ++before)
      offset += abi::sm90_block_rows *
                abi::input_pitch_bytes(Epilogue::input[inputs.index[before]], design);
    return offset;
  }
  static constexpr int slot_bytes = bytes.staging / depth;

  // --- vectors ----------------------------------------------------------------------------------

  template <int input = 0>
  __device__ __forceinline__ void copy_vectors(const OutputPlace& place, unsigned m,
                                               unsigned n) const {
    if constexpr (input < Epilogue::inputs) {
      constexpr abi::EpilogueTensor tensor = Epilogue::input[input];
      if constexpr (design.scatters_rows && abi::is_vector(tensor) && tensor.varies_m)
        copy_scattered_vector<input>(place, m);
      else if constexpr (abi::is_vector(tensor) && input != addend_input)
        copy_vector<input>(place, m, n);
      copy_vectors<input + 1>(place, m, n);
    }
  }

  /// Copies a vector in the widest aligned units, by cp.async if these have 4 bytes or more.
  template <int input>
  __device__ __forceinline__ void copy_vector(const OutputPlace& place, unsigned m,
                                              unsigned n) const {
    constexpr abi::EpilogueTensor tensor = Epilogue::input[input];
    constexpr int element = abi::bytes_of(tensor.dtype);
    constexpr bool is_adjacent = tensor.varies_n && tensor.vector_bytes > element;
    constexpr int unit = is_adjacent ? tensor.vector_bytes : element;
    constexpr unsigned units = abi::vector_elements(tensor, design) * element / unit;
    const abi::EpiloguePlace& vector = params_.input[input];
    const abi::Int64 step = tensor.varies_n ? vector.column_stride : vector.row_stride;
    const unsigned begin = tensor.varies_n ? place.column : tensor.varies_m ? place.row : 0;
    const unsigned end = tensor.varies_n ? n : tensor.varies_m ? m : 1;
    const char* data = static_cast<const char*>(vector.data);
    abi::Int64 elements = static_cast<abi::Int64>(begin) * step;
    if constexpr (tensor.varies_l) {
      const MatrixStart start =
          start_of_batch<design.has_pointers>(vector.data, vector.batch_stride, place.batch);
      data = start.address;
      elements += start.elements;
    }
    const char* const first = data + elements * element;
    const int left = abi::vector_bytes_left(tensor, design, begin, end);
#pragma unroll
    for (unsigned index = thread_; index < units; index += abi::warpgroup_threads) {
      const int at = static_cast<int>(index) * unit;
      const int valid = min(max(left - at, 0), unit);
      const char* const source = first + (is_adjacent ? 1 : step) * at;
      const unsigned target = input == addend_input
                                  ? addend_.place_of_next(index)
                                  : vectors_ + vector_offset(input) + index * unit;
      copy_unit<unit>(target, source, valid);
    }
  }

  /// Copies the elements of a vector for the rows of out that indices name.
  template <int input>
  __device__ __forceinline__ void copy_scattered_vector(const OutputPlace& place,
                                                        unsigned m) const {
    constexpr abi::EpilogueTensor tensor = Epilogue::input[input];
    constexpr int element = abi::bytes_of(tensor.dtype);
    constexpr unsigned rows = abi::vector_elements(tensor, design);
    const abi::EpiloguePlace& vector = params_.input[input];
    const char* const data = static_cast<const char*>(vector.data);
#pragma unroll
    for (unsigned index = thread_; index < rows; index += abi::warpgroup_threads) {
      const unsigned row = place.row + index;
      const int of_out = row < m ? find_element(scatter_of(gemm_), row) : no_element;
      const bool is_there = of_out != no_element;
      copy_unit<element>(vectors_ + vector_offset(input) + index * element,
                         is_there ? data + of_out * vector.row_stride * element : data,
                         is_there ? element : 0);
    }
  }

  /// Copies the first `valid` bytes of a unit; the others become 0.
  template <int unit>
  __device__ __forceinline__ static void copy_unit(unsigned target, const char* source, int valid) {
    if constexpr (unit == 16) {
      ptx::cp_async_cg(target, source, valid);
    } else if constexpr (unit >= 4) {
      ptx::cp_async_ca<unit>(target, source, valid);
    } else {
      ptx::st_shared<unit>(target, ptx::ld_global_if<unit>(valid > 0, source, {}));
    }
  }

  template <int input = 0>
  __device__ __forceinline__ void read_vector(Patch& patch, int eight) const {
    if constexpr (input < Epilogue::inputs) {
      constexpr abi::EpilogueTensor tensor = Epilogue::input[input];
      if constexpr (input == addend_input) {
        patch.words[input][0][0] = 0x80008000;  // two times -0, the neutral element of addition
      } else if constexpr (tensor.varies_n && !tensor.varies_m) {
        constexpr int element = abi::bytes_of(tensor.dtype);
        const unsigned column = static_cast<unsigned>(8 * eight) + thread_ % 4 * 2;
        put(patch, input, 0,
            ptx::ld_shared_registers<2 * element>(vectors_ + vector_offset(input) +
                                                  column * element));
      }
      read_vector<input + 1>(patch, eight);
    }
  }

  // --- staging tiles ----------------------------------------------------------------------------

  /// Loads a staging tile of the share at `place` into the slot of the one `depth` before it.
  __device__ __forceinline__ void load_staging(int staging, const OutputPlace& place,
                                               unsigned n) const {
    if constexpr (inputs.count > 0) {
      const unsigned block_row =
          static_cast<unsigned>(staging / staging_tiles_per_block) * abi::sm90_block_rows;
      const OutputPlace corner{
          .row = place.row + block_row + warp_ * abi::sm90_warp_rows,
          .column =
              place.column + static_cast<unsigned>(staging % staging_tiles_per_block) * columns,
          .batch = place.batch};
      if (staging >= staging_tiles_per_share || corner.column >= n || !ptx::elect_sync()) return;
      const unsigned slot = static_cast<unsigned>(staging % depth);
      ptx::mbarrier_arrive_expect_tx(full_barrier(slot), slot_bytes / abi::warps_per_consumer);
      load_inputs(staging_ + slot * slot_bytes, corner, full_barrier(slot));
    }
  }

  template <int place = 0>
  __device__ __forceinline__ void load_inputs(unsigned slot, const OutputPlace& corner,
                                              unsigned barrier) const {
    if constexpr (place < inputs.count) {
      constexpr bool has_batches = Epilogue::input[inputs.index[place]].varies_l;
      constexpr int warp_bytes = abi::sm90_warp_rows * pitch<inputs.index[place]>;
      const abi::EpiloguePlace& matrix = params_.input[inputs.index[place]];
      ptx::tma_load(
          slot + staging_offset(place) + warp_ * warp_bytes, maps_[place],
          box_at(static_cast<int>(corner.column), static_cast<int>(corner.row),
                 find_in_map<design.has_pointers>(array_of(matrix.data, matrix.batch_stride),
                                                  has_batches ? corner.batch : 0)),
          barrier);
      load_inputs<place + 1>(slot, corner, barrier);
    }
  }

  template <int place = 0>
  __device__ __forceinline__ void read_inputs(Patch& patch, Patch& next, int slot,
                                              int eight) const {
    if constexpr (place < inputs.count) {
      constexpr int input = inputs.index[place];
      const unsigned staging =
          staging_ + static_cast<unsigned>(slot) * slot_bytes + staging_offset(place);
      if constexpr (abi::bytes_of(Epilogue::input[input].dtype) == 2)
        read_matrices<input>(patch, next, staging, eight);
      else
        read_pairs<input>(patch, next, staging, eight);
      read_inputs<place + 1>(patch, next, slot, eight);
    }
  }

  template <int input>
  __device__ __forceinline__ void read_matrices(Patch& patch, Patch& next, unsigned staging,
                                                int eight) const {
    const unsigned lane = thread_ % 32;
    const unsigned row = thread_ / 32 * abi::sm90_warp_rows + lane % 16;
    unsigned values[4];  // rows 0-7 and 8-15 of 8 columns, then of the next 8
    ptx::ldmatrix_x4(values, staging + swizzled_chunk<pitch<input>>(
                                           row, static_cast<unsigned>(eight) + lane / 16));
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      patch.words[input][half][0] = values[half];
      next.words[input][half][0] = values[2 + half];
    }
  }

  template <int input>
  __device__ __forceinline__ void read_pairs(Patch& patch, Patch& next, unsigned staging,
                                             int eight) const {
    const unsigned lane = thread_ % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const unsigned row =
          thread_ / 32 * abi::sm90_warp_rows + static_cast<unsigned>(half) * 8 + lane / 4;
#pragma unroll
      for (int which = 0; which < 2; ++which) {
        const unsigned chunk = 2 * static_cast<unsigned>(eight + which) + lane % 4 / 2;
        put(which == 0 ? patch : next, input, half,
            ptx::ld_shared_registers<8>(staging + swizzled_chunk<pitch<input>>(row, chunk) +
                                        lane % 2 * 8));
      }
    }
  }

  template <int count>
  __device__ __forceinline__ static void put(Patch& patch, int input, int row,
                                             const ptx::Registers<count>& loaded) {
#pragma unroll
    for (int word = 0; word < static_cast<int>(sizeof loaded / 4); ++word)
      patch.words[input][row][word] = loaded.words[word];
  }

  const abi::Sm90Params& gemm_;
  const Params& params_;
  const abi::TensorMap* maps_;
  WgmmaAddend<design> addend_;
  unsigned staging_;  // the consumer's
  unsigned vectors_;  // the consumer's; parts and barriers follow them
  unsigned thread_;
  unsigned warp_;
  unsigned phases_ = 0;  // the parity of each slot
};

/// Tells ProgramRows which inputs it has to read.
template <const abi::Sm90Design& design, class Epilogue>
struct DirectInputs {
  GEMMERY_HOST_DEVICE
  static constexpr bool reads(int input) {
    return !StagedInputs<design, Epilogue>::is_staged(input);
  }
};

}  // namespace gemmery::device
