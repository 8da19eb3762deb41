// SPDX-License-Identifier: Apache-2.0
// Copies operands into a layout that TMA can load. Chunks of 16 bytes are stored, adjacent ones by
// adjacent lanes; they are read by the widest accesses that lie within a line of the source:
//
//   elements adjacent   two aligned accesses of 16 bytes, shifted into one chunk: one access where
//                       the source is aligned. At the ends of a line, element by element
//   lines adjacent      the same along them, and a tile in shared memory that is transposed
//   neither             element by element along whichever are closer to each other
#pragma once

#include <device/abi/repack.hpp>
#include <device/ptx/async_copy.cuh>
#include <device/ptx/grid_dependency.cuh>
#include <device/ptx/memory.cuh>
#include <device/ptx/shared_memory.cuh>
#include <device/tile/batch.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

/// The 16 bytes that begin `shift` bytes after the first byte of 32.
__device__ __forceinline__ ptx::Registers<16> shifted(const ptx::Registers<16>& low,
                                                      const ptx::Registers<16>& high,
                                                      unsigned shift) {
  unsigned words[8] = {low.words[0],  low.words[1],  low.words[2],  low.words[3],
                       high.words[0], high.words[1], high.words[2], high.words[3]};
#pragma unroll
  for (int word = 0; word < 6; ++word)
    words[word] = (shift & 8) != 0 ? words[word + 2] : words[word];
#pragma unroll
  for (int word = 0; word < 5; ++word)
    words[word] = (shift & 4) != 0 ? words[word + 1] : words[word];
  ptx::Registers<16> chunk;
#pragma unroll
  for (int word = 0; word < 4; ++word)
    chunk.words[word] = __funnelshift_r(words[word], words[word + 1], 8 * (shift & 3));
  return chunk;
}
/// Loads 16 bytes from an address that lies `shift` bytes after a multiple of 16.
__device__ __forceinline__ ptx::Registers<16> load_wide(const char* source, unsigned shift) {
  const char* const aligned = source - shift;
  const auto low = ptx::ld_global<16>(aligned);
  if (shift == 0) return low;
  return shifted(low, ptx::ld_global<16>(aligned + 16), shift);
}

/// Loads the first `count` elements of 16 bytes, `step_bytes` apart; the others become zero.
template <int element_bytes>
__device__ __forceinline__ ptx::Registers<16> load_elements(const char* source,
                                                            abi::Int64 step_bytes, int count) {
  ptx::Registers<16> unit{};
#pragma unroll
  for (int element = 0; element < 16 / element_bytes; ++element)
    insert<element_bytes>(
        unit, element,
        ptx::ld_global_if<element_bytes>(element < count, source + element * step_bytes, {}));
  return unit;
}

template <const abi::RepackDesign& design>
class RepackTile {
 public:
  __device__ RepackTile(const abi::RepackParams& params, const abi::RepackOperand& operand,
                        unsigned tile)
      : operand_(operand),
        near_tile_(tile % operand.near_tiles),
        far_tile_(tile / operand.near_tiles % operand.far_tiles) {
    const auto batch = static_cast<abi::Int64>(tile / operand.near_tiles / operand.far_tiles);
    const MatrixStart start = start_of_batch<design.has_pointers>(
        operand.source, operand.batch_stride, static_cast<unsigned>(batch));
    source_ = start.address + start.elements * bytes;
    target_ = static_cast<char*>(params.workspace) + operand.target +
              batch * abi::lines_of(operand) * operand.pitch;
  }

  /// Consecutive units of a thread are as far apart as all threads together reach. `shared`: the
  /// address of the tile that is transposed.
  __device__ __forceinline__ void copy(unsigned shared) const {
    const unsigned bits = operand_.unit_bits;
    const unsigned step = threads >> bits;
    const unsigned first = threadIdx.x >> bits;  // far index in the tile, as is `far`
    const unsigned unit = threadIdx.x & ((1U << bits) - 1);
    const unsigned near_unit = (near_tile_ << bits) + unit;
    const unsigned far_count = abi::far_of_tile(operand_, bytes);
    const unsigned far_begin = far_tile_ * far_count;
    const abi::Int64 all_left = static_cast<abi::Int64>(operand_.near) * bytes -
                                static_cast<abi::Int64>(near_unit) * unit_bytes;
#pragma unroll 1
    for (unsigned far = first; far < far_count; far += step) {
      const bool exists = far_begin + far < operand_.far && all_left > 0;
      const int left = exists ? static_cast<int>(min(all_left, abi::Int64{2 * unit_bytes})) : 0;
      const auto loaded = load(far_begin + far, near_unit, left);
      if (is_transposed())
        write_row(shared, far, unit, loaded);
      else if (exists)
        store(far_begin + far, near_unit, loaded);
    }
    if (is_transposed()) store_transposed(shared);
  }

