// SPDX-License-Identifier: Apache-2.0
// A panel of k of the few rows of A that a skinny kernel multiplies, decoded to words in shared
// memory. The next panel's elements are loaded to registers while the current one is multiplied.
// Rows and k outside the matrix are never read and become zero.
#pragma once

#include <device/abi/simt_params.hpp>
#include <device/abi/skinny_design.hpp>
#include <device/copy/element_run.cuh>
#include <device/tile/batch.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

/// `count` adjacent words, in one access.
template <class Word, int count>
struct alignas(sizeof(Word) * count) WordRun {
  Word words[count];
};

template <const abi::SkinnyDesign& design>
class RowPanel {
 public:
  using Word = typename ArithmeticOf<design.accumulator>::Word;

  /// `k`: of the slice, from `first_k` on.
  __device__ __forceinline__ RowPanel(const abi::SimtMatrix& a, unsigned batch, unsigned rows,
                                      unsigned first_k, unsigned k, Word* words, int thread)
      : k_bytes_(a.column_stride * element_bytes),
        row_bytes_(a.row_stride * element_bytes),
        source_(matrix_of_batch<element_bytes>(a.data, a.batch_stride, batch) +
                first_k * step_bytes()),
        rows_(static_cast<int>(rows)),
        k_(k),
        words_(words),
        thread_(thread) {}

  /// Starts loading the panel that begins at k `first` of the slice.
  __device__ __forceinline__ void fetch(unsigned first) {
#pragma unroll
    for (int unit = 0; unit < units_ahead; ++unit) load(fetched_[unit], unit, first);
  }

  /// Stores the panel at `first`, part of which fetch has loaded. All threads must have read the
  /// previous panel.
  __device__ __forceinline__ void store(unsigned first) const {
#pragma unroll
    for (int unit = 0; unit < units_ahead; ++unit)
      if (is_unit(unit)) store_unit(fetched_[unit], target_of(unit));
#pragma unroll 1
    for (int unit = units_ahead; unit < units; ++unit) {
      if (!is_unit(unit)) break;
      Unit loaded[lines];
      load(loaded, unit, first);
      store_unit(loaded, target_of(unit));
    }
    if constexpr (has_partial_units) {
      if (k_ % unit_k == 0 || k_ - first > abi::panel_k(design)) return;
      __syncthreads();  // waits until the last unit has been set to zero
      store_rest(first);
    }
  }

 private:
  static constexpr int element_bytes = abi::bytes_of(design.a);
  static constexpr int k_per_word = abi::k_per_word(design);
  static constexpr bool is_along_k = design.b_major == abi::Major::k;
  // The unit that a thread copies at a time: words of one row, or one word of each row.
  static constexpr int unit_words = abi::panel_unit_words(design);
  static constexpr int unit_k = unit_words * k_per_word;
  static constexpr int lines = is_along_k ? 1 : design.rows;
  static constexpr int units_per_line = abi::panel_k(design) / unit_k;
  static constexpr int all_units = units_per_line * (design.rows / lines);
  static constexpr int units = (all_units + design.threads - 1) / design.threads;
  static constexpr int units_ahead =
      units < abi::panel_units_ahead ? units : abi::panel_units_ahead;
  static constexpr int unit_bytes = unit_k * element_bytes;
  using Unit = ptx::Registers<unit_bytes>;
  // True if a whole unit is loaded in one access; otherwise element by element.
  static constexpr bool is_vector = unit_bytes <= design.a_vector_bytes;
  static constexpr bool has_partial_units = is_vector && unit_k > 1;

  /// True if this thread has a unit in the last pass, which is not complete.
  __device__ bool is_unit(int unit) const {
    return all_units % design.threads == 0 || unit * design.threads + thread_ < all_units;
  }
  __device__ __forceinline__ Word* target_of(int unit) const {
    return words_ + abi::panel_place(abi::value_of<design>(), row_of(unit), k_of(unit));
  }
  __device__ int k_of(int unit) const {
    return (unit * design.threads + thread_) % units_per_line * unit_k;
  }
  __device__ int row_of(int unit) const {
    return is_along_k ? (unit * design.threads + thread_) / units_per_line : 0;
  }
  __device__ abi::Int64 step_bytes() const {
    return design.a_vector_bytes > 0 ? element_bytes : k_bytes_;
  }

  __device__ __forceinline__ void load(Unit (&loaded)[lines], int unit, unsigned first) const {
    const int left = first < k_ ? static_cast<int>(min(k_ - first, 0x7fffffffU)) : 0;
    const int k = k_of(unit);
    const char* const source = source_ + (static_cast<abi::Int64>(first) + k) * step_bytes();
#pragma unroll
    for (int line = 0; line < lines; ++line) {
      const int row = row_of(unit) + line;
      loaded[line] = load(source + row * row_bytes_, row < rows_ ? left - k : 0);
    }
  }

  __device__ __forceinline__ Unit load(const char* first, int left) const {
    if constexpr (is_vector) {
      Unit unit{};
      if (left >= unit_k) unit = ptx::ld_global_nc<unit_bytes>(first);
      return unit;
    } else {
      return load_run<design.a, design.a_vector_bytes, unit_k>(first, left, k_bytes_);
    }
  }

  /// The elements after the last whole unit of each row, one by one.
  __device__ __forceinline__ void store_rest(unsigned first) const {
#pragma unroll 1
    for (int at = thread_; at < design.rows * unit_k; at += design.threads) {
      const int row = at / unit_k;
      const unsigned k = k_ - k_ % unit_k + static_cast<unsigned>(at % unit_k);
      if (k >= k_ || row >= rows_) continue;
      const auto element =
          ptx::ld_global_nc<element_bytes>(source_ + row * row_bytes_ + k * step_bytes());
      const int in_panel = static_cast<int>(k - first);
      Word* const target = words_ + abi::panel_place(abi::value_of<design>(), row, in_panel);
      if constexpr (design.accumulator == DType::int32)
        reinterpret_cast<unsigned char*>(target)[in_panel % k_per_word] =
            static_cast<unsigned char>(element.words[0]);
      else
        *target = decode<design.a, Word>(element, 0);
    }
  }

  __device__ __forceinline__ static Word word_of(const Unit& unit, int word) {
    if constexpr (design.accumulator == DType::int32)
      return extract<k_per_word>(unit, word);
    else
      return decode<design.a, Word>(unit, word);
  }

  __device__ __forceinline__ static void store_unit(const Unit (&unit)[lines], Word* target) {
    constexpr int words = is_along_k ? unit_words : design.rows;
    constexpr int widest = 16 / static_cast<int>(sizeof(Word));
    constexpr int count = words < widest ? words : widest;
    using Run = WordRun<Word, count>;
#pragma unroll
    for (int first = 0; first < words; first += count) {
      Run run;
#pragma unroll
      for (int at = 0; at < count; ++at)
        run.words[at] = is_along_k ? word_of(unit[0], first + at)
                                   : word_of(unit[is_along_k ? 0 : first + at], 0);
      *reinterpret_cast<Run*>(target + first) = run;
    }
  }

  abi::Int64 k_bytes_;
  abi::Int64 row_bytes_;
  const char* source_;
  int rows_;
  unsigned k_;
  Word* words_;
  int thread_;
  Unit fetched_[units_ahead][lines];
};

}  // namespace gemmery::device
