// SPDX-License-Identifier: Apache-2.0
// Copies the tiles of one operand from global to shared memory, k block after k block, by an
// OperandPlan.
//
//   global --cp.async--> shared
//       if the staged words equal the bytes in memory (f32, f64, packed bytes)
//   global --ld--> registers --decode, st--> shared
//       for narrower floats, and bytes that must be transposed into words
//
// Elements outside the matrix and in the padding of a convolution are never read and become zero.
#pragma once

#include <device/copy/operand_plan.cuh>
#include <device/ptx/async_copy.cuh>
#include <device/ptx/memory.cuh>
#include <device/tile/element.cuh>
#include <device/tile/indexed_element.cuh>
#include <device/tile/window.cuh>

namespace gemmery::device {

/// How the elements of an operand are addressed: by strides; rows (columns) by an array of indices;
/// by pixel and tap, with the tile's extent over pixels, or over taps.
enum class OperandSource : unsigned char { strided, indexed, pixels, taps };

/// The part of an operand for one tile of out: a panel of at most plan.extent rows (columns) and
/// all k.
struct OperandPanel {
  const char* data;
  abi::Int64 extent_stride;  // elements
  abi::Int64 k_stride;
  unsigned extent_left;  // from the panel's start to the end of the matrix, at least 1
  // If the panel's elements are found by indices, or share bytes: `data` is then the matrix, and
  // the panel begins with this element (of all groups).
  const abi::IndexParams* indices = nullptr;
  unsigned first = 0;
  // If they are found by pixel and tap: `data` is then the tensor.
  const abi::WindowParams* window = nullptr;
};

template <const OperandPlan& plan, class Word, OperandSource found_by = OperandSource::strided>
class OperandStager {
  using Units = OperandUnits<plan>;
  static constexpr bool is_indexed = found_by == OperandSource::indexed;
  static constexpr bool is_windowed =
      found_by == OperandSource::pixels || found_by == OperandSource::taps;

 public:
  /// `tile` is the operand's tile in the first slot of the ring.
  __device__ OperandStager(const OperandPanel& panel, Word* tile, int thread)
      : extent_(Units::first_extent(thread)),
        k_(Units::first_k(thread)),
        extent_left_(static_cast<int>(min(panel.extent_left, static_cast<unsigned>(plan.extent)))),
        is_interior_(extent_left_ == plan.extent),
        extent_stride_(plan.is_along_extent ? 1 : panel.extent_stride),
        k_stride_(plan.is_along_k ? 1 : panel.k_stride),
        source_(panel.data +
                (is_windowed ? 0
                             : element_bytes *
                                   ((is_indexed ? 0 : extent_ * extent_stride_) + k_ * k_stride_))),
        target_(tile + k_ / plan.k_per_word * plan.pitch + extent_),
        shared_target_(ptx::cvta_shared(target_)) {
    if constexpr (is_indexed) find_elements(panel);
    if constexpr (is_windowed) find_parts(panel);
  }

  /// Starts copying the next k block into the slot at this offset in the ring. k_left counts from
  /// the block's start to the end of k.
  __device__ void fetch(unsigned slot_bytes, unsigned k_left) {
    if constexpr (is_windowed) {
      fetch_window(slot_bytes, static_cast<int>(min(k_left, unsigned{0x7fffffff})));
      first_k_ += plan.k_elements;
      return;
    }
    if (is_interior_ && k_left >= plan.k_elements) {
      fetch_whole(slot_bytes);
    } else {
      fetch_edge(slot_bytes, static_cast<int>(min(k_left, static_cast<unsigned>(plan.k_elements))));
    }
    source_ += element_bytes * plan.k_elements * k_stride_;
  }

  /// Stores the registers that fetch loaded; does nothing with cp.async.
  __device__ void store(unsigned slot_bytes) const {
    if constexpr (!Units::is_async) {
      if (!is_busy()) return;
      char* const slot = reinterpret_cast<char*>(target_) + slot_bytes;
#pragma unroll
      for (int pass = 0; pass < Units::passes; ++pass) {
        store_unit(reinterpret_cast<Word*>(slot + pass_bytes(pass)), fetched_[pass]);
      }
    }
  }

 private:
  static constexpr int element_bytes = Units::element_bytes;
  static constexpr int load_bytes = Units::load_elements * element_bytes;
  static constexpr int unit_bytes =
      Units::extent * plan.word_bytes;  // in shared memory, where cp.async writes it
  static constexpr bool is_k_vector = !plan.is_along_extent && plan.k_per_word == 1;
  struct Unit {
    ptx::Registers<load_bytes> loads[Units::loads];
  };

