// SPDX-License-Identifier: Apache-2.0
// The elements of a convolution's operand for RegisterCopy (copy/chunked_operand), where elements
// are aligned to less than 4 bytes or bytes are transposed. The offset of an element is the sum of
// two parts: that of its line, and that of its place along the line.
#pragma once

#include <device/copy/chunked_operand.cuh>
#include <device/copy/kept_parts.cuh>
#include <device/tile/lane_parts.cuh>

namespace gemmery::device {

/// The lines of k of a convolution's operand: pixels, or taps and filters.
enum class WindowLines : unsigned char { none, pixels, taps };

/// True if coordinates of so many dimensions lie in the image. All are read and compared: branches
/// between comparisons took half of the compile time of such copies.
template <int dimensions>
__device__ __forceinline__ bool is_inside(const abi::WindowParams& window, const WindowPart& line,
                                          const WindowPart& place) {
  bool is_inside = true;
#pragma unroll
  for (int d = 3 - dimensions; d < 3; ++d)
    // A negative coordinate is a large unsigned one.
    is_inside &= static_cast<unsigned>(line.at[d] + place.at[d]) < window.extent[d];
  return is_inside;
}

/// The common part of all sources.
template <const abi::StagedOperand& operand, int dimensions>
class WindowedSource {
 public:
  /// No copy depends on edges of the matrix beyond its own.
  __device__ static bool is_interior() { return true; }
  __device__ void advance() { k_ += operand.k; }

 protected:
  using Units = RegisterUnits<operand>;
  using Line = typename Units::Line;

  __device__ __forceinline__ explicit WindowedSource(const PanelOfLines& panel)
      : window_(*panel.window),
        data_(panel.data),
        first_extent_(panel.first_extent),
        extent_left_(static_cast<int>(min(panel.extent_left, 1U << 30))),
        k_(panel.first_k),
        end_k_(panel.end_k) {}

  __device__ int k_left() const { return static_cast<int>(end_k_) - static_cast<int>(k_); }
  __device__ WindowPart pixel(unsigned index) const {
    return in_bytes<dimensions>(window_, window_pixel<dimensions>(window_, index),
                                Units::element_bytes);
  }
  __device__ WindowPart tap(unsigned index) const {
    return in_bytes<dimensions>(window_, window_tap<dimensions>(window_, index),
                                Units::element_bytes);
  }
  /// Adds an access to the words of a line.
  __device__ __forceinline__ static void load(Line& value, int access, bool is_there,
                                              const char* source) {
    constexpr int bytes = Units::access_bytes;
    value.words[access * bytes / 4] |= ptx::ld_global_nc_if<bytes>(is_there, source)
                                       << (8 * (access * bytes % 4));
  }

  const abi::WindowParams& window_;
  const char* data_;
  unsigned first_extent_;
  int extent_left_;
  unsigned k_;  // of the next block
  unsigned end_k_;
};

/// Rows are pixels, whose parts are in shared memory; k runs over taps and their channels. The
/// parts of a block's k are found once, by all threads.
template <const abi::StagedOperand& operand, int dimensions>
class RowsSource : public WindowedSource<operand, dimensions> {
  using Base = WindowedSource<operand, dimensions>;
  using typename Base::Line;
  using typename Base::Units;
  static_assert(Units::access_elements == 1, "elements of k are loaded one by one");

 public:
  /// A thread's chunk of k, and how many elements there are from its first one on.
  struct Along {
    int chunk;
    int left;
  };

  __device__ __forceinline__ explicit RowsSource(const PanelOfLines& panel)
      : Base(panel),
        rows_(*reinterpret_cast<const PixelRows<operand, dimensions>*>(panel.pixels)),
        taps_(*reinterpret_cast<TapsOfBlock<operand, dimensions>*>(
            panel.pixels + sizeof(PixelRows<operand, dimensions>))) {}

  /// Called by all threads for each block of k.
  template <int threads>
  __device__ __forceinline__ Along find_along(int thread) const {
    __syncthreads();  // waits until all threads have read the taps of the previous block
#pragma unroll 1
    for (int k = thread; k < operand.k; k += threads)
      taps_.put(k % Units::elements * Units::along + k / Units::elements,
                this->tap(this->k_ + static_cast<unsigned>(k)));
    __syncthreads();  // waits for the taps
    const int chunk = thread % Units::along;
    return {.chunk = chunk, .left = this->k_left() - chunk * Units::elements};
  }

  __device__ __forceinline__ void load(Line (&values)[1], const Along& along, int unit, int,
                                       unsigned) const {
    const int row = unit / Units::along;
    const WindowPart pixel = rows_.get(row);
    const char* const begin = this->data_ + pixel.offset;
    const bool has_row = row < this->extent_left_;
    values[0] = {};
#pragma unroll
    for (int at = 0; at < Units::accesses; ++at) {
      const WindowPart tap = taps_.get(at * Units::along + along.chunk);
      const bool is_there =
          has_row & (at < along.left) & is_inside<dimensions>(this->window_, pixel, tap);
      Base::load(values[0], at, is_there, begin + tap.offset);
    }
  }

 private:
  const PixelRows<operand, dimensions>& rows_;
  TapsOfBlock<operand, dimensions>& taps_;
};

/// The common part of lines of k: pixels, or taps and filters. Channels of filters are adjacent,
/// and no tap of a filter lies in padding.
template <const abi::StagedOperand& operand, WindowLines window_lines, int dimensions>
class LinesSource : public WindowedSource<operand, dimensions> {
 protected:
  using Base = WindowedSource<operand, dimensions>;
  using typename Base::Line;
  using typename Base::Units;
  static constexpr bool are_taps = window_lines == WindowLines::taps;
  static constexpr int tested = are_taps ? 0 : dimensions;  // coordinates

