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
  std::array<std::uint64_t, 4> byte_strides{};  // from dimension 1 on
  std::array<std::uint32_t, 5> box{};           // elements
  std::array<std::uint32_t, 5> element_strides{1, 1, 1, 1, 1};
  cuda::TensorMapSwizzle swizzle = cuda::TensorMapSwizzle::none;
  cuda::TensorMapL2Promotion l2_promotion = cuda::TensorMapL2Promotion::bytes128;
  bool is_tf32 = false;  // float32 rounded to TF32 during the copy
};

// A view of images for copies in im2col mode: channels, then one to three spatial dimensions, width
// first, then images. A copy takes consecutive pixels of the pixel box, which extends from
// `lower_corner` to the last pixel plus `upper_corner`, in steps of `element_strides`, row by row
// and image by image; instructions add the offset of a filter tap to each. The manual's rules: the
// address and byte strides as for tiles; corners of 16, 8 or 5 bits with a sign, for one, two or
// three spatial dimensions; a box of at least one pixel; at most 256 channels per pixel, whose
// bytes are a multiple of 16 that fits the swizzle; at most 1,024 pixels in a copy.
struct Im2colTensorMap {
  const void* address = nullptr;
  DType dtype = DType::float32;
  std::uint32_t rank = 4;
  std::array<std::uint64_t, 5> extents{};       // elements
  std::array<std::uint64_t, 4> byte_strides{};  // from dimension 1 on
  std::array<int, 3> lower_corner{};            // of the spatial dimensions, width first
  std::array<int, 3> upper_corner{};
  std::uint32_t channels = 0;  // of a pixel in a copy
  std::uint32_t pixels = 0;    // in a copy
  std::array<std::uint32_t, 5> element_strides{1, 1, 1, 1, 1};
  cuda::TensorMapSwizzle swizzle = cuda::TensorMapSwizzle::none;
  cuda::TensorMapL2Promotion l2_promotion = cuda::TensorMapL2Promotion::bytes128;
  bool is_tf32 = false;  // float32 rounded to TF32 during the copy
};

// The range of corners in maps of a rank.
struct CornerLimits {
  int least;
  int most;
};
constexpr CornerLimits corner_limits(std::uint32_t rank) noexcept {
  const int limit = rank == 3 ? 1 << 15 : rank == 4 ? 1 << 7 : 1 << 4;
  return {-limit, limit - 1};
}
// The largest filter-tap offset of an instruction.
constexpr int largest_offset(std::uint32_t rank) noexcept {
  return rank == 3 ? 65535 : rank == 4 ? 255 : 31;
}
inline constexpr std::uint32_t largest_element_stride = 8;

// Throws Error: invalid_argument with the field that breaks a rule, unsupported for a type that the
// hardware does not support.
cuda::TensorMap encode(const DriverApi& api, const TiledTensorMap& view);
cuda::TensorMap encode(const DriverApi& api, const Im2colTensorMap& view);

// Changes the address of the view; `address` is a multiple of 16 bytes.
void move_map(const DriverApi& api, cuda::TensorMap& map, void* address);

}  // namespace gemmery::driver