  /// With small tiles some threads have no unit.
  __device__ bool is_busy() const {
    if constexpr (Units::count >= plan.threads) return true;
    return static_cast<int>(threadIdx.x) < Units::count;
  }

  /// Only elements of the panel have an index.
  __device__ void find_elements(const OperandPanel& panel) {
    static_assert(!plan.is_along_extent, "elements that are found by indices are not adjacent");
#pragma unroll
    for (int pass = 0; pass < Units::passes_per_period; ++pass) {
      const int extent = extent_ + Units::pass_extent(pass);
      const bool is_there = extent < extent_left_ && is_busy();
      elements_[pass] =
          is_there ? find_element(*panel.indices, panel.first + static_cast<unsigned>(extent))
                   : no_element;
      is_interior_ = is_interior_ && elements_[pass] != no_element;
    }
  }

  /// The contributions of the thread's positions along the extent to the addresses of its elements.
  __device__ void find_parts(const OperandPanel& panel) {
    static_assert(!plan.is_along_extent, "neighbours along the extent are read one by one");
    window_ = panel.window;
#pragma unroll
    for (int pass = 0; pass < Units::passes_per_period; ++pass) {
      const unsigned index =
          panel.first + static_cast<unsigned>(extent_ + Units::pass_extent(pass));
      parts_[pass] = found_by == OperandSource::pixels ? window_pixel(*window_, index)
                                                       : window_tap(*window_, index);
    }
  }

  /// The address of a unit's element (or run of channels of one tap) at the load-th of its k; false
  /// if there is no such element.
  __device__ bool find_unit(int pass, int load, int k_left, const char*& address) const {
    const int extent = extent_ + Units::pass_extent(pass);
    const int k = k_ + Units::pass_k(pass) + load;
    const WindowPart& part = parts_[pass % Units::passes_per_period];
    const unsigned index = first_k_ + static_cast<unsigned>(k);
    abi::Int64 offset = 0;
    const bool is_inside =
        found_by == OperandSource::pixels
            ? find_in_window(*window_, part, window_tap(*window_, index), offset)
            : find_in_window(*window_, window_pixel(*window_, index), part, offset);
    const bool is_there = is_inside && extent < extent_left_ && k < k_left;
    address = source_ + (is_there ? offset : 0) * element_bytes;
    return is_there;
  }

  __device__ void fetch_window(unsigned slot_bytes, int k_left) {
    if (!is_busy()) return;
#pragma unroll
    for (int pass = 0; pass < Units::passes; ++pass) {
      const char* address = nullptr;
      if constexpr (Units::is_async) {
        const bool is_there = find_unit(pass, 0, k_left, address);
        ptx::cp_async_ca<unit_bytes>(shared_target_ + slot_bytes + pass_bytes(pass), address,
                                     is_there ? unit_bytes : 0);
      } else {
#pragma unroll
        for (int load = 0; load < Units::loads; ++load) {
          const bool is_there = find_unit(pass, load, k_left, address);
          fetched_[pass].loads[load] = ptx::ld_global_if<load_bytes>(is_there, address, {});
        }
      }
    }
  }

  __device__ const char* pass_source(int pass) const {
    if constexpr (is_indexed) {
      const int element = max(elements_[pass % Units::passes_per_period], 0);
      return source_ + element_bytes * (element * extent_stride_ + Units::pass_k(pass) * k_stride_);
    }
    return source_ + element_bytes * (Units::pass_extent(pass) * extent_stride_ +
                                      Units::pass_k(pass) * k_stride_);
  }

  __device__ static constexpr unsigned pass_bytes(int pass) {
    return static_cast<unsigned>(
        (Units::pass_k(pass) / plan.k_per_word * plan.pitch + Units::pass_extent(pass)) *
        plan.word_bytes);
  }

  /// A k block that lies completely within the matrix.
  __device__ void fetch_whole(unsigned slot_bytes) {
    if (!is_busy()) return;
#pragma unroll
    for (int pass = 0; pass < Units::passes; ++pass) {
      if constexpr (Units::is_async) {
        const unsigned target = shared_target_ + slot_bytes + pass_bytes(pass);
        if constexpr (unit_bytes == 16)
          ptx::cp_async_cg(target, pass_source(pass));
        else
          ptx::cp_async_ca<unit_bytes>(target, pass_source(pass));
      } else {
#pragma unroll
        for (int load = 0; load < Units::loads; ++load) {
          fetched_[pass].loads[load] =
              ptx::ld_global_nc<load_bytes>(pass_source(pass) + element_bytes * load * k_stride_);
        }
      }
    }
  }

