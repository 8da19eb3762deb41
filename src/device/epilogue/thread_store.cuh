// SPDX-License-Identifier: Apache-2.0
// Stores a warp's rows of a staging tile by threads, if TMA cannot store them: at the edge of out,
// or because of out's strides.
#pragma once

#include <device/abi/sm90_design.hpp>
#include <device/abi/sm90_params.hpp>
#include <device/abi/sm90_shared.hpp>
#include <device/epilogue/listed_problem.cuh>
#include <device/epilogue/output_place.cuh>
#include <device/ptx/loops.cuh>
#include <device/ptx/memory.cuh>
#include <device/ptx/shared_memory.cuh>
#include <device/ptx/warp.cuh>
#include <device/tile/batch.cuh>
#include <device/tile/element.cuh>
#include <device/tile/indexed_element.cuh>

namespace gemmery::device {

/// `source`: the shared address of the warp's 16 rows of a staging tile; `corner`: their place in
/// out. All lanes of a warp call it, after all have written.
template <const abi::Sm90Design& design>
class ThreadStore {
 public:
  __device__ __forceinline__ ThreadStore(const abi::Sm90Params& params, unsigned lane)
      : params_(params), lane_(lane) {}

  /// Stores element by element, for rows of out that end within 16 bytes. Three consumers and more
  /// have few registers: the operands of one statement, which are all there at once, spilled 4 to
  /// 12 bytes.
  __device__ __forceinline__ void store_by_elements(unsigned source,
                                                    const OutputPlace& corner) const {
    if constexpr (abi::consumer_count(design) >= 3 || abi::held_registers(design) > 160)
      store_in_loop(source, corner);
    else
      store_in_statement(source, corner);
  }

  /// Stores vectors to rows of out that are aligned to `out_access` bytes. Lanes of a warp store
  /// adjacent vectors.
  __device__ __forceinline__ void store_by_vectors(unsigned source,
                                                   const OutputPlace& corner) const {
    constexpr unsigned element_bytes = abi::bytes_of(design.out);
    constexpr int access = design.out_access == 0 ? element_bytes : design.out_access;
    constexpr unsigned elements = access / element_bytes;
    constexpr unsigned vectors = columns / elements;
    char* const first = first_of(corner);
    decltype(auto) out = out_of<design>(params_, corner.batch);
    const Ends ends = ends_at(corner);
#pragma unroll 1
    for (unsigned index = lane_; index < abi::sm90_warp_rows * vectors; index += 32) {
      const unsigned row = index / vectors;
      const unsigned column = index % vectors * elements;
      if (corner.row + row >= ends.row) continue;
      const auto vector = read_staging<access>(source, row, column);
      char* const target =
          first + (row * out.row_stride + column) * static_cast<int>(element_bytes);
      const int left = static_cast<int>(ends.column - corner.column) - static_cast<int>(column);
      store_vector<access>(target, vector, left);
    }
  }

  /// Stores vectors, or single elements at any strides, to rows of out that are found by indices.
  /// `target`: the row of out for the lane's row of the staging tile; no_element if it is not
  /// stored.
  __device__ __forceinline__ void store_scattered(unsigned source, const OutputPlace& corner,
                                                  int target) const {
    constexpr unsigned element_bytes = abi::bytes_of(design.out);
    constexpr int access = design.out_access == 0 ? element_bytes : design.out_access;
    constexpr unsigned elements = access / element_bytes;
    constexpr unsigned vectors = columns / elements;
    const abi::RowMajorMatrix& out = params_.out_rows;
    char* const first = first_of({.row = 0, .column = corner.column, .batch = corner.batch});
    const Ends ends = ends_at(corner);
#pragma unroll 1
    for (unsigned index = lane_; index < abi::sm90_warp_rows * vectors; index += 32) {
      const unsigned row = index / vectors;
      const unsigned column = index % vectors * elements;
      const int to = static_cast<int>(ptx::value_of_lane(static_cast<unsigned>(target), row));
      if (to == no_element) continue;
      const auto vector = read_staging<access>(source, row, column);
      char* const target_vector = first + (to * out.row_stride + column * out.column_stride) *
                                              static_cast<int>(element_bytes);
      store_vector<access>(
          target_vector, vector,
          static_cast<int>(ends.column - corner.column) - static_cast<int>(column));
    }
  }

  /// The element of out of a lane's row of a staging tile, the same in both halves of a warp.
  __device__ __forceinline__ int find_target(const OutputPlace& corner) const {
    const unsigned row = corner.row + lane_ % abi::sm90_warp_rows;
    return row < ends_at(corner).row ? find_element(scatter_of(params_), row) : no_element;
  }

