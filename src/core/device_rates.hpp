// SPDX-License-Identifier: Apache-2.0
// What an architecture does in one clock on one multiprocessor; shared by the table of devices and
// by the driver.
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

}  // namespace gemmery
