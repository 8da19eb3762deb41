// SPDX-License-Identifier: Apache-2.0
// Tensor maps: how the tensor memory accelerator (sm_90 and later) walks a tensor in global memory.
#pragma once

#include <gemmery/device.hpp>
#include <gemmery/dtype.hpp>

#include <array>
#include <cstdint>

#include "driver/cuda_api.hpp"

namespace gemmery::driver {

// A tiled view, the fastest dimension first. The manual's rules: address a multiple of 16 bytes,
// byte strides multiples of 16, box of at most 256 elements a side whose fastest side is a multiple
// of 16 bytes and fits the swizzle.
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
  bool is_tf32 = false;  // float32 rounded to TF32 on its way
};

// Throws Error: invalid_argument with the field that breaks a rule, unsupported for a type that the
// hardware does not know.
cuda::TensorMap encode(const DriverApi& api, const TiledTensorMap& view);

}  // namespace gemmery::driver
