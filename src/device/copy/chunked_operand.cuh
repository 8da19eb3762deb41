// SPDX-License-Identifier: Apache-2.0
// Copies the tiles of one operand from global to shared memory in the layout of abi::StagedOperand,
// k block after k block.
//
//   global --cp.async, 16, 8 or 4 bytes--> shared          aligned operands
//   global --ld--> registers --st--> shared                elements aligned to less than 4 bytes,
//                                                          and bytes that are transposed
//
// Elements outside the matrix are never read and become zero, as do lines with index -1.
#pragma once

#include <device/abi/staged_operand.hpp>
#include <device/abi/window_params.hpp>
#include <device/ptx/async_copy.cuh>
#include <device/ptx/integer.cuh>
#include <device/ptx/memory.cuh>
#include <device/ptx/shared_memory.cuh>
#include <device/ptx/warp.cuh>
#include <device/tile/indexed_element.cuh>

namespace gemmery::device {

/// The part of an operand that one tile needs: at most operand.extent rows of A (columns of B).
struct PanelOfLines {
  const char* data;       // the panel's first element at the first k
  abi::Int64 line_bytes;  // from line to line; along a line elements are adjacent
  unsigned extent_left;   // from the panel's begin to the end of the matrix, at least 1
  // If lines are found by indices: the matrix's line for each line of the panel (no_element if
  // there is none), in shared memory. `data` then points into the matrix's first line.
  const int* lines = nullptr;
  // If elements are found by pixel and tap; `data` is then the tensor of all pixels (or filters).
  const abi::WindowParams* window = nullptr;
  unsigned first_extent = 0;  // the panel's first row of A (column of B)
  unsigned first_k = 0;
  unsigned end_k = 0;
  char* pixels = nullptr;  // the pixels of rows, and then the taps of a block, in shared memory
};

/// The distribution of a tile's chunks over the threads of a block.
template <const abi::StagedOperand& operand, int threads>
struct ChunkShares {
  static constexpr int chunks = operand.chunks();
  static constexpr int count = operand.rows() * chunks;
  static constexpr int passes = (count + threads - 1) / threads;
  static constexpr bool is_even = count % threads == 0;
  /// True if a thread's consecutive passes take the same chunk of later rows.
  static constexpr bool keeps_chunk = threads % chunks == 0;
  static constexpr int row_step = keeps_chunk ? threads / chunks : 0;
  static_assert(keeps_chunk, "a row of a tile has more chunks than the block has threads");
};

/// The shared address of a thread's chunk `pass` row steps after its first one, whose address is
/// `first`.
template <const abi::StagedOperand& operand, int row_step>
__device__ __forceinline__ unsigned chunk_target(unsigned first, int row, int chunk, int pass) {
  constexpr bool keeps_swizzle = row_step % operand.swizzle().period() == 0;
  const int rows = pass * row_step;
  if constexpr (keeps_swizzle) return first + static_cast<unsigned>(rows * operand.row_bytes());
  return first + static_cast<unsigned>(abi::value_of<operand>().offset(row + rows, chunk) -
                                       abi::value_of<operand>().offset(row, chunk));
}

/// The pointers to a thread's chunks that a copy keeps. `each`: one for each chunk. `first`: only
/// that of the first chunk, if registers are scarce. `indexed`: one for each chunk, in lines that
/// are found by indices.
enum class ChunkPointers : unsigned char { each, first, indexed };

/// Each of a thread's chunks has a pointer that moves along k: one addition per k block. If only
/// the first chunk's pointer is kept, the pointer of each chunk is computed from the previous one,
/// also by one addition.
template <const abi::StagedOperand& operand, int threads, ChunkPointers kept>
class ChunkedCopy {
  using Shares = ChunkShares<operand, threads>;
  static constexpr bool keeps_one_pointer = kept == ChunkPointers::first;
  static constexpr bool is_indexed = kept == ChunkPointers::indexed;
  static constexpr int pointers = keeps_one_pointer ? 1 : Shares::passes;

