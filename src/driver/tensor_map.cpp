// SPDX-License-Identifier: Apache-2.0
// Encodes tensor maps after checking the manual's rules, so that an error names the rule; the
// driver reports only "invalid value".
#include "driver/tensor_map.hpp"

#include <gemmery/error.hpp>

#include <optional>
#include <string>

#include "driver/driver.hpp"

namespace gemmery::driver {
namespace {

std::optional<cuda::TensorMapDataType> data_type(DType dtype, bool is_tf32) {
  using Type = cuda::TensorMapDataType;
  switch (dtype) {
    case DType::float64:
      return Type::float64;
    case DType::float32:
      return is_tf32 ? Type::tfloat32 : Type::float32;
    case DType::float16:
      return Type::float16;
    case DType::bfloat16:
      return Type::bfloat16;
    case DType::int32:
      return Type::int32;
    case DType::uint32:
      return Type::uint32;
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
    case DType::float8_e8m0fnu:
    case DType::int8:
    case DType::uint8:
      return Type::uint8;
    case DType::float6_e2m3fn:
    case DType::float6_e3m2fn:
    case DType::float4_e2m1fn:
    case DType::int4:
    case DType::uint4:
      return std::nullopt;
  }
  return std::nullopt;
}

template <class Number>
[[noreturn]] void refuse(std::string field, std::string expected, Number got) {
  throw Error({.kind = ErrorKind::invalid_argument,
               .operand = "tensor map: " + std::move(field),
               .expected = std::move(expected),
               .got = std::to_string(got)});
}

std::uint64_t swizzle_bytes(cuda::TensorMapSwizzle swizzle) {
  switch (swizzle) {
    case cuda::TensorMapSwizzle::none:
      return 0;
    case cuda::TensorMapSwizzle::bytes32:
      return 32;
    case cuda::TensorMapSwizzle::bytes64:
      return 64;
    case cuda::TensorMapSwizzle::bytes128:
      return 128;
  }
  return 0;
}

// Checks the fields that both kinds of views have.
template <class View>
void check_tensor(const View& view, std::uint32_t least_rank) {
  if (view.rank < least_rank || view.rank > 5)
    refuse("rank", std::to_string(least_rank) + " to 5", view.rank);
  const auto address = reinterpret_cast<std::uintptr_t>(view.address);
  if (address == 0) refuse("address", "one that is not null", address);
  if (address % 16 != 0) refuse("address", "a multiple of 16 bytes", address);
  for (std::uint32_t d = 0; d < view.rank; ++d) {
    const std::uint64_t extent = view.extents[d];
    if (extent == 0 || extent > std::uint64_t{1} << 32)
      refuse("extent " + std::to_string(d), "1 to 2^32", extent);
    if (view.element_strides[d] == 0 || view.element_strides[d] > largest_element_stride) {
      refuse("element stride " + std::to_string(d), "1 to 8", view.element_strides[d]);
    }
  }
  for (std::uint32_t d = 0; d + 1 < view.rank; ++d) {
    const std::uint64_t stride = view.byte_strides[d];
    if (stride % 16 != 0 || stride >= std::uint64_t{1} << 40) {
      refuse("byte stride " + std::to_string(d + 1), "a multiple of 16 below 2^40", stride);
    }
  }
}

// Checks the extent of a copy along dimension 0.
template <class View>
void check_run(const View& view, const std::string& field, std::uint32_t elements) {
  const std::uint64_t bytes = elements * byte_width(view.dtype);
  if (bytes % 16 != 0) refuse(field + " in bytes", "a multiple of 16", bytes);
  const std::uint64_t widest = swizzle_bytes(view.swizzle);
  if (widest != 0 && bytes > widest)
    refuse(field + " in bytes", "at most the swizzle's " + std::to_string(widest), bytes);
}

void check_rules(const TiledTensorMap& view) {
  check_tensor(view, 1);
  for (std::uint32_t d = 0; d < view.rank; ++d) {
    if (view.box[d] == 0 || view.box[d] > 256)
      refuse("box " + std::to_string(d), "1 to 256 elements", view.box[d]);
  }
  check_run(view, "box 0", view.box[0]);
}

void check_corners(const Im2colTensorMap& view) {
  const CornerLimits limits = corner_limits(view.rank);
  const std::string range = std::to_string(limits.least) + " to " + std::to_string(limits.most);
  const auto check = [&](const std::string& field, int corner) {
    if (corner < limits.least || corner > limits.most) refuse(field, range, corner);
  };
  for (std::uint32_t d = 0; d + 2 < view.rank; ++d) {
    check("lower corner " + std::to_string(d), view.lower_corner[d]);
    check("upper corner " + std::to_string(d), view.upper_corner[d]);
    const std::int64_t pixels = static_cast<std::int64_t>(view.extents[d + 1]) +
                                view.upper_corner[d] - view.lower_corner[d];
    if (pixels < 1) refuse("pixel box " + std::to_string(d), "at least one pixel", pixels);
  }
}

void check_rules(const Im2colTensorMap& view) {
  check_tensor(view, 3);
  check_corners(view);
  if (view.channels == 0 || view.channels > 256)
    refuse("channels", "1 to 256 elements", view.channels);
  if (view.pixels == 0 || view.pixels > 1024) refuse("pixels", "1 to 1024", view.pixels);
  check_run(view, "channels", view.channels);
}

template <class View>
cuda::TensorMapDataType data_type_of(const View& view) {
  if (const auto type = data_type(view.dtype, view.is_tf32)) return *type;
  throw Error({.kind = ErrorKind::unsupported,
               .operand = "tensor map: dtype",
               .expected = "a type of 8 bits or more",
               .got = std::string(name(view.dtype))});
}

}  // namespace

cuda::TensorMap encode(const DriverApi& api, const TiledTensorMap& view) {
  const cuda::TensorMapDataType type = data_type_of(view);
  check_rules(view);
  cuda::TensorMap map;
  check(
      api,
      api.cuTensorMapEncodeTiled(&map, type, view.rank, const_cast<void*>(view.address),
                                 view.extents.data(), view.byte_strides.data(), view.box.data(),
                                 view.element_strides.data(), cuda::TensorMapInterleave::none,
                                 view.swizzle, view.l2_promotion, cuda::TensorMapOutOfBounds::zero),
      "cuTensorMapEncodeTiled");
  return map;
}

cuda::TensorMap encode(const DriverApi& api, const Im2colTensorMap& view) {
  const cuda::TensorMapDataType type = data_type_of(view);
  check_rules(view);
  cuda::TensorMap map;
  check(api,
        api.cuTensorMapEncodeIm2col(&map, type, view.rank, const_cast<void*>(view.address),
                                    view.extents.data(), view.byte_strides.data(),
                                    view.lower_corner.data(), view.upper_corner.data(),
                                    view.channels, view.pixels, view.element_strides.data(),
                                    cuda::TensorMapInterleave::none, view.swizzle,
                                    view.l2_promotion, cuda::TensorMapOutOfBounds::zero),
        "cuTensorMapEncodeIm2col");
  return map;
}

void move_map(const DriverApi& api, cuda::TensorMap& map, void* address) {
  check(api, api.cuTensorMapReplaceAddress(&map, address), "cuTensorMapReplaceAddress");
}

}  // namespace gemmery::driver
