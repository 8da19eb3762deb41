// SPDX-License-Identifier: Apache-2.0
// Visits the rows of a tensor map's box in global memory, in tile and im2col mode.
#include <algorithm>
#include <cstring>

#include "emulator/memory/tensor_map.hpp"

namespace gemmery::emulator {
namespace {

using Position = std::array<std::int64_t, max_map_rank>;

std::uint32_t steps(const TensorMapFields& fields, std::size_t dimension) noexcept {
  const std::uint32_t stride = fields.element_strides[dimension];
  return (fields.box[dimension] + stride - 1) / stride;
}

// The row that begins at a position: clipped along dimension 0; empty if another coordinate is out
// of bounds.
BoxRow row_at(const TensorMapFields& fields, std::uint32_t shared_offset, std::uint32_t elements,
              const Position& position) {
  BoxRow row{.shared_offset = shared_offset};
  std::uint64_t address = fields.address;
  for (std::size_t dimension = 1; dimension < fields.rank; ++dimension) {
    const std::int64_t at = position[dimension];
    if (at < 0 || at >= static_cast<std::int64_t>(fields.extents[dimension])) return row;
    address += static_cast<std::uint64_t>(at) * fields.byte_strides[dimension - 1];
  }
  const std::int64_t first = std::max<std::int64_t>(position[0], 0);
  const std::int64_t end =
      std::min(position[0] + std::int64_t{elements}, static_cast<std::int64_t>(fields.extents[0]));
  if (first >= end) return row;
  const std::uint32_t width = bytes_of(fields.element);
  row.inside_from = static_cast<std::uint32_t>(first - position[0]) * width;
  row.inside_bytes = static_cast<std::uint32_t>(end - first) * width;
  row.address = address + static_cast<std::uint64_t>(first) * width;
  return row;
}

std::vector<BoxRow> rows_of_tile(const TensorMapFields& fields, const Position& start) {
  const std::uint32_t bytes = row_bytes(fields);
  std::uint32_t count = 1;
  for (std::size_t dimension = 1; dimension < fields.rank; ++dimension)
    count *= steps(fields, dimension);
  std::vector<BoxRow> rows;
  rows.reserve(count);
  std::array<std::uint32_t, max_map_rank> step{};
  Position position = start;
  for (std::uint32_t index = 0; index < count; ++index) {
    rows.push_back(row_at(fields, index * bytes, fields.box[0], position));
    for (std::size_t dimension = 1; dimension < fields.rank; ++dimension) {
      position[dimension] += fields.element_strides[dimension];
      if (++step[dimension] < steps(fields, dimension)) break;
      step[dimension] = 0;
      position[dimension] = start[dimension];
    }
  }
  return rows;
}

// The next pixel of the pixel box: along W, then H, D; the last is followed by the first of the
// next image.
void advance_pixel(const TensorMapFields& fields, Position& pixel) {
  const std::size_t image = fields.rank - 1;
  for (std::size_t dimension = 1; dimension < image; ++dimension) {
    pixel[dimension] += fields.element_strides[dimension];
    const std::int64_t end =
        static_cast<std::int64_t>(fields.extents[dimension]) + fields.upper_corner[dimension - 1];
    if (pixel[dimension] < end) return;
    pixel[dimension] = fields.lower_corner[dimension - 1];
  }
  pixel[image] += fields.element_strides[image];
}

std::vector<BoxRow> rows_of_column(const TensorMapFields& fields, Position pixel,
                                   std::span<const std::uint16_t> offsets) {
  const std::uint32_t bytes = row_bytes(fields);
  std::vector<BoxRow> rows;
  rows.reserve(fields.pixels_per_column);
  for (std::uint32_t index = 0; index < fields.pixels_per_column; ++index) {
    Position position = pixel;
    for (std::size_t spatial = 0; spatial + 2 < fields.rank; ++spatial)
      position[spatial + 1] += offsets[spatial];
    rows.push_back(row_at(fields, index * bytes, fields.channels_per_pixel, position));
    advance_pixel(fields, pixel);
  }
  return rows;
}

// Rounds to nearest even; all NaNs become the same one (recorded).
std::uint32_t round_to_tf32(std::uint32_t bits) noexcept {
  constexpr std::uint32_t exponent = 0x7f80'0000;
  constexpr std::uint32_t dropped_bits = 13;
  constexpr std::uint32_t kept = ~((1u << dropped_bits) - 1);
  if ((bits & exponent) == exponent) return (bits & 0x7f'ffff) != 0 ? 0x7fff'e000 : bits;
  const std::uint32_t is_odd = bits >> dropped_bits & 1;
  return (bits + (1u << (dropped_bits - 1)) - 1 + is_odd) & kept;
}

}  // namespace

std::uint32_t row_bytes(const TensorMapFields& fields) noexcept {
  return (fields.is_im2col ? fields.channels_per_pixel : fields.box[0]) * bytes_of(fields.element);
}

std::uint32_t box_bytes(const TensorMapFields& fields) noexcept {
  if (fields.is_im2col) return row_bytes(fields) * fields.pixels_per_column;
  std::uint64_t bytes = row_bytes(fields);
  for (std::size_t dimension = 1; dimension < fields.rank; ++dimension)
    bytes = std::min<std::uint64_t>(bytes * steps(fields, dimension), 0xffff'ffff);
  return static_cast<std::uint32_t>(bytes);
}

std::vector<BoxRow> rows_of_box(const TensorMapFields& fields,
                                std::span<const std::int32_t> coordinates,
                                std::span<const std::uint16_t> offsets) {
  Position start{};
  std::copy(coordinates.begin(), coordinates.end(), start.begin());
  return fields.is_im2col ? rows_of_column(fields, start, offsets) : rows_of_tile(fields, start);
}

void fill_out_of_bounds(const TensorMapFields& fields, std::byte* to, std::uint32_t bytes) {
  if (!fields.fills_nan) {
    std::memset(to, 0, bytes);
    return;
  }
  constexpr std::uint16_t nan = 0x7ff7;
  for (std::uint32_t at = 0; at + sizeof nan <= bytes; at += sizeof nan)
    std::memcpy(to + at, &nan, sizeof nan);
}

void convert_elements(const TensorMapFields& fields, std::byte* elements, std::uint32_t bytes) {
  if (fields.element != MapElement::tf32 && fields.element != MapElement::tf32_flush) return;
  for (std::uint32_t at = 0; at + 4 <= bytes; at += 4) {
    std::uint32_t bits;
    std::memcpy(&bits, elements + at, 4);
    bits = round_to_tf32(bits);
    std::memcpy(elements + at, &bits, 4);
  }
}

}  // namespace gemmery::emulator