 public:
  /// `tile`: the shared address of the operand's tile in the first stage.
  __device__ __forceinline__ ChunkedCopy(const PanelOfLines& panel, unsigned tile, int thread)
      : row_(thread / Shares::chunks),
        chunk_(thread % Shares::chunks),
        step_bytes_(operand.is_k_adjacent ? operand.run_bytes(operand.k)
                                          : operand.k * panel.line_bytes),
        row_step_bytes_(Shares::row_step * panel.line_bytes),
        target_(tile + static_cast<unsigned>(abi::value_of<operand>().offset(row_, chunk_))),
        extent_left_(
            static_cast<int>(min(panel.extent_left, static_cast<unsigned>(operand.extent)))) {
#pragma unroll
    for (int pass = 0; pass < pointers; ++pass)
      sources_[pass] = panel.data + (row_ + pass * Shares::row_step) * panel.line_bytes +
                       chunk_ * abi::chunk_bytes;
    if constexpr (is_indexed) find_lines(panel);
  }

  __device__ bool is_interior() const { return extent_left_ == operand.extent; }

  /// Starts copying the k block that is `ahead` blocks after the next one into the stage at this
  /// offset. The matrix must have all of the block.
  __device__ __forceinline__ void fetch_whole(unsigned stage, int ahead) {
    // Predicates of lines are computed for each block: kept, they took up to 32 registers (ptxas
    // 13.0).
    if constexpr (is_indexed) lines_ = ptx::opaque(lines_);
    const char* source = sources_[0] + ahead * step_bytes_;
#pragma unroll
    for (int pass = 0; pass < Shares::passes; ++pass) {
      if (!has_chunk(pass)) break;
      if constexpr (!keeps_one_pointer) source = sources_[pass] + ahead * step_bytes_;
      if constexpr (is_indexed)
        copy_chunk(target(pass, stage), source, has_line(pass) ? abi::chunk_bytes : 0);
      else
        copy_chunk(target(pass, stage), source);
      source += row_step_bytes_;
    }
  }

  /// Copies the next k block at an edge and advances; `k_left` counts from the block's start to the
  /// end of k. `finds_place`: finds the thread's first chunk again, so that it need not stay in
  /// registers between edges.
  template <bool finds_place>
  __device__ __forceinline__ void fetch_edge(unsigned stage, unsigned k_left) {
    const int k = static_cast<int>(min(k_left, static_cast<unsigned>(operand.k)));
    if constexpr (finds_place) {
      const int thread = static_cast<int>(ptx::tid_x());
      row_ = thread / Shares::chunks;
      chunk_ = thread % Shares::chunks;
    }
    const char* source = sources_[0];
#pragma unroll
    for (int pass = 0; pass < Shares::passes; ++pass) {
      if (!has_chunk(pass)) break;
      if constexpr (!keeps_one_pointer) source = sources_[pass];
      copy_chunk(target(pass, stage), source, valid_bytes(pass, k));
      source += row_step_bytes_;
    }
    advance(1);
  }

  /// Calls fetch_whole or fetch_edge.
  template <bool finds_place = false>
  __device__ __forceinline__ void fetch(unsigned stage, unsigned k_left, bool is_whole) {
    if (is_whole) {
      fetch_whole(stage, 0);
      advance(1);
    } else {
      fetch_edge<finds_place>(stage, k_left);
    }
  }

  /// Advances by this many k blocks.
  __device__ __forceinline__ void advance(int blocks) {
#pragma unroll
    for (int pass = 0; pass < pointers; ++pass) sources_[pass] += blocks * step_bytes_;
  }

  __device__ static void store(unsigned) {}  // cp.async needs none

 private:
  /// A chunk without a line points at the first line, and is not read.
  __device__ __forceinline__ void find_lines(const PanelOfLines& panel) {
    static_assert(operand.is_k_adjacent,
                  "elements of lines that are found by indices are adjacent");
#pragma unroll
    for (int pass = 0; pass < Shares::passes; ++pass) {
      const int row = row_ + pass * Shares::row_step;
      const int line = row < extent_left_ ? panel.lines[row] : no_element;
      if (line != no_element) lines_ |= 1U << pass;
      sources_[pass] = panel.data + max(line, 0) * panel.line_bytes + chunk_ * abi::chunk_bytes;
    }
  }
  __device__ bool has_line(int pass) const { return (lines_ >> pass & 1U) != 0; }