 private:
  static constexpr int bytes = design.element_bytes;
  static constexpr unsigned threads = abi::repack_threads;
  static constexpr int unit_bytes = abi::repack_unit_bytes;
  static constexpr int unit_elements = abi::elements_per_unit(bytes);
  static constexpr unsigned side = abi::repack_side(bytes);
  static constexpr unsigned units_of_side = abi::repack_row_bytes / unit_bytes;

  __device__ bool is_transposed() const {
    return design.has_any_strides && operand_.is_transposed != 0;
  }

  /// `left`: bytes from the unit to the end of the source's line, at most two units.
  __device__ __forceinline__ ptx::Registers<unit_bytes> load(unsigned far, unsigned unit,
                                                             int left) const {
    const abi::Int64 near_stride = design.has_any_strides ? operand_.near_stride : 1;
    const char* const source =
        source_ +
        (far * operand_.far_stride + static_cast<abi::Int64>(unit) * unit_elements * near_stride) *
            bytes;
    const unsigned shift =
        static_cast<unsigned>(reinterpret_cast<abi::UInt64>(source)) % unit_bytes;
    const int last = 2 * unit_bytes - static_cast<int>(shift);
    const bool is_within = shift == 0 ? left >= unit_bytes : unit > 0 && left >= last;
    if (is_within && near_stride == 1) return load_wide(source, shift);
    const int count = min(left / bytes, unit_elements);
    return load_elements<bytes>(source, near_stride * bytes, count);
  }

  __device__ __forceinline__ void store(unsigned line, unsigned chunk,
                                        const ptx::Registers<unit_bytes>& values) const {
    ptx::st_global<unit_bytes>(
        target_ + line * operand_.pitch + static_cast<abi::Int64>(chunk) * unit_bytes, values);
  }

  /// Lanes of a warp write 4 rows. They begin with different words of their units, so that they
  /// access different banks.
  __device__ __forceinline__ static void write_row(unsigned shared, unsigned row, unsigned unit,
                                                   const ptx::Registers<unit_bytes>& values) {
#pragma unroll
    for (unsigned turn = 0; turn < 4; ++turn) {
      const unsigned word = abi::repack_word(row, turn);
      const unsigned low = (word & 1) != 0 ? values.words[1] : values.words[0];
      const unsigned high = (word & 1) != 0 ? values.words[3] : values.words[2];
      ptx::st_shared<4>(shared + abi::repack_offset(row, 4 * unit + word, bytes),
                        {{(word & 2) != 0 ? high : low}});
    }
  }

  __device__ __forceinline__ void store_transposed(unsigned shared) const {
    __syncthreads();  // waits for all rows of the tile
#pragma unroll 1
    for (unsigned number = threadIdx.x; number < side * units_of_side; number += threads) {
      const unsigned line = number / units_of_side;
      const unsigned chunk = number % units_of_side;
      const unsigned of_line = far_tile_ * units_of_side + chunk;
      if (near_tile_ * side + line < operand_.near && of_line * unit_elements < operand_.far)
        store(near_tile_ * side + line, of_line, read_chunk(shared, line, chunk));
    }
  }

  __device__ __forceinline__ static ptx::Registers<unit_bytes> read_chunk(unsigned shared,
                                                                          unsigned line,
                                                                          unsigned chunk) {
    constexpr unsigned per_word = 4 / bytes;
    ptx::Registers<unit_bytes> read{};
#pragma unroll
    for (int element = 0; element < unit_elements; ++element) {
      const unsigned row = chunk * unit_elements + static_cast<unsigned>(element);
      const unsigned at = abi::repack_offset(row, line / per_word, bytes) + line % per_word * bytes;
      insert<bytes>(read, element, ptx::ld_shared_registers<bytes>(shared + at));
    }
    return read;
  }

  const abi::RepackOperand& operand_;
  unsigned near_tile_;
  unsigned far_tile_;
  const char* source_;
  char* target_;
};

/// The kernel: abi::repack_threads threads, one block for each tile. Every thread waits for the
/// previous kernels, so that the end of this kernel implies theirs: until then the workspace may be
/// in use and the operands may be incomplete. The product is not launched before the last block has
/// ended: its blocks would begin one by one, as multiprocessors become free, and then read the same
/// lines at different times, each with a request of its own to the second-level cache.
template <const abi::RepackDesign& design>
__device__ __forceinline__ void repack(const abi::RepackParams& params) {
  ptx::griddepcontrol_wait();
  const bool is_second = blockIdx.x >= params.first_tiles;
  const abi::RepackOperand& operand = params.operand[is_second ? 1 : 0];
  const RepackTile<design> tile(params, operand, blockIdx.x - (is_second ? params.first_tiles : 0));
  if constexpr (design.has_any_strides) {
    __shared__ char shared[abi::repack_side(design.element_bytes) * abi::repack_row_bytes];
    tile.copy(ptx::cvta_shared(shared));
  } else {
    tile.copy(0);
  }
}

}  // namespace gemmery::device