  __device__ __forceinline__ explicit LinesSource(const PanelOfLines& panel) : Base(panel) {}

  __device__ __forceinline__ WindowPart line(int index) const {
    const unsigned k = this->k_ + static_cast<unsigned>(index);
    return are_taps ? this->tap(k) : this->pixel(k);
  }
  __device__ __forceinline__ WindowPart place(int along) const {
    const unsigned extent = this->first_extent_ + static_cast<unsigned>(along);
    return are_taps ? this->pixel(extent) : this->tap(extent);
  }
};

/// Lines that are copied as they are: a unit is a chunk of one line.
template <const abi::StagedOperand& operand, WindowLines window_lines, int dimensions,
          bool = operand.is_transposed()>
class StagedLinesSource : public LinesSource<operand, window_lines, dimensions> {
  using Lines = LinesSource<operand, window_lines, dimensions>;
  using typename Lines::Line;
  using typename Lines::Units;

 public:
  /// The first element of a thread's units along their lines.
  struct Along {
    int first;
  };

  __device__ __forceinline__ explicit StagedLinesSource(const PanelOfLines& panel) : Lines(panel) {}

  template <int>
  __device__ __forceinline__ static Along find_along(int thread) {
    return {thread % Units::along * Units::elements};
  }

  __device__ __forceinline__ void load(Line (&values)[1], const Along& along, int unit, int,
                                       unsigned) const {
    const int index = unit / Units::along;
    const bool has_line = index < this->k_left();
    values[0] = {};
    if constexpr (Lines::are_taps)
      load_channels(values[0], this->line(index), this->place(along.first), has_line, along.first);
    else
      load_taps(values[0], this->k_ + static_cast<unsigned>(index), has_line, along.first);
  }

 private:
  __device__ __forceinline__ void load_channels(Line& value, const WindowPart& line,
                                                const WindowPart& place, bool has_line,
                                                int first) const {
    const char* const begin = this->data_ + line.offset + place.offset;
#pragma unroll
    for (int at = 0; at < Units::accesses; ++at)
      Lines::load(value, at, has_line & (first + at * Units::access_elements < this->extent_left_),
                  begin + at * Units::access_bytes);
  }
  /// The offset is computed from the sum of both coordinates, not from two parts: that compiles
  /// faster.
  __device__ __forceinline__ void load_taps(Line& value, unsigned k, bool has_line,
                                            int first) const {
    const WindowPart pixel = window_pixel<dimensions>(this->window_, k);
#pragma unroll
    for (int at = 0; at < Units::accesses; ++at) {
      const int along = first + at * Units::access_elements;
      const WindowPart tap =
          window_tap<dimensions>(this->window_, this->first_extent_ + static_cast<unsigned>(along));
      abi::Int64 offset;
      const bool is_inside = find_in_window<dimensions>(this->window_, pixel, tap, offset);
      Lines::load(value, at, is_inside & has_line & (along < this->extent_left_),
                  this->data_ + offset * Units::element_bytes);
    }
  }
};

/// Lines of bytes that are transposed: a unit is sixteen lines of four. Several lanes need the same
/// lines, and share the work of finding them.
template <const abi::StagedOperand& operand, WindowLines window_lines, int dimensions>
class StagedLinesSource<operand, window_lines, dimensions, true>
    : public LinesSource<operand, window_lines, dimensions> {
  using Lines = LinesSource<operand, window_lines, dimensions>;
  using typename Lines::Line;
  using typename Lines::Units;
  static constexpr int places = Lines::are_taps ? 1 : Units::accesses;

 public:
  /// Lines whose loads are under way at once: all, or, if each byte has a load, a word of k.
  static constexpr int lines_at_once = Units::accesses > 1 ? 4 : Units::lines;

  /// The places of a thread's units along their lines, and how many elements there are from the
  /// first one on.
  struct Along {
    WindowPart places[places];
    int left;
  };

  __device__ __forceinline__ explicit StagedLinesSource(const PanelOfLines& panel) : Lines(panel) {}

  template <int>
  __device__ __forceinline__ Along find_along(int thread) const {
    const int first = thread % Units::along * Units::elements;
    Along along;
    along.left = this->extent_left_ - first;
#pragma unroll
    for (int at = 0; at < places; ++at)
      along.places[at] = this->place(first + at * Units::access_elements);
    return along;
  }

  /// Called by all lanes: loads `count` lines of a unit, from the line `first` on.
  template <int count>
  __device__ __forceinline__ void load(Line (&values)[count], const Along& along, int unit,
                                       int first, unsigned) const {
    const int begin = unit / Units::along * Units::lines + first;
    const int left = unit < Units::count ? this->k_left() - begin : 0;
    constexpr int sharers = count < Units::along ? count : Units::along;
    const LaneParts<count, sharers, Lines::tested> lines(
        [&](int index) { return this->line(begin + index); });
#pragma unroll
    for (int at = 0; at < count; ++at) load_line(values[at], lines.get(at), at < left, along);
  }

 private:
  __device__ __forceinline__ void load_line(Line& value, const WindowPart& line, bool has_line,
                                            const Along& along) const {
    value = {};
    const char* const begin = this->data_ + line.offset;
#pragma unroll
    for (int at = 0; at < Units::accesses; ++at) {
      const WindowPart& place = along.places[Lines::are_taps ? 0 : at];
      const int after = Lines::are_taps ? at * Units::access_bytes : 0;
      const bool is_there = has_line & (at * Units::access_elements < along.left) &
                            is_inside<Lines::tested>(this->window_, line, place);
      Lines::load(value, at, is_there, begin + place.offset + after);
    }
  }
};

}  // namespace gemmery::device
