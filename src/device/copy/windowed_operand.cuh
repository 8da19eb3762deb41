// SPDX-License-Identifier: Apache-2.0
// Copies the tiles of a convolution's operand by cp.async, as copy/chunked_operand does those of
// matrices: k block after k block, zeros in padding.
//
//   rows of pixels       k runs over taps and their channels. A thread's chunks have one tap, which
//                        changes once in several blocks; then each row is tested anew.
//   lines of k           pixels, or taps and filters. A thread's chunks have one tap (or channel)
//                        for all of a tile; each line follows from the one before it.
#pragma once

#include <device/copy/chunked_operand.cuh>
#include <device/copy/windowed_source.cuh>
#include <device/tile/pixel_walk.cuh>
#include <device/tile/window.cuh>

namespace gemmery::device {

/// The offsets in elements, and the coordinates, that a tap and a channel add.
template <int dimensions>
__device__ __forceinline__ abi::Int64 offset_of_tap(const abi::WindowParams& window,
                                                    const WindowPart& tap) {
  abi::Int64 elements = tap.offset;
#pragma unroll
  for (int d = 3 - dimensions; d < 3; ++d) elements += tap.at[d] * window.strides[d];
  return elements;
}

/// A tile whose rows are pixels.
template <const abi::StagedOperand& operand, int threads, int dimensions>
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
        target_(tile + static_cast<unsigned>(abi::value_of<operand>().offset(row_, chunk_))),
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
      is_inside &= static_cast<unsigned>(coordinate) < window_.extent[d];
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

/// The common part of all copies of lines of k. Along a line taps with their channels, or channels
/// of a filter, are adjacent.
template <const abi::StagedOperand& operand, int threads>
class WindowedLines {
 public:
  /// No copy depends on edges of the matrix beyond its own.
  __device__ static bool is_interior() { return true; }
  __device__ static void advance(int) {}
  __device__ static void store(unsigned) {}  // cp.async needs none

 protected:
  using Shares = ChunkShares<operand, threads>;
  static constexpr int bytes = abi::bytes_of(operand.dtype);
  static constexpr int copies = abi::chunk_bytes / operand.vector_bytes;  // of a chunk
  static constexpr int elements = operand.vector_bytes / bytes;           // of one copy

  __device__ __forceinline__ WindowedLines(const PanelOfLines& panel, unsigned tile, int thread)
      : window_(*panel.window),
        row_(thread / Shares::chunks),
        chunk_(thread % Shares::chunks),
        target_(tile + static_cast<unsigned>(abi::value_of<operand>().offset(row_, chunk_))),
        k_(panel.first_k + static_cast<unsigned>(row_)),
        end_k_(panel.end_k) {
#pragma unroll
    for (int at = 0; at < copies; ++at)
      if (along(at) < panel.extent_left) there_ |= 1U << at;
  }

  /// The begin of a copy in the panel's lines.
  __device__ unsigned along(int at) const {
    return static_cast<unsigned>(chunk_ * operand.chunk_elements() + at * elements);
  }
  __device__ bool has_row(int pass) const {
    return Shares::is_even || row_ + pass * Shares::row_step < operand.k;
  }
  __device__ bool is_there(int at) const { return (there_ >> at & 1U) != 0; }

  __device__ __forceinline__ void copy(unsigned stage, int pass, int at, const char* source,
                                       bool is_valid) const {
    const unsigned target =
        chunk_target<operand, Shares::row_step>(target_ + stage, row_, chunk_, pass);
    const int valid = is_valid ? operand.vector_bytes : 0;
    if constexpr (copies == 1)
      ptx::cp_async_cg(target, source, valid);
    else
      ptx::cp_async_ca<operand.vector_bytes>(target + at * operand.vector_bytes, source, valid);
  }

