// SPDX-License-Identifier: Apache-2.0
// Shared memory by 32-bit addresses, one instruction per function.
#pragma once

#include <device/ptx/memory.cuh>

namespace gemmery::device::ptx {

/// Stores four 8x8 matrices of 16-bit elements from the registers of a warp; lane i gives the
/// address of row i % 8 of matrix i / 8.
__device__ inline void stmatrix_x4(unsigned shared, const unsigned (&values)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared),
               "r"(values[0]), "r"(values[1]), "r"(values[2]), "r"(values[3])
               : "memory");
}

/// Loads four such matrices.
__device__ inline void ldmatrix_x4(unsigned (&values)[4], unsigned shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(values[0]), "=r"(values[1]), "=r"(values[2]), "=r"(values[3])
               : "r"(shared)
               : "memory");
}

/// The same, each matrix transposed.
__device__ inline void ldmatrix_x4_trans(unsigned (&values)[4], unsigned shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(values[0]), "=r"(values[1]), "=r"(values[2]), "=r"(values[3])
               : "r"(shared)
               : "memory");
}

/// `offset`, of this and the next ones, is in bytes; part of the instruction, it needs no addition.
template <unsigned offset = 0>
__device__ inline void st_shared_v2(unsigned shared, unsigned first, unsigned second) {
  asm volatile("st.shared.v2.b32 [%0+%3], {%1, %2};" ::"r"(shared), "r"(first), "r"(second),
               "n"(offset)
               : "memory");
}

__device__ inline void st_shared_v4(unsigned shared, const unsigned (&values)[4]) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(shared), "r"(values[0]),
               "r"(values[1]), "r"(values[2]), "r"(values[3])
               : "memory");
}

__device__ inline void ld_shared_v4(unsigned (&values)[4], unsigned shared) {
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(values[0]), "=r"(values[1]), "=r"(values[2]), "=r"(values[3])
               : "r"(shared)
               : "memory");
}

/// Loads 1 to 16 bytes, aligned to their size.
template <int bytes>
__device__ inline Registers<bytes> ld_shared_registers(unsigned shared) {
  Registers<bytes> value;
  if constexpr (bytes == 1) {
    asm volatile("ld.shared.u8 %0, [%1];" : "=r"(value.words[0]) : "r"(shared) : "memory");
  } else if constexpr (bytes == 2) {
    unsigned short half;
    asm volatile("ld.shared.b16 %0, [%1];" : "=h"(half) : "r"(shared) : "memory");
    value.words[0] = half;
  } else if constexpr (bytes == 4) {
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(value.words[0]) : "r"(shared) : "memory");
  } else if constexpr (bytes == 8) {
    asm volatile("ld.shared.v2.b32 {%0, %1}, [%2];"
                 : "=r"(value.words[0]), "=r"(value.words[1])
                 : "r"(shared)
                 : "memory");
  } else {
    static_assert(bytes == 16);
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.words[0]), "=r"(value.words[1]), "=r"(value.words[2]),
                   "=r"(value.words[3])
                 : "r"(shared)
                 : "memory");
  }
  return value;
}

/// Stores 1 to 8 bytes.
template <int bytes, unsigned offset = 0>
__device__ inline void st_shared(unsigned shared, const Registers<bytes>& value) {
  if constexpr (bytes == 1) {
    asm volatile("st.shared.u8 [%0+%2], %1;" ::"r"(shared), "r"(value.words[0]), "n"(offset)
                 : "memory");
  } else if constexpr (bytes == 2) {
    asm volatile("st.shared.b16 [%0+%2], %1;" ::"r"(shared),
                 "h"(static_cast<unsigned short>(value.words[0])), "n"(offset)
                 : "memory");
  } else if constexpr (bytes == 4) {
    asm volatile("st.shared.b32 [%0+%2], %1;" ::"r"(shared), "r"(value.words[0]), "n"(offset)
                 : "memory");
  } else {
    static_assert(bytes == 8);
    st_shared_v2<offset>(shared, value.words[0], value.words[1]);
  }
}

/// Loads 1, 2 or 4 bytes.
template <int bytes>
__device__ inline unsigned ld_shared(unsigned shared) {
  return ld_shared_registers<bytes>(shared).words[0];
}

}  // namespace gemmery::device::ptx
