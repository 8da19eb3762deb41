// SPDX-License-Identifier: Apache-2.0
// How the threads of a block share the work of copying one operand's tile from global to shared
// memory.
//
// The staged tile is [k word][extent], where extent runs along m for A and n for B, so that the
// multiplication reads vectors along extent. The copy is cut into units, each a short piece that
// one thread moves; consecutive threads first cover 32 bytes of a k-contiguous row, then the
// extent. With the pitch of abi::staged_pitch that is conflict-free for transposing stores.
#pragma once

#include <device/abi/dtype.hpp>
#include <device/abi/host_device.hpp>

namespace gemmery::device {

struct OperandPlan {
  abi::DType dtype;
  bool is_along_k;       // elements of consecutive k are adjacent in memory
  bool is_along_extent;  // elements of consecutive m (or n) are adjacent in memory
  int vector_elements;   // adjacent elements that one access may take
  int extent;            // elements of the tile along m or n
  int k_elements;
  int k_per_word;
  int word_bytes;
  int pitch;  // words
  int threads;

  /// True if the bytes in memory equal the staged words, so that cp.async can copy them.
  GEMMERY_HOST_DEVICE
  constexpr bool is_async() const {
    return k_per_word == 1 ? abi::bytes_of(dtype) == word_bytes
                           : is_along_k && vector_elements >= k_per_word;
  }
  GEMMERY_HOST_DEVICE
  constexpr int unit_extent() const {
    if (!is_along_extent) return 1;
    const int widest = k_per_word > 1 ? 4 : extent;
    return vector_elements < widest ? vector_elements : widest;
  }
  GEMMERY_HOST_DEVICE
  constexpr int unit_k() const {
    if (k_per_word > 1) return k_per_word;
    return is_along_k && !is_async() ? limited_k_vector() : 1;
  }
  /// Adjacent elements of one access through registers.
  GEMMERY_HOST_DEVICE
  constexpr int load_elements() const {
    return k_per_word > 1 || is_along_extent ? unit_extent() : unit_k();
  }
  GEMMERY_HOST_DEVICE
  constexpr int loads_per_unit() const { return k_per_word; }
  GEMMERY_HOST_DEVICE
  constexpr int units() const { return (extent / unit_extent()) * (k_elements / unit_k()); }
  GEMMERY_HOST_DEVICE
  constexpr int passes() const { return units() > threads ? units() / threads : 1; }
  GEMMERY_HOST_DEVICE
  constexpr int k_lanes() const {
    const int unit_words = unit_k() / k_per_word;
    if (is_along_extent || unit_words >= 8) return 1;
    const int words = k_elements / k_per_word;
    return words < 8 ? words / unit_words : 8 / unit_words;
  }
  /// Units of all extents and one group of k lanes.
  GEMMERY_HOST_DEVICE
  constexpr int period() const { return k_lanes() * (extent / unit_extent()); }

 private:
  GEMMERY_HOST_DEVICE
  constexpr int limited_k_vector() const {
    return vector_elements < k_elements ? vector_elements : k_elements;
  }
};

/// The plan's arithmetic as constants, which the front end evaluates once. Evaluated by the
/// optimiser it takes most of a kernel's compile time.
template <const OperandPlan& plan>
struct OperandUnits {
  static constexpr int element_bytes = abi::bytes_of(plan.dtype);
  static constexpr bool is_async = plan.is_async();
  static constexpr int extent = plan.unit_extent();  // of a unit
  static constexpr int k = plan.unit_k();            // of a unit
  static constexpr int loads = plan.loads_per_unit();
  static constexpr int load_elements = plan.load_elements();
  static constexpr int count = plan.units();
  static constexpr int passes = plan.passes();
  static constexpr int k_lanes = plan.k_lanes();
  static constexpr int period = plan.period();
  static constexpr int passes_per_period = period <= plan.threads ? 1 : period / plan.threads;
  static constexpr int pass_extent_step =
      period <= plan.threads ? 0 : plan.threads / k_lanes * extent;
  static constexpr int pass_k_step =
      (period <= plan.threads ? plan.threads / period : 1) * k_lanes * k;

  // The position of a thread's first unit in the tile, and the distance to its unit of a later
  // pass.
  GEMMERY_HOST_DEVICE
  static constexpr int first_extent(int thread) { return thread % period / k_lanes * extent; }
  GEMMERY_HOST_DEVICE
  static constexpr int first_k(int thread) {
    return (thread / period * k_lanes + thread % k_lanes) * k;
  }
  GEMMERY_HOST_DEVICE
  static constexpr int pass_extent(int pass) { return pass % passes_per_period * pass_extent_step; }
  GEMMERY_HOST_DEVICE
  static constexpr int pass_k(int pass) { return pass / passes_per_period * pass_k_step; }
};

}  // namespace gemmery::device
