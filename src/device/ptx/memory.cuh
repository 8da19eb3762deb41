// SPDX-License-Identifier: Apache-2.0
// Loads from global memory of 1 to 16 bytes as 32-bit registers, and stores of the same, one
// statement per function.
#pragma once

#include <device/abi/host_device.hpp>

namespace gemmery::device::ptx {

/// Bytes in registers; with fewer than four bytes the unused high bytes of the word are zero.
template <int bytes>
struct Registers {
  unsigned words[bytes < 4 ? 1 : bytes / 4];
};

/// Reads memory that no thread writes while the kernel runs.
template <int bytes>
__device__ inline Registers<bytes> ld_global_nc(const void* address) {
  Registers<bytes> value;
  if constexpr (bytes == 1) {
    asm volatile("ld.global.nc.u8 %0, [%1];" : "=r"(value.words[0]) : "l"(address));
  } else if constexpr (bytes == 2) {
    asm volatile("ld.global.nc.u16 %0, [%1];" : "=r"(value.words[0]) : "l"(address));
  } else if constexpr (bytes == 4) {
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(value.words[0]) : "l"(address));
  } else if constexpr (bytes == 8) {
    asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];"
                 : "=r"(value.words[0]), "=r"(value.words[1])
                 : "l"(address));
  } else {
    static_assert(bytes == 16);
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.words[0]), "=r"(value.words[1]), "=r"(value.words[2]),
                   "=r"(value.words[3])
                 : "l"(address));
  }
  return value;
}

/// The same for an address.
__device__ inline char* ld_global_nc_address(void* const* from) {
  char* address;
  asm("ld.global.nc.u64 %0, [%1];" : "=l"(address) : "l"(from));
  return address;
}

/// Reads an integer that earlier work may have written.
__device__ inline int ld_global_int(const int* from) {
  int value;
  asm volatile("ld.global.s32 %0, [%1];" : "=r"(value) : "l"(from) : "memory");
  return value;
}
__device__ inline abi::Int64 ld_global_int64(const abi::Int64* from) {
  abi::Int64 value;
  asm volatile("ld.global.s64 %0, [%1];" : "=l"(value) : "l"(from) : "memory");
  return value;
}

/// As ld_global_nc of 1, 2 or 4 bytes if `is_valid`; otherwise 0, and nothing is read. Without a
/// branch: many of them in a row compile several times faster.
template <int bytes>
__device__ inline unsigned ld_global_nc_if(bool is_valid, const void* address) {
  unsigned value = 0;
  const unsigned valid = is_valid ? 1U : 0U;
  if constexpr (bytes == 1) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %2, 0;\n@p ld.global.nc.u8 %0, [%1];\n}"
                 : "+r"(value)
                 : "l"(address), "r"(valid));
  } else if constexpr (bytes == 2) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %2, 0;\n@p ld.global.nc.u16 %0, [%1];\n}"
                 : "+r"(value)
                 : "l"(address), "r"(valid));
  } else {
    static_assert(bytes == 4);
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %2, 0;\n@p ld.global.nc.u32 %0, [%1];\n}"
                 : "+r"(value)
                 : "l"(address), "r"(valid));
  }
  return value;
}

/// As ld_global_nc, for data that is read once: it is not allocated in L1.
template <int bytes>
__device__ inline Registers<bytes> ld_global_nc_no_allocate(const void* address) {
  Registers<bytes> value;
  if constexpr (bytes == 1) {
    asm volatile("ld.global.nc.L1::no_allocate.u8 %0, [%1];" : "=r"(value.words[0]) : "l"(address));
  } else if constexpr (bytes == 2) {
    asm volatile("ld.global.nc.L1::no_allocate.u16 %0, [%1];"
                 : "=r"(value.words[0])
                 : "l"(address));
  } else if constexpr (bytes == 4) {
    asm volatile("ld.global.nc.L1::no_allocate.u32 %0, [%1];"
                 : "=r"(value.words[0])
                 : "l"(address));
  } else if constexpr (bytes == 8) {
    asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
                 : "=r"(value.words[0]), "=r"(value.words[1])
                 : "l"(address));
  } else {
    static_assert(bytes == 16);
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.words[0]), "=r"(value.words[1]), "=r"(value.words[2]),
                   "=r"(value.words[3])
                 : "l"(address));
  }
  return value;
}

template <int bytes>
__device__ inline Registers<bytes> ld_global(const void* address) {
  Registers<bytes> value;
  if constexpr (bytes == 1) {
    asm volatile("ld.global.u8 %0, [%1];" : "=r"(value.words[0]) : "l"(address) : "memory");
  } else if constexpr (bytes == 2) {
    asm volatile("ld.global.u16 %0, [%1];" : "=r"(value.words[0]) : "l"(address) : "memory");
  } else if constexpr (bytes == 4) {
    asm volatile("ld.global.u32 %0, [%1];" : "=r"(value.words[0]) : "l"(address) : "memory");
  } else if constexpr (bytes == 8) {
    asm volatile("ld.global.v2.u32 {%0, %1}, [%2];"
                 : "=r"(value.words[0]), "=r"(value.words[1])
                 : "l"(address)
                 : "memory");
  } else {
    static_assert(bytes == 16);
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.words[0]), "=r"(value.words[1]), "=r"(value.words[2]),
                   "=r"(value.words[3])
                 : "l"(address)
                 : "memory");
  }
  return value;
}

