// SPDX-License-Identifier: Apache-2.0
// Multiplies the elements of B that a thread has loaded by words of A in shared memory, for a few
// rows of A.
#pragma once

#include <device/abi/skinny_design.hpp>
#include <device/copy/row_panel.cuh>
#include <device/copy/streamed_operand.cuh>
#include <device/mma/simt.cuh>
#include <device/tile/element.cuh>

namespace gemmery::device {

/// A thread's accumulators: of its columns in each row.
template <const abi::SkinnyDesign& design>
struct SkinnySums {
  using Number = typename ArithmeticOf<design.accumulator>::Accumulator;
  static constexpr int columns = abi::accumulators_per_thread(design) / design.rows;
  Number of[design.rows][columns];
};

template <const abi::SkinnyDesign& design>
class SkinnyMultiplier {
 public:
  using Word = typename ArithmeticOf<design.accumulator>::Word;
  using Sums = SkinnySums<design>;
  using Slot = StreamSlot<design>;

  __device__ __forceinline__ SkinnyMultiplier(const Word* panel, int thread) : panel_(panel) {
    place_ = design.b_major == abi::Major::k
                 ? thread % 32 * run_words
                 : static_cast<int>(StreamAlongColumns<design>::first_k(thread)) / k_per_word *
                       design.rows;
  }

  /// sums += A B for the elements in a slot: step `in_panel` of the panel, step `step` of the
  /// stream.
  __device__ __forceinline__ void multiply(Sums& sums, const Slot& slot,
                                           const StreamAlongK<design>& stream, unsigned step,
                                           unsigned in_panel) const {
    if (!stream.has(step)) return;
    const Word* const first = panel_ + place_ + in_panel * (32 * run_words);
#pragma unroll
    for (int run = 0; run < runs; ++run) {
      Word b[design.loads][run_words];
#pragma unroll
      for (int load = 0; load < design.loads; ++load) {
#pragma unroll
        for (int word = 0; word < run_words; ++word)
          b[load][word] = word_of(slot.loads[load], run * run_words + word);
      }
#pragma unroll
      for (int row = 0; row < design.rows; ++row) {
        const auto a = read<run_words>(first + row * abi::panel_words(design) +
                                       run * (abi::panel_words(design) / runs));
#pragma unroll
        for (int word = 0; word < run_words; ++word) {
#pragma unroll
          for (int load = 0; load < design.loads; ++load)
            sums.of[row][load] =
                multiply_add<tile>(a.words[word], b[load][word], sums.of[row][load]);
        }
      }
    }
  }

  __device__ __forceinline__ void multiply(Sums& sums, const Slot& slot,
                                           const StreamAlongColumns<design>& stream, unsigned step,
                                           unsigned in_panel) const {
    const Word* const first =
        panel_ + place_ + in_panel * (abi::step_k(design) / k_per_word * design.rows);
#pragma unroll
    for (int load = 0; load < design.loads; load += k_per_word) {
      if (!stream.has(step, load)) continue;
      Word a[design.rows];
      read_rows(a, first + load / k_per_word * design.rows);
#pragma unroll
      for (int column = 0; column < Sums::columns; ++column) {
        const Word b = word_of(slot, load, column);
#pragma unroll
        for (int row = 0; row < design.rows; ++row)
          sums.of[row][column] = multiply_add<tile>(a[row], b, sums.of[row][column]);
      }
    }
  }

  /// The elements after the last whole vector of k, which is at `panel_k` of the stream.
  __device__ __forceinline__ void multiply_rest(Sums& sums, const StreamAlongK<design>& stream,
                                                unsigned panel_k) const {
    if (!stream.has_rest()) return;
    const int k = static_cast<int>(stream.rest_k() - panel_k);
    Word b[design.loads];
#pragma unroll
    for (int load = 0; load < design.loads; ++load) b[load] = word_of_element(stream.rest(load), k);
#pragma unroll
    for (int row = 0; row < design.rows; ++row) {
      const Word a = panel_[abi::panel_place(abi::value_of<design>(), row, k)];
#pragma unroll
      for (int load = 0; load < design.loads; ++load)
        sums.of[row][load] = multiply_add<tile>(a, b[load], sums.of[row][load]);
    }
  }

 private:
  static constexpr abi::SimtDesign tile = abi::finished_tile(design);
  static constexpr bool is_integer = design.accumulator == DType::int32;
  static constexpr int k_per_word = abi::k_per_word(design);
  static constexpr int run_words = abi::run_words(design);
  static constexpr int runs = abi::runs_of_load(design);

  template <int count>
  __device__ __forceinline__ static WordRun<Word, count> read(const Word* words) {
    return *reinterpret_cast<const WordRun<Word, count>*>(words);
  }

  __device__ __forceinline__ static void read_rows(Word (&a)[design.rows], const Word* words) {
    constexpr int widest = 16 / static_cast<int>(sizeof(Word));
    constexpr int count = design.rows < widest ? design.rows : widest;
#pragma unroll
    for (int row = 0; row < design.rows; row += count) {
      const auto run = read<count>(words + row);
#pragma unroll
      for (int at = 0; at < count; ++at) a[row + at] = run.words[at];
    }
  }

  /// Word `position` of a vector along k.
  template <class Loaded>
  __device__ __forceinline__ static Word word_of(const Loaded& loaded, int position) {
    if constexpr (is_integer)
      return extract<k_per_word>(loaded, position);
    else
      return decode<design.b, Word>(loaded, position);
  }

  /// The word of a column, with the k that begin at `load`.
  __device__ __forceinline__ static Word word_of(const Slot& slot, int load, int column) {
    if constexpr (!is_integer) {
      return decode<design.b, Word>(slot.loads[load], column);
    } else {
      unsigned words[4]{};
#pragma unroll
      for (int k = 0; k < k_per_word; ++k) words[k] = slot.loads[load + k].words[column / 4];
      return column_of_bytes(words[0], words[1], words[2], words[3], column % 4);
    }
  }

  /// A word of a single element, filled up with zeros.
  template <class Loaded>
  __device__ __forceinline__ static Word word_of_element(const Loaded& loaded, int k) {
    if constexpr (is_integer)
      return loaded.words[0] << (8 * (k % k_per_word));
    else
      return decode<design.b, Word>(loaded, 0);
  }

  const Word* panel_;
  int place_;
};

}  // namespace gemmery::device
