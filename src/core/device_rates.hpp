// SPDX-License-Identifier: Apache-2.0
// Multiply-adds per clock and multiprocessor, by architecture; used by the table of devices and by
// the driver.
#pragma once

#include <gemmery/target.hpp>

namespace gemmery {

// Fused multiply-adds per clock and multiprocessor on the CUDA cores. Source: CUDA C++ Programming
// Guide, table of arithmetic throughputs. Architectures that are not listed get the rates of the
// closest earlier one.
struct CudaCoreRates {
  int fma_f32 = 128;
  int fma_f64 = 2;
  int fma_int = 64;
};

constexpr CudaCoreRates cuda_core_rates(Target target) {
  switch (target.architecture) {
    case 70:
    case 80:
      return {.fma_f32 = 64, .fma_f64 = 32, .fma_int = 64};
    case 75:
      return {.fma_f32 = 64, .fma_f64 = 2, .fma_int = 64};
    case 90:
      return {.fma_f32 = 128, .fma_f64 = 64, .fma_int = 64};
    case 100:
      return {.fma_f32 = 128, .fma_f64 = 64, .fma_int = 64};
    default:
      return {};
  }
}

// Dense multiply-adds per clock and multiprocessor on the tensor cores, by the fastest instruction
// for the type; 0 if there is none. Sources: NVIDIA's data sheets and architecture papers, divided
// by multiprocessors and boost clock and rounded to a power of two. Architectures that are not
// listed get the rates of the closest earlier one.
struct TensorCoreRates {
  int half = 0;  // float16 and bfloat16
  int tf32 = 0;
  int float8 = 0;
  int integer8 = 0;
  int float64 = 0;
};

constexpr TensorCoreRates tensor_core_rates(Target target) {
  const int architecture = target.architecture;
  if (architecture >= 120)
    return {.half = 512, .tf32 = 256, .float8 = 1024, .integer8 = 1024, .float64 = 2};
  if (architecture >= 100)
    return {.half = 4096, .tf32 = 2048, .float8 = 8192, .integer8 = 8192, .float64 = 64};
  if (architecture >= 90)
    return {.half = 2048, .tf32 = 1024, .float8 = 4096, .integer8 = 4096, .float64 = 128};
  if (architecture >= 89)
    return {.half = 512, .tf32 = 256, .float8 = 1024, .integer8 = 1024, .float64 = 2};
  if (architecture >= 86) return {.half = 512, .tf32 = 256, .integer8 = 1024, .float64 = 2};
  if (architecture >= 80) return {.half = 1024, .tf32 = 512, .integer8 = 2048, .float64 = 64};
  return {.half = 512};
}

}  // namespace gemmery