/// Loads if `number` > `bound`; otherwise returns `otherwise` and reads nothing. There is no
/// branch, and the comparison is in the statement: many of them in a row compile several times
/// faster.
template <int bytes>
__device__ inline Registers<bytes> ld_global_if_above(int number, int bound, const void* address,
                                                      const Registers<bytes>& otherwise) {
  Registers<bytes> value = otherwise;
  if constexpr (bytes == 1) {
    asm volatile("{\n.reg .pred p;\nsetp.gt.s32 p, %2, %3;\n@p ld.global.u8 %0, [%1];\n}"
                 : "+r"(value.words[0])
                 : "l"(address), "r"(number), "r"(bound)
                 : "memory");
  } else if constexpr (bytes == 2) {
    auto half = static_cast<unsigned short>(otherwise.words[0]);
    asm volatile("{\n.reg .pred p;\nsetp.gt.s32 p, %2, %3;\n@p ld.global.b16 %0, [%1];\n}"
                 : "+h"(half)
                 : "l"(address), "r"(number), "r"(bound)
                 : "memory");
    value.words[0] = half;
  } else if constexpr (bytes == 4) {
    asm volatile("{\n.reg .pred p;\nsetp.gt.s32 p, %2, %3;\n@p ld.global.b32 %0, [%1];\n}"
                 : "+r"(value.words[0])
                 : "l"(address), "r"(number), "r"(bound)
                 : "memory");
  } else if constexpr (bytes == 8) {
    asm volatile("{\n.reg .pred p;\nsetp.gt.s32 p, %3, %4;\n@p ld.global.v2.b32 {%0, %1}, [%2];\n}"
                 : "+r"(value.words[0]), "+r"(value.words[1])
                 : "l"(address), "r"(number), "r"(bound)
                 : "memory");
  } else {
    static_assert(bytes == 16);
    asm volatile(
        "{\n.reg .pred p;\nsetp.gt.s32 p, %5, %6;\n@p ld.global.v4.b32 {%0, %1, %2, %3}, [%4];\n}"
        : "+r"(value.words[0]), "+r"(value.words[1]), "+r"(value.words[2]), "+r"(value.words[3])
        : "l"(address), "r"(number), "r"(bound)
        : "memory");
  }
  return value;
}

/// The same if `is_valid`.
template <int bytes>
__device__ inline Registers<bytes> ld_global_if(bool is_valid, const void* address,
                                                const Registers<bytes>& otherwise) {
  return ld_global_if_above<bytes>(is_valid ? 1 : 0, 0, address, otherwise);
}

/// Reads element `count` - 1 of a row of elements of 1, 2 or 4 bytes if `count` is 1, 9, 17 and so
/// on, and below `bound`; otherwise returns 0 and reads nothing. The element's address and the
/// conditions are in the statement: that is a seventieth of the compile time of a kernel with a C.
template <int bytes, int bound>
__device__ inline unsigned ld_global_last(const char* row, int count) {
  unsigned value;
#define GEMMERY_LOAD_LAST(type)                                                               \
  asm volatile(                                                                               \
      "{\n.reg .pred is_read;\n.reg .b32 last;\n.reg .b64 at;\n"                              \
      "and.b32 last, %2, 7;\nsetp.eq.s32 is_read, last, 1;\n"                                 \
      "setp.gt.and.s32 is_read, %2, 0, is_read;\nsetp.lt.and.s32 is_read, %2, %3, is_read;\n" \
      "sub.s32 last, %2, 1;\nmad.wide.s32 at, last, %4, %1;\nmov.b32 %0, 0;\n"                \
      "@is_read ld.global." type " %0, [at];\n}"                                              \
      : "=&r"(value)                                                                          \
      : "l"(row), "r"(count), "n"(bound), "n"(bytes)                                          \
      : "memory")
  if constexpr (bytes == 1) {
    GEMMERY_LOAD_LAST("u8");
  } else if constexpr (bytes == 2) {
    GEMMERY_LOAD_LAST("u16");
  } else {
    static_assert(bytes == 4);
    GEMMERY_LOAD_LAST("u32");
  }
#undef GEMMERY_LOAD_LAST
  return value;
}