  const abi::WindowParams& window_;
  int row_;  // of the thread's first chunk in the tile
  int chunk_;
  unsigned target_;  // of the first chunk in the first stage
  unsigned k_;       // of the first chunk's row in the next block
  unsigned end_k_;
  unsigned there_ = 0;  // a bit for each copy of a chunk that lies within the matrix
};

/// A tile whose lines are pixels. A thread's chunks have one tap for all of the tile; its lines are
/// equally far apart, also from one block to the next.
template <const abi::StagedOperand& operand, int threads, int dimensions>
class PixelLines : public WindowedLines<operand, threads> {
  using Lines = WindowedLines<operand, threads>;
  using typename Lines::Shares;
  static constexpr bool has_one_tap = Lines::copies == 1;
  // Where rows do not fill all passes, a walk of whole passes would leave the block.
  static_assert(Shares::passes == 1 || Shares::is_even, "lines are equally far apart");
  static constexpr int step = Shares::passes == 1 ? operand.k : Shares::row_step;

 public:
  __device__ __forceinline__ PixelLines(const PanelOfLines& panel, unsigned tile, int thread)
      : PixelLines(panel, tile, thread, {}) {}

  __device__ __forceinline__ void fetch_whole(unsigned stage, int) {
    // Unrolled, copies in parts took all registers and spilled 16 to 56 bytes (ptxas 13.0).
#pragma unroll(has_one_tap ? Shares::passes : 1)
    for (int pass = 0; pass < Shares::passes; ++pass) {
      const bool has_line =
          this->k_ + static_cast<unsigned>(pass * Shares::row_step) < this->end_k_;
      if (this->has_row(pass)) copy_line(stage, pass, has_line);
      walk_.advance(this->window_);
    }
    this->k_ += operand.k;
  }
  template <bool = false>
  __device__ __forceinline__ void fetch(unsigned stage, unsigned, bool) {
    fetch_whole(stage, 0);
  }

 private:
  __device__ __forceinline__ PixelLines(const PanelOfLines& panel, unsigned tile, int thread,
                                        const WindowPart& nothing)
      : Lines(panel, tile, thread),
        data_(panel.data),
        walk_(*panel.window, this->k_, step,
              has_one_tap
                  ? window_tap<dimensions>(*panel.window, panel.first_extent + this->along(0))
                  : nothing,
              Lines::bytes) {
#pragma unroll
    for (int at = 0; at < Lines::copies; ++at) {
      const WindowPart tap =
          window_tap<dimensions>(*panel.window, panel.first_extent + this->along(at));
      // The walk has the coordinates of a single tap already, and where they lie.
      taps_[at] = has_one_tap ? nothing : tap;
      bytes_[at] =
          (has_one_tap ? tap.offset : offset_of_tap<dimensions>(*panel.window, tap)) * Lines::bytes;
    }
  }

  __device__ __forceinline__ void copy_line(unsigned stage, int pass, bool has_line) const {
#pragma unroll
    for (int at = 0; at < Lines::copies; ++at) {
      bool is_inside = has_line & this->is_there(at);
#pragma unroll
      for (int d = 3 - dimensions; d < 3; ++d)
        is_inside &= static_cast<unsigned>(walk_.at[d] + taps_[at].at[d]) < this->window_.extent[d];
      this->copy(stage, pass, at, data_ + walk_.bytes + bytes_[at], is_inside);
    }
  }

  const char* data_;
  PixelWalk<dimensions> walk_;
  WindowPart taps_[Lines::copies];
  abi::Int64 bytes_[Lines::copies];
};

/// A tile whose lines are taps and the filters (channels) within them. A thread's chunks have one
/// channel for all of the tile. Most blocks lie within one tap, whose lines are equally far apart.
template <const abi::StagedOperand& operand, int threads, int dimensions>
class TapLines : public WindowedLines<operand, threads> {
  using Lines = WindowedLines<operand, threads>;
  using typename Lines::Shares;
  static constexpr int span = (Shares::passes - 1) * Shares::row_step;

 public:
  __device__ __forceinline__ TapLines(const PanelOfLines& panel, unsigned tile, int thread)
      : Lines(panel, tile, thread), step_bytes_(panel.window->channel_stride * Lines::bytes) {
    const WindowPart first =
        window_pixel<dimensions>(*panel.window, panel.first_extent + this->along(0));
    data_ = panel.data + offset_of_tap<dimensions>(*panel.window, first) * Lines::bytes;
  }

