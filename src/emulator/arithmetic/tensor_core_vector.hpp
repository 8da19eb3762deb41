// SPDX-License-Identifier: Apache-2.0
// Host vectors for the inner loops of tensor cores.
#pragma once

#include <cstdint>
#include <cstring>

// Compiles an inner loop for several vector widths and selects the host's widest at run time. Other
// compilers use the build's width.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define GEMMERY_VECTOR_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define GEMMERY_VECTOR_CLONES
#endif

namespace gemmery::emulator::tensor_core {

using Float8 [[gnu::vector_size(32)]] = float;
using Int8 [[gnu::vector_size(32)]] = std::int32_t;
using Short16 [[gnu::vector_size(32)]] = std::int16_t;
using Short8 [[gnu::vector_size(16)]] = std::int16_t;
using Int4 [[gnu::vector_size(16)]] = std::int32_t;
using Float4 [[gnu::vector_size(16)]] = float;
using Long4 [[gnu::vector_size(32)]] = std::int64_t;
using Double4 [[gnu::vector_size(32)]] = double;

template <class Vector, class T>
[[gnu::always_inline]] inline void load(Vector& to, const T* from) noexcept {
  std::memcpy(&to, from, sizeof to);
}

}  // namespace gemmery::emulator::tensor_core
