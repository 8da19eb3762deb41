// SPDX-License-Identifier: Apache-2.0
// Reads the large operand of a skinny kernel once, from global memory to registers. A slot holds
// the elements that a thread loads in one step; the loads of several steps are in flight. Elements
// beyond k are not read. Columns beyond the last one repeat the last column; their results are not
// stored.
#pragma once

#include <device/abi/simt_params.hpp>
#include <device/abi/skinny_design.hpp>
#include <device/ptx/memory.cuh>
#include <device/tile/batch.cuh>

namespace gemmery::device {

template <const abi::SkinnyDesign& design>
struct StreamSlot {
  ptx::Registers<abi::load_bytes(design)> loads[design.loads];
};

/// The part of B that a block streams.
struct StreamShare {
  unsigned batch;
  unsigned column;   // the tile's first
  unsigned columns;  // of the matrix
  unsigned first_k;
  unsigned k;  // extent of the share
};

/// Lanes are along k; each lane has a vector of every column of its warp.
template <const abi::SkinnyDesign& design>
class StreamAlongK {
 public:
  __device__ __forceinline__ StreamAlongK(const abi::SimtMatrix& b, const StreamShare& share,
                                          int thread)
      : k_stride_(design.b_vector_bytes > 0 ? 1 : b.row_stride), k_(share.k) {
    const unsigned lane = static_cast<unsigned>(thread) % 32;
    const unsigned column =
        share.column + static_cast<unsigned>(thread) / 32 * static_cast<unsigned>(design.loads);
    const char* const first = matrix_of_batch<element_bytes>(b.data, b.batch_stride, share.batch) +
                              (share.first_k + lane * elements) * k_stride_ * element_bytes;
#pragma unroll
    for (int load = 0; load < design.loads; ++load) {
      const unsigned of_load = min(column + static_cast<unsigned>(load), share.columns - 1);
      sources_[load] = first + of_load * b.column_stride * element_bytes;
    }
    const unsigned vectors = share.k / elements;
    steps_ = vectors > lane ? (vectors - lane + 31) / 32 : 0;
  }

  /// True if this lane has a vector in a step.
  __device__ bool has(unsigned step) const { return step < steps_; }

  __device__ __forceinline__ void fetch(StreamSlot<design>& slot, unsigned step) const {
    if (!has(step)) return;
#pragma unroll
    for (int load = 0; load < design.loads; ++load)
      slot.loads[load] = ptx::ld_global_nc_no_allocate<abi::load_bytes(design)>(
          sources_[load] + step * step_bytes());
  }

  /// True if this lane has one of the elements after the last whole vector, one per lane.
  __device__ bool has_rest() const { return lane() < k_ % elements; }
  __device__ unsigned rest_k() const { return k_ - k_ % elements + lane(); }
  __device__ __forceinline__ ptx::Registers<abi::bytes_of(design.b)> rest(int load) const {
    const abi::Int64 from_vector =
        static_cast<abi::Int64>(k_ - k_ % elements) + lane() - lane() * elements;
    return ptx::ld_global_nc_no_allocate<element_bytes>(sources_[load] +
                                                        from_vector * element_bytes);
  }

 private:
  static constexpr int element_bytes = abi::bytes_of(design.b);
  static constexpr unsigned elements = abi::load_elements(design);

  __device__ static unsigned lane() { return threadIdx.x % 32; }
  __device__ abi::Int64 step_bytes() const {
    return k_stride_ * (abi::step_k(design) * element_bytes);
  }

  abi::Int64 k_stride_;
  unsigned k_;
  unsigned steps_;
  const char* sources_[design.loads];
};

/// Lanes are along columns; each lane has a vector of columns at consecutive k. Groups of lanes
/// take successive k.
template <const abi::SkinnyDesign& design>
class StreamAlongColumns {
 public:
  __device__ __forceinline__ StreamAlongColumns(const abi::SimtMatrix& b, const StreamShare& share,
                                                int thread)
      : line_bytes_(b.row_stride * element_bytes), k_(share.k), k_of_group_(first_k(thread)) {
    const unsigned column =
        min(share.column + static_cast<unsigned>(thread % design.lanes) * elements,
            share.columns - elements);
    next_ = matrix_of_batch<element_bytes>(b.data, b.batch_stride, share.batch) +
            static_cast<abi::Int64>(column) * element_bytes +
            (share.first_k + k_of_group_) * line_bytes_;
  }

  /// True if the word of k that begins with a load of a step is within k.
  __device__ bool has(unsigned step, int load) const { return k_of(step) + load < k_; }

  /// Steps must be fetched in order.
  __device__ __forceinline__ void fetch(StreamSlot<design>& slot, unsigned step) {
#pragma unroll
    for (int load = 0; load < design.loads; ++load) {
      if (has(step, load))
        slot.loads[load] =
            ptx::ld_global_nc_no_allocate<abi::load_bytes(design)>(next_ + load * line_bytes_);
      else if (abi::k_per_word(design) > 1)
        slot.loads[load] = {};
    }
    next_ += line_bytes_ * abi::step_k(design);
  }

  /// The first k of a thread's group within a step.
  __device__ static unsigned first_k(int thread) {
    return static_cast<unsigned>(thread / design.lanes * design.loads);
  }

 private:
  static constexpr int element_bytes = abi::bytes_of(design.b);
  static constexpr unsigned elements = abi::load_elements(design);

  __device__ unsigned k_of(unsigned step) const {
    return step * static_cast<unsigned>(abi::step_k(design)) + k_of_group_;
  }

  abi::Int64 line_bytes_;
  unsigned k_;
  unsigned k_of_group_;
  const char* next_;
};

template <const abi::SkinnyDesign& design, bool is_along_k = design.b_major == abi::Major::k>
struct StreamOf {
  using Type = StreamAlongK<design>;
};
template <const abi::SkinnyDesign& design>
struct StreamOf<design, false> {
  using Type = StreamAlongColumns<design>;
};

}  // namespace gemmery::device
