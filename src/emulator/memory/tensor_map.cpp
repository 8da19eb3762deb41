// SPDX-License-Identifier: Apache-2.0
// The fields of a tensor map: the manual's rules and the encoding in memory.
#include "emulator/memory/tensor_map.hpp"

#include <cstring>
#include <string_view>

namespace gemmery::emulator {
namespace {

constexpr std::array<std::uint8_t, 13> element_bytes{1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
constexpr std::uint64_t max_extent = std::uint64_t{1} << 32;
constexpr std::uint64_t stride_limit = std::uint64_t{1} << 40;
constexpr std::uint32_t max_box = 256;
constexpr std::uint32_t max_pixels = 1024;
constexpr std::uint32_t max_element_stride = 8;

std::string broken(std::string_view field, std::size_t index, std::string_view expected,
                   std::uint64_t got) {
  return std::string(field) + "[" + std::to_string(index) + "] must be " + std::string(expected) +
         ", not " + std::to_string(got);
}

std::string broken(std::string_view field, std::string_view expected, std::uint64_t got) {
  return std::string(field) + " must be " + std::string(expected) + ", not " + std::to_string(got);
}

std::string find_broken_enumerator(const TensorMapFields& fields) {
  if (static_cast<std::size_t>(fields.element) >= element_bytes.size())
    return broken("element type", "one of the 13 known ones",
                  static_cast<std::uint64_t>(fields.element));
  if (fields.interleave > 2) return broken("interleave", "0 … 2", fields.interleave);
  if (fields.swizzle > 3) return broken("swizzle", "0 … 3", fields.swizzle);
  const std::uint32_t lowest_rank = fields.is_im2col || fields.interleave != 0 ? 3 : 1;
  if (fields.rank < lowest_rank || fields.rank > max_map_rank)
    return broken("rank", std::to_string(lowest_rank) + " … 5", fields.rank);
  if (fields.fills_nan && !is_float(fields.element))
    return "out-of-bounds fill by NaN needs a floating-point element type";
  return {};
}

std::string find_broken_tensor(const TensorMapFields& fields) {
  const std::uint64_t alignment = fields.interleave == 2 ? 32 : 16;
  if (fields.address == 0) return "global address must not be null";
  if (fields.address % alignment != 0)
    return broken("global address", "a multiple of " + std::to_string(alignment), fields.address);
  for (std::size_t dimension = 0; dimension < fields.rank; ++dimension) {
    const std::uint64_t extent = fields.extents[dimension];
    if (extent == 0 || extent > max_extent)
      return broken("extent", dimension, "in 1 … 2^32", extent);
  }
  for (std::size_t dimension = 0; dimension + 1 < fields.rank; ++dimension) {
    const std::uint64_t stride = fields.byte_strides[dimension];
    if (stride % alignment != 0 || stride >= stride_limit)
      return broken("byte stride", dimension,
                    "a multiple of " + std::to_string(alignment) + " below 2^40", stride);
  }
  for (std::size_t dimension = fields.interleave == 0 ? 1 : 0; dimension < fields.rank;
       ++dimension) {
    const std::uint32_t stride = fields.element_strides[dimension];
    if (stride == 0 || stride > max_element_stride)
      return broken("element stride", dimension, "in 1 … 8", stride);
  }
  return {};
}

// Without interleave: whole 16-byte chunks that stay within the swizzle's span.
std::string find_broken_row(const TensorMapFields& fields, std::string_view field) {
  if (fields.interleave != 0) {
    return fields.interleave == 2 && fields.swizzle != 1
               ? "interleave of 32 bytes needs the swizzle of 32 bytes"
               : std::string{};
  }
  const std::uint32_t bytes = row_bytes(fields);
  if (bytes % 16 != 0)
    return std::string(field) + " takes " + std::to_string(bytes) +
           " bytes, which must be a multiple of 16";
  const std::uint32_t span = 16u << fields.swizzle;
  if (fields.swizzle != 0 && bytes > span)
    return std::string(field) + " takes " + std::to_string(bytes) +
           " bytes, more than its swizzle of " + std::to_string(span);
  return {};
}

std::string find_broken_box(const TensorMapFields& fields) {
  for (std::size_t dimension = 0; dimension < fields.rank; ++dimension) {
    const std::uint32_t length = fields.box[dimension];
    if (length == 0 || length > max_box) return broken("box", dimension, "in 1 … 256", length);
  }
  return find_broken_row(fields, "box[0]");
}

std::string find_broken_pixel_box(const TensorMapFields& fields) {
  // Signed bits of a corner's coordinate: 16 for one spatial dimension, 8 for two, 5 for three.
  constexpr std::array<std::int32_t, 3> corner_limits{1 << 15, 1 << 7, 1 << 4};
  const std::int32_t limit = corner_limits[fields.rank - 3];
  const auto is_outside = [limit](std::int32_t value) { return value < -limit || value >= limit; };
  for (std::size_t spatial = 0; spatial + 2 < fields.rank; ++spatial) {
    const std::int32_t lower = fields.lower_corner[spatial];
    const std::int32_t upper = fields.upper_corner[spatial];
    if (is_outside(lower) || is_outside(upper))
      return "pixel box corner[" + std::to_string(spatial) + "] must be in " +
             std::to_string(-limit) + " … " + std::to_string(limit - 1) + ", not " +
             std::to_string(lower) + " and " + std::to_string(upper);
    if (static_cast<std::int64_t>(fields.extents[spatial + 1]) + upper <= lower)
      return "pixel box is empty in spatial dimension " + std::to_string(spatial);
  }
  if (fields.channels_per_pixel == 0 || fields.channels_per_pixel > max_box)
    return broken("channels per pixel", "in 1 … 256", fields.channels_per_pixel);
  if (fields.pixels_per_column == 0 || fields.pixels_per_column > max_pixels)
    return broken("pixels per column", "in 1 … 1024", fields.pixels_per_column);
  return find_broken_row(fields, "channels per pixel");
}

// --- in memory ----------------------------------------------------------------------------------

constexpr std::uint32_t map_mark = 0x4d54'4d47;  // "GMTM"

struct Packed {
  std::uint32_t mark = map_mark;
  std::uint32_t checksum = 0;
  std::uint8_t element = 0;
  std::uint8_t rank = 0;
  std::uint8_t unused[6] = {};  // CUTLASS clears bit 21 of the driver's second word
  std::uint64_t address = 0;
  std::uint64_t byte_strides[4] = {};
  std::uint64_t extents[5] = {};
  std::uint16_t box[5] = {};
  std::int16_t lower_corner[3] = {};
  std::int16_t upper_corner[3] = {};
  std::uint16_t channels_per_pixel = 0;
  std::uint16_t pixels_per_column = 0;
  std::uint8_t element_strides[5] = {};
  std::uint8_t layout = 0;  // interleave | swizzle << 2 | fills_nan << 4 | is_im2col << 5
};
static_assert(sizeof(Packed) == sizeof(TensorMapBytes));

// Covers all words except the checksum; differs if any single word is changed.
std::uint32_t checksum_of(Packed packed) noexcept {
  packed.checksum = 0;
  TensorMapBytes words;
  std::memcpy(words.data(), &packed, sizeof packed);
  std::uint64_t sum = 0x9e37'79b9'7f4a'7c15;
  for (const std::uint64_t word : words) {
    sum = (sum ^ word) * 0xff51'afd7'ed55'8ccd;
    sum ^= sum >> 32;
  }
  return static_cast<std::uint32_t>(sum);
}

void unpack_layout(const Packed& packed, TensorMapFields& fields) {
  fields.element = static_cast<MapElement>(packed.element);
  fields.rank = packed.rank;
  fields.interleave = packed.layout & 3;
  fields.swizzle = packed.layout >> 2 & 3;
  fields.fills_nan = (packed.layout >> 4 & 1) != 0;
  fields.is_im2col = (packed.layout >> 5 & 1) != 0;
}

std::uint8_t pack_layout(const TensorMapFields& fields) noexcept {
  return static_cast<std::uint8_t>((fields.interleave & 3u) | (fields.swizzle & 3u) << 2 |
                                   (fields.fills_nan ? 1u << 4 : 0u) |
                                   (fields.is_im2col ? 1u << 5 : 0u));
}

}  // namespace

std::uint32_t bytes_of(MapElement element) noexcept {
  return element_bytes[static_cast<std::size_t>(element)];
}

bool is_float(MapElement element) noexcept { return element >= MapElement::f16; }

std::string find_broken_rule(const TensorMapFields& fields) {
  if (std::string rule = find_broken_enumerator(fields); !rule.empty()) return rule;
  if (std::string rule = find_broken_tensor(fields); !rule.empty()) return rule;
  return fields.is_im2col ? find_broken_pixel_box(fields) : find_broken_box(fields);
}

TensorMapBytes encode(const TensorMapFields& fields) {
  Packed packed;
  packed.address = fields.address;
  packed.element = static_cast<std::uint8_t>(fields.element);
  packed.rank = static_cast<std::uint8_t>(fields.rank);
  packed.layout = pack_layout(fields);
  packed.channels_per_pixel = static_cast<std::uint16_t>(fields.channels_per_pixel);
  packed.pixels_per_column = static_cast<std::uint16_t>(fields.pixels_per_column);
  for (std::size_t dimension = 0; dimension < max_map_rank; ++dimension) {
    packed.extents[dimension] = fields.extents[dimension];
    packed.element_strides[dimension] =
        static_cast<std::uint8_t>(fields.element_strides[dimension]);
    packed.box[dimension] = static_cast<std::uint16_t>(fields.box[dimension]);
    if (dimension < 4) packed.byte_strides[dimension] = fields.byte_strides[dimension];
    if (dimension < 3) {
      packed.lower_corner[dimension] = static_cast<std::int16_t>(fields.lower_corner[dimension]);
      packed.upper_corner[dimension] = static_cast<std::int16_t>(fields.upper_corner[dimension]);
    }
  }
  packed.checksum = checksum_of(packed);
  TensorMapBytes bytes;
  std::memcpy(bytes.data(), &packed, sizeof packed);
  return bytes;
}

TensorMapFields decode(const TensorMapBytes& bytes) {
  Packed packed;
  std::memcpy(static_cast<void*>(&packed), bytes.data(), sizeof packed);
  if (packed.mark != map_mark || packed.checksum != checksum_of(packed))
    throw Fault(FaultKind::tensor_map,
                "the 128 bytes at the tensor map's address are none that cuTensorMapEncode… "
                "wrote; pass the map as a const __grid_constant__ parameter and take its address, "
                "or copy all 128 bytes to an address that is a multiple of 64");
  TensorMapFields fields;
  unpack_layout(packed, fields);
  fields.address = packed.address;
  fields.channels_per_pixel = packed.channels_per_pixel;
  fields.pixels_per_column = packed.pixels_per_column;
  for (std::size_t dimension = 0; dimension < max_map_rank; ++dimension) {
    fields.extents[dimension] = packed.extents[dimension];
    fields.element_strides[dimension] = packed.element_strides[dimension];
    fields.box[dimension] = packed.box[dimension];
    if (dimension < 4) fields.byte_strides[dimension] = packed.byte_strides[dimension];
    if (dimension < 3) {
      fields.lower_corner[dimension] = packed.lower_corner[dimension];
      fields.upper_corner[dimension] = packed.upper_corner[dimension];
    }
  }
  return fields;
}

std::string find_unknown_layout(const TensorMapFields& fields) {
  if (fields.interleave != 0) return "interleaved tensor maps are not known to this machine";
  const std::uint32_t span = 16u << fields.swizzle;
  if (fields.swizzle != 0 && row_bytes(fields) < span && box_bytes(fields) > row_bytes(fields))
    return "rows of " + std::to_string(row_bytes(fields)) + " bytes under a swizzle of " +
           std::to_string(span) +
           " bytes are not known to this machine; take the swizzle of the row's width";
  return {};
}

}  // namespace gemmery::emulator
