// SPDX-License-Identifier: Apache-2.0
// Copies the tiles of a convolution's operand by cp.async, as copy/chunked_operand does those of
// matrices: k block after k block, zeros in padding.
//
//   rows of pixels       k runs over taps and their channels. A thread's chunks have one tap, which
//                        changes once in several blocks; then each row is tested anew.
//   lines of k           pixels, or taps and filters. A thread's chunks have one tap (or channel)
//                        for all of a tile; their lines are found for each block.
#pragma once

#include <device/copy/chunked_operand.cuh>
#include <device/tile/window.cuh>

namespace gemmery::device {

/// The pixels of a tile's rows in shared memory: the offset of the first tap's first channel in
/// bytes, and its coordinates.
template <abi::StagedOperand operand, int dimensions>
struct PixelRows {
  abi::Int64 offset[operand.extent];
  int at[dimensions][operand.extent];

  /// Called by all threads before the first copy.
  template <int threads>
  __device__ __forceinline__ void find(const abi::WindowParams& window, unsigned first,
                                       int thread) {
#pragma unroll 1
    for (int row = thread; row < operand.extent; row += threads) {
      const WindowPart pixel = window_pixel<dimensions>(window, first + static_cast<unsigned>(row));
      abi::Int64 elements = pixel.offset;
#pragma unroll
      for (int d = 3 - dimensions; d < 3; ++d) {
        elements += pixel.at[d] * window.strides[d];
        at[d - 3 + dimensions][row] = pixel.at[d];
      }
      offset[row] = elements * abi::bytes_of(operand.dtype);
    }
    __syncthreads();  // waits until every row's pixel is known to all threads
  }
};

/// What a tap and a channel add to offsets, in elements, and to coordinates.
template <int dimensions>
__device__ __forceinline__ abi::Int64 offset_of_tap(const abi::WindowParams& window,
                                                    const WindowPart& tap) {
  abi::Int64 elements = tap.offset;
#pragma unroll
  for (int d = 3 - dimensions; d < 3; ++d) elements += tap.at[d] * window.strides[d];
  return elements;
}

/// A tile whose rows are pixels.
template <abi::StagedOperand operand, int threads, int dimensions>
class WindowedRows {
  using Shares = ChunkShares<operand, threads>;
  using Pixels = PixelRows<operand, dimensions>;
  static constexpr int bytes = abi::bytes_of(operand.dtype);
  static constexpr int elements = operand.vector_bytes / bytes;  // of one copy
  static constexpr bool has_whole_chunks = operand.vector_bytes == abi::chunk_bytes;
  static_assert(Shares::passes <= 32, "a register has a bit for each of a thread's rows");

 public:
  __device__ __forceinline__ WindowedRows(const PanelOfLines& panel, unsigned tile, int thread)
      : window_(*panel.window),
        pixels_(*reinterpret_cast<const Pixels*>(panel.pixels)),
        row_(thread / Shares::chunks),
        chunk_(thread % Shares::chunks),
        target_(tile + static_cast<unsigned>(operand.offset(row_, chunk_))),
        k_(panel.first_k + static_cast<unsigned>(chunk_ * operand.chunk_elements())),
        end_k_(panel.end_k) {
#pragma unroll
    for (int pass = 0; pass < Shares::passes; ++pass) {
      const int row = row_ + pass * Shares::row_step;
      const bool is_there = row < operand.extent && static_cast<unsigned>(row) < panel.extent_left;
      if (is_there) rows_ |= 1U << pass;
      sources_[pass] = panel.data + (is_there ? pixels_.offset[row] : 0);
    }
  }

  /// Rows beyond the matrix are padding.
  __device__ static bool is_interior() { return true; }

  /// Starts copying the next block of k into the stage at this offset.
  __device__ __forceinline__ void fetch_whole(unsigned stage, int) {
    if constexpr (has_whole_chunks) {
      if (channels_left_ <= 0) find_tap(k_);
      copy(stage);
      tap_bytes_ += operand.k * bytes;
      channels_left_ -= operand.k;
    } else {
#pragma unroll 1
      for (int at = 0; at < abi::chunk_bytes; at += operand.vector_bytes) {
        find_tap(k_ + static_cast<unsigned>(at / bytes));
        copy(stage + static_cast<unsigned>(at));
      }
    }
    k_ += operand.k;
  }
  template <bool = false>
  __device__ __forceinline__ void fetch(unsigned stage, unsigned, bool) {
    fetch_whole(stage, 0);
  }
  __device__ static void advance(int) {}
  __device__ static void store(unsigned) {}  // cp.async needs none

 private:
  /// The tap of an element of k, and which rows it finds a pixel for.
  __device__ __forceinline__ void find_tap(unsigned k) {
    lines_ = 0;
    if (k >= end_k_) return;
    const WindowPart tap = window_tap<dimensions>(window_, k);
    tap_bytes_ = offset_of_tap<dimensions>(window_, tap) * bytes;
    channels_left_ =
        static_cast<int>(window_.taps[2].divisor) - static_cast<int>(k % window_.taps[2].divisor);
#pragma unroll
    for (int pass = 0; pass < Shares::passes; ++pass) {
      if (is_inside(tap, row_ + pass * Shares::row_step)) lines_ |= 1U << pass;
    }
    lines_ &= rows_;
  }

