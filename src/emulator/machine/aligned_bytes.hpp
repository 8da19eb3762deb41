// SPDX-License-Identifier: Apache-2.0
// Bytes that hold lane vectors, aligned to 64: a cache line and the widest vector register.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace gemmery::emulator {

inline constexpr std::size_t lane_vector_alignment = 64;

template <class T>
struct LaneVectorAllocator {
  using value_type = T;
  LaneVectorAllocator() = default;
  template <class U>
  LaneVectorAllocator(const LaneVectorAllocator<U>&) noexcept {}
  T* allocate(std::size_t count) {
    return static_cast<T*>(
        ::operator new (count * sizeof(T), std::align_val_t{lane_vector_alignment}));
  }
  void deallocate(T* at, std::size_t) noexcept {
    ::operator delete (at, std::align_val_t{lane_vector_alignment});
  }
  friend bool operator==(LaneVectorAllocator, LaneVectorAllocator) noexcept { return true; }
};

using AlignedBytes = std::vector<std::byte, LaneVectorAllocator<std::byte>>;

}  // namespace gemmery::emulator
