// SPDX-License-Identifier: Apache-2.0
// Compiles the register tiles for each instruction set and selects by the CPU's features. The only
// file with x86-only code.
#include "providers/host/tile_kernels.hpp"

#include <cstddef>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gemmery::host::generic {
// One instruction if the target has it, otherwise the C library's exact function.
template <class Vector>
inline Vector fused_lanes(Vector a, Vector b, Vector c) {
  for (std::size_t lane = 0; lane < sizeof(Vector) / sizeof(double); ++lane)
    c[lane] = __builtin_fma(a[lane], b[lane], c[lane]);
  return c;
}
}  // namespace gemmery::host::generic

#define GEMMERY_ISA_NAMESPACE generic
#define GEMMERY_ISA_TARGET
#define GEMMERY_ISA_VECTOR_BYTES 16
#define GEMMERY_ISA_ROWS 6
#define GEMMERY_ISA_FUSED(a, b, c) fused_lanes(a, b, c)
#include "providers/host/tile_kernel.inc"
#undef GEMMERY_ISA_NAMESPACE
#undef GEMMERY_ISA_TARGET
#undef GEMMERY_ISA_VECTOR_BYTES
#undef GEMMERY_ISA_ROWS
#undef GEMMERY_ISA_FUSED

#if defined(__x86_64__)

#define GEMMERY_ISA_NAMESPACE avx2
#define GEMMERY_ISA_TARGET __attribute__((target("avx2,fma")))
#define GEMMERY_ISA_VECTOR_BYTES 32
#define GEMMERY_ISA_ROWS 6
#define GEMMERY_ISA_FUSED(a, b, c) _mm256_fmadd_pd(a, b, c)
#include "providers/host/tile_kernel.inc"
#undef GEMMERY_ISA_NAMESPACE
#undef GEMMERY_ISA_TARGET
#undef GEMMERY_ISA_VECTOR_BYTES
#undef GEMMERY_ISA_ROWS
#undef GEMMERY_ISA_FUSED

#define GEMMERY_ISA_NAMESPACE avx512
#define GEMMERY_ISA_TARGET __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma")))
#define GEMMERY_ISA_VECTOR_BYTES 64
#define GEMMERY_ISA_ROWS 12
#define GEMMERY_ISA_FUSED(a, b, c) _mm512_fmadd_pd(a, b, c)
#include "providers/host/tile_kernel.inc"
#undef GEMMERY_ISA_NAMESPACE
#undef GEMMERY_ISA_TARGET
#undef GEMMERY_ISA_VECTOR_BYTES
#undef GEMMERY_ISA_ROWS
#undef GEMMERY_ISA_FUSED

#endif

namespace gemmery::host {
namespace {

#define GEMMERY_TILE_KERNELS(isa)                                                                 \
  TileKernels {                                                                                   \
#isa, {isa::tile_rows, 2 * sizeof(isa::FloatVector) / 4, isa::accumulate < float,             \
           isa::FloatVector> },                                                                   \
           {isa::tile_rows, 2 * sizeof(isa::DoubleVector) / 8, isa::accumulate < double,          \
            isa::DoubleVector> },                                                                 \
            {isa::compensated_rows, sizeof(isa::DoubleVector) / 8, isa::accumulate_compensated }, \
  }

const TileKernels generic_kernels = GEMMERY_TILE_KERNELS(generic);
#if defined(__x86_64__)
const TileKernels avx2_kernels = GEMMERY_TILE_KERNELS(avx2);
const TileKernels avx512_kernels = GEMMERY_TILE_KERNELS(avx512);
#endif
#undef GEMMERY_TILE_KERNELS

std::vector<const TileKernels*> find_usable() {
  std::vector<const TileKernels*> usable;
#if defined(__x86_64__)
  // These also ask the operating system whether it saves the registers.
  __builtin_cpu_init();
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") &&
                          __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
  if (has_avx512) usable.push_back(&avx512_kernels);
  if (has_avx2) usable.push_back(&avx2_kernels);
#endif
  usable.push_back(&generic_kernels);
  return usable;
}

}  // namespace

std::span<const TileKernels* const> usable_tile_kernels() {
  static const auto* usable = new std::vector<const TileKernels*>(find_usable());
  return *usable;
}

const TileKernels& tile_kernels() { return *usable_tile_kernels().front(); }

}  // namespace gemmery::host