  __device__ bool has_chunk(int pass) const {
    if constexpr (Shares::is_even) return true;
    return row_ + pass * Shares::row_step < operand.rows();
  }
  __device__ unsigned target(int pass, unsigned stage) const {
    return chunk_target<operand, Shares::row_step>(target_ + stage, row_, chunk_, pass);
  }

  /// Bytes of a chunk that lie within the matrix.
  __device__ int valid_bytes(int pass, int k) const {
    const int row = row_ + pass * Shares::row_step;
    const int lines = operand.is_k_adjacent ? extent_left_ / operand.row_lines() : k;
    const int along = operand.is_k_adjacent ? k : extent_left_;
    if (is_indexed && !has_line(pass)) return 0;
    if (row >= lines) return 0;
    const int left = abi::value_of<operand>().run_bytes(along) - chunk_ * abi::chunk_bytes;
    return min(max(left, 0), abi::chunk_bytes);
  }

  __device__ static void copy_chunk(unsigned target, const char* source) {
    if constexpr (operand.vector_bytes == 16) {
      ptx::cp_async_cg(target, source);
    } else {
#pragma unroll
      for (int at = 0; at < abi::chunk_bytes; at += operand.vector_bytes)
        ptx::cp_async_ca<operand.vector_bytes>(target + at, source + at);
    }
  }
  __device__ static void copy_chunk(unsigned target, const char* source, int valid) {
    if constexpr (operand.vector_bytes == 16) {
      ptx::cp_async_cg(target, source, valid);
    } else {
#pragma unroll
      for (int at = 0; at < abi::chunk_bytes; at += operand.vector_bytes)
        ptx::cp_async_ca<operand.vector_bytes>(target + at, source + at,
                                               min(max(valid - at, 0), operand.vector_bytes));
    }
  }

  int row_;  // of the thread's first chunk in the tile
  int chunk_;
  abi::Int64 step_bytes_;
  abi::Int64 row_step_bytes_;  // from chunk to chunk
  unsigned target_;            // of the first chunk in the first stage
  int extent_left_;
  unsigned lines_ = 0;  // a bit for each pass, set if its line's index is not -1
  const char* sources_[pointers];
};

/// The units that are copied through registers: a chunk or, if bytes are transposed, sixteen lines
/// of four bytes, which become one chunk of k for each of four adjacent extents.
template <const abi::StagedOperand& operand>
struct RegisterUnits {
  static constexpr bool are_transposed = operand.is_transposed();
  static constexpr int element_bytes = abi::bytes_of(operand.dtype);
  static constexpr int bytes = are_transposed ? 4 : abi::chunk_bytes;  // of a line
  static constexpr int elements = bytes / element_bytes;
  static constexpr int lines = are_transposed ? abi::chunk_bytes : 1;
  static constexpr int access_bytes = operand.vector_bytes < bytes ? operand.vector_bytes : bytes;
  static constexpr int access_elements = access_bytes / element_bytes;
  static constexpr int accesses = bytes / access_bytes;  // of a line
  // Of the tile:
  static constexpr int along = (operand.is_k_adjacent ? operand.k : operand.extent) / elements;
  static constexpr int count =
      along * ((operand.is_k_adjacent ? operand.extent : operand.k) / lines);

  using Line = ptx::Registers<bytes>;
  struct Unit {
    Line of[lines];
  };
};

/// Elements are found by the lines of their panel.
template <const abi::StagedOperand& operand, bool is_indexed>
class PanelSource {
  using Units = RegisterUnits<operand>;

 public:
  static constexpr int lines_at_once = Units::lines;
  struct Along {};

  __device__ __forceinline__ explicit PanelSource(const PanelOfLines& panel) : panel_(panel) {}

  __device__ bool is_interior() const { return panel_.extent_left >= operand.extent; }
  template <int>
  __device__ static Along find_along(int) {
    return {};
  }
  __device__ void advance() {
    panel_.data +=
        operand.is_k_adjacent ? operand.k * Units::element_bytes : operand.k * panel_.line_bytes;
  }

