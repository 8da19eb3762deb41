// SPDX-License-Identifier: Apache-2.0
// The limits of tensor maps, and maps of the adjacent index, the other index, and the batch or the
// map distance.
#include "providers/templates/tma_view.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "device/abi/pointer_array.hpp"

namespace gemmery::templates {
namespace {

// Coordinates are signed 32-bit integers, and tiles reach beyond extents.
constexpr std::int64_t largest_extent = std::numeric_limits<std::int32_t>::max() - 1024;

bool is_tma_stride(std::int64_t bytes) {
  return bytes > 0 && bytes % 16 == 0 && bytes < std::int64_t{1} << 40;
}

// The stride of an extent of 1 is not used but must satisfy the rules.
std::uint64_t stride_or_least(std::int64_t extent, std::int64_t bytes) {
  return extent > 1 ? static_cast<std::uint64_t>(bytes) : 16U;
}

}  // namespace

driver::cuda::TensorMapSwizzle swizzle_of(int pitch_bytes) {
  using Swizzle = driver::cuda::TensorMapSwizzle;
  return pitch_bytes == 128  ? Swizzle::bytes128
         : pitch_bytes == 64 ? Swizzle::bytes64
                             : Swizzle::bytes32;
}

TmaView view_of(const OperandRule& rule, const MatrixType& matrix, std::int64_t rows,
                std::int64_t columns, std::int64_t batches) {
  const bool is_row = rule.layout == LayoutRule::row;
  const std::int64_t adjacent = is_row ? columns : rows;
  const std::int64_t stride = is_row ? matrix.row_stride : matrix.column_stride;
  const auto bytes_of = [&](std::int64_t elements) {
    return storage_bytes(matrix.dtype, elements);
  };
  return {.adjacent = is_packed(matrix.dtype) ? bytes_of(adjacent) : adjacent,
          .other = is_row ? rows : columns,
          .batches = matrix.batch_stride == 0 ? 1 : batches,
          .stride_bytes = bytes_of(stride),
          .batch_stride_bytes = matrix.has_pointers() ? 0 : bytes_of(matrix.batch_stride),
          .has_pointers = matrix.has_pointers()};
}

std::string find_misfit(const char* operand, const TmaView& view) {
  if (std::max({view.adjacent, view.other, view.batches}) > largest_extent) {
    return fmt::format("{}: expected extents of at most {}, got {}x{}x{}", operand, largest_extent,
                       view.batches, view.other, view.adjacent);
  }
  if (view.other > 1 && !is_tma_stride(view.stride_bytes)) {
    return fmt::format("{}: expected a stride of 16 to 2^40 bytes in steps of 16, got {}", operand,
                       view.stride_bytes);
  }
  if (view.batches > 1 && !view.has_pointers && !is_tma_stride(view.batch_stride_bytes)) {
    return fmt::format("{}: expected a batch stride of 16 to 2^40 bytes in steps of 16, got {}",
                       operand, view.batch_stride_bytes);
  }
  return {};
}

namespace {

const void* map_address_of(const void* array) {
  return reinterpret_cast<const void*>(abi::map_address(reinterpret_cast<std::uintptr_t>(array)));
}

// Gives a map its two dimensions of map distance.
void take_pointers(driver::TiledTensorMap& map, const TmaView& view) {
  map.rank = 4;
  map.box[3] = 1;
  map.extents[3] = 1;
  map.byte_strides[2] = abi::near_step_bytes;
  if (!view.has_pointers) return;
  map.address = map_address_of(map.address);
  map.extents[2] = abi::near_extent;
  map.extents[3] = abi::far_extent;
  map.byte_strides[1] = abi::near_step_bytes;
  map.byte_strides[2] = abi::far_step_bytes;
}

}  // namespace

driver::TiledTensorMap map_of(const void* data, DType dtype, const TmaView& view, TmaBox box,
                              bool takes_pointers) {
  const auto extent = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const auto side = [](int value) { return static_cast<std::uint32_t>(value); };
  driver::TiledTensorMap map{
      .address = data, .dtype = is_packed(dtype) ? DType::uint8 : dtype, .rank = 3};
  map.extents = {extent(view.adjacent), extent(view.other), extent(view.batches)};
  map.byte_strides = {stride_or_least(view.other, view.stride_bytes),
                      stride_or_least(view.batches, view.batch_stride_bytes)};
  map.box = {side(box.adjacent), side(box.other), 1};
  map.swizzle = swizzle_of(box.adjacent * static_cast<int>(byte_width(dtype)));
  if (takes_pointers) take_pointers(map, view);
  return map;
}

}  // namespace gemmery::templates