  /// Stores single elements. Lanes of a warp run along the columns of out, or along its rows if
  /// these are closer together.
  __device__ __forceinline__ void store_at_any_strides(unsigned source,
                                                       const OutputPlace& corner) const {
    constexpr unsigned element_bytes = abi::bytes_of(design.out);
    const abi::Int64 row_stride = params_.out_rows.row_stride;
    const abi::Int64 column_stride = params_.out_rows.column_stride;
    const auto distance = [](abi::Int64 stride) { return stride < 0 ? -stride : stride; };
    const bool walks_rows = distance(row_stride) < distance(column_stride);
    char* const first = first_of(corner);
    const Ends ends = ends_at(corner);
#pragma unroll 1
    for (unsigned index = lane_; index < abi::sm90_warp_rows * columns; index += 32) {
      const unsigned row = walks_rows ? index % abi::sm90_warp_rows : index / columns;
      const unsigned column = walks_rows ? index / abi::sm90_warp_rows : index % columns;
      if (corner.row + row >= ends.row || corner.column + column >= ends.column) continue;
      ptx::st_global<element_bytes>(
          first + (row * row_stride + column * column_stride) * static_cast<int>(element_bytes),
          read_staging<element_bytes>(source, row, column));
    }
  }

 private:
  __device__ __forceinline__ void store_in_statement(unsigned source,
                                                     const OutputPlace& corner) const {
    constexpr int element_bytes = abi::bytes_of(design.out);
    static_assert(abi::sm90_warp_rows == 16);
    const MatrixStart start = start_of(corner.batch);
    const abi::Int64 row_stride = params_.out_rows.row_stride;
    const Ends ends = ends_at(corner);
    ptx::store_elements<element_bytes, columns>(
        source,
        start.address + (start.elements + corner.row * row_stride + corner.column) * element_bytes,
        row_stride * element_bytes, static_cast<int>(ends.row - corner.row),
        static_cast<int>(ends.column - corner.column), lane_);
  }

  __device__ __forceinline__ void store_in_loop(unsigned source, const OutputPlace& corner) const {
    constexpr unsigned element_bytes = abi::bytes_of(design.out);
    const MatrixStart start = start_of(corner.batch);
    char* const first = start.address + (start.elements + corner.column) * element_bytes;
    const Ends ends = ends_at(corner);
#pragma unroll 1
    for (unsigned element = lane_; element < abi::sm90_warp_rows * columns; element += 32) {
      const unsigned row = element / columns;
      const unsigned column = element % columns;
      if (corner.row + row >= ends.row || corner.column + column >= ends.column) continue;
      const unsigned byte = column * element_bytes;
      const unsigned bits =
          ptx::ld_shared<element_bytes>(source + swizzled_chunk<pitch>(row, byte / 16) + byte % 16);
      ptx::st_global<element_bytes>(
          first + ((corner.row + row) * params_.out_rows.row_stride + column) * element_bytes,
          {{bits}});
    }
  }

  static constexpr int columns = abi::staging_columns(design);
  static constexpr unsigned pitch = abi::staging_pitch_bytes(design);

  /// The ends of the rows and columns that may be stored.
  struct Ends {
    unsigned row;
    unsigned column;
  };
  __device__ __forceinline__ Ends ends_at(const OutputPlace& corner) const {
    return {row_end<design>(params_, corner), column_end<design>(params_, corner)};
  }

  __device__ __forceinline__ MatrixStart start_of(unsigned batch) const {
    decltype(auto) out = out_of<design>(params_, batch);
    return start_of_batch<design.has_pointers>(out.data, out.batch_stride, batch);
  }

  /// The address of a staging tile's first element in out.
  __device__ __forceinline__ char* first_of(const OutputPlace& corner) const {
    decltype(auto) out = out_of<design>(params_, corner.batch);
    const MatrixStart start = start_of(corner.batch);
    return start.address +
           (start.elements + corner.row * out.row_stride + corner.column * out.column_stride) *
               abi::bytes_of(design.out);
  }

  /// Stores a vector of which `left` elements are within out.
  template <int access>
  __device__ __forceinline__ static void store_vector(char* target,
                                                      const ptx::Registers<access>& vector,
                                                      int left) {
    constexpr unsigned element_bytes = abi::bytes_of(design.out);
    constexpr unsigned elements = access / element_bytes;
    if (left >= static_cast<int>(elements)) {
      ptx::st_global<access>(target, vector);
    } else if constexpr (elements > 1) {
#pragma unroll
      for (int element = 0; element < static_cast<int>(elements) - 1; ++element)
        if (element < left)
          ptx::st_global<element_bytes>(target + element * static_cast<int>(element_bytes),
                                        {{extract<element_bytes>(vector, element)}});
    }
  }

  template <int access>
  __device__ __forceinline__ static ptx::Registers<access> read_staging(unsigned source,
                                                                        unsigned row,
                                                                        unsigned column) {
    const unsigned byte = column * abi::bytes_of(design.out);
    return ptx::ld_shared_registers<access>(source + swizzled_chunk<pitch>(row, byte / 16) +
                                            byte % 16);
  }

  const abi::Sm90Params& params_;
  unsigned lane_;
};

}  // namespace gemmery::device