  __device__ __forceinline__ bool is_inside(const WindowPart& tap, int row) const {
    if (!Shares::is_even && row >= operand.extent) return false;
    bool is_inside = true;
#pragma unroll
    for (int d = 3 - dimensions; d < 3; ++d) {
      const int coordinate = pixels_.at[d - 3 + dimensions][row] + tap.at[d];
      // A negative coordinate is a large unsigned one.
      is_inside = is_inside && static_cast<unsigned>(coordinate) < window_.extent[d];
    }
    return is_inside;
  }

  __device__ __forceinline__ void copy(unsigned stage) {
    // Tested anew for each block: kept, the tests of rows would take registers.
    lines_ = ptx::opaque(lines_);
#pragma unroll
    for (int pass = 0; pass < Shares::passes; ++pass) {
      if (!Shares::is_even && row_ + pass * Shares::row_step >= operand.extent) break;
      const int valid = (lines_ >> pass & 1U) != 0 ? operand.vector_bytes : 0;
      const char* const source = sources_[pass] + tap_bytes_;
      if constexpr (has_whole_chunks)
        ptx::cp_async_cg(target(pass, stage), source, valid);
      else
        ptx::cp_async_ca<operand.vector_bytes>(target(pass, stage), source, valid);
    }
  }

  __device__ __forceinline__ unsigned target(int pass, unsigned stage) const {
    return chunk_target<operand, Shares::row_step>(target_ + stage, row_, chunk_, pass);
  }

  const abi::WindowParams& window_;
  const Pixels& pixels_;
  int row_;  // of the thread's first chunk in the tile
  int chunk_;
  unsigned target_;  // of the first chunk in the first stage
  unsigned k_;       // of the thread's chunks in the next block
  unsigned end_k_;
  unsigned rows_ = 0;      // that exist, a bit for each pass
  unsigned lines_ = 0;     // those in which the tap finds a pixel
  int channels_left_ = 0;  // of the tap, from the thread's chunk on
  abi::Int64 tap_bytes_ = 0;
  const char* sources_[Shares::passes];
};

/// The lines of k of a convolution's operand: pixels, or taps and filters.
enum class WindowLines : unsigned char { none, pixels, taps };

/// A tile whose rows are k, and along which taps with their channels, or channels, are adjacent.
template <abi::StagedOperand operand, int threads, WindowLines lines, int dimensions>
class WindowedLines {
  using Shares = ChunkShares<operand, threads>;
  static constexpr int bytes = abi::bytes_of(operand.dtype);
  static constexpr int copies = abi::chunk_bytes / operand.vector_bytes;  // of a chunk
  static constexpr int elements = operand.vector_bytes / bytes;           // of one copy

 public:
  __device__ __forceinline__ WindowedLines(const PanelOfLines& panel, unsigned tile, int thread)
      : window_(*panel.window),
        data_(panel.data),
        row_(thread / Shares::chunks),
        chunk_(thread % Shares::chunks),
        target_(tile + static_cast<unsigned>(operand.offset(row_, chunk_))),
        k_(panel.first_k + static_cast<unsigned>(row_)),
        end_k_(panel.end_k) {
#pragma unroll
    for (int at = 0; at < copies; ++at) {
      const auto along = static_cast<unsigned>(chunk_ * operand.chunk_elements() + at * elements);
      const unsigned index = panel.first_extent + along;
      parts_[at] = lines == WindowLines::pixels ? window_tap<dimensions>(window_, index)
                                                : window_pixel<dimensions>(window_, index);
      if (along < panel.extent_left) there_ |= 1U << at;
    }
  }

  __device__ static bool is_interior() { return true; }

  __device__ __forceinline__ void fetch_whole(unsigned stage, int) {
#pragma unroll
    for (int pass = 0; pass < Shares::passes; ++pass) {
      if (!Shares::is_even && row_ + pass * Shares::row_step >= operand.k) break;
      const unsigned k = k_ + static_cast<unsigned>(pass * Shares::row_step);
      const WindowPart line = lines == WindowLines::pixels ? window_pixel<dimensions>(window_, k)
                                                           : window_tap<dimensions>(window_, k);
      const unsigned target =
          chunk_target<operand, Shares::row_step>(target_ + stage, row_, chunk_, pass);
#pragma unroll
      for (int at = 0; at < copies; ++at) copy(target, line, at, k < end_k_);
    }
    k_ += operand.k;
  }
  template <bool = false>
  __device__ __forceinline__ void fetch(unsigned stage, unsigned, bool) {
    fetch_whole(stage, 0);
  }
  __device__ static void advance(int) {}
  __device__ static void store(unsigned) {}  // cp.async needs none

