// SPDX-License-Identifier: Apache-2.0
// The facts of this machine's processor, as a DeviceInfo.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/dtype.hpp>

namespace gemmery::platform {

// Read once: the model's name, the cores that this process may use, last-level cache, memory,
// vector rates. The clock is measured then; the bandwidth is an estimate.
const DeviceInfo& host_device_info();

// Multiply-adds per clock and core for two elements of this type: by matrix or dot-product
// instructions if the processor has them for the type, otherwise as the type that it is widened to.
int host_product_rate(DType dtype) noexcept;

// The vector instruction sets that kernels use: "avx512f avx512_bf16", "avx2 fma", "neon".
const char* host_vector_sets() noexcept;

}  // namespace gemmery::platform
