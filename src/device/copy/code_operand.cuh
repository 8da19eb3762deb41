// SPDX-License-Identifier: Apache-2.0
// Copies the tiles of an operand whose elements share bytes (codes of 4 and 6 bits) from global to
// shared memory, code by code: global --ld--> registers --decode, st--> shared. Elements outside
// the matrix are never read and become zero.
#pragma once

#include <device/copy/stage_operand.cuh>
#include <device/tile/companion.cuh>

namespace gemmery::device {

/// The bits of element `index` of a run that begins with a byte. Codes of 6 bits may lie in two
/// bytes; the second is read only then.
template <abi::DType dtype>
__device__ __forceinline__ unsigned load_code(const char* run, abi::Int64 index) {
  constexpr int bits = abi::bits_of(dtype);
  const abi::Int64 first = index * bits;
  const auto shift = static_cast<unsigned>(first & 7);
  const char* const byte = run + (first >> 3);
  unsigned word = ptx::ld_global_nc<1>(byte).words[0] >> shift;
  if constexpr (bits == 6)
    if (shift > 2) word |= ptx::ld_global_nc<1>(byte + 1).words[0] << (8 - shift);
  return word & ((1U << bits) - 1);
}

/// A stager like OperandStager, for operands by strides.
template <const OperandPlan& plan, class Word>
class CodeStager {
  using Units = OperandUnits<plan>;
  static_assert(Units::extent == 1 && Units::k == 1 && !Units::is_async);

 public:
  __device__ CodeStager(const OperandPanel& panel, Word* tile, int thread)
      : panel_(panel),
        extent_(Units::first_extent(thread)),
        k_(Units::first_k(thread)),
        extent_left_(static_cast<int>(min(panel.extent_left, static_cast<unsigned>(plan.extent)))),
        target_(tile + k_ * plan.pitch + extent_) {}

  __device__ void fetch(unsigned, unsigned k_left) {
    if (!is_busy()) return;
    const int valid_k = static_cast<int>(min(k_left, static_cast<unsigned>(plan.k_elements)));
#pragma unroll
    for (int pass = 0; pass < Units::passes; ++pass) {
      const int extent = extent_ + Units::pass_extent(pass);
      const int k = k_ + Units::pass_k(pass);
      fetched_[pass] = 0;
      if (extent < extent_left_ && k < valid_k)
        fetched_[pass] =
            load_code<plan.dtype>(panel_.data, (panel_.first + extent) * panel_.extent_stride +
                                                   (first_k_ + k) * panel_.k_stride);
    }
    first_k_ += plan.k_elements;
  }

  __device__ void store(unsigned slot_bytes) const {
    if (!is_busy()) return;
    Word* const slot = reinterpret_cast<Word*>(reinterpret_cast<char*>(target_) + slot_bytes);
#pragma unroll
    for (int pass = 0; pass < Units::passes; ++pass)
      slot[Units::pass_k(pass) * plan.pitch + Units::pass_extent(pass)] =
          static_cast<Word>(decode_companion<plan.dtype>(fetched_[pass]));
  }

 private:
  /// With small tiles some threads have no element.
  __device__ bool is_busy() const {
    if constexpr (Units::count >= plan.threads) return true;
    return static_cast<int>(threadIdx.x) < Units::count;
  }

  const OperandPanel panel_;
  int extent_;
  int k_;
  int extent_left_;
  abi::Int64 first_k_ = 0;  // of the block that is fetched next
  Word* target_;
  unsigned fetched_[Units::passes];
};

template <const OperandPlan& plan, class Word, OperandSource found_by,
          bool are_codes = (abi::bits_of(plan.dtype) < 8)>
struct StagerOf {
  using Type = OperandStager<plan, Word, found_by>;
};
template <const OperandPlan& plan, class Word, OperandSource found_by>
struct StagerOf<plan, Word, found_by, true> {
  using Type = CodeStager<plan, Word>;
};

}  // namespace gemmery::device
