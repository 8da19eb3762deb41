// SPDX-License-Identifier: Apache-2.0
// The map distances of batches by pointers. Compiled for the host only.
#include "device/abi/pointer_array.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>

#include "tests/support/random_seed.hpp"

namespace gemmery::abi {
namespace {

// The address that TMA computes from the coordinates.
UInt64 address_at(UInt64 map, const MapDistance& distance) {
  return map + static_cast<UInt64>(distance.near) * near_step_bytes +
         static_cast<UInt64>(distance.far) * far_step_bytes;
}

bool is_inside(const MapDistance& distance) {
  return distance.near >= 0 && static_cast<UInt64>(distance.near) < near_extent &&
         distance.far >= 0 && static_cast<UInt64>(distance.far) < far_extent;
}

void expect_reached(UInt64 map, UInt64 matrix) {
  const MapDistance distance = map_distance(map, matrix);
  EXPECT_TRUE(is_inside(distance)) << map << " " << matrix;
  EXPECT_EQ(address_at(map, distance), matrix) << map << " " << matrix;
}

TEST(PointerArray, a_map_reaches_every_address) {
  static_assert(far_extent * far_step_bytes == 0, "distances fill 64 bits");
  static_assert(far_step_bytes < UInt64{1} << 40, "as tensor maps have it");
  constexpr UInt64 last = ~UInt64{0} / 16 * 16;
  for (const UInt64 matrix :
       {UInt64{0}, UInt64{16}, far_step_bytes - 16, far_step_bytes, UInt64{0x7fff'ffff'fff0}, last})
    for (const UInt64 map : {UInt64{16}, far_step_bytes, UInt64{0x7fff'0000'0010}, last})
      expect_reached(map, matrix);
  std::mt19937_64 random(tests::random_seed());
  for (int draw = 0; draw < 100000; ++draw)
    expect_reached(map_address(random()), random() / 16 * 16);
}

TEST(PointerArray, a_map_begins_within_the_array_s_first_16_bytes) {
  for (const UInt64 array : {UInt64{0x7000}, UInt64{0x7008}})
    EXPECT_EQ(map_address(array), 0x7000U);
}

}  // namespace
}  // namespace gemmery::abi