  __device__ __forceinline__ void fetch_whole(unsigned stage, int) {
    if (left_ <= span) find_line(this->k_);
    if (left_ > span)
      fetch_within_tap(stage);
    else
      fetch_each(stage);
    this->k_ += operand.k;
    left_ -= operand.k;
    line_ += operand.k * step_bytes_;
  }
  template <bool = false>
  __device__ __forceinline__ void fetch(unsigned stage, unsigned, bool) {
    fetch_whole(stage, 0);
  }

 private:
  /// Finds a line, and how many lines of its tap there are from it on; 0 beyond the last one.
  __device__ __forceinline__ void find_line(unsigned k) {
    left_ = 0;
    if (k >= this->end_k_) return;
    const abi::FastDivisor& filters = this->window_.taps[2];
    left_ = static_cast<int>(filters.divisor - (k - filters.divide(k) * filters.divisor));
    line_ =
        data_ + offset_of_tap<dimensions>(this->window_, window_tap<dimensions>(this->window_, k)) *
                    Lines::bytes;
  }

  __device__ __forceinline__ void fetch_within_tap(unsigned stage) const {
    const char* line = line_;
#pragma unroll
    for (int pass = 0; pass < Shares::passes; ++pass) {
      if (this->has_row(pass)) copy_line(stage, pass, line, true);
      line += Shares::row_step * step_bytes_;
    }
  }
  __device__ __forceinline__ void fetch_each(unsigned stage) {
#pragma unroll 1
    for (int pass = 0; pass < Shares::passes; ++pass) {
      find_line(this->k_ + static_cast<unsigned>(pass * Shares::row_step));
      if (this->has_row(pass)) copy_line(stage, pass, line_, left_ > 0);
    }
    left_ = 0;
  }
  __device__ __forceinline__ void copy_line(unsigned stage, int pass, const char* line,
                                            bool has_line) const {
#pragma unroll
    for (int at = 0; at < Lines::copies; ++at)
      this->copy(stage, pass, at, line + at * operand.vector_bytes, has_line && this->is_there(at));
  }

  const char* data_;  // the thread's first channel of the first filter
  const char* line_ = nullptr;
  abi::Int64 step_bytes_;
  int left_ = 0;
};

/// The copies of an operand: found by pixel and tap, or by lines.
template <const abi::StagedOperand& operand, int threads, WindowLines lines, int dimensions,
          ChunkPointers kept>
struct ConvCopyOf {
  using Type = RegisterCopy<operand, threads, StagedLinesSource<operand, lines, dimensions>>;
};
template <const abi::StagedOperand& operand, int threads, int dimensions, ChunkPointers kept>
requires(!operand.is_async() &&
         operand.is_k_adjacent) struct ConvCopyOf<operand, threads, WindowLines::pixels, dimensions,
                                                  kept> {
  using Type = RegisterCopy<operand, threads, RowsSource<operand, dimensions>>;
};
template <const abi::StagedOperand& operand, int threads, int dimensions, ChunkPointers kept>
requires(operand.is_async() &&
         operand.is_k_adjacent) struct ConvCopyOf<operand, threads, WindowLines::pixels, dimensions,
                                                  kept> {
  using Type = WindowedRows<operand, threads, dimensions>;
};
template <const abi::StagedOperand& operand, int threads, int dimensions, ChunkPointers kept>
requires(operand.is_async() &&
         !operand.is_k_adjacent) struct ConvCopyOf<operand, threads, WindowLines::pixels,
                                                   dimensions, kept> {
  using Type = PixelLines<operand, threads, dimensions>;
};
template <const abi::StagedOperand& operand, int threads, int dimensions, ChunkPointers kept>
requires(
    operand.is_async()) struct ConvCopyOf<operand, threads, WindowLines::taps, dimensions, kept> {
  using Type = TapLines<operand, threads, dimensions>;
};
template <const abi::StagedOperand& operand, int threads, int dimensions, ChunkPointers kept>
struct ConvCopyOf<operand, threads, WindowLines::none, dimensions, kept> {
  using Type = typename OperandCopyOf<operand, threads, kept>::Type;
};

}  // namespace gemmery::device
