// SPDX-License-Identifier: Apache-2.0
// Tensor maps: the manual's rules, the encoding in memory, and the rows of a box compared with a
// computation element by element.
#include "emulator/memory/tensor_map.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <random>

#include "tests/support/random_seed.hpp"

namespace gemmery::emulator {
namespace {

TensorMapFields matrix() {
  TensorMapFields fields;
  fields.address = 0x2000'0000'0000;
  fields.element = MapElement::bf16;
  fields.rank = 2;
  fields.extents = {1000, 520};
  fields.byte_strides = {2000};
  fields.box = {64, 128};
  fields.element_strides = {1, 1};
  fields.swizzle = 3;
  return fields;
}

TensorMapFields image() {
  TensorMapFields fields;
  fields.address = 0x2000'0000'0000;
  fields.element = MapElement::f16;
  fields.rank = 4;
  fields.extents = {64, 9, 14, 3};
  fields.byte_strides = {128, 1152, 16128};
  fields.element_strides = {1, 1, 1, 1};
  fields.is_im2col = true;
  fields.lower_corner = {-1, -1};
  fields.upper_corner = {-1, -1};
  fields.channels_per_pixel = 8;
  fields.pixels_per_column = 64;
  return fields;
}

struct BrokenRule {
  const char* says;
  std::function<void(TensorMapFields&)> breaks;
};

TEST(TensorMap, each_rule_of_the_manual_is_named_when_it_is_broken) {
  const BrokenRule rules[] = {
      {"rank must be 1 … 5, not 0", [](auto& map) { map.rank = 0; }},
      {"rank must be 1 … 5, not 6", [](auto& map) { map.rank = 6; }},
      {"rank must be 3 … 5", [](auto& map) { map.interleave = 1; }},
      {"global address must not be null", [](auto& map) { map.address = 0; }},
      {"global address must be a multiple of 16", [](auto& map) { map.address += 8; }},
      {"extent[1] must be in 1 … 2^32", [](auto& map) { map.extents[1] = 0; }},
      {"extent[0] must be", [](auto& map) { map.extents[0] = (std::uint64_t{1} << 32) + 1; }},
      {"byte stride[0] must be a multiple of 16", [](auto& map) { map.byte_strides[0] = 2008; }},
      {"byte stride[0]", [](auto& map) { map.byte_strides[0] = std::uint64_t{1} << 40; }},
      {"box[1] must be in 1 … 256, not 257", [](auto& map) { map.box[1] = 257; }},
      {"box[0] must be in 1 … 256, not 0", [](auto& map) { map.box[0] = 0; }},
      {"box[0] takes 24 bytes", [](auto& map) { map.box[0] = 12; }},
      {"more than its swizzle of 128", [](auto& map) { map.box[0] = 72; }},
      {"more than its swizzle of 32", [](auto& map) { map.swizzle = 1; }},
      {"element stride[1] must be in 1 … 8", [](auto& map) { map.element_strides[1] = 9; }},
      {"element stride[1] must be in 1 … 8", [](auto& map) { map.element_strides[1] = 0; }},
      {"NaN needs a floating-point",
       [](auto& map) {
         map.element = MapElement::u16;
         map.fills_nan = true;
       }},
  };
  ASSERT_EQ(find_broken_rule(matrix()), "");
  for (const BrokenRule& rule : rules) {
    TensorMapFields fields = matrix();
    rule.breaks(fields);
    EXPECT_NE(find_broken_rule(fields).find(rule.says), std::string::npos)
        << rule.says << " / " << find_broken_rule(fields);
  }
}

TEST(TensorMap, the_rules_of_pixel_boxes_are_named_when_they_are_broken) {
  const BrokenRule rules[] = {
      {"rank must be 3 … 5", [](auto& map) { map.rank = 2; }},
      {"pixel box corner[1] must be in -128 … 127", [](auto& map) { map.lower_corner[1] = -129; }},
      {"pixel box is empty in spatial dimension 0", [](auto& map) { map.upper_corner[0] = -10; }},
      {"channels per pixel must be in 1 … 256", [](auto& map) { map.channels_per_pixel = 257; }},
      {"pixels per column must be in 1 … 1024", [](auto& map) { map.pixels_per_column = 1025; }},
  };
  ASSERT_EQ(find_broken_rule(image()), "");
  for (const BrokenRule& rule : rules) {
    TensorMapFields fields = image();
    rule.breaks(fields);
    EXPECT_NE(find_broken_rule(fields).find(rule.says), std::string::npos)
        << rule.says << " / " << find_broken_rule(fields);
  }
}

TEST(TensorMap, decode_gives_what_was_encoded) {
  EXPECT_EQ(decode(encode(matrix())), matrix());
  EXPECT_EQ(decode(encode(image())), image());
  TensorMapFields wide = matrix();
  wide.extents[1] = std::uint64_t{1} << 32;
  wide.box = {64, 256};
  EXPECT_EQ(decode(encode(wide)), wide);
}

// As CUTLASS does for tensors of less than 128 KiB, which is right for maps of drivers up to 13.1.
TEST(TensorMap, clearing_bit_21_of_the_second_word_has_no_effect) {
  TensorMapFields fields = matrix();
  fields.address |= std::uint64_t{1} << 21;
  fields.extents = {~std::uint64_t{0} >> 32, ~std::uint64_t{0} >> 32};
  TensorMapBytes bytes = encode(fields);
  bytes[1] &= ~(std::uint64_t{1} << 21);
  EXPECT_EQ(decode(bytes), fields);
}

TEST(TensorMap, bytes_that_no_encode_wrote_are_a_fault) {
  std::mt19937_64 random(tests::random_seed());
  EXPECT_THROW(decode(TensorMapBytes{}), Fault);
  for (int round = 0; round < 200; ++round) {
    TensorMapBytes bytes = encode(matrix());
    bytes[random() % 16] ^= std::uint64_t{1} << random() % 64;
    EXPECT_THROW(decode(bytes), Fault);
  }
}

TEST(TensorMap, layouts_that_are_not_known_are_refused_by_name) {
  TensorMapFields narrow = matrix();
  EXPECT_EQ(find_unknown_layout(narrow), "");
  narrow.box[0] = 32;
  EXPECT_NE(find_unknown_layout(narrow).find("64 bytes under a swizzle of 128"), std::string::npos);
  TensorMapFields interleaved = image();
  interleaved.interleave = 1;
  EXPECT_NE(find_unknown_layout(interleaved).find("interleaved"), std::string::npos);
}

TEST(TensorMap, the_swizzle_permutes_chunks_by_the_row_of_128_bytes) {
  for (std::uint32_t row = 0; row < 16; ++row) {
    for (std::uint32_t chunk = 0; chunk < 8; ++chunk) {
      const std::uint32_t address = 4096 + row * 128 + chunk * 16 + 5;
      const std::uint32_t start = 4096 + row * 128 + 5;
      EXPECT_EQ(swizzled(0, address), address);
      EXPECT_EQ(swizzled(1, address), start + (chunk ^ row % 2) * 16);
      EXPECT_EQ(swizzled(2, address), start + (chunk ^ row % 4) * 16);
      EXPECT_EQ(swizzled(3, address), start + (chunk ^ row % 8) * 16);
    }
  }
}

// The address of each element of the box in the order of shared memory; nothing if it is filled.
using Elements = std::vector<std::optional<std::uint64_t>>;

Elements elements_of(const TensorMapFields& fields, const std::vector<BoxRow>& rows) {
  const std::uint32_t width = bytes_of(fields.element);
  Elements elements(box_bytes(fields) / width);
  for (const BoxRow& row : rows)
    for (std::uint32_t at = 0; at < row.inside_bytes; at += width)
      elements.at((row.shared_offset + row.inside_from + at) / width) = row.address + at;
  return elements;
}

std::optional<std::uint64_t> element_at(const TensorMapFields& fields,
                                        const std::array<std::int64_t, 5>& position) {
  std::uint64_t address = fields.address;
  for (std::size_t dimension = 0; dimension < fields.rank; ++dimension) {
    const std::int64_t at = position[dimension];
    if (at < 0 || at >= static_cast<std::int64_t>(fields.extents[dimension])) return {};
    address += static_cast<std::uint64_t>(at) *
               (dimension == 0 ? bytes_of(fields.element) : fields.byte_strides[dimension - 1]);
  }
  return address;
}

void append_tile(const TensorMapFields& fields, std::span<const std::int32_t> start,
                 std::size_t dimension, std::array<std::int64_t, 5>& position, Elements& elements) {
  const std::uint32_t stride = dimension == 0 ? 1 : fields.element_strides[dimension];
  for (std::uint32_t step = 0; step < fields.box[dimension]; step += stride) {
    position[dimension] = start[dimension] + std::int64_t{step};
    if (dimension == 0)
      elements.push_back(element_at(fields, position));
    else
      append_tile(fields, start, dimension - 1, position, elements);
  }
}

TensorMapFields random_tile(std::mt19937_64& random) {
  constexpr MapElement types[] = {MapElement::u8, MapElement::bf16, MapElement::f32,
                                  MapElement::f64};
  TensorMapFields fields;
  fields.address = 0x2000'0000'0000;
  fields.element = types[random() % 4];
  fields.rank = static_cast<std::uint32_t>(1 + random() % 5);
  std::uint64_t stride = bytes_of(fields.element);
  for (std::size_t dimension = 0; dimension < fields.rank; ++dimension) {
    fields.extents[dimension] = 1 + random() % 20;
    fields.box[dimension] = static_cast<std::uint32_t>(1 + random() % 6);
    fields.element_strides[dimension] = static_cast<std::uint32_t>(1 + random() % 3);
    stride = (stride * fields.extents[dimension] + 15) / 16 * 16;
    if (dimension + 1 < fields.rank) fields.byte_strides[dimension] = stride;
  }
  fields.box[0] = static_cast<std::uint32_t>(1 + random() % 2) * 16 / bytes_of(fields.element);
  return fields;
}

TEST(TensorMap, tile_boxes_agree_with_a_walk_element_by_element) {
  std::mt19937_64 random(tests::random_seed());
  for (int round = 0; round < 300; ++round) {
    const TensorMapFields fields = random_tile(random);
    ASSERT_EQ(find_broken_rule(fields), "");
    std::vector<std::int32_t> start(fields.rank);
    for (std::int32_t& at : start) at = static_cast<std::int32_t>(random() % 30) - 8;
    Elements expected;
    std::array<std::int64_t, 5> position{};
    append_tile(fields, start, fields.rank - 1, position, expected);
    ASSERT_EQ(expected.size() * bytes_of(fields.element), box_bytes(fields));
    EXPECT_EQ(elements_of(fields, rows_of_box(fields, start, {})), expected);
  }
}

// The manual's example: consecutive pixels of the box of base positions (-1 … extent - 2 for a
// padded 3x3 filter), and the filter's offset is added to each.
TEST(TensorMap, im2col_columns_wrap_at_the_pixel_box_and_add_the_offsets) {
  TensorMapFields fields = image();
  std::mt19937_64 random(tests::random_seed());
  for (int round = 0; round < 100; ++round) {
    const auto stride = static_cast<std::uint32_t>(1 + random() % 2);
    fields.element_strides = {1, stride, stride, 1};
    // All base positions in order.
    std::vector<std::array<std::int64_t, 5>> pixels;
    for (std::int64_t n = 0; n < 5; ++n)
      for (std::int64_t h = -1; h <= 12; h += stride)
        for (std::int64_t w = -1; w <= 7; w += stride) pixels.push_back({8, w, h, n});
    const std::size_t first = random() % (pixels.size() - 64);
    const std::uint16_t offsets[] = {static_cast<std::uint16_t>(random() % 3),
                                     static_cast<std::uint16_t>(random() % 3)};
    Elements expected;
    for (std::size_t index = first; index < first + 64; ++index) {
      std::array<std::int64_t, 5> position = pixels[index];
      position[1] += offsets[0];
      position[2] += offsets[1];
      for (int channel = 0; channel < 8; ++channel, ++position[0])
        expected.push_back(element_at(fields, position));
    }
    const std::int32_t start[] = {8, static_cast<std::int32_t>(pixels[first][1]),
                                  static_cast<std::int32_t>(pixels[first][2]),
                                  static_cast<std::int32_t>(pixels[first][3])};
    EXPECT_EQ(elements_of(fields, rows_of_box(fields, start, offsets)), expected);
  }
}

TEST(TensorMap, out_of_bounds_elements_are_zero_or_a_nan) {
  for (const MapElement element : {MapElement::f16, MapElement::f32, MapElement::f64}) {
    TensorMapFields fields = matrix();
    fields.element = element;
    std::array<std::byte, 16> bytes;
    bytes.fill(std::byte{0x55});
    fill_out_of_bounds(fields, bytes.data(), 16);
    EXPECT_EQ(bytes, (std::array<std::byte, 16>{}));
    fields.fills_nan = true;
    fill_out_of_bounds(fields, bytes.data(), 16);
    for (std::uint32_t at = 0; at < 16; ++at)
      EXPECT_EQ(bytes[at], at % 2 == 1 ? std::byte{0x7f} : std::byte{0xf7});
  }
}

TEST(TensorMap, loads_round_to_tf32_and_flush_nothing) {
  struct Row {
    MapElement element;
    std::uint32_t before, after;
  };
  const Row rows[] = {
      {MapElement::f32, 0x8000'0001, 0x8000'0001},
      {MapElement::f32_flush, 0x8000'0001, 0x8000'0001},
      {MapElement::tf32, 0x3f80'0fff, 0x3f80'0000},
      {MapElement::tf32, 0x3f80'1000, 0x3f80'0000},
      {MapElement::tf32, 0x3f80'1001, 0x3f80'2000},
      {MapElement::tf32, 0x3f80'3000, 0x3f80'4000},
      {MapElement::tf32, 0x7f80'0000, 0x7f80'0000},
      {MapElement::tf32, 0x7f7f'ffff, 0x7f80'0000},
      {MapElement::tf32_flush, 0x0000'2001, 0x0000'2000},
      {MapElement::tf32, 0xffdc'2abc, 0x7fff'e000},
      {MapElement::tf32, 0x0000'2000, 0x0000'2000},
  };
  for (const Row& row : rows) {
    TensorMapFields fields = matrix();
    fields.element = row.element;
    std::uint32_t bits = row.before;
    convert_elements(fields, reinterpret_cast<std::byte*>(&bits), 4);
    EXPECT_EQ(bits, row.after) << std::hex << row.before;
  }
}

}  // namespace
}  // namespace gemmery::emulator
