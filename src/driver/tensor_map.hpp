// SPDX-License-Identifier: Apache-2.0
// Tensor maps: descriptors by which the Tensor Memory Accelerator (sm_90 and later) copies tiles of
// a tensor in global memory.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/dtype.hpp>

#include <array>
#include <cstdint>

#include "driver/cuda_api.hpp"

namespace gemmery::driver {

// A tiled view, fastest dimension first. The manual's rules: the address is a multiple of 16 bytes,
// byte strides are multiples of 16, each side of the box has at most 256 elements, and its fastest
// side is a multiple of 16 bytes that fits the swizzle.
struct TiledTensorMap {
  const void* address = nullptr;
  DType dtype = DType::float32;
  std::uint32_t rank = 2;
  std::array<std::uint64_t, 5> extents{};       // elements
  std::array<std::uint64_t, 4> byte_strides{};  // of dimension 1 and up
  std::array<std::uint32_t, 5> box{};           // elements
  std::array<std::uint32_t, 5> element_strides{1, 1, 1, 1, 1};
  cuda::TensorMapSwizzle swizzle = cuda::TensorMapSwizzle::none;
  cuda::TensorMapL2Promotion l2_promotion = cuda::TensorMapL2Promotion::bytes128;
  bool is_tf32 = false;  // float32 rounded to TF32 during the copy
};

// Throws Error: invalid_argument with the field that breaks a rule, unsupported for a type that the
// hardware does not support.
cuda::TensorMap encode(const DriverApi& api, const TiledTensorMap& view);

// The same view of memory elsewhere; `address` is a multiple of 16 bytes.
void move_map(const DriverApi& api, cuda::TensorMap& map, void* address);

}  // namespace gemmery::driver
