// SPDX-License-Identifier: Apache-2.0
// Lets one header serve the host compiler and the device compiler: the function marker and integers
// of known width.
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define GEMMERY_HOST_DEVICE __host__ __device__
#else
#define GEMMERY_HOST_DEVICE
#endif

namespace gemmery::abi {

using Int64 = long long;
using UInt64 = unsigned long long;
static_assert(sizeof(int) == 4 && sizeof(Int64) == 8);

/// The value of a template argument by reference, for calls whose other arguments are known at run
/// time: nvcc knows no objects of the host in device code, only their values.
template <const auto& object>
GEMMERY_HOST_DEVICE
consteval auto value_of() { return object; }

}  // namespace gemmery::abi