  /// A k block that extends beyond the matrix. Edges are rare, so the loop is not unrolled unless
  /// it indexes registers.
  __device__ void fetch_edge(unsigned slot_bytes, int k_left) {
    if (!is_busy()) return;
    if constexpr (Units::is_async) {
#pragma unroll(is_indexed ? Units::passes : 1)
      for (int pass = 0; pass < Units::passes; ++pass) {
        const int valid_bytes = valid_extent(pass) * valid_k(pass, k_left) * element_bytes;
        const unsigned target = shared_target_ + slot_bytes + pass_bytes(pass);
        if constexpr (unit_bytes == 16)
          ptx::cp_async_cg(target, pass_source(pass), valid_bytes);
        else
          ptx::cp_async_ca<unit_bytes>(target, pass_source(pass), valid_bytes);
      }
    } else {
#pragma unroll
      for (int pass = 0; pass < Units::passes; ++pass) {
        const int extents = valid_extent(pass);
        const int ks = valid_k(pass, k_left);
#pragma unroll
        for (int load = 0; load < Units::loads; ++load) {
          const int adjacent = is_k_vector ? (extents > 0 ? ks : 0) : (load < ks ? extents : 0);
          fetched_[pass].loads[load] =
              load_adjacent(pass_source(pass) + element_bytes * load * k_stride_, adjacent);
        }
      }
    }
  }

  __device__ int valid_extent(int pass) const {
    if constexpr (is_indexed)
      return elements_[pass % Units::passes_per_period] == no_element ? 0 : 1;
    return clamp(extent_left_ - extent_ - Units::pass_extent(pass), 0, Units::extent);
  }

  __device__ int valid_k(int pass, int k_left) const {
    return clamp(k_left - k_ - Units::pass_k(pass), 0, Units::k);
  }

  /// The first `valid` elements at an address, zeros for the rest.
  __device__ static ptx::Registers<load_bytes> load_adjacent(const char* source, int valid) {
    if (valid == Units::load_elements) return ptx::ld_global_nc<load_bytes>(source);
    ptx::Registers<load_bytes> value{};
    if constexpr (Units::load_elements > 1) {
#pragma unroll
      for (int position = 0; position < Units::load_elements - 1; ++position) {
        if (position < valid) {
          constexpr int per_word = 4 / element_bytes;
          const unsigned bits =
              ptx::ld_global_nc<element_bytes>(source + position * element_bytes).words[0];
          value.words[position / per_word] |= bits << (8 * element_bytes * (position % per_word));
        }
      }
    }
    return value;
  }

  __device__ static void store_unit(Word* target, const Unit& unit) {
    Word words[plan.k_per_word > 1 ? Units::extent : Units::load_elements];
#pragma unroll
    for (int position = 0; position < static_cast<int>(sizeof(words) / sizeof(Word)); ++position) {
      words[position] = word_of(unit, position);
    }
    constexpr int count = static_cast<int>(sizeof(words) / sizeof(Word));
    if constexpr (is_k_vector) {
#pragma unroll
      for (int position = 0; position < count; ++position)
        target[position * plan.pitch] = words[position];
    } else if constexpr (count >= 4) {
#pragma unroll
      for (int position = 0; position < count; position += 4) {
        *reinterpret_cast<ptx::Registers<16>*>(target + position) = {
            {bits_of_word(words[position]), bits_of_word(words[position + 1]),
             bits_of_word(words[position + 2]), bits_of_word(words[position + 3])}};
      }
    } else {
#pragma unroll
      for (int position = 0; position < count; ++position) target[position] = words[position];
    }
  }

  __device__ static unsigned bits_of_word(float word) { return __float_as_uint(word); }
  __device__ static unsigned bits_of_word(unsigned word) { return word; }

  __device__ static Word word_of(const Unit& unit, int position) {
    if constexpr (plan.k_per_word == 1) {
      return decode<plan.dtype, Word>(unit.loads[0], position);
    } else {
      return column_of_bytes(unit.loads[0].words[0], unit.loads[1].words[0], unit.loads[2].words[0],
                             unit.loads[3].words[0], position);
    }
  }

  int extent_;
  int k_;
  int extent_left_;
  bool is_interior_;  // except along k
  abi::Int64 extent_stride_;
  abi::Int64 k_stride_;
  const char* source_;
  Word* target_;
  unsigned shared_target_;
  int elements_[is_indexed ? Units::passes_per_period : 1];  // of the matrix
  const abi::WindowParams* window_;
  unsigned first_k_ = 0;  // the first k of the block that is fetched next
  WindowPart parts_[is_windowed ? Units::passes_per_period : 1];
  Unit fetched_[Units::is_async ? 1 : Units::passes];
};

}  // namespace gemmery::device