  /// Loads `count` lines of a unit, from the line `first` on; `k_left` counts from the block's
  /// start to the end of k.
  template <int count>
  __device__ __forceinline__ void load(typename Units::Line (&lines)[count], const Along&, int unit,
                                       int first, unsigned k_left) const {
    const unsigned k = min(k_left, static_cast<unsigned>(operand.k));
    const unsigned extent = min(panel_.extent_left, static_cast<unsigned>(operand.extent));
    unsigned valid_lines = operand.is_k_adjacent ? extent : k;
    const unsigned valid_along = operand.is_k_adjacent ? k : extent;
    const unsigned along = static_cast<unsigned>(unit % Units::along * Units::elements);
    const unsigned first_line = static_cast<unsigned>(unit / Units::along * Units::lines + first);
    unsigned in_memory = first_line;
    if constexpr (is_indexed) {
      static_assert(operand.is_k_adjacent && Units::lines == 1, "indices are of single rows");
      const int line = first_line < valid_lines ? panel_.lines[first_line] : no_element;
      if (line == no_element) valid_lines = 0;
      in_memory = static_cast<unsigned>(max(line, 0));
    }
    const char* const source =
        panel_.data + in_memory * panel_.line_bytes + along * Units::element_bytes;
    const int valid = valid_along > along ? static_cast<int>(valid_along - along) : 0;
#pragma unroll
    for (int line = 0; line < count; ++line) {
      const bool has_line = unit < Units::count && first_line + line < valid_lines;
      load_whole(lines[line], source + line * panel_.line_bytes, has_line ? valid : 0);
    }
    if constexpr (Units::access_elements > 1) {
      if (valid >= Units::elements) return;
        // At the matrix's edge alone: a loop, which takes a fifth of the code.
#pragma unroll 1
      for (int line = 0; line < count; ++line) {
        const bool has_line = unit < Units::count && first_line + line < valid_lines;
        typename Units::Line rest{};
        load_rest<Units::access_elements / 2>(rest, source + line * panel_.line_bytes,
                                              has_line ? valid : 0);
        add_rest(lines, line, rest);
      }
    }
  }

 private:
  /// Loads `valid` elements from an address on by whole accesses; the rest becomes zero.
  __device__ static void load_whole(typename Units::Line& value, const char* source, int valid) {
    value = {};
#pragma unroll
    for (int at = 0; at < Units::bytes; at += Units::access_bytes)
      value.words[at / 4] |=
          ptx::ld_global_nc_if<Units::access_bytes>(
              valid >= at / Units::element_bytes + Units::access_elements, source + at)
          << (8 * (at % 4));
  }
  /// The elements of a partly valid access, loaded in pieces: one for each power of two.
  template <int piece>
  __device__ static void load_rest(typename Units::Line& value, const char* source, int valid) {
#pragma unroll
    for (int at = 0; at < Units::bytes; at += Units::access_bytes) {
      const int left = valid - at / Units::element_bytes;
      const int before = (left & (Units::access_elements - 2 * piece)) * Units::element_bytes;
      const bool has_piece = left > 0 && left < Units::access_elements && (left & piece) != 0;
      value.words[at / 4] |=
          ptx::ld_global_nc_if<piece * Units::element_bytes>(has_piece, source + at + before)
          << (8 * (at % 4 + before));
    }
    if constexpr (piece > 1) load_rest<piece / 2>(value, source, valid);
  }
  template <int count>
  __device__ static void add_rest(typename Units::Line (&lines)[count], int line,
                                  const typename Units::Line& rest) {
#pragma unroll
    for (int at = 0; at < count; ++at) {
#pragma unroll
      for (int word = 0; word < Units::bytes / 4; ++word)
        lines[at].words[word] |= at == line ? rest.words[word] : 0;
    }
  }

  PanelOfLines panel_;
};

/// The same through registers, one unit at a time. Loads of 4 and more bytes are in flight while a
/// block multiplies: `fetch` starts them, `store` writes them to the stage. Single elements would
/// need too many registers for that and are written to the stage at once. `Source`: finds the
/// elements.
template <const abi::StagedOperand& operand, int threads, class Source>
class RegisterCopy {
  using Units = RegisterUnits<operand>;
  using Unit = typename Units::Unit;
  static constexpr bool is_immediate = operand.vector_bytes < 4;
  static constexpr int passes = (Units::count + threads - 1) / threads;
  static_assert(threads % Units::along == 0, "a thread's units have one place along their lines");

 public:
  __device__ __forceinline__ RegisterCopy(const PanelOfLines& panel, unsigned tile, int thread)
      : source_(panel), tile_(tile), thread_(thread) {}