template <int bytes>
__device__ inline void st_global(void* address, const Registers<bytes>& value) {
  if constexpr (bytes == 1) {
    asm volatile("st.global.u8 [%0], %1;" ::"l"(address), "r"(value.words[0]) : "memory");
  } else if constexpr (bytes == 2) {
    asm volatile("st.global.u16 [%0], %1;" ::"l"(address), "r"(value.words[0]) : "memory");
  } else if constexpr (bytes == 4) {
    asm volatile("st.global.u32 [%0], %1;" ::"l"(address), "r"(value.words[0]) : "memory");
  } else if constexpr (bytes == 8) {
    asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(address), "r"(value.words[0]),
                 "r"(value.words[1])
                 : "memory");
  } else {
    static_assert(bytes == 16);
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(value.words[0]),
                 "r"(value.words[1]), "r"(value.words[2]), "r"(value.words[3])
                 : "memory");
  }
}

/// Stores if `number` > `bound`, without a branch.
template <int bytes>
__device__ inline void st_global_if_above(int number, int bound, void* address,
                                          const Registers<bytes>& value) {
#define GEMMERY_STORE_IF(type)                                                \
  asm volatile("{\n.reg .pred p;\nsetp.gt.s32 p, %2, %3;\n@p st.global." type \
               " [%0], %1;\n}" ::"l"(address),                                \
               "r"(value.words[0]), "r"(number), "r"(bound)                   \
               : "memory")
  if constexpr (bytes == 1) {
    GEMMERY_STORE_IF("u8");
  } else if constexpr (bytes == 2) {
    GEMMERY_STORE_IF("u16");
  } else if constexpr (bytes == 4) {
    GEMMERY_STORE_IF("u32");
  } else {
    static_assert(bytes == 8);
    asm volatile(
        "{\n.reg .pred p;\nsetp.gt.s32 p, %3, %4;\n@p st.global.v2.b32 [%0], {%1, %2};\n}" ::"l"(
            address),
        "r"(value.words[0]), "r"(value.words[1]), "r"(number), "r"(bound)
        : "memory");
  }
#undef GEMMERY_STORE_IF
}

/// Stores the first `count` elements of a word; `count` may be negative, or larger than the word.
template <int bytes>
__device__ inline void st_global_first(void* address, unsigned word, int count) {
  if constexpr (bytes == 1) {
    asm volatile(
        "{\n.reg .pred p;\n.reg .b32 bits;\nsetp.gt.s32 p, %2, 0;\n@p st.global.u8 [%0], %1;\n"
        "setp.gt.s32 p, %2, 1;\nshr.u32 bits, %1, 8;\n@p st.global.u8 [%0+1], bits;\n"
        "setp.gt.s32 p, %2, 2;\nshr.u32 bits, %1, 16;\n@p st.global.u8 [%0+2], bits;\n"
        "setp.gt.s32 p, %2, 3;\nshr.u32 bits, %1, 24;\n@p st.global.u8 [%0+3], bits;\n}" ::"l"(
            address),
        "r"(word), "r"(count)
        : "memory");
  } else {
    static_assert(bytes == 2);
    asm volatile(
        "{\n.reg .pred p;\n.reg .b32 bits;\nsetp.gt.s32 p, %2, 0;\n@p st.global.u16 [%0], %1;\n"
        "setp.gt.s32 p, %2, 1;\nshr.u32 bits, %1, 16;\n@p st.global.u16 [%0+2], bits;\n}" ::"l"(
            address),
        "r"(word), "r"(count)
        : "memory");
  }
}

/// Reads the first `count` elements of a word, as above; the others are 0, and not read.
template <int bytes>
__device__ inline unsigned ld_global_first(const void* address, int count) {
  unsigned word;
  if constexpr (bytes == 1) {
    asm volatile(
        "{\n.reg .pred p;\n.reg .b32 bits;\nmov.b32 %0, 0;\n"
        "setp.gt.s32 p, %2, 0;\n@p ld.global.u8 %0, [%1];\n"
        "setp.gt.s32 p, %2, 1;\nmov.b32 bits, 0;\n@p ld.global.u8 bits, [%1+1];\n"
        "prmt.b32 %0, %0, bits, 0x3240;\n"
        "setp.gt.s32 p, %2, 2;\nmov.b32 bits, 0;\n@p ld.global.u8 bits, [%1+2];\n"
        "prmt.b32 %0, %0, bits, 0x3410;\n"
        "setp.gt.s32 p, %2, 3;\nmov.b32 bits, 0;\n@p ld.global.u8 bits, [%1+3];\n"
        "prmt.b32 %0, %0, bits, 0x4210;\n}"
        : "=&r"(word)
        : "l"(address), "r"(count)
        : "memory");
  } else {
    static_assert(bytes == 2);
    asm volatile(
        "{\n.reg .pred p;\n.reg .b32 bits;\nmov.b32 %0, 0;\n"
        "setp.gt.s32 p, %2, 0;\n@p ld.global.u16 %0, [%1];\n"
        "setp.gt.s32 p, %2, 1;\nmov.b32 bits, 0;\n@p ld.global.u16 bits, [%1+2];\n"
        "prmt.b32 %0, %0, bits, 0x5410;\n}"
        : "=&r"(word)
        : "l"(address), "r"(count)
        : "memory");
  }
  return word;
}

}  // namespace gemmery::device::ptx