 private:
  __device__ __forceinline__ void copy(unsigned target, const WindowPart& line, int at,
                                       bool has_line) const {
    abi::Int64 offset = 0;
    const bool is_inside = find_in_window<dimensions>(window_, line, parts_[at], offset);
    const bool is_there = is_inside && has_line && (there_ >> at & 1U) != 0;
    const char* const source = data_ + offset * bytes;
    const int valid = is_there ? operand.vector_bytes : 0;
    if constexpr (copies == 1)
      ptx::cp_async_cg(target, source, valid);
    else
      ptx::cp_async_ca<operand.vector_bytes>(target + at * operand.vector_bytes, source, valid);
  }

  const abi::WindowParams& window_;
  const char* data_;
  int row_;  // of the thread's first chunk in the tile
  int chunk_;
  unsigned target_;  // of the first chunk in the first stage
  unsigned k_;       // of the first chunk's row in the next block
  unsigned end_k_;
  unsigned there_ = 0;  // a bit for each copy of a chunk that lies within the matrix
  WindowPart parts_[copies];
};

/// The same through registers, where elements are aligned to less than 4 bytes or bytes are
/// transposed: RegisterCopy, whose loads are found by pixel and tap.
template <abi::StagedOperand operand, WindowLines lines, int dimensions>
class WindowedSource {
  static constexpr int bytes = abi::bytes_of(operand.dtype);
  static constexpr bool are_rows_pixels = operand.is_k_adjacent;

 public:
  static constexpr bool finds_elements = true;

  __device__ __forceinline__ explicit WindowedSource(const PanelOfLines& panel)
      : window_(*panel.window),
        data_(panel.data),
        first_extent_(panel.first_extent),
        extent_left_(panel.extent_left),
        k_(panel.first_k),
        end_k_(panel.end_k) {}

  __device__ void advance() { k_ += operand.k; }

  /// Loads the elements `along` on of a line of the tile by whole accesses.
  template <int access_bytes, int load_bytes>
  __device__ __forceinline__ void load(ptx::Registers<load_bytes>& value, unsigned line,
                                       unsigned along, bool is_busy) const {
    value = {};
    const unsigned extent = are_rows_pixels ? line : along;
    if constexpr (are_rows_pixels) is_busy = is_busy && extent < extent_left_;
    if (!is_busy) return;
    const Line found = find_line(line);
#pragma unroll
    for (int at = 0; at < load_bytes; at += access_bytes) {
      const unsigned element = along + static_cast<unsigned>(at / bytes);
      abi::Int64 offset = 0;
      const bool is_there = find(found, element, offset) && has(line, element);
      value.words[at / 4] |= ptx::ld_global_nc_if<access_bytes>(is_there, data_ + offset * bytes)
                             << (8 * (at % 4));
    }
  }

 private:
  using Line = WindowPart;

  __device__ bool has(unsigned line, unsigned along) const {
    if constexpr (are_rows_pixels) return k_ + along < end_k_;
    return k_ + line < end_k_ && along < extent_left_;
  }
  __device__ __forceinline__ Line find_line(unsigned line) const {
    if constexpr (are_rows_pixels) return window_pixel<dimensions>(window_, first_extent_ + line);
    return lines == WindowLines::pixels ? window_pixel<dimensions>(window_, k_ + line)
                                        : window_tap<dimensions>(window_, k_ + line);
  }
  __device__ __forceinline__ bool find(const Line& line, unsigned along, abi::Int64& offset) const {
    const unsigned index = (are_rows_pixels ? k_ : first_extent_) + along;
    const WindowPart part = lines == WindowLines::pixels ? window_tap<dimensions>(window_, index)
                                                         : window_pixel<dimensions>(window_, index);
    return find_in_window<dimensions>(window_, line, part, offset);
  }

  const abi::WindowParams& window_;
  const char* data_;
  unsigned first_extent_;
  unsigned extent_left_;
  unsigned k_;  // of the next block
  unsigned end_k_;
};

/// The copies of an operand: found by pixel and tap, or by lines.
template <abi::StagedOperand operand, int threads, WindowLines lines, int dimensions,
          ChunkPointers kept>
struct ConvCopyOf {
  using Type = RegisterCopy<operand, threads, false, WindowedSource<operand, lines, dimensions>>;
};
template <abi::StagedOperand operand, int threads, WindowLines lines, int dimensions,
          ChunkPointers kept>
requires(lines != WindowLines::none && operand.is_async() &&
         operand.is_k_adjacent) struct ConvCopyOf<operand, threads, lines, dimensions, kept> {
  using Type = WindowedRows<operand, threads, dimensions>;
};
template <abi::StagedOperand operand, int threads, WindowLines lines, int dimensions,
          ChunkPointers kept>
requires(lines != WindowLines::none && operand.is_async() &&
         !operand.is_k_adjacent) struct ConvCopyOf<operand, threads, lines, dimensions, kept> {
  using Type = WindowedLines<operand, threads, lines, dimensions>;
};
template <abi::StagedOperand operand, int threads, int dimensions, ChunkPointers kept>
struct ConvCopyOf<operand, threads, WindowLines::none, dimensions, kept> {
  using Type = typename OperandCopyOf<operand, threads, kept>::Type;
};

}  // namespace gemmery::device