  __device__ bool is_interior() const { return source_.is_interior(); }

  /// Copies the next k block and advances; `k_left` counts from the block's start to the end of k.
  template <bool = false>
  __device__ __forceinline__ void fetch(unsigned stage, unsigned k_left, bool) {
    const auto along = source_.template find_along<threads>(thread_);
    if constexpr (is_immediate) {
#pragma unroll 1
      for (int unit = thread_; unit < Units::count; unit += threads)
        copy_unit(stage, unit, along, k_left);
    } else {
#pragma unroll
      for (int pass = 0; pass < passes; ++pass)
        source_.load(loaded_[pass].of, along, thread_ + pass * threads, 0, k_left);
    }
    source_.advance();
  }

  __device__ __forceinline__ void store(unsigned stage) const {
    if constexpr (!is_immediate) {
#pragma unroll
      for (int pass = 0; pass < passes; ++pass) {
        if (thread_ + pass * threads < Units::count)
          put_unit(stage, thread_ + pass * threads, loaded_[pass]);
      }
    }
  }

 private:
  __device__ __forceinline__ void copy_unit(unsigned stage, int unit,
                                            const typename Source::Along& along,
                                            unsigned k_left) const {
    if constexpr (Units::are_transposed) {
      unsigned words[4][4];
      constexpr int quads = Source::lines_at_once / 4;
#pragma unroll 1
      for (int first = 0; first < Units::lines; first += Source::lines_at_once) {
        typename Units::Line lines[Source::lines_at_once];
        source_.load(lines, along, unit, first, k_left);
#pragma unroll
        for (int quad = 0; quad < quads; ++quad) append(words, &lines[4 * quad]);
      }
      put_words(stage, unit, words);
    } else {
      Unit loaded;
      source_.load(loaded.of, along, unit, 0, k_left);
      put_unit(stage, unit, loaded);
    }
  }

  __device__ __forceinline__ void put_unit(unsigned stage, int unit, const Unit& loaded) const {
    if constexpr (Units::are_transposed) {
      unsigned words[4][4];
#pragma unroll
      for (int quad = 0; quad < 4; ++quad) append(words, &loaded.of[4 * quad]);
      put_words(stage, unit, words);
    } else {
      put(stage, unit / Units::along, unit % Units::along, loaded.of[0].words);
    }
  }

  /// Appends four k to the chunks of four extents: a 4x4 transposition of bytes. `words` are those
  /// of an extent.
  __device__ static void append(unsigned (&words)[4][4], const typename Units::Line* lines) {
#pragma unroll
    for (int of = 0; of < 4; ++of) {
      const unsigned selector = static_cast<unsigned>(of) * 0x11U + 0x40U;
#pragma unroll
      for (int word = 0; word < 3; ++word) words[of][word] = words[of][word + 1];
      words[of][3] = ptx::prmt(ptx::prmt(lines[0].words[0], lines[1].words[0], selector),
                               ptx::prmt(lines[2].words[0], lines[3].words[0], selector), 0x5410U);
    }
  }
  __device__ __forceinline__ void put_words(unsigned stage, int unit,
                                            const unsigned (&words)[4][4]) const {
#pragma unroll
    for (int of = 0; of < 4; ++of)
      put(stage, unit % Units::along * 4 + of, unit / Units::along, words[of]);
  }
  __device__ void put(unsigned stage, int row, int chunk, const unsigned (&words)[4]) const {
    ptx::st_shared_v4(
        tile_ + stage + static_cast<unsigned>(abi::value_of<operand>().offset(row, chunk)), words);
  }

  Source source_;
  unsigned tile_;
  int thread_;
  Unit loaded_[is_immediate ? 1 : passes];
};

template <const abi::StagedOperand& operand, int threads, ChunkPointers kept,
          bool is_async = operand.is_async()>
struct OperandCopyOf {
  using Type = ChunkedCopy<operand, threads, kept>;
};
template <const abi::StagedOperand& operand, int threads, ChunkPointers kept>
struct OperandCopyOf<operand, threads, kept, false> {
  using Type = RegisterCopy<operand, threads, PanelSource<operand, kept == ChunkPointers::indexed>>;
};

}  // namespace gemmery::device
